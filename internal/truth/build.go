package truth

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build is a program made by one compiler with some options.
type Build struct {
	Language Language
	Compiler string
	Options  []string
}

// String returns the build's name: "c gcc-12 -O2 -no-pie".
func (b *Build) String() string {
	return fmt.Sprintf("%s %s %s", b.Language, b.Compiler, strings.Join(b.Options, " "))
}

// recorder compiles what C, C++ and Rust programs record with.
const recorder = "gcc-12"

// workshop is a folder with the sources and what is built of them.
type workshop struct {
	dir string
}

// newWorkshop writes the sources to a folder.
func newWorkshop(ctx context.Context, dir string) (*workshop, error) {
	if err := writeSources(dir); err != nil {
		return nil, err
	}
	w := &workshop{dir: dir}
	// It is optimized so that the argument of truth_mark is in its register at the site.
	return w, w.command(ctx, recorder, "-O1", "-g", "-fPIC", "-c", "-o", "truth.o", "record/truth.c")
}

func (w *workshop) command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = w.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// make makes a build, and returns the program's path.
func (w *workshop) make(ctx context.Context, b *Build, name string) (path string, err error) {
	path = filepath.Join(w.dir, name)
	files, err := filepath.Glob(filepath.Join(w.dir, string(b.Language), "*.c*"))
	if err != nil {
		return "", err
	}
	// The programs' arithmetic wraps.
	args := append([]string{"-g", "-fwrapv", "-Irecord", "-w"}, b.Options...)
	args = append(append(args, "-o", path), files...)
	args = append(args, "truth.o")
	return path, w.command(ctx, b.Compiler, args...)
}
