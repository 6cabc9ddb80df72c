#!/usr/bin/env bash
# Measures prolog-dump beside other tools on one kernel image, side by side, and
# writes bench/RESULTS.md: times, peak memory, the size of a kept index, counts of
# instructions, and how times grow with the image.
#
#   bench/peers.sh VMLINUX [IMAGE...]
#
# The other images are for the growth table only. ROUNDS (default 7) is how often
# each command is measured, OUT (default bench/RESULTS.md) the file to write.
#
# Each round runs every command once, so that a slow moment of the machine affects all
# of them. The images are in the page cache. A tool that is not installed, or that
# does not answer, is left out and named on the standard error.
set -euo pipefail
export LC_ALL=C

image=$(realpath "${1:?usage: $0 VMLINUX [IMAGE...]}")
shift
images=("$@")
rounds=${ROUNDS:-7}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-$here/RESULTS.md}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BPFPROLOGUE_CACHE=$work/cache
export DEBUGINFOD_URLS=

say() { echo "peers: $*" >&2; }

(cd "$here/.." && go build -o "$work/" ./cmd/prolog-dump ./internal/proof/cmd/measure)
export PATH=$work:$PATH
printf 'import drgn, sys\np = drgn.Program()\np.load_debug_info([sys.argv[1]])\nprint("loaded")\n' >"$work/load.py"

# SystemTap wants the build directory of the kernel that it reads; of it, a vmlinux and
# a release are enough for the passes that only read debug information.
tree=$work/tree
mkdir -p "$tree/include/config"
touch "$tree/.config" "$tree/Makefile" "$tree/Module.symvers"
ln -s "$image" "$tree/vmlinux"
release=$(grep -a -o -m 1 'Linux version [0-9][^ ]*' "$image" | head -n 1 | cut -d' ' -f3 || true)
echo "${release:-6.1.0}" >"$tree/include/config/kernel.release"

cat "$image" ${images[@]+"${images[@]}"} >/dev/null # into the page cache
prolog-dump -k "$image" --sites 'get_page page' >/dev/null # keeps the index

names=()
declare -A command
# add takes a name, a tool, what its output must hold, and a command.
add() {
	if ! command -v "$2" >/dev/null; then
		say "left out, $2 is not installed: $1"
	elif ! bash -c "$4" 2>&1 </dev/null | grep -e "$3" >/dev/null; then
		say "left out, it does not answer: $1: $4"
	else
		names+=("$1")
		command[$1]=$4
	fi
}
set +o pipefail # of what runs below only the output counts: perf exits with 1 when it gives up some sites
add "drgn: load_debug_info (no inlined sites, no locations)" drgn '^loaded$' "/usr/bin/python3 $work/load.py $image"
add "cold: get_page page" prolog-dump 'fetched at' "prolog-dump --no-cache -k $image --sites 'get_page page'"
add "cold: tcp_*, every parameter" measure 'located$' "measure params $image 'tcp_*'"
add "kept index: get_page page" prolog-dump 'fetched at' "prolog-dump -k $image --sites 'get_page page'"
add "kept index: tcp_*, every parameter" measure 'located$' "measure params -kept $image 'tcp_*'"
add "coverage: every site, every parameter, with its prologue" prolog-dump 'all located' "prolog-dump --no-cache coverage --ways entry $image"
add "perf probe -D 'get_page page'" perf '^p:probe/get_page' "perf probe -k $image --max-probes=100000 -D 'get_page page'"
add "gdb: info scope get_page" gdb 'page is ' "gdb -nx -batch -ex 'info scope get_page' $image"
add "SystemTap: stap -L 'kernel.function(\"get_page\")'" stap 'get_page@' "stap -r $tree -L 'kernel.function(\"get_page\")'"
add "llvm-dwarfdump --statistics" llvm-dwarfdump 'bytes' "llvm-dwarfdump --statistics $image"
add "debug/dwarf: a walk over all entries" measure 'entries$' "measure walk $image"
set -o pipefail

file() { echo "$work/$1.$(cksum <<<"$2" | cut -d' ' -f1)"; }

# median takes a kind of measurement and a command's name.
median() { sort -n "$(file "$1" "$2")" | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }

for ((i = 1; i <= rounds; i++)); do
	say "round $i of $rounds: time"
	for name in "${names[@]}"; do
		start=$(date +%s%N)
		bash -c "exec ${command[$name]}" >/dev/null 2>&1 </dev/null || true
		echo "$((($(date +%s%N) - start) / 1000))" >>"$(file time "$name")"
	done
done
# Memory hardly varies, and reading it disturbs times: rounds of its own.
for ((i = 1; i <= (rounds < 3 ? rounds : 3); i++)); do
	say "round $i: memory"
	for name in "${names[@]}"; do
		bash -c "exec measure peak ${command[$name]}" 2>/dev/null </dev/null >>"$(file memory "$name")"
	done
done

