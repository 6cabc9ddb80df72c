package image_test

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// runner returns a function that runs commands in a folder.
func runner(t *testing.T, dir string) func(name string, args ...string) {
	return func(name string, args ...string) {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
}

// TestDebugLink: without a build ID, the file that .gnu_debuglink names is taken if its checksum is the one
// there.
func TestDebugLink(t *testing.T) {
	gcc, objcopy := testenv.Tool(t, "gcc-12"), testenv.Tool(t, "objcopy")
	dir := t.TempDir()
	run := runner(t, dir)
	for _, name := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(dir, name+".c"), []byte("int "+name+"(int a) { return a; }\nint main(void) { return 0; }\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		run(gcc, "-g", "-Wl,--build-id=none", "-o", name, name+".c")
		run(objcopy, "--only-keep-debug", name, name+".debug")
	}
	run(objcopy, "--strip-all", "--add-gnu-debuglink=one.debug", "one", "bare")
	bare := filepath.Join(dir, "bare")
	taken := func() string {
		t.Helper()
		f, err := image.Open(bare, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return filepath.Base(f.DebugPath())
	}
	if got := taken(); got != "one.debug" {
		t.Errorf("taken from %q", got)
	}
	// Another program's file, under that name.
	other, err := os.ReadFile(filepath.Join(dir, "two.debug"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(filepath.Join(dir, "one.debug"))
	if err != nil {
		t.Fatal(err)
	}
	for what, d := range map[string][]byte{"another": other, "changed": append(bytes.Clone(own[:len(own)-1]), own[len(own)-1]^1), "longer": append(bytes.Clone(own), 0)} {
		if err := os.WriteFile(filepath.Join(dir, "one.debug"), d, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := taken(); got != "." {
			t.Errorf("%s: taken from %q", what, got)
		}
	}
	// The right one is found in the next place.
	if err := os.Mkdir(filepath.Join(dir, ".debug"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".debug", "one.debug"), own, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := taken(); got != "one.debug" {
		t.Errorf("taken from %q", got)
	}
	// Without a checksum nothing tells.
	d, err := os.ReadFile(bare)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(d))
	if err != nil {
		t.Fatal(err)
	}
	link := f.Section(".gnu_debuglink")
	copy(d[link.Offset:], "/x")
	if err := os.WriteFile(bare, d, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := taken(); got != "." {
		t.Errorf("a path: taken from %q", got)
	}
}

// TestDebugDirs: separate debug information is looked for below the directories that the options name, by
// build ID and by the file's path, and then nowhere else.
func TestDebugDirs(t *testing.T) {
	gcc, objcopy := testenv.Tool(t, "gcc-12"), testenv.Tool(t, "objcopy")
	dir := t.TempDir()
	run := runner(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "a.c"), []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(gcc, "-g", "-Wl,--build-id=0xabcdef01", "-o", "whole", "a.c")
	run(objcopy, "--only-keep-debug", "whole", "whole.debug")
	run(objcopy, "--strip-all", "--add-gnu-debuglink=whole.debug", "whole", "bare")
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	byID := filepath.Join(second, ".build-id", "ab", "cdef01.debug")
	byPath := filepath.Join(first, dir, "whole.debug")
	for _, path := range []string{byID, byPath} {
		run("mkdir", "-p", filepath.Dir(path))
		run("cp", "whole.debug", path)
	}
	run("rm", "whole.debug")
	for _, tc := range []struct {
		dirs []string
		want string
	}{
		{nil, ""},
		{[]string{}, ""},
		{[]string{first}, byPath},
		{[]string{second}, byID},
		{[]string{first, second}, byID}, // a build ID is looked for first
		{[]string{filepath.Join(dir, "none"), first}, byPath},
	} {
		f, err := image.Open(filepath.Join(dir, "bare"), &image.Options{DebugDirs: tc.dirs})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.DebugPath(); got != tc.want {
			t.Errorf("%q: taken from %q, not from %q", tc.dirs, got, tc.want)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
