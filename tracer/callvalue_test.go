package tracer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestChangedBeforeCall: what a call passes is not in a register that the code has changed between the copy and the call, though LLVM notes it (seen with clang 14 at -O2,
// in Lua's sort). Here the copy for the next turn, which clang has behind the call, is put in front of it.
func TestChangedBeforeCall(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
volatile int sink;
__attribute__((noinline)) void finish(int *t, long n) { t[n & 7]++; sink = t[0]; }
__attribute__((noinline)) void put(int *t, long n) { finish(t, n); sink = 3; }
__attribute__((noinline)) long next(int *t, long n) { __asm__ volatile("" ::: "memory"); return n - t[7]; }
__attribute__((noinline)) long swap(int *t, long lo, long up)
{
	long i = lo, j = up;
	for (;;) {
		i = next(t, i);
		put(t, i);
		put(t, j);
		j = i;
		if (i < 2)
			return j;
	}
}
int main(void) { int t[8] = {[7] = 3}; return swap(t, 9, 100) == 100; }
`
	dir := t.TempDir()
	c, s, path := filepath.Join(dir, "put.c"), filepath.Join(dir, "put.s"), filepath.Join(dir, "put")
	if err := os.WriteFile(c, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	clang := testenv.Tool(t, "clang-14")
	if out, err := exec.Command(clang, "-O2", "-g", "-S", "-o", s, c).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(s)
	if err != nil {
		t.Fatal(err)
	}
	late := regexp.MustCompile(`(?s)(\tcallq\tput\n.*?)(\tcallq\tput\n)(.*?)(\tmovq\t%rbx, %r1[45]\n)`)
	if !late.Match(text) {
		t.Fatal("clang compiles the loop in another way")
	}
	if err := os.WriteFile(s, late.ReplaceAll(text, []byte("$1$4$2$3")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(clang, "-o", path, s).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var entries, exits []string
	for _, line := range traced(t, plans(t, testenv.Open(t, path), "put n", "put%exit n"), "", path) {
		if place, n, _ := strings.Cut(line, " "); place == "put" {
			entries = append(entries, n)
		} else if n != "" {
			exits = append(exits, n)
		}
	}
	if want := []string{"n=6", "n=100", "n=3", "n=6", "n=0", "n=3"}; !cmp.Equal(entries, want) || len(exits) != 0 {
		t.Errorf("%q, and at returns %q", entries, exits)
	}
}
