#!/usr/bin/env bash
# Fetches Debian's debug vmlinux for tests and benchmarks and prints its path.
#
#   scripts/fetch-vmlinux.sh [FLAVOUR] [SUITE]
#
# Flavours are in scripts/apt.sh. amd64 (the default) downloads 858 MB, cloud-amd64 283 MB,
# cloud-arm64 262 MB, s390x 433 MB, armmp 619 MB, 5kc-malta 664 MB, powerpc64le 718 MB,
# 686-pae 765 MB, riscv64 1,026 MB, loong64 1,084 MB; of Linux 7.2, cloud-amd64 353 MB and cloud-arm64 357 MB.
# SUITE is a suite other than the machine's, such as bookworm-backports. Only vmlinux and one module are kept: ext4.ko, or tun.ko from cloud
# kernels, which tests load. They are downloaded once, to $BENCH_CACHE (default:
# bench/.cache). To get a newer kernel, delete the old vmlinux.
set -euo pipefail

default_flavour=amd64
# shellcheck source=scripts/apt.sh
source "$(dirname "${BASH_SOURCE[0]}")/apt.sh"

# vmlinux-6.1.0-56-amd64: a release ends in a digit, so "amd64" does not match cloud-amd64.
present=$(find "$cache" -maxdepth 1 -name "vmlinux-*[0-9]-$flavour" | sort -V | tail -n 1)
if [[ -n $present ]]; then
	echo "$present"
	exit 0
fi
need apt-cache apt-get dpkg-deb tar

# The meta package depends on the package of the current kernel.
find_package() {
	apt-cache "${apt[@]}" depends "linux-image-$flavour-dbg" 2>/dev/null |
		awk '$1 == "Depends:" && $2 ~ /^linux-image-.*-dbg$/ { print $2; exit }' || true
}

work=$(mktemp -d "$cache/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

package=$(find_package)
[[ -n $package ]] || {
	update
	package=$(find_package)
}
[[ -n $package ]] || {
	say "apt knows no linux-image-$flavour-dbg"
	exit 1
}
(cd "$work" && download "$package")

release=${package#linux-image-}
release=${release%-dbg}
deb=$(find "$work" -name '*.deb')
say "unpacking vmlinux-$release"
dpkg-deb --fsys-tarfile "$deb" |
	tar -x -C "$work" --wildcards '*usr/lib/debug/boot/vmlinux-*' '*usr/lib/debug/lib/modules/*/vmlinux' "*/kernel/*/$module.ko" ||
	true # what is missing is reported below
found=$(find "$work" -name "$module.ko")
[[ -z $found ]] || mv "$found" "$cache/$module-$release.ko"
# In forky's packages the one in boot is a link to the one beside the modules.
vmlinux=$(find "$work" -type f '(' -name "vmlinux-$release" -o -path "*/modules/$release/vmlinux" ')' -size +0)
[[ -n $vmlinux ]] || {
	say "$package holds no vmlinux of $release below usr/lib/debug"
	exit 1
}
mv "$vmlinux" "$cache/vmlinux-$release"
echo "$cache/vmlinux-$release"
