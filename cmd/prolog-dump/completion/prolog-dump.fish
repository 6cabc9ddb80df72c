# fish completion for prolog-dump
function __prolog_dump
    set -l answer (command prolog-dump complete-line fish (commandline -cp) 2>/dev/null)
    if test "$answer[1]" = files
        __fish_complete_path (commandline -ct)
        return
    end
    printf '%s\n' $answer[2..-1]
end
complete -c prolog-dump -f -k -a '(__prolog_dump)'
