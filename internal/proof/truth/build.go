package truth

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Build is a program made by one compiler with some options.
type Build struct {
	Language Language
	Compiler string
	Options  []string
	Env      []string // what is added to the environment, such as "GOAMD64=v3"
}

// String returns the build's name: "c gcc-12 -O2 -no-pie".
func (b *Build) String() string {
	return strings.Join(slices.Concat([]string{string(b.Language), b.Compiler}, b.Env, b.Options), " ")
}

// recorder compiles what C, C++ and Rust programs record with.
const recorder = "gcc-12"

// workshop is a folder with the sources and what is built of them.
type workshop struct {
	dir   string
	calls calls
}

// newWorkshop writes the sources to a folder.
func newWorkshop(ctx context.Context, dir string) (*workshop, error) {
	if err := writeSources(dir); err != nil {
		return nil, err
	}
	w := &workshop{dir: dir}
	// It is optimized so that the argument of truth_mark is in its register at the site.
	return w, w.command(ctx, nil, recorder, "-O1", "-g", "-fPIC", "-c", "-o", "truth.o", "record/truth.c")
}

func (w *workshop) command(ctx context.Context, env []string, name string, args ...string) error {
	return w.commandIn(ctx, "", env, name, args...)
}

func (w *workshop) commandIn(ctx context.Context, folder string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = filepath.Join(w.dir, folder)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// make makes a build of the program with its sources below a folder, and returns the program's
// path.
func (w *workshop) make(ctx context.Context, b *Build, folder, name string) (path string, err error) {
	path = filepath.Join(w.dir, name)
	switch b.Language {
	case Rust:
		return path, w.compile(ctx, b, "", append([]string{
			"--edition", "2021", "-Awarnings", "-g", "-C", "link-arg=truth.o", "-o", path, filepath.Join(folder, "rust", "main.rs"),
		}, b.Options...)...)
	case Go:
		// As a package: the constraints of files that are named would not count.
		return path, w.compile(ctx, b, filepath.Join(folder, string(Go)), append([]string{"build", "-o", path}, b.Options...)...)
	default:
		files, err := filepath.Glob(filepath.Join(w.dir, folder, string(b.Language), "*.c*"))
		if err != nil {
			return "", err
		}
		// The programs' arithmetic wraps.
		args := append([]string{"-g", "-fwrapv", "-Irecord", "-w", "-o", path}, b.Options...)
		if b.Language == CPP {
			args = append(args, "-std=gnu++17")
		}
		return path, w.compile(ctx, b, "", append(append(args, files...), "truth.o")...)
	}
}

// compile runs a build's compiler in a folder of the workshop.
func (w *workshop) compile(ctx context.Context, b *Build, folder string, args ...string) error {
	c := b.compiler()
	return w.commandIn(ctx, folder, slices.Concat(c.env, b.Env), c.path, slices.Concat(c.args, args)...)
}

// family is the compiler without its version and language: "gcc" for "g++-12" too.
func (b *Build) family() string {
	if b.Language == Go {
		return "go"
	}
	name, _, _ := strings.Cut(b.Compiler, "-")
	return strings.Replace(strings.Replace(name, "clang++", "clang", 1), "g++", "gcc", 1)
}
