#!/usr/bin/env bash
# Unpacks the newest GCC, which Debian 12 does not have, and prints its folder. It is a download of 66 MB (and of 16 MB of
# package lists), once, to $BENCH_CACHE/forky (default: bench/.cache/forky).
#
# It runs with a C library of its own, which is newer than the machine's, by that library's loader; what it makes is
# assembled, linked and run with the machine's. internal/proof/truth/compiler.go knows how.
set -euo pipefail

version=16
set -- cloud-amd64 forky
# shellcheck source=scripts/apt.sh
source "$(dirname "${BASH_SOURCE[0]}")/apt.sh"
folder=$cache/gcc-$version
if [[ -d $folder ]]; then
	echo "$folder"
	exit 0
fi
need apt-get dpkg-deb
work=$(mktemp -d "$cache/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/gcc"
for package in {gcc,cpp,g++}-"$version"-x86-64-linux-gnu lib{gcc,stdc++}-"$version"-dev libisl23 libmpc3 libmpfr6 libgmp10 zlib1g libzstd1 libc6 libgcc-s1 libstdc++6; do
	(cd "$work" && download "$package")
	dpkg-deb -x "$work"/*.deb "$work/gcc"
	rm "$work"/*.deb
done
rm -r "$work"/gcc/usr/share "$work"/gcc/usr/bin/*{gcov,lto-dump}* "$work"/gcc/usr/libexec/gcc/*/*/lto1 # nothing is compiled when it is linked
# It looks here first: for the machine's assembler and linker, and the machine's library to link with.
mkdir "$work/gcc/machine"
ln -s /usr/bin/as /usr/bin/ld "$work/gcc/machine"
ln -s /usr/lib/x86_64-linux-gnu/libstdc++.so.6 "$work/gcc/machine/libstdc++.so"
mv "$work/gcc" "$folder"
echo "$folder"
