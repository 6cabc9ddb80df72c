#!/usr/bin/env bash
# Unpacks the newest Rust of Debian stable, which is packaged for building browsers and cannot be
# installed beside rustc, and prints its folder. It is a download of 62 MB, once, to $BENCH_CACHE
# (default: bench/.cache).
set -euo pipefail

cache=${BENCH_CACHE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/bench/.cache}
folder=$cache/rustc-web
# runs reports whether the compiler in a folder has all of its libraries.
runs() { LD_LIBRARY_PATH=$1/usr/lib/x86_64-linux-gnu:$1/usr/lib "$1/usr/bin/rustc" --version >/dev/null 2>&1; }
if runs "$folder"; then
	echo "$folder"
	exit 0
fi
mkdir -p "$cache"
work=$(mktemp -d "$cache/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
apt=(-q -o APT::Sandbox::User=root)
# The package of the libraries has the version in its name.
fetch() {
	local library
	library=$(apt-cache depends libstd-rust-web-dev | awk '$1 == "Depends:" && $2 ~ /^libstd-rust-web-/ { print $2; exit }')
	[[ -n $library ]] && apt-get "${apt[@]}" download rustc-web libstd-rust-web-dev "$library"
}
(cd "$work" && { fetch || { apt-get "${apt[@]}" update && fetch; }; }) >&2
mkdir "$work/rustc-web"
for deb in "$work"/*.deb; do
	dpkg-deb -x "$deb" "$work/rustc-web"
done
runs "$work/rustc-web" || {
	echo "fetch-rust: the compiler that was unpacked does not run" >&2
	exit 1
}
rm -rf "$folder"
mv "$work/rustc-web" "$folder"
echo "$folder"
