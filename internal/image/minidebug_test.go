package image_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestMiniDebugInfo makes a library as Fedora does, and finds the names that .dynsym does not have.
func TestMiniDebugInfo(t *testing.T) {
	gcc, objcopy, strip, xz := testenv.Tool(t, "gcc-12"), testenv.Tool(t, "objcopy"), testenv.Tool(t, "strip"), testenv.Tool(t, "xz")
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) {
		t.Helper()
		c := exec.Command(args[0], args[1:]...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	write("lib.c", "__attribute__((noinline)) static int hidden(int a) { return a + 1; }\nint shown(int a) { return hidden(a) * hidden(a + 2); }\n")
	write("keep", "hidden\n")
	run(gcc, "-g", "-O1", "-shared", "-fPIC", "-o", "lib.so", "lib.c")
	run(objcopy, "--only-keep-debug", "lib.so", "debug")
	run(objcopy, "-S", "--remove-section", ".comment", "--keep-symbols=keep", "debug", "mini")
	run(xz, "-k", "mini")
	run(strip, "-o", "bare.so", "lib.so")
	run(objcopy, "--add-section", ".gnu_debugdata=mini.xz", "bare.so", "fedora.so")

	names := func(name string) map[string]uint64 {
		t.Helper()
		f, err := image.Open(filepath.Join(dir, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		out := make(map[string]uint64)
		for s := range f.Symbols() {
			out[s.Name] = s.Addr
			if at := f.SymbolAt(s.Addr, ""); s.Name == "hidden" && (at == nil || at.Name != "hidden" || s.Global || s.Size == 0) {
				t.Errorf("%s: at %#x is %+v", name, s.Addr, at)
			}
		}
		known, err := f.SymbolAddresses("hidden", "shown", "none")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []string{"hidden", "shown"} {
			if known[n] != out[n] {
				t.Errorf("%s: %s is at %#x and at %#x", name, n, known[n], out[n])
			}
		}
		// What is kept of the symbols is the same.
		index, err := f.SymbolIndex()
		if err != nil {
			t.Fatal(err)
		}
		again, err := image.Open(filepath.Join(dir, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if !again.UseSymbolIndex(index) {
			t.Errorf("%s: its own index is not used", name)
		}
		for s := range again.Symbols() {
			if out[s.Name] != s.Addr {
				t.Errorf("%s: from an index %s is at %#x, not %#x", name, s.Name, s.Addr, out[s.Name])
			}
		}
		return out
	}
	whole, bare, fedora := names("lib.so"), names("bare.so"), names("fedora.so")
	if bare["hidden"] != 0 || whole["hidden"] == 0 || fedora["hidden"] != whole["hidden"] || fedora["shown"] != whole["shown"] {
		t.Errorf("whole %#x, bare %#x, with .gnu_debugdata %#x", whole, bare, fedora)
	}
	// Damaged, another program's, and no ELF file at all: .dynsym is left.
	for what, text := range map[string]string{"cut": "\xfd7zXZ\x00\x00", "text": "no names", "empty": ""} {
		write(what, text)
		run(objcopy, "--add-section", ".gnu_debugdata="+what, "bare.so", "bad.so")
		if got := names("bad.so"); got["hidden"] != 0 || got["shown"] != whole["shown"] {
			t.Errorf("%s: %#x", what, got)
		}
	}
	d, err := os.ReadFile(filepath.Join(dir, "mini.xz"))
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(d); n += 1 + len(d)/50 {
		write("damaged", string(d[:n])+strings.Repeat("x", len(d)-n))
		run(objcopy, "--add-section", ".gnu_debugdata=damaged", "bare.so", "bad.so")
		if got := names("bad.so"); got["shown"] != whole["shown"] {
			t.Errorf("damaged from %d on: %#x", n, got)
		}
	}
}
