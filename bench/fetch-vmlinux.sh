#!/usr/bin/env bash
# Fetches Debian's debug vmlinux for the benchmarks and prints its path.
#
#   bench/fetch-vmlinux.sh [amd64|cloud-amd64]
#
# amd64 (default): 858 MB to download. cloud-amd64: 283 MB. Only vmlinux and one
# module, ext4.ko, are kept, in $BENCH_CACHE (default: bench/.cache), and they are
# fetched once. To get a newer kernel, delete the old vmlinux.
set -euo pipefail

flavour=${1:-amd64}
case $flavour in
amd64 | cloud-amd64) ;;
*)
	echo "usage: $0 [amd64|cloud-amd64]" >&2
	exit 2
	;;
esac

cache=${BENCH_CACHE:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/.cache}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

say() { echo "fetch-vmlinux: $*" >&2; }

# vmlinux-6.1.0-56-amd64: a release ends in a digit, so "amd64" does not match cloud-amd64.
present=$(find "$cache" -maxdepth 1 -name "vmlinux-*[0-9]-$flavour" | sort -V | tail -n 1)
if [[ -n $present ]]; then
	echo "$present"
	exit 0
fi

for tool in apt-cache apt-get dpkg-deb tar; do
	command -v "$tool" >/dev/null || {
		say "$tool not found: this works on Debian; elsewhere put a vmlinux with DWARF at $cache/vmlinux-VERSION-$flavour"
		exit 1
	}
done

update() {
	local root=()
	((EUID == 0)) || root=(sudo)
	"${root[@]}" apt-get -q update >&2
}

# The meta package depends on the package of the current kernel.
find_package() {
	apt-cache depends "linux-image-$flavour-dbg" 2>/dev/null |
		awk '$1 == "Depends:" && $2 ~ /^linux-image-.*-dbg$/ { print $2; exit }'
}

work=$(mktemp -d "$cache/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

download() {
	package=$(find_package)
	[[ -n $package ]] || {
		say "apt knows no linux-image-$flavour-dbg"
		return 1
	}
	say "downloading $package"
	(cd "$work" && apt-get -q -o APT::Sandbox::User=root download "$package" >&2)
}

package=
download || {
	say "trying again with new package lists"
	update
	download
}

release=${package#linux-image-}
release=${release%-dbg}
deb=$(find "$work" -name '*.deb')
say "unpacking vmlinux-$release"
dpkg-deb --fsys-tarfile "$deb" |
	tar -x -C "$work" --wildcards '*usr/lib/debug/boot/vmlinux-*' '*/kernel/fs/ext4/ext4.ko' ||
	true # what is missing is said below
module=$(find "$work" -name ext4.ko)
[[ -z $module ]] || mv "$module" "$cache/ext4-$release.ko"
vmlinux=$(find "$work" -name "vmlinux-$release" -size +0)
[[ -n $vmlinux ]] || {
	say "$package holds no usr/lib/debug/boot/vmlinux-$release"
	exit 1
}
mv "$vmlinux" "$cache/vmlinux-$release"
echo "$cache/vmlinux-$release"
