#!/usr/bin/env bash
# Fetches Debian's small kernel for virtual machines, to be booted by tests, and its
# debug image, and prints the kernel's path.
#
#   bench/fetch-vmlinuz.sh [cloud-amd64|cloud-arm64] [SUITE]
#
# 26 MB to download for the kernel, 283 MB for the image (bench/fetch-vmlinux.sh).
# Both, and one module that tests load, are of one release and are fetched once, into
# $BENCH_CACHE (default: bench/.cache). To get a newer kernel, delete the old vmlinux and
# vmlinuz.
set -euo pipefail

default_flavour=cloud-amd64
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=bench/apt.sh
source "$here/apt.sh"
vmlinux=$("$here/fetch-vmlinux.sh" "$flavour" ${2:-})
release=${vmlinux##*/vmlinux-}
kernel=$cache/vmlinuz-$release
module=$cache/modules-$release/tun.ko

if [[ -s $kernel && -s $module ]]; then
	echo "$kernel"
	exit 0
fi
need apt-get dpkg-deb tar

work=$(mktemp -d "$cache/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

# A release has several builds in turn, and only the newest is kept. When that is not
# the vmlinux's, the build IDs differ, and the tests say so.
(cd "$work" && download "linux-image-$release") || {
	say "there is no linux-image-$release any more: delete $vmlinux and try again"
	exit 1
}
dpkg-deb --fsys-tarfile "$(find "$work" -name '*.deb')" |
	tar -x -C "$work" --wildcards ./boot '*/kernel/drivers/net/tun.ko*'
packed=$(find "$work" -name 'tun.ko*')
case $packed in
*.xz) xz -d "$packed" ;;
*.zst) zstd -q -d --rm "$packed" ;;
esac
mkdir -p "${module%/*}"
mv "${packed%.[xz]*}" "$module"
mv "$work/boot/vmlinuz-$release" "$kernel"
echo "$kernel"
