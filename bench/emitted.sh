#!/usr/bin/env bash
# Counts the instructions of the prologues of one kernel image, measures what they
# cost when they run in this machine's kernel, and writes bench/EMITTED.md.
#
#   bench/emitted.sh VMLINUX [ROUNDS]
#
# The costs need root. The machine should have nothing else to do.
set -euo pipefail
export LC_ALL=C

image=${1:?usage: $0 VMLINUX [ROUNDS]}
rounds=${2:-21}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

(cd "$here/.." && go build -o "$work/" ./internal/proof/cmd/measure)
{
	echo "# What is emitted, and what it costs"
	echo
	echo "Written by \`bench/emitted.sh\` (\`make bench-emitted VMLINUX=FILE\`)."
	echo
	echo "## Instructions and helper calls"
	echo
	echo "Every parameter of every site is fetched, located or not: one that is not costs an instruction, which sets it to 0."
	echo
	"$work/measure" emitted "$image"
	echo
	echo "## Nanoseconds per hit"
	echo
	echo "At a uprobe on a small function. \"Interpreted\" is what libbpf does for USDT probes: a program looks a description of the"
	echo "arguments up by the probe's cookie, for each argument, and follows it. Machine: $(nproc) cores, $(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo), Linux $(uname -r | cut -d. -f1,2)."
	echo
	"$work/measure" hits -rounds "$rounds"
} >"$work/EMITTED.md"
mv "$work/EMITTED.md" "$here/EMITTED.md"
cat "$here/EMITTED.md"
