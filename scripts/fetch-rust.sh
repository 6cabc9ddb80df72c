#!/usr/bin/env bash
# Unpacks the newest Rust of Debian stable, which is packaged for building browsers and cannot be
# installed beside rustc, and prints its folder. It is a download of 40 MB, once, to $BENCH_CACHE
# (default: bench/.cache).
set -euo pipefail

cache=${BENCH_CACHE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/bench/.cache}
folder=$cache/rustc-web
if [[ -x $folder/usr/bin/rustc ]]; then
	echo "$folder"
	exit 0
fi
mkdir -p "$cache"
work=$(mktemp -d "$cache/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
packages=(rustc-web libstd-rust-web-dev)
apt=(-q -o APT::Sandbox::User=root)
(cd "$work" && { apt-get "${apt[@]}" download "${packages[@]}" || { apt-get "${apt[@]}" update && apt-get "${apt[@]}" download "${packages[@]}"; }; }) >&2
mkdir "$work/rustc-web"
for deb in "$work"/*.deb; do
	dpkg-deb -x "$deb" "$work/rustc-web"
done
mv "$work/rustc-web" "$folder"
echo "$folder"
