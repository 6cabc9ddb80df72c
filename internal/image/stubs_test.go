package image_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestStubs: calls of another file's function lead to where its stub begins, as objdump names it, whatever the linker puts in front of the jump, and however soon the loader
// is to write the slot.
func TestStubs(t *testing.T) {
	const source = `
void abort(void);
int puts(const char *);
void (*also(void))(void) { return abort; }
int more(int n) { if (puts("") > n) abort(); return n; }
`
	for _, tt := range []struct{ compiler, options, linker, flags string }{
		{"gcc-12", "", "ld", ""}, {"gcc-12", "", "ld", "-z now"}, {"gcc-12", "-fcf-protection", "ld", "-z ibt"}, {"gcc-12", "", "ld", "-z bndplt"},
		{"clang-14", "--target=aarch64-linux-gnu", "aarch64-linux-gnu-ld", ""},
		{"clang-14", "--target=aarch64-linux-gnu -mbranch-protection=bti", "aarch64-linux-gnu-ld", "-z force-bti"},
	} {
		dir := t.TempDir()
		run := func(tool string, args ...string) string {
			c := exec.Command(testenv.Tool(t, tool), args...)
			c.Dir = dir
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%s %v: %v\n%s", tool, args, err, out)
			}
			return string(out)
		}
		if err := os.WriteFile(filepath.Join(dir, "a.c"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		run(tt.compiler, append(strings.Fields(tt.options), "-O2", "-fPIC", "-c", "a.c")...)
		run(tt.linker, append(strings.Fields(tt.flags), "-shared", "-o", "a.so", "a.o")...)
		f, err := image.Open(filepath.Join(dir, "a.so"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		stubs := f.Stubs(func(name string) bool { return name == "abort" })
		dump := "objdump"
		if strings.HasPrefix(tt.linker, "aarch64") {
			dump = "llvm-objdump-14"
		}
		var called []string
		for _, line := range strings.Split(run(dump, "-d", "--no-show-raw-insn", "a.so"), "\n") {
			if fields := strings.Fields(line); len(fields) > 3 && slices.Contains([]string{"call", "bnd", "bl"}, fields[1]) && strings.Contains(line, "<abort@plt>") {
				called = append(called, strings.TrimPrefix(fields[len(fields)-2], "0x"))
			}
		}
		if len(called) != 1 || len(stubs) == 0 {
			t.Fatalf("%v: calls %v, stubs %#x", tt, called, stubs)
		}
		found := false
		for at, name := range stubs {
			found = found || name == "abort" && strings.TrimLeft(called[0], "0") == strconv.FormatUint(at, 16)
		}
		if !found {
			t.Errorf("%v: calls %v, stubs %#x", tt, called, stubs)
		}
	}
}
