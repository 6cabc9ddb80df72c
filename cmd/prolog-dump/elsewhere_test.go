package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/hits"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// elsewhereSource is a program whose exceptions pass functions. One of them returns by itself or ends with a jump to another.
const elsewhereSource = `
volatile int calls;
__attribute__((noinline)) int last(int x) { calls = calls + 1; if (x > 100) throw x; return x * 2; }
__attribute__((noinline)) int two(int x) { if (x & 1) return x * 10; calls = calls + 1; return last(x + 1); }
int main() { int sum = two(1) + two(2); try { two(200); } catch (int e) { sum++; } return sum == 0; }
`

// TestReturnedElsewhere: at a jump to another function there is no result yet, also where only symbols are known, and what helps is said
// once, where such a value was printed or counted.
func TestReturnedElsewhere(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	dir := t.TempDir()
	source, program, bare := filepath.Join(dir, "jump.cc"), filepath.Join(dir, "jump"), filepath.Join(dir, "bare")
	if err := os.WriteFile(source, []byte(elsewhereSource), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{{testenv.Tool(t, "g++-12"), "-g", "-O2", "-o", program, source}, {testenv.Tool(t, "strip"), "-g", "-o", bare, program}} {
		if text, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	result := regexp.MustCompile(`retval=(\S+)`)
	for _, program := range []string{program, bare} {
		for _, c := range []struct{ verb, definition, want string }{
			{"trace", "two%return $retval:s32", "10 ? ?"},
			{"trace --span", "two", ""},
			{"stat --by retval", "two%return $retval:s32", ""},
			{"trace", "last%return $retval:s32", "6"},
		} {
			var out, errs bytes.Buffer
			args := append(strings.Fields(c.verb), c.definition, "--", program)
			run := toolCommand(t, nil, args...)
			run.Stdout, run.Stderr = &out, &errs
			if err := run.Run(); err != nil {
				t.Fatalf("%q: %v\n%s", args, err, errs.String())
			}
			var got []string
			for _, m := range result.FindAllStringSubmatch(out.String(), -1) {
				got = append(got, m[1])
			}
			if got := strings.Join(got, " "); c.want != "" && got != c.want {
				t.Errorf("%q: results %q, want %q", args, got, c.want)
			}
			said := 1
			if strings.HasPrefix(c.definition, "last") {
				said = 0
			}
			if n := strings.Count(errs.String(), hits.WhyElsewhere); n != said {
				t.Errorf("%q: the reason is said %d times, want %d:\n%s", args, n, said, errs.String())
			}
		}
	}
}
