GO  ?= go
BIN := bin

# ./... does not match the package in testdata, so it is named as well.
PACKAGES := ./... ./testdata/vmlinux-fixtures

# Pinned, and run through the module cache: nothing to install. golangci-lint has staticcheck in it, so its version pins that too.
GOLANGCI_LINT := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
ACTIONLINT := $(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GOVULNCHECK := $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0

# Debian packages that the tests use: compilers of the fixtures, other tools to
# compare answers with, debug information of the C library. A test whose tool is
# missing skips and says so; with CI=true it fails.
DEPS := \
	gcc libc6-dev binutils dwz make gzip \
	binutils-s390x-linux-gnu binutils-powerpc64le-linux-gnu binutils-riscv64-linux-gnu binutils-arm-linux-gnueabihf \
	gcc-12 clang-14 lld-14 llvm llvm-14 \
	gcc-12-aarch64-linux-gnu libc6-dev-arm64-cross gcc-12-arm-linux-gnueabihf gcc-12-i686-linux-gnu gcc-12-mips64el-linux-gnuabi64 gcc-12-powerpc64le-linux-gnu gcc-12-riscv64-linux-gnu gcc-12-s390x-linux-gnu \
	gcc-11 g++-11 g++-12 clang-15 lld-15 clang-16 lld-16 clang-19 lld-19 llvm-19 clang-22 rustc \
	linux-perf gdb libc6-dbg bpftrace bpftool libbpf-dev systemtap-sdt-dev \
	qemu-system-x86 qemu-system-arm qemu-system-misc xz-utils zstd fish chromium debuginfod \
	mmdebstrap rpm mkdocs mkdocs-material

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## Build the tool into bin/
	$(GO) build -trimpath -buildvcs=auto -o $(BIN)/ ./cmd/...

.PHONY: man
man: build ## Write man pages into bin/man
	mkdir -p $(BIN)/man/man1 $(BIN)/man/man7
	$(BIN)/prolog-dump man $(BIN)/man/man1
	scripts/man-definitions "$$($(BIN)/prolog-dump --version | awk '{print $$3}' | tr -d ,)" >$(BIN)/man/man7/prolog-dump-definitions.7

# Nearly all of the first run is compiling, and without optimization that takes two thirds of the time.
.PHONY: demo
demo: ## Resolve and print fetch prologues for an embedded image (no root, no kernel image)
	CGO_ENABLED=0 $(GO) run -pgo=off -gcflags='all=-N -l' ./cmd/prolog-dump demo

# The tool's profile has all that it imports compiled a second time. What is measured, and the release, are built with it. make test has
# run go vet on all. These are flags of the tests alone: in GOFLAGS, which the tests' own compilers read, Go 1.18 refuses the first.
WITHOUT_PROFILE := -pgo=off -vet=off

# What starts goroutines, or is for several of them. The race detector makes other tests several times
# slower, and finds nothing there.
CONCURRENT := ./internal/image ./debuginfod ./dwarfloc ./sites ./plan ./coverage ./instances ./tracer ./stacks ./recording ./examples/... \
	./internal/index ./internal/mapping ./internal/store ./internal/share ./internal/bpfexec ./internal/kernelhas ./internal/settings

# What needs kernel images, compilers, emulators or other tools, or takes minutes: make test-all has it.
PROOF := $(shell $(GO) list ./internal/proof/... | grep -v /fixturetest)
# The packages whose tests take longest come first: at the end one processor would wait for them.
first = $(filter $(SLOW),$(1)) $(filter-out $(SLOW),$(1))
SLOW := $(shell $(GO) list ./tracer ./cmd/prolog-dump ./dwarfloc ./prologue ./instances ./examples/... ./export ./internal/proof/release ./internal/proof/truth ./internal/proof/prove ./internal/proof/peers ./internal/proof/oracle)
QUICK := $(call first,$(filter-out $(PROOF),$(shell $(GO) list $(PACKAGES))))

.PHONY: test
test: ## Run what needs no download but Go modules: units, goldens, fixtures, fuzz seeds, documentation; as root also this kernel's verifier and uprobes
	$(GO) vet -pgo=off $(PACKAGES)
	@scripts/quick-tests $(QUICK)

.PHONY: test-all
test-all: deps vmlinux sources ## Install what all tests need, and run what make test leaves out: kernels, compilers, emulated machines; and the race detector
	@scripts/stage "race detector" $(GO) test -race $(WITHOUT_PROFILE) -timeout 20m $(call first,$(shell $(GO) list $(CONCURRENT)))
	@scripts/stage "tests, every distinct prologue of whole kernels" env PROVE_SEED=$$(date +%s) $(GO) test $(WITHOUT_PROFILE) -timeout 25m $(call first,$(filter-out $(shell $(GO) list $(CONCURRENT) ./internal/proof/guest),$(shell $(GO) list $(PACKAGES))))
	@scripts/stage "tests that the race detector leaves out" $(GO) test $(WITHOUT_PROFILE) -timeout 10m -run 'TestNotStoredKernel|TestPassing|TestAfterwards|TestBTFAgrees|TestWitnesses|TestStoredAfter' ./dwarfloc
	@scripts/stage "time and memory of questions" $(MAKE) gate VMLINUX="$$(scripts/fetch-vmlinux.sh)"
	@scripts/stage "probes in a live kernel that an emulator runs" $(GO) test $(WITHOUT_PROFILE) -timeout 20m -count=1 -v ./internal/proof/guest

.PHONY: lint
lint: ## Run the linters of .golangci.yml (the first run builds the linter: a minute or two)
	$(GOLANGCI_LINT) run $(PACKAGES)
	$(ACTIONLINT) -shellcheck= -pyflakes=

.PHONY: apidiff
apidiff: ## Compare what the packages export with the last version: a break must be named in CHANGELOG.md
	@scripts/apidiff

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in what is called of the dependencies (asks vuln.go.dev)
	$(GOVULNCHECK) $(PACKAGES)

.PHONY: release
release: ## Make programs, packages, checksums and notes of VERSION=v1.2.3 of the last commit, in bin/release
	scripts/release $(VERSION) $(BIN)/release $(ARCHES)

.PHONY: reproducible
reproducible: ## Make a release of all architectures twice, and compare each byte; install and remove its packages
	RELEASE_FULL=1 $(GO) test -timeout 60m -count=1 -v ./internal/proof/release

.PHONY: site
site: ## Make a site of the documentation, in bin/site; a dead link is an error
	@scripts/install-packages mkdocs mkdocs-material
	$(GO) run ./internal/proof/cmd/site $(BIN)/site

.PHONY: fuzz
fuzz: ## Run every fuzz target for TIME=5m each
	@GO="$(GO)" scripts/fuzz $(TIME)

.PHONY: bench
bench: ## Run the benchmarks; with BENCH_VMLINUX=FILE on a kernel image too (see "make vmlinux")
	$(GO) test -run '^$$' -bench . ./bench/...

.PHONY: gate
gate: ## Ask a dozen questions of VMLINUX=FILE, and of the tool of the commit in bench/gate.json: time and memory only fall
	$(GO) run ./internal/proof/cmd/measure gate -k $(VMLINUX)

.PHONY: pgo
pgo: ## Profile the work on VMLINUX=FILE for the compiler: writes cmd/prolog-dump/default.pgo
	BENCH_VMLINUX=$(abspath $(VMLINUX)) $(GO) test -run '^$$' -bench 'Coverage|Index|Plan|Each' -benchtime 4x -cpuprofile cmd/prolog-dump/default.pgo -o $(BIN)/pgo.test ./bench

.PHONY: bench-peers
bench-peers: ## Measure beside drgn, perf, gdb and others on VMLINUX=FILE, growth on IMAGES="..." too; writes bench/RESULTS.md
	bench/peers.sh $(VMLINUX) $(IMAGES)

.PHONY: bench-emitted
bench-emitted: ## Count what is emitted for VMLINUX=FILE, measure what a hit costs; writes bench/EMITTED.md (root)
	bench/emitted.sh $(VMLINUX)

.PHONY: truth
truth: deps ## Trace programs of every compiler that record what they pass; prints a table (root)
	$(GO) run ./internal/proof/cmd/measure truth

.PHONY: random
random: deps ## Trace generated programs, with every compiler of C; prints a table (root)
	$(GO) run ./internal/proof/cmd/measure random

.PHONY: whole
whole: deps vmlinux ## Compare every site of whole kernels with other readers, and execute every distinct prologue in all conventions (root)
	ORACLE_FULL=1 PROVE_FULL=1 $(GO) test -timeout 40m -count=1 -v -run 'TestVmlinux|TestPaths|TestKernel' ./internal/proof/oracle ./internal/proof/prove

.PHONY: nightly
nightly: ## Run the whole matrices that take hours, and write one page of them: bin/nightly/README.md (root)
	scripts/nightly $(BIN)/nightly

.PHONY: harm
harm: deps sources ## Run all encodings of instructions, and programs, with and without probes, and compare what they do (root)
	HARM_COUNT=0 $(GO) test -timeout 60m -count=1 -v ./internal/proof/harm

.PHONY: day
day: ## Trace, count and record a load of 100,000 hits a second for ten minutes in all; memory, maps and files of the tool stay flat (root)
	LONG_SECONDS=200 LONG_RATE=100000 $(GO) test -timeout 20m -count=1 -v -run TestLong ./cmd/prolog-dump

.PHONY: producers
producers: deps ## Compare what each compiler's debug information gives; writes the table in docs/limits.md (root)
	$(GO) run ./internal/proof/cmd/measure producers -w docs/limits.md

.PHONY: runs
runs: deps ## Trace programs of every compiler that count their runs; prints a table (root)
	$(GO) run ./internal/proof/cmd/measure runs

.PHONY: mutate
mutate: deps ## Damage images of every compiler in 20,500 ways and ask all about each; prints a table (root)
	$(GO) run ./internal/proof/cmd/measure mutate

.PHONY: formats
formats: deps sources ## Build real programs in each format of debug information and compare all answers; prints a table
	$(GO) run ./internal/proof/cmd/measure formats

.PHONY: twin
twin: deps sources ## Trace real programs beside their unoptimized builds, run by run; prints a table (root)
	$(GO) run ./internal/proof/cmd/measure twin

.PHONY: sources
sources: ## Fetch the sources of the programs that tests build (100 MB, once: nearly all is GCC's, for its tests of debug information)
	@(for package in lua5.4 ninja-build zlib bzip2 lz4 lzip qrencode "gcc-12 guality"; do scripts/fetch-source.sh $$package >/dev/null || exit 1; done) || { echo "tests that need sources will be skipped" >&2; [ "$$CI" != true ]; }

.PHONY: fixtures
fixtures: ## Rebuild testdata/vmlinux-fixtures with the pinned compilers
	$(MAKE) -C testdata/vmlinux-fixtures update

.PHONY: deps
deps: ## Install the Debian packages that the tests use, if any is missing
	@scripts/install-packages $(DEPS)
	@scripts/fetch-rust.sh >/dev/null && scripts/fetch-gcc.sh >/dev/null || { echo "tests that need it will be skipped" >&2; [ "$$CI" != true ]; }

.PHONY: vmlinux
vmlinux: ## Fetch Debian's kernel images with debug information (2.3 GB, once) for tests and benchmarks
	@scripts/fetch-vmlinux.sh >/dev/null && scripts/fetch-vmlinuz.sh >/dev/null && \
	scripts/fetch-vmlinuz.sh cloud-amd64 bookworm-backports >/dev/null && \
	scripts/fetch-vmlinuz.sh cloud-arm64 >/dev/null && scripts/fetch-vmlinuz.sh s390x >/dev/null || { echo "tests that need a kernel image will be skipped" >&2; [ "$$CI" != true ]; }

.PHONY: fleet-packs
fleet-packs: build vmlinux ## Write packs of the fetched kernels for the example that carries them
	for image in $(wildcard bench/.cache/vmlinux-* bench/.cache/*/vmlinux-*); do \
		id=$$(readelf -n $$image | sed -n 's/.*Build ID: //p' | head -1); \
		$(BIN)/prolog-dump pack write --no-types -o examples/fleet/packs/$$id.pack $$image kfree_skb kfree_skb_reason sk_skb_reason_drop || exit 1; \
	done

.PHONY: kernels
kernels: vmlinux ## Fetch Debian's kernels of all architectures and the newest too (5.1 GB more, once)
	for flavour in cloud-amd64 cloud-arm64; do scripts/fetch-vmlinuz.sh $$flavour forky >/dev/null || exit 1; done
	for flavour in powerpc64le 686-pae armmp riscv64 loong64; do scripts/fetch-vmlinuz.sh $$flavour >/dev/null || exit 1; done
	scripts/fetch-vmlinux.sh 5kc-malta >/dev/null

.PHONY: reach
reach: kernels ## Compare two readers of the kernels of all architectures; writes bench/REACH.md
	$(GO) run ./internal/proof/cmd/measure reach >bench/REACH.md

.PHONY: packs
packs: vmlinux ## Write packs of kernels, modules and a series of kernels (1.7 GB more) and print what they cost; writes bench/PACKS.md
	$(GO) run ./internal/proof/cmd/measure packs -series "$$(scripts/fetch-series.sh)" >bench/PACKS.md

.PHONY: decode
decode: deps kernels ## Compare each instruction of the kernels of all architectures with what binutils, or LLVM, print
	OBJDUMP_FULL=1 $(GO) test -timeout 40m -count=1 -v -run TestObjdump ./internal/insn

.PHONY: guests
guests: deps kernels ## Probe live kernels of all architectures that an emulator runs
	scripts/install-packages qemu-system-ppc
	qemu=$$(scripts/fetch-qemu.sh) && PATH="$$qemu:$$PATH" GUESTS_FULL=1 $(GO) test -timeout 40m -count=1 -v ./internal/proof/guest

.PHONY: clean
clean: ## Remove what was built (the benchmarks' kernel images stay)
	rm -rf $(BIN)
	$(MAKE) -C testdata/vmlinux-fixtures clean
