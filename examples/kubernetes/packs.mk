# Makes packs of Debian's kernels, in a tree that any server of files hands out: one process for each kernel, which know nothing of each
# other.
#
#   make -f packs.mk -j4 OUT=/srv/packs                                  # of all kernels that apt knows
#   make -f packs.mk OUT=/srv/packs KERNELS="6.1.0-56-cloud-amd64"

OUT ?= packs
KERNELS ?= $(shell apt-cache pkgnames linux-image- | sed -n 's/^linux-image-\([0-9]*\.[0-9]*\.[0-9]*[-+].*\)-dbg$$/\1/p')
PROLOG_DUMP ?= prolog-dump

.PHONY: all update $(KERNELS)

all: $(KERNELS)

update:
	apt-get -q update

# A kernel whose pack is in the index is not fetched again.
$(KERNELS):
	@if grep -qs '"release":"$@"}' '$(OUT)/index.jsonl'; then echo '$@: its pack is there'; exit 0; fi; \
	set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; chmod 755 "$$work"; \
	(cd "$$work" && apt-get -q download 'linux-image-$@-dbg' && \
	dpkg-deb --fsys-tarfile ./*.deb | tar -x --wildcards '*/boot/vmlinux-*' '*/modules/*/vmlinux' 2>/dev/null || true); \
	image=$$(find "$$work" -type f -name 'vmlinux*' -size +0 | head -n 1); \
	test -n "$$image" || { echo '$@: linux-image-$@-dbg has no vmlinux' >&2; exit 1; }; \
	$(PROLOG_DUMP) pack write --no-cache --out-dir '$(OUT)' "$$image"