# Instructions of one goroutine's worth of work: they do not depend on what else the
# machine does. Signals that ask a goroutine to stop confuse valgrind now and then.
instructions() {
	local try
	for try in 1 2 3; do
		if GOMAXPROCS=1 GODEBUG=asyncpreemptoff=1 bash -c "exec valgrind --tool=callgrind --callgrind-out-file=/dev/null $1" \
			2>&1 >/dev/null </dev/null | awk '/I +refs:/ { gsub(",", "", $NF); print $NF; found = 1 } END { exit !found }'; then
			return
		fi
		say "valgrind failed, attempt $try: $1"
	done
	echo 0
}

section_bytes() { # of the sections of an image with debug information
	local sum=0 size
	for size in $(readelf -SW "$1" 2>/dev/null | sed 's/^ *\[ *[0-9]*\]//' | awk '$1 ~ /^\.z?debug_/ { print $5 }'); do
		sum=$((sum + 16#$size))
	done
	echo "$sum"
}

version() { # of a tool, or nothing
	command -v "$1" >/dev/null && "${@:2}" 2>&1 | head -n 1 || true
}

base=
[[ ${names[0]} == drgn* ]] && base=${names[0]}
{
	echo "# Results"
	echo
	echo "Written by \`bench/peers.sh\` (\`make bench-peers VMLINUX=FILE\`): medians of $rounds round(s), all commands once a"
	echo "round, side by side; whole processes; files in the page cache; \"cold\" is without a kept index."
	echo
	echo "Image: \`$(basename "$image")\`, $(($(stat -c %s "$image") / 1000000)) MB, of which $(($(section_bytes "$image") / 1000000)) MB are sections with debug information."
	echo "Machine: $(nproc) processors ($(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo)), $(awk '/MemTotal/ { printf "%.0f GB", $2 / 1e6 }' /proc/meminfo) of memory, $(. /etc/os-release && echo "$PRETTY_NAME"), Linux $(uname -r | cut -d. -f1,2)."
	echo "Versions:"
	echo
	for v in "$(go version | cut -d' ' -f3)" "drgn $(dpkg-query -W -f '${Version}' python3-drgn 2>/dev/null || true)" \
		"$(version perf perf --version)" "$(version gdb gdb --version)" "$(version stap stap --version)" \
		"LLVM $(version llvm-dwarfdump llvm-dwarfdump --version | grep -oE '[0-9]+(\.[0-9]+)+' || llvm-dwarfdump --version 2>/dev/null | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)" \
		"$(version valgrind valgrind --version)"; do
		[[ -n $v ]] && echo "- $v"
	done
	echo
	echo "## Time and memory"
	echo
	echo "Rows without a tool's name are this project's. Peak memory is the process's own (anonymous and shared pages), without"
	echo "the pages of the image that it maps; \`measure peak\` says how it is measured."
	echo
	echo "| work | time, s | of drgn's | peak memory, MB | of drgn's |"
	echo "| --- | ---: | ---: | ---: | ---: |"
	for name in "${names[@]}"; do
		awk -v n="$name" -v t="$(median time "$name")" -v m="$(median memory "$name")" \
			-v bt="$([[ -n $base ]] && median time "$base" || echo 0)" -v bm="$([[ -n $base ]] && median memory "$base" || echo 0)" \
			'function ratio(a, b) { return b > 0 ? sprintf("%.2f", a / b) : "-" }
			BEGIN { printf "| %s | %.3f | %s | %.1f | %s |\n", n, t / 1e6, ratio(t, bt), m, ratio(m, bm) }'
	done
	echo
	echo "## The kept index"
	echo
	index=$(find "$BPFPROLOGUE_CACHE" -type f -printf '%s\n' | awk '{ s += $1 } END { print s + 0 }')
	echo "The index of this image takes $((index / 1000)) KB on disk, $(awk -v a="$index" -v b="$(section_bytes "$image")" 'BEGIN { printf "%.1f", 100 * a / b }') % of the sections with debug information."
	echo
	echo "## Instructions"
	echo
	if command -v valgrind >/dev/null; then
		echo "Counted by callgrind with one processor (\`GOMAXPROCS=1 GODEBUG=asyncpreemptoff=1\`): what a change costs, whatever the"
		echo "machine does at the time."
		echo
		echo "| work | million instructions |"
		echo "| --- | ---: |"
		for name in "cold: get_page page" "kept index: get_page page" "coverage: every site, every parameter, with its prologue"; do
			say "instructions: $name"
			echo "| $name | $(awk -v n="$(instructions "${command[$name]}")" 'BEGIN { print (n > 0 ? sprintf("%.0f", n / 1e6) : "-") }') |"
		done
	else
		say "left out, valgrind is not installed: instructions"
		echo "Not counted: valgrind was not there."
	fi
	echo
	echo "## Growth"
	echo
	echo "An index and a coverage report in one process, from the start, by \`measure growth\`: time per MB of \`.debug_info\`."
	echo
	say "growth"
	measure growth -rounds "$rounds" "$image" ${images[@]+"${images[@]}"}
} >"$work/results"
cp "$work/results" "$out"
cat "$out"
