// Package examples runs the example programs as their users would.
package examples

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// build compiles an example.
func build(t *testing.T, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	if text, err := exec.Command("go", "build", "-o", out, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("go build ./%s: %v\n%s", name, err, text)
	}
	return out
}

func TestHits(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, _ := testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
	cmd := exec.Command(build(t, "hits"), "hits/bpf/hits.o", path, path)
	cmd.Stdin = strings.NewReader("x")
	got, err := cmd.Output()
	want := `FUNCTION  SITE    HITS  SUM  WITHOUT A VALUE
many      many    1     0    1
mix       first   1     41   0
mix       second  1     80   0
`
	if err != nil || string(got) != want {
		t.Errorf("got\n%s%v, want\n%s", got, err, want)
	}
}

func TestEvents(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, _ := testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
	cmd := exec.Command(build(t, "events"), "events/bpf/events.o", path, path)
	cmd.Stdin = strings.NewReader("x")
	got, err := cmd.CombinedOutput()
	want := `mix inlined in first  key=41  k=7
mix inlined in second  key=80  k=49
`
	if err != nil || string(got) != want {
		t.Errorf("got\n%s%v, want\n%s", got, err, want)
	}
}

func TestPreprocessor(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, err := fixtures.WriteTo(t.TempDir(), "basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command(build(t, "preprocessor"), path, "func=my_func_two_abcd arg1").Output()
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`descriptor \d+`).ReplaceAllString(string(got), "descriptor N")
	if !strings.HasPrefix(text, "instance 0: 4 instructions, descriptor N, for ") || strings.Count(text, "\n") != 3 {
		t.Errorf("got\n%s", text)
	}
}

// TestFleet: the example tells a kernel of which it has no pack what to do. internal/proof/guest runs it where it has one.
func TestFleet(t *testing.T) {
	got, err := exec.Command(build(t, "fleet"), "true").CombinedOutput()
	if err == nil || !regexp.MustCompile(`this is none of the \d+ kernels that are known here: add packs/[0-9a-f]+\.pack, written by "prolog-dump pack"`).Match(got) {
		t.Errorf("%v\n%s", err, got)
	}
}
