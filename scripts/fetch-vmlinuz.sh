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

if [[ -s $kernel && -s $module ]]; then
	echo "$kernel"
	exit 0
fi
need apt-cache apt-get dpkg-deb tar

work=$(mktemp -d "$cache/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

# A release is built several times, and the archive keeps only the newest build. If the
# vmlinux is from an older one, the build IDs differ, and the tests report it.
(cd "$work" && download "linux-image-$release") || {
	say "there is no linux-image-$release any more: delete $vmlinux and try again"
	exit 1
}
# Newer kernels are split: the package has nothing but what it depends on.
parts=$(apt-cache "${apt[@]}" depends "linux-image-$release" | awk '$1 == "Depends:" && $2 ~ /^linux-(binary|modules)-/ { print $2 }')
for part in $parts; do
	(cd "$work" && download "$part")
done
for deb in "$work"/*.deb; do
	dpkg-deb --fsys-tarfile "$deb" |
		tar -x -C "$work" --wildcards './boot/vmlinu*' '*/modules/*/vmlinu[xz]' '*/kernel/drivers/net/tun.ko*' 2>/dev/null ||
		true # each has some of these files
done
found=$(find "$work" -name 'tun.ko*')
case $found in
*.xz) xz -d "$found" ;;
*.zst) zstd -q -d --rm "$found" ;;
esac
found=${found%.xz}
mkdir -p "${module%/*}"
mv "${found%.zst}" "$module"
# Some boot an uncompressed file. Newer packages have it in /usr/lib/modules/RELEASE, without the release in its name.
mv "$(find "$work" -type f '(' -name "vmlinu[xz]-$release" -o -name 'vmlinu[xz]' ')')" "$kernel"
echo "$kernel"
