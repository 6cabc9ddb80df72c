package mutate

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/proof/truth"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

//go:embed testdata
var sources embed.FS

// Subject is a good file.
type Subject struct {
	Name     string
	Compiler string // as in the table: "gcc", "clang", "Go", "Rust"
	Share    int    // of the variants: small files are asked in milliseconds, Go's runtime in seconds
	Object   bool   // a BPF object file
	make     func(ctx context.Context, dir, path string) error
}

// Subjects returns all subjects, in an order that stays.
func Subjects() []Subject {
	return slices.Concat(fixtureSubjects(), smallSubjects(), truthSubjects(), foundSubjects(), objectSubjects())
}

// run runs a compiler.
func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if name == "go" {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GO111MODULE=off")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// fixtureSubjects are the images of testdata/vmlinux-fixtures.
func fixtureSubjects() (out []Subject) {
	for _, name := range slices.Concat(fixtures.Names(), fixtures.Relocatable(), fixtures.Programs()) {
		compiler := "gcc"
		if strings.Contains(name, "clang") {
			compiler = "clang"
		}
		out = append(out, Subject{Name: "fixture " + name, Compiler: arm64(compiler, name), Share: 12, make: func(_ context.Context, _, path string) error {
			data, err := fixtures.Bytes(name)
			if err != nil {
				return err
			}
			return os.WriteFile(path, data, 0o600)
		}})
	}
	return out
}

func arm64(compiler, name string) string {
	if strings.Contains(name, "arm64") || strings.Contains(name, "aarch64") {
		return compiler + ", arm64"
	}
	return compiler
}

// smallSubjects are builds of the sources in testdata, which need no header and no library, for this
// processor and another one.
func smallSubjects() (out []Subject) {
	add := func(compiler, command, source string, options ...string) {
		name := strings.Join(append([]string{filepath.Base(command), strings.TrimSuffix(source, ".txt")}, options...), " ")
		out = append(out, Subject{Name: name, Compiler: arm64(compiler, name), Share: 40, make: func(ctx context.Context, dir, path string) error {
			text, err := sources.ReadFile("testdata/" + source)
			if err != nil {
				return err
			}
			in := strings.TrimSuffix(source, ".txt")
			if err := os.WriteFile(filepath.Join(dir, in), text, 0o600); err != nil {
				return err
			}
			args := append(slices.Clone(options), "-o", path, in)
			switch command {
			case "go":
				args = append(append([]string{"build"}, options...), "-o", path, in)
			case "/usr/bin/rustc":
				args = append([]string{"-g", "--emit=obj"}, args...)
			default:
				args = append([]string{"-g"}, args...)
			}
			return run(ctx, dir, command, args...)
		}})
	}
	library := []string{"-fPIC", "-shared", "-nostdlib", "-Wl,--build-id"}
	object := []string{"-c"}
	with := func(link []string, options ...string) []string { return slices.Concat(options, link) }
	for _, gcc := range []string{"gcc-11", "gcc-12"} {
		add("gcc", gcc, "small.c", with(library, "-O2", "-gdwarf-5")...)
		add("gcc", gcc, "small.c", with(library, "-O0", "-gdwarf-4")...)
		add("gcc", gcc, "small.c", with(object, "-Os", "-gdwarf-5")...)
		add("gcc", gcc, "small.c", with(object, "-O3", "-gdwarf-4", "-ffunction-sections")...)
	}
	add("gcc", "gcc-12", "small.c", with(library, "-O2", "-gdwarf64")...)
	add("gcc", "gcc-12", "small.c", with(library, "-O2", "-gdwarf-2", "-gstrict-dwarf")...)
	add("gcc", "gcc-12", "small.c", with(library, "-O2", "-gz=zlib")...)
	add("gcc", "gcc-12", "small.c", with(library, "-O2", "-gz=zlib-gnu")...)
	add("gcc", "gcc-12", "small.c", with(object, "-O2", "-gz=zlib")...)
	add("gcc", "gcc-12", "small.c", with(library, "-O2", "-gdwarf-3", "-fno-omit-frame-pointer")...)
	add("gcc", "gcc-12", "small.c", with(library, "-O2", "-fno-asynchronous-unwind-tables")...)
	add("gcc", "gcc-12", "small.c", with(library, "-O2", "-fdebug-types-section")...)
	add("gcc", "gcc-12", "small.c", with(library, "-O2", "-fdebug-types-section", "-gdwarf-4")...)
	// Split units are in another file, which stays good: package dwarfloc damages those.
	add("gcc", "gcc-12", "small.c", with(library, "-O2", "-gsplit-dwarf", "-gdwarf-4")...)
	add("gcc", "gcc-12", "small.c", with(library, "-O2", "-gsplit-dwarf", "-gdwarf-5")...)
	for _, gcc := range []string{"g++-11", "g++-12"} {
		add("gcc", gcc, "small.cpp", with(library, "-O2", "-fno-rtti")...)
		add("gcc", gcc, "small.cpp", with(object, "-O0", "-fno-rtti")...)
	}
	for _, clang := range []string{"clang-14", "clang-15", "clang-16"} {
		add("clang", clang, "small.c", with(library, "-O2", "-gdwarf-5")...)
		add("clang", clang, "small.c", with(object, "-O1", "-gdwarf-4")...)
		add("clang", clang, "small.c", with(object, "-O2", "-gdwarf-5", "--target=aarch64-linux-gnu")...)
		add("clang", clang, "small.c", with(library, "-Os", "-gdwarf-4", "--target=aarch64-linux-gnu", "-fuse-ld=lld")...)
		cpp := strings.Replace(clang, "clang", "clang++", 1)
		add("clang", cpp, "small.cpp", with(object, "-O2", "-fno-rtti")...)
	}
	add("clang", "clang-14", "small.c", with(library, "-O0", "-gdwarf-5", "--target=aarch64-linux-gnu", "-fuse-ld=lld")...)
	add("clang", "clang-14", "small.c", with(library, "-O2", "-gsplit-dwarf", "-fsplit-dwarf-inlining", "-gdwarf-5")...)
	add("clang", "clang-16", "small.c", with(library, "-O2", "-fuse-ld=lld", "-Wl,--compress-debug-sections=zlib")...)
	add("clang", "clang-16", "small.c", with(object, "-O2", "-fdebug-types-section")...)
	add("clang", "clang++-16", "small.cpp", with(library, "-O1", "-fno-rtti", "--target=aarch64-linux-gnu", "-fuse-ld=lld")...)
	for _, level := range []string{"0", "1", "2", "3", "s"} {
		add("Rust", "/usr/bin/rustc", "small.rs", "-C", "opt-level="+level)
	}
	add("Rust", "/usr/bin/rustc", "small.rs", "-C", "opt-level=2", "-C", "force-frame-pointers=yes", "-C", "overflow-checks=yes")
	add("Go", "go", "small.go.txt", "-ldflags=-compressdwarf=false")
	out[len(out)-1].Share = 1
	return append(out, Subject{Name: "go small.go arm64", Compiler: "Go, arm64", Share: 1, make: func(ctx context.Context, dir, path string) error {
		text, err := sources.ReadFile("testdata/small.go.txt")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "small.go"), text, 0o600); err != nil {
			return err
		}
		return run(ctx, dir, "env", "GOARCH=arm64", "CGO_ENABLED=0", "go", "build", "-o", path, "small.go")
	}})
}

