package image_test

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/image"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestDebugLink: without a build ID, the file that .gnu_debuglink names is taken if its checksum is the one
// there.
func TestDebugLink(t *testing.T) {
	gcc, objcopy := testenv.Tool(t, "gcc-12"), testenv.Tool(t, "objcopy")
	dir := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
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
