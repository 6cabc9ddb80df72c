# Sourced by the scripts that fetch kernels. Sets flavour, suite and cache from the
# arguments FLAVOUR [SUITE], and defines what both scripts need to download packages.
#
# Without SUITE, packages come from the machine's own package lists. With a suite, such as
# bookworm-backports, and for an architecture other than the machine's, they come from
# separate lists; the machine's own apt is not changed. Downloads are kept in a folder of
# the cache named after the suite, or after the architecture unless it is amd64. Tests look
# for them there, on any machine.
# shellcheck shell=bash

flavour=${1:-$default_flavour}
suite=${2:-}

# Debian's flavour, its architecture, the module that tests read, and the suite if it is in
# a later one only. Cloud kernels have few modules.
flavours='
amd64        amd64     ext4
cloud-amd64  amd64     tun
cloud-arm64  arm64     tun
686-pae      i386      ext4
armmp        armhf     ext4
s390x        s390x     ext4
powerpc64le  ppc64el   ext4
5kc-malta    mips64el  ext4
riscv64      riscv64   ext4  trixie
loong64      loong64   ext4  forky
'
read -r architecture module latest < <(awk -v flavour="$flavour" '$1 == flavour { print $2, $3, $4 }' <<<"$flavours") || {
	echo "usage: $0 [$(awk 'NF { printf "%s%s", bar, $1; bar = "|" }' <<<"$flavours")] [SUITE]" >&2
	exit 2
}
folder=$suite
[[ -n $suite || $architecture == amd64 ]] || folder=$architecture
suite=${suite:-$latest}
native=$(dpkg --print-architecture 2>/dev/null || true)
if [[ -z $suite && -n $native && $architecture != "$native" ]]; then
	# shellcheck source=/dev/null
	suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
fi

cache=${BENCH_CACHE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/bench/.cache}
cache=$cache${folder:+/$folder}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd -P)

say() { echo "$(basename "$0" .sh): $*" >&2; }

apt=(-q -o APT::Sandbox::User=root)
lists=
if [[ -n $suite ]]; then
	lists=$cache/.apt
	mkdir -p "$lists"/{lists/partial,cache/archives/partial}
	from="deb [arch=$architecture signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org"
	echo "$from/debian $suite main" >"$lists/sources.list"
	[[ $suite == *-* ]] || echo "$from/debian-security $suite-security main" >>"$lists/sources.list"
	: >"$lists/status"
	apt+=(-o "APT::Architecture=$architecture" -o "APT::Architectures::=$architecture" -o "Dir::Etc::SourceList=$lists/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State=$lists" -o "Dir::State::Lists=$lists/lists" -o "Dir::State::status=$lists/status"
		-o "Dir::Cache=$lists/cache")
fi

# update reads package lists anew. While a mirror is being updated, some of them may not be had: the package that is wanted may be in others, and a download that fails says so.
update() {
	local root=()
	((EUID == 0)) || [[ -n $suite ]] || root=(sudo)
	"${root[@]}" apt-get "${apt[@]}" update >&2 || say "some package lists could not be read"
}

# download PACKAGE saves the package's file in the current folder, and updates the package
# lists if they are too old for it.
download() {
	say "downloading $1"
	apt-get "${apt[@]}" download "$1" >&2 || { update && apt-get "${apt[@]}" download "$1" >&2; }
}

need() {
	local tool
	for tool in "$@"; do
		command -v "$tool" >/dev/null || {
			say "$tool not found: this works on Debian; elsewhere put a vmlinux with DWARF at $cache/vmlinux-VERSION-$flavour"
			exit 1
		}
	done
}