// truthSubjects are builds of package truth's programs.
func truthSubjects() (out []Subject) {
	seen := make(map[string]int)
	matrix := truth.Matrix()
	for i := range matrix {
		b := &matrix[i]
		key := b.Compiler + string(b.Language)
		share, limit := 4, 2
		switch b.Language {
		case truth.Rust:
			share, limit = 1, 1
		case truth.Go:
			share, limit = 1, 1
		}
		if seen[key]++; seen[key] > limit {
			continue
		}
		compiler := strings.TrimRight(strings.NewReplacer("g++", "gcc", "clang++", "clang", "rustc", "Rust", "go", "Go").Replace(b.Compiler), "-0123456789")
		out = append(out, Subject{Name: "truth " + b.String(), Compiler: compiler, Share: share, make: func(ctx context.Context, dir, path string) error {
			return truth.Make(ctx, dir, b, path)
		}})
	}
	return out
}

// foundSubjects are files that the machine has: the kernel's modules and this program.
func foundSubjects() (out []Subject) {
	for name, path := range map[string]string{"amd64": "", "arm64": "arm64"} {
		out = append(out, Subject{Name: "module tun.ko " + name, Compiler: arm64("gcc", name), Share: 1, make: func(_ context.Context, _, to string) error {
			found, err := filepath.Glob(filepath.Join(testenv.Cache(), path, "tun-*.ko"))
			if err != nil || len(found) == 0 {
				return fmt.Errorf("no module: run \"make vmlinux\"")
			}
			data, err := os.ReadFile(found[0])
			if err != nil {
				return err
			}
			return os.WriteFile(to, data, 0o600)
		}})
	}
	slices.SortFunc(out, func(a, b Subject) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// objectSubjects are BPF objects of the examples.
func objectSubjects() (out []Subject) {
	for _, name := range []string{"events/bpf/events.o", "hits/bpf/hits.o", "hits/bpf/kmalloc.o"} {
		out = append(out, Subject{Name: "object " + name, Compiler: "clang, BPF", Share: 5, Object: true, make: func(_ context.Context, _, to string) error {
			data, err := os.ReadFile(filepath.Join(root(), "examples", name))
			if err != nil {
				return err
			}
			return os.WriteFile(to, data, 0o600)
		}})
	}
	return out
}

// root is the folder of this module.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}
