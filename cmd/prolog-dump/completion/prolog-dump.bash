# bash completion for prolog-dump
_prolog_dump() {
    local answer
    COMPREPLY=()
    mapfile -t answer < <("${COMP_WORDS[0]}" complete-line bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    if [[ ${answer[0]} == files ]]; then
        compopt -o default -o filenames 2>/dev/null
        return
    fi
    compopt +o default -o nospace -o nosort 2>/dev/null
    COMPREPLY=("${answer[@]:1}")
    # A verb, a flag or a value is whole when it is the only one left; what a definition
    # can go on with is among the answers.
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} != *= ]]; then
        compopt +o nospace 2>/dev/null
    fi
}
complete -F _prolog_dump prolog-dump
