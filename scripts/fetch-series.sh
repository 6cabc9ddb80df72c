#!/usr/bin/env bash
# Fetches all debug images of one flavour of kernel that the machine's package lists have, for what
# packs of a series cost, and prints their folder.
#
#   scripts/fetch-series.sh [FLAVOUR]
#
# Of cloud-amd64 (the default) each downloads 283 MB and takes 590 MB. They are downloaded once, to
# $BENCH_CACHE/series (default: bench/.cache/series).
set -euo pipefail

default_flavour=cloud-amd64
# shellcheck source=scripts/apt.sh
source "$(dirname "${BASH_SOURCE[0]}")/apt.sh"

need apt-cache apt-get dpkg-deb tar
mkdir -p "$cache/series"
work=$(mktemp -d "$cache/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
# linux-image-6.1.0-56-cloud-amd64-dbg: a release begins and ends with a digit, so "amd64" does not match cloud-amd64.
while read -r package; do
	release=${package#linux-image-}
	release=${release%-dbg}
	[[ ! -e $cache/series/vmlinux-$release ]] || continue
	download "$package"
	dpkg-deb --fsys-tarfile ./*.deb | tar -x --wildcards --transform 's,.*/,,' '*usr/lib/debug/boot/vmlinux-*'
	rm ./*.deb
	mv "vmlinux-$release" "$cache/series/"
done < <(apt-cache "${apt[@]}" pkgnames linux-image- | grep -E "^linux-image-[0-9.]+-[0-9]+-$flavour-dbg$" | sort -V)
echo "$cache/series"
