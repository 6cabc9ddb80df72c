#!/usr/bin/env bash
# Measures prolog-dump beside other tools on one kernel image, side by side, and
# writes bench/RESULTS.md: medians of several rounds, and ratios to drgn.
#
#   bench/peers.sh VMLINUX [ROUNDS]
#
# Each round runs every command once, so that a slow moment of the machine hits
# all of them. The image is in the page cache. Tools that are not installed are
# left out.
set -euo pipefail
export LC_ALL=C

image=${1:?usage: $0 VMLINUX [ROUNDS]}
rounds=${2:-7}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BPFPROLOGUE_CACHE=$work/cache

(cd "$here/.." && go build -o "$work/prolog-dump" ./cmd/prolog-dump && go build -o "$work/walk" ./bench/walk)
dump=$work/prolog-dump
printf 'import drgn, sys\np = drgn.Program()\np.load_debug_info([sys.argv[1]])\n' >"$work/load.py"

names=()
declare -A command
add() { # name, tool it needs, command
	command -v "$2" >/dev/null || return 0
	names+=("$1")
	command[$1]=$3
}
add "drgn: load_debug_info, without inlined sites" drgn "/usr/bin/python3 $work/load.py $image"
add "prolog-dump, cold: get_page page" "$dump" "$dump --no-cache -k $image --sites 'get_page page'"
add "prolog-dump, cold: tcp_*" "$dump" "$dump --no-cache -k $image --sites 'tcp_*'"
add "prolog-dump, kept index: get_page page" "$dump" "$dump -k $image --sites 'get_page page'"
add "prolog-dump, kept index: tcp_*" "$dump" "$dump -k $image --sites 'tcp_*'"
add "prolog-dump coverage: every site, every parameter" "$dump" "$dump --no-cache coverage $image"
add "perf probe -D 'get_page page'" perf "perf probe -k $image --max-probes=100000 -D 'get_page page'"
add "gdb: info scope get_page" gdb "gdb -nx -batch -ex 'info scope get_page' $image"
add "llvm-dwarfdump --statistics" llvm-dwarfdump "llvm-dwarfdump --statistics $image"
add "debug/dwarf: a walk over all entries" "$work/walk" "$work/walk $image"

cat "$image" >/dev/null
eval "${command["prolog-dump, kept index: get_page page"]}" >/dev/null # keeps the index
for ((i = 0; i < rounds; i++)); do
	for name in "${names[@]}"; do
		start=$(date +%s%N)
		eval "${command[$name]}" >/dev/null 2>&1 || true # perf gives up some definitions
		echo "$((($(date +%s%N) - start) / 1000))" >>"$work/$(cksum <<<"$name" | cut -d' ' -f1)"
	done
done

median() { sort -n "$work/$(cksum <<<"$1" | cut -d' ' -f1)" | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
base=$(median "${names[0]}")
{
	echo "# Results"
	echo
	echo "Written by \`bench/peers.sh\` (\`make bench-peers VMLINUX=FILE\`): medians of $rounds rounds, all commands once a"
	echo "round; the whole process is measured; files in the page cache."
	echo
	echo "Image: \`$(basename "$image")\`. Machine: $(nproc) cores, $(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo), Linux $(uname -r | cut -d. -f1,2)."
	echo "Versions: $(go version | cut -d' ' -f3)$(command -v perf >/dev/null && echo ", $(perf --version)")$(command -v gdb >/dev/null && echo ", $(gdb --version | head -n 1)")$(command -v llvm-dwarfdump >/dev/null && echo ", LLVM $(llvm-dwarfdump --version | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1)")$(dpkg-query -W -f ', drgn ${Version}' python3-drgn 2>/dev/null || true)."
	echo
	echo "| work | median, s | of the first |"
	echo "| --- | ---: | ---: |"
	for name in "${names[@]}"; do
		awk -v n="$name" -v m="$(median "$name")" -v b="$base" 'BEGIN { printf "| %s | %.3f | %.2f |\n", n, m / 1e6, m / b }'
	done
} >"$here/RESULTS.md"
cat "$here/RESULTS.md"
