#!/usr/bin/env bash
# Fetches Debian's small kernel for virtual machines, which tests boot, and its debug
# image, and prints the kernel's path.
#
#   scripts/fetch-vmlinuz.sh [FLAVOUR] [SUITE]
#
# The kernel is a download of 26 MB (of up to 70 MB for flavours that are not for virtual
# machines), the image (scripts/fetch-vmlinux.sh) of 283 MB or more. Both, and one module that
# tests load, are of the same release. They are downloaded once, to
# $BENCH_CACHE (default: bench/.cache). To get a newer kernel, delete the old vmlinux and
# vmlinuz.
set -euo pipefail

default_flavour=cloud-amd64
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/apt.sh
source "$here/apt.sh"
vmlinux=$("$here/fetch-vmlinux.sh" "$flavour" "${@:2}")
release=${vmlinux##*/vmlinux-}
kernel=$cache/vmlinuz-$release
module=$cache/modules-$release/tun.ko
# Modules with vector code, and what they need: ciphers, hashes, RAID. Only of one kernel.
vectors=
[[ $flavour == cloud-amd64 && -z $suite ]] && vectors=$cache/modules-$release/vectors

if [[ -s $kernel && -s $module && (-z $vectors || -d $vectors) ]]; then
	echo "$kernel"
	exit 0
fi
need apt-get dpkg-deb tar

work=$(mktemp -d "$cache/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

gone() {
	say "there is no $1 any more: delete $vmlinux and try again"
	exit 1
}

# fetch PACKAGE unpacks what of the kernel is in a package, and fails if the archive has none. A release
# is built several times, and the archive keeps only the newest build. If the vmlinux is from an older
# one, the build IDs differ, and the tests report it.
fetch() {
	mkdir "$work/$1"
	(cd "$work/$1" && download "$1") || return 1
	dpkg-deb --fsys-tarfile "$work/$1"/*.deb |
		tar -x -C "$work" --wildcards './boot/vmlinu*' '*/modules/*/vmlinu?' '*/kernel/drivers/net/tun.ko*' \
			'*/kernel/arch/x86/crypto/*.ko' '*/kernel/crypto/*.ko' '*/kernel/lib/*.ko' '*/kernel/drivers/md/*.ko' '*/kernel/drivers/block/brd.ko' 2>/dev/null ||
		true # what is missing is reported below
}
# Debian signs a kernel after it is built: for some days, the archive may have a release's debug image and
# its unsigned kernel only. These are the same kernel, and a virtual machine boots either.
image=linux-image-$release
fetch "$image" || {
	image+=-unsigned
	fetch "$image"
} || gone "linux-image-$release"
# In forky, this package has no files: those on which it depends have the kernel and its modules.
for package in $(dpkg-deb -f "$work/$image"/*.deb Depends | tr ',' '\n' | awk '$1 ~ /^linux-(binary|modules)-/ { print $1 }'); do
	fetch "$package" || gone "$package"
done
found=$(find "$work" -name 'tun.ko*')
case $found in
*.xz) xz -d "$found" ;;
*.zst) zstd -q -d --rm "$found" ;;
esac
found=${found%.xz}
mkdir -p "${module%/*}"
if [[ -n $vectors ]]; then
	mkdir -p "$work/vectors"
	find "$work" -name '*.ko' ! -name tun.ko -exec mv -t "$work/vectors" {} +
	rm -rf "$vectors"
	mv "$work/vectors" "$vectors"
fi
mv "${found%.zst}" "$module"
boots=$(find "$work" -type f '(' -name "vmlinu[xz]-$release" -o -path "*/modules/$release/vmlinu[xz]" ')') # some boot an uncompressed file
[[ -n $boots ]] || {
	say "there is no kernel in $image"
	exit 1
}
mv "$boots" "$kernel"
echo "$kernel"
