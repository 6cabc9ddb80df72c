package export_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// compile builds the program that the examples trace, which calls my_func_c_abcd 2,000 times.
func compile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "target")
	if out, err := exec.Command(testenv.Tool(t, "gcc-12"), "-O2", "-g", "-o", path, "../examples/libbpf/target.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestConditionBpftrace: bpftrace prints the hits for which a condition holds, with the signs that C compares with.
func TestConditionBpftrace(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	bpftrace := testenv.Tool(t, "bpftrace")
	path := compile(t)
	img := testenv.Open(t, path)
	for condition, want := range map[string]int{
		"arg1 > 1500": 499, "arg1 >= 1000 && arg1 != 1500": 999, "arg1 > 1500 || arg1 == 5": 500, "arg1 & 1": 1000, "arg1 - 1900 < 0 && arg1 - 1900 > -11": 10,
		"$pid == 1": 0,
	} {
		p := plantest.New(t, img, "if="+condition+";my_func_c_abcd arg1", plan.Options{})
		var b bytes.Buffer
		if err := export.Bpftrace(&b, p, export.Options{Path: path}); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "p.bt")
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(bpftrace, "-c", path, file).Output()
		if got := strings.Count(string(out), "arg1="); err != nil || got != want {
			t.Errorf("%s: %d hits, want %d: %v\n%s", condition, got, want, err, &b)
		}
	}
}

// TestConditionTracefs: a condition is a filter, of fields with the signs that it compares with, or its site is left out.
func TestConditionTracefs(t *testing.T) {
	path := compile(t)
	img := testenv.Open(t, path)
	for condition, want := range map[string]string{
		"arg1 > 2000":                  "arg1 > 2000",
		"arg1 >= -5 && arg1 != 2000":   "arg1 >= -5 && arg1 != 2000",
		"arg1 > 2000 || arg1 == 5":     "",
		"$pid == 1":                    "",
		"(unsigned long)arg1 > 0xfff0": "",
		"arg1 < 32767":                 "arg1 < 32767",
		"arg1 < 32768":                 "",
		"arg1 == 65541":                "",
	} {
		p := plantest.New(t, img, "if="+condition+";my_func_c_abcd arg1", plan.Options{})
		var b bytes.Buffer
		if err := export.Tracefs(&b, p, export.Options{Path: path}); err != nil {
			t.Fatal(err)
		}
		got := b.String()
		filter := "# echo '" + want + "' >/sys/kernel/tracing/events/probe/my_func_c_abcd/filter\n"
		switch {
		case want == "" && (strings.Contains(got, "p:probe") || !strings.Contains(got, "# my_func_c_abcd: the condition ")):
			t.Errorf("%s: a site that should be left out:\n%s", condition, got)
		case want != "" && (!strings.HasPrefix(got, "p:probe/my_func_c_abcd ") || !strings.HasSuffix(got, filter)):
			t.Errorf("%s: want a definition, and %s, got\n%s", condition, filter, got)
		}
	}
}

// TestInside: a comment says that bpftrace may not attach inside functions.
func TestInside(t *testing.T) {
	path := compile(t)
	img := testenv.Open(t, path)
	for definition, want := range map[string]bool{"my_func_c_abcd arg1": false, "my_func_*_abcd arg1": true} {
		var b bytes.Buffer
		if err := export.Bpftrace(&b, plantest.New(t, img, definition, plan.Options{}), export.Options{Path: path}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "bfd: yes"); got != want {
			t.Errorf("%s:\n%s", definition, &b)
		}
	}
}
