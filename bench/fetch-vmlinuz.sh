#!/usr/bin/env bash
# Fetches Debian's small kernel for virtual machines, to be booted by tests, and its
# debug image, and prints the kernel's path.
#
#   bench/fetch-vmlinuz.sh [cloud-amd64]
#
# 26 MB to download for the kernel, 283 MB for the image (bench/fetch-vmlinux.sh).
# Both are of one release and are fetched once, into $BENCH_CACHE (default:
# bench/.cache). To get a newer kernel, delete the old vmlinux and vmlinuz.
set -euo pipefail

flavour=${1:-cloud-amd64}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
vmlinux=$("$here/fetch-vmlinux.sh" "$flavour")
release=${vmlinux##*/vmlinux-}
kernel=${vmlinux%/*}/vmlinuz-$release

say() { echo "fetch-vmlinuz: $*" >&2; }

if [[ -s $kernel ]]; then
	echo "$kernel"
	exit 0
fi

work=$(mktemp -d "${vmlinux%/*}/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

# A release has several builds in turn, and only the newest is kept. When that is not
# the vmlinux's, the build IDs differ, and the tests say so.
download() { (cd "$work" && apt-get -q -o APT::Sandbox::User=root download "linux-image-$release" >&2); }

say "downloading linux-image-$release"
download || {
	root=()
	((EUID == 0)) || root=(sudo)
	"${root[@]}" apt-get -q update >&2
	download
} || {
	say "there is no linux-image-$release any more: delete $vmlinux and try again"
	exit 1
}
dpkg-deb --fsys-tarfile "$(find "$work" -name '*.deb')" | tar -x -C "$work" ./boot
mv "$work/boot/vmlinuz-$release" "$kernel"
echo "$kernel"
