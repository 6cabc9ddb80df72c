#!/usr/bin/env bash
# Unpacks QEMU 10 of Debian trixie, with all libraries that it needs, and prints a folder with the program
# qemu-10-system-loongarch64: Debian 12's QEMU 7.2 does not boot kernels for loong64. It is a download of
# 78 MB, once, to $BENCH_CACHE (default: bench/.cache). Nothing is installed.
set -euo pipefail

cache=${BENCH_CACHE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/bench/.cache}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd -P)
folder=$cache/qemu-10
if [[ -x $folder/bin/qemu-10-system-loongarch64 ]]; then
	echo "$folder/bin"
	exit 0
fi
work=$(mktemp -d "$cache/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,qemu-10/bin}
from="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org"
printf 'deb %s/debian trixie main\ndeb %s/debian-security trixie-security main\n' "$from" "$from" >"$work/sources.list"
: >"$work/status"
# No package counts as installed: the libraries come from trixie too.
apt=(-q -o APT::Sandbox::User=root -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
	-o "Dir::State=$work" -o "Dir::State::Lists=$work/lists" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache")
# One of the lists may be missing while the mirror is being updated: see update in apt.sh.
apt-get "${apt[@]}" update >&2 || true
apt-get "${apt[@]}" -y --no-install-recommends --download-only install qemu-system-misc >&2
for deb in "$work"/cache/archives/*.deb; do
	dpkg-deb -x "$deb" "$work/qemu-10"
done
loader=$(find "$work/qemu-10/usr/lib" -name 'ld-linux-*.so.*' | head -n 1)
[[ -n $loader && -x $work/qemu-10/usr/bin/qemu-system-loongarch64 ]] || {
	echo "$(basename "$0" .sh): trixie's packages hold no qemu-system-loongarch64" >&2
	exit 1
}
loader=$folder/${loader#"$work/qemu-10/"}
cat >"$work/qemu-10/bin/qemu-10-system-loongarch64" <<END
#!/bin/sh
exec "$loader" --library-path "${loader%/*}" "$folder/usr/bin/qemu-system-loongarch64" -L "$folder/usr/share/qemu" "\$@"
END
chmod +x "$work/qemu-10/bin/qemu-10-system-loongarch64"
mv "$work/qemu-10" "$folder"
echo "$folder/bin"
