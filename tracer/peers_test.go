package tracer_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// traced runs a command under some plans, and returns "FUNCTION NAME=VALUE" for each
// value that was fetched, by the task of the command.
func traced(t *testing.T, p []*plan.Plan, stdin string, command ...string) []string {
	t.Helper()
	var out []string
	run(t, p, stdin, command, func(pid int, h *tracer.Hit) {
		for i := range h.Values {
			if v := &h.Values[i]; h.PID == pid && !v.Lost {
				out = append(out, fmt.Sprintf("%s %s=%s", h.Plan.Sites[h.Site].SymbolOffset(), v.Name, v))
			}
		}
	})
	return out
}

// TestGdb: gdb, stopped at the same addresses of the same program, prints the same.
func TestGdb(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	gdb := testenv.Tool(t, "gdb")
	path, img := program(t)
	// Numbers, whose form gdb and we share.
	exprs := map[string][]string{
		"scalars":   {"s", "us", "i", "u"},
		"many":      {"a", "b", "d", "e", "g", "h", "i.a", "i.b"},
		"walk":      {"i", "n->in.port", "n->in.s", "n->inp->s", "n->l", "n->hi", "n->next->l", "n->in.arr[3]", "n->matrix[1][2]", "n->flags", "n->wide", "n->sb", "n->sc", "n->big", "n->cvp[1]", "list[1]->l"},
		"take_pair": {"p.a", "p.b", "x"}, "take_small": {"s.a", "s.b", "big.v[3]"},
		"negative": {"v"}, "lines": {"n"},
	}
	number := regexp.MustCompile(`= (-?\d+)`)
	compared := 0
	for function, list := range exprs {
		def := function
		script := []string{"-nx", "-batch", "-ex", "set confirm off", "-ex", "break *" + function, "-ex", "run < /dev/null", "-ex", "printf \"at\\n\""}
		for i, e := range list {
			def += fmt.Sprintf(" x%d=%s", i, e)
			script = append(script, "-ex", "print "+e)
		}
		text, err := exec.Command(gdb, append(script, path)...).CombinedOutput()
		_, answers, ok := strings.Cut(string(text), "\nat\n")
		if err != nil || !ok {
			t.Fatalf("gdb at %s: %v\n%s", function, err, text)
		}
		theirs := number.FindAllStringSubmatch(answers, -1)
		ours := traced(t, plans(t, img, def), "x", path)
		if len(theirs) != len(list) || len(ours) != len(list) {
			t.Errorf("%s: %d values, gdb has %d, want %d:\n%s\n%s", function, len(ours), len(theirs), len(list), ours, answers)
			continue
		}
		for i, e := range list {
			if want := fmt.Sprintf("%s x%d=%s", function, i, theirs[i][1]); ours[i] != want {
				t.Errorf("%s of %s: %s, gdb has %s", e, function, ours[i], want)
			}
			compared++
		}
	}
	t.Logf("%d values compared with gdb's", compared)
	if compared < 30 {
		t.Error("too few values were compared")
	}
}

// TestLibrary: a system library, whose debug information is in a separate file.
func TestLibrary(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const libc = "/lib/x86_64-linux-gnu/libc.so.6"
	img, err := dwarfloc.Open(libc, nil)
	if errors.Is(err, dwarfloc.ErrNoDWARF) {
		testenv.Missing(t, "no debug information of the C library: install libc6-dbg")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	file := filepath.Join(t.TempDir(), "a file of the test's")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := traced(t, plans(t, img, "getenv name:string", "open64 file:string", "setlocale category"), "", "cat", file)
	for _, want := range []string{
		`__libc_open64 file=` + strconv.Quote(file), `getenv name="POSIXLY_CORRECT"`, `setlocale category=6`,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, strings.Join(got, "\n"))
		}
	}
}
