#!/usr/bin/env bash
# Fetches the source of a Debian package for tests that build real programs, and prints its folder.
#
#   scripts/fetch-source.sh PACKAGE [FOLDER]
#
# With FOLDER (a pattern), only the folders of that name are unpacked: 'guality' of gcc-12 has the programs that
# `measure guality` traces. It is downloaded once, to $BENCH_CACHE/source (default: bench/.cache/source), as the suite of the machine
# has it. The machine's own package lists are not changed.
set -euo pipefail

package=${1:?"usage: $0 PACKAGE [FOLDER]"}
folder=${2:-}
cache=${BENCH_CACHE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/bench/.cache}/source
mkdir -p "$cache"
cache=$(cd "$cache" && pwd -P)
target=$cache/$package${folder:+-$folder}
if [[ -d $target ]]; then
	echo "$target"
	exit 0
fi
for tool in apt-get tar; do
	command -v "$tool" >/dev/null || {
		echo "$tool not found: this works on Debian; elsewhere put the sources at $target" >&2
		exit 1
	}
done

work=$(mktemp -d "$cache/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,source}
# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" >"$work/sources.list"
: >"$work/status"
apt=(-q -o APT::Sandbox::User=root -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
	-o "Dir::State=$work" -o "Dir::State::Lists=$work/lists" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache")
apt-get "${apt[@]}" update >&2
(cd "$work/source" && apt-get "${apt[@]}" source --tar-only "$package" >&2)
original=$(find "$work/source" -name '*.orig.tar.*' ! -name '*.asc')
mkdir "$work/unpacked"
# GCC's has archives in it: of its own sources, and of others.
if inner=$(tar -t -f "$original" | grep -E "^[^/]*/${package%%-*}-[^/]*\.tar\.[a-z0-9]*$"); then
	tar -x -f "$original" -C "$work/source" "$inner"
	original=$work/source/$inner
fi
only=()
[[ -z $folder ]] || only=(--wildcards "*/$folder/*")
tar -x -f "$original" -C "$work/unpacked" --strip-components=1 "${only[@]}"
mv "$work/unpacked" "$target"
echo "$target"
