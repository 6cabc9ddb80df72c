package truth

import (
	"slices"
	"strings"
)

// The compilers of Debian 12. For GCC and clang all have each level of optimization; the others,
// which are older or newer, those in which they differ most.
var (
	gccs   = []string{"gcc-11", "gcc-12"}
	clangs = []string{"clang-14", "clang-15", "clang-16"}
	others = []string{"clang-19", "clang-22", "gcc" + newest}
	// gos are releases of Go: the first with generics, with another calling convention on arm64, with DWARF 5
	// (1.25), those between, and the newest, as modules.
	gos = []string{"go1.18.10", "go1.20.14", "go1.21.13", "go1.22.12", "go1.23.12", "go1.24.9", "go1.25.4", "go1.27.3"}
)

// newest ends the names of the GCC that scripts/fetch-gcc.sh unpacks.
const newest = "-16"

// levels are the levels of optimization of GCC and clang.
var levels = []string{"-O0", "-Og", "-O1", "-O2", "-O3", "-Os"}

// Matrix returns all builds, in the order of the table.
func Matrix() []Build {
	var all []Build
	for _, l := range []Language{C, CPP} {
		for _, compiler := range slices.Concat(gccs, clangs) {
			all = append(all, compiled(l, compiler)...)
		}
		for _, compiler := range others {
			options := []string{"-O0 -no-pie", "-O1 -pie -fPIE -gdwarf-4", "-O2 -no-pie", "-O3 -pie -fPIE"}
			if compiler == "gcc"+newest {
				options = append(options, "-Og -no-pie", "-Os -pie -fPIE")
				if l == C {
					options = append(options, "-O3 -no-pie -funroll-loops")
				}
			}
			for _, options := range options {
				all = append(all, Build{Language: l, Compiler: in(l, compiler), Options: strings.Fields(options)})
			}
		}
	}
	for _, options := range []string{
		"-C opt-level=0",
		"-C opt-level=1",
		"-C opt-level=2",
		"-C opt-level=3",
		"-C opt-level=s",
		"-C opt-level=0 -C relocation-model=static",
		"-C opt-level=2 -C relocation-model=static",
		"-C opt-level=3 -C lto=fat -C codegen-units=1",
		"-C opt-level=2 -C panic=abort -C force-frame-pointers=yes",
		"-C opt-level=2 -C overflow-checks=yes -C debug-assertions=yes",
	} {
		all = append(all, Build{Language: Rust, Compiler: "rustc", Options: strings.Fields(options)})
	}
	for _, options := range []string{"-C opt-level=0", "-C opt-level=1", "-C opt-level=2", "-C opt-level=3 -C lto=fat -C codegen-units=1"} {
		all = append(all, Build{Language: Rust, Compiler: "rustc-web", Options: strings.Fields(options)})
	}
	for _, b := range []Build{
		{},
		{Options: []string{"-gcflags=-N -l"}},
		{Options: []string{"-gcflags=-N"}},
		{Options: []string{"-gcflags=-l"}},
		{Options: []string{"-buildmode=pie"}},
		{Options: []string{"-ldflags=-compressdwarf=false", "-trimpath"}},
		{Env: []string{"GOAMD64=v3"}},
	} {
		b.Language, b.Compiler = Go, "go"
		all = append(all, b)
	}
	for _, compiler := range gos {
		all = append(all, Build{Language: Go, Compiler: compiler}, Build{Language: Go, Compiler: compiler, Options: []string{"-gcflags=-N -l"}})
	}
	return all
}

// Chosen returns the builds of Matrix whose names are chosen.
func Chosen(has func(name string) bool) []Build {
	return slices.DeleteFunc(Matrix(), func(b Build) bool { return !has(b.String()) })
}

// in returns the name of the compiler of C for a language.
func in(l Language, compiler string) string {
	if l == CPP {
		return strings.NewReplacer("gcc", "g++", "clang", "clang++").Replace(compiler)
	}
	return compiler
}

// compiled returns the builds of a C or C++ program.
func compiled(l Language, compiler string) []Build {
	gcc := slices.Contains(gccs, compiler)
	compiler = in(l, compiler)
	var all []Build
	add := func(options ...string) {
		all = append(all, Build{Language: l, Compiler: compiler, Options: options})
	}
	for i, level := range levels {
		// C++ takes longer to compile, and its functions differ in how they are called rather
		// than in how they are optimized: half of the combinations.
		if l == C || i%2 == 0 {
			add(level, "-no-pie", "-gdwarf-5")
		}
		if l == C || i%2 == 1 {
			add(level, "-pie", "-fPIE", "-gdwarf-4")
		}
	}
	lto := []string{"-flto"}
	if !gcc {
		lto = []string{"-flto", "-fuse-ld=lld"}
	}
	add(append([]string{"-O2", "-no-pie"}, lto...)...)
	if l == CPP {
		return all
	}
	add(append([]string{"-O3", "-pie", "-fPIE"}, lto...)...)
	add("-O2", "-no-pie", "-fno-omit-frame-pointer", "-fcf-protection=full")
	// What Debian builds its packages with.
	add("-O2", "-pie", "-fPIE", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro,-z,now")
	add("-O3", "-no-pie", "-march=x86-64-v3", "-funroll-loops")
	add("-O2", "-static", "-ffunction-sections", "-Wl,--gc-sections", "-gz")
	add("-O0", "-pie", "-fPIE", "-fstack-protector-all", "-fno-omit-frame-pointer")
	if gcc {
		add("-O1", "-no-pie", "-gno-variable-location-views")
		add("-O2", "-pie", "-fPIE", "-gno-variable-location-views")
		add("-O3", "-no-pie", "-gno-variable-location-views", "-gdwarf-4")
		add("-O2", "-no-pie", "-gno-statement-frontiers")
		add("-O2", "-no-pie", "-fno-var-tracking-assignments")
	}
	return all
}
