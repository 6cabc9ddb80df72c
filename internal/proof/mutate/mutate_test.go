package mutate

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
)

// TestMain is a worker if it was started as one.
func TestMain(m *testing.M) {
	if os.Getenv(WorkerVariable) == "" {
		os.Exit(m.Run())
	}
	if err := Work(os.Stdin, os.Stdout); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Exit(0)
}

// small are subjects that need no kernel and no large program.
func small() []Subject {
	return slices.DeleteFunc(Subjects(), func(s Subject) bool {
		return s.Share < 5 || strings.HasPrefix(s.Name, "g++") || strings.HasPrefix(s.Name, "rustc")
	})
}

// newRun returns a run of this test's own binary.
func newRun(t *testing.T, numbers ...int) *Run {
	return &Run{
		Seed: 1, Numbers: numbers, Dir: t.TempDir(), Command: []string{os.Args[0]}, Workers: runtime.NumCPU(),
		Verify: bpfexec.Available() == nil, Log: t.Logf,
	}
}

// TestVariants asks a sample of what "make mutate" asks.
func TestVariants(t *testing.T) {
	n := 500
	if testing.Short() || races() {
		n = 50
	}
	var numbers []int
	for i := range n {
		numbers = append(numbers, 31*i) // of all subjects
	}
	r := newRun(t, numbers...)
	results, err := r.Do(t.Context(), small())
	if err != nil {
		t.Fatal(err)
	}
	made, answers := 0, make(map[string]int)
	for _, o := range results {
		if o.Done != nil {
			made++
			answers[o.Answer]++
		}
	}
	if found := Findings(results); found > 0 {
		t.Errorf("%d variants have findings", found)
	}
	if made < n/2 || answers["damaged"] < n/20 || answers["changed"] < n/10 {
		t.Errorf("of %d variants %d were made, with the answers %v: nothing that matters is damaged", n, made, answers)
	}
}

// TestSameVariant: a number makes the same file each time.
func TestSameVariant(t *testing.T) {
	subjects := small()[:1]
	var files [2]string
	for i := range files {
		r := newRun(t, 5)
		if _, err := r.Do(t.Context(), subjects); err != nil {
			t.Fatal(err)
		}
		found, err := filepath.Glob(filepath.Join(r.Dir, "worker*", "variant"))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		data, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		files[i] = string(data)
	}
	if files[0] != files[1] {
		t.Error("the files differ")
	}
}

// TestSubjects: there are as many as SECURITY.md says, and each kind of compiler has some.
func TestSubjects(t *testing.T) {
	by, names := make(map[string]int), make(map[string]bool)
	all := Subjects()
	for i := range all {
		by[all[i].Compiler]++
		if names[all[i].Name] {
			t.Errorf("%s twice", all[i].Name)
		}
		names[all[i].Name] = true
	}
	if len(all) < 60 {
		t.Errorf("%d subjects", len(all))
	}
	for _, c := range []string{"gcc", "clang", "Go", "Rust", "gcc, arm64", "clang, arm64", "Go, arm64", "clang, BPF"} {
		if by[c] == 0 {
			t.Errorf("no subject of %s", c)
		}
	}
}
