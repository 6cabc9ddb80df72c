package sites_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

const genericGo = `package main

import "fmt"

//go:noinline
func Sum[T int | float64](a []T, k T) (s T) {
	for _, x := range a {
		s += x * k
	}
	return s
}

type Stack[T any] struct{ items []T }

//go:noinline
func (s *Stack[T]) Push(v T) { s.items = append(s.items, v) }

type P struct{ x int }

//go:noinline
func (p *P) Add(k int) int { p.x += k; return p.x }

func main() {
	s, t, p := &Stack[int]{}, &Stack[string]{}, &P{}
	s.Push(4)
	t.Push("x")
	fmt.Println(Sum([]int{1, 2}, 3), Sum([]float64{1, 2}, 3), len(s.items), len(t.items), p.Add(3))
}
`

// TestBrackets: functions of Go are found by their names as Go writes them, with their types or without.
func TestBrackets(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(genericGo), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", "program", "main.go")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	img := testenv.Open(t, filepath.Join(dir, "program"))
	for pattern, want := range map[string][]string{
		"main.Sum[go.shape.int]":              {"main.Sum[go.shape.int]"},
		"main.Sum[...]":                       {"main.Sum[go.shape.float64]", "main.Sum[go.shape.int]"},
		"main.(*Stack[go.shape.string]).Push": {"main.(*Stack[go.shape.string]).Push"},
		"main.(*Stack[...]).Push":             {"main.(*Stack[go.shape.int]).Push", "main.(*Stack[go.shape.string]).Push"},
		`main.(\*Stack\[*\]).Push`:            {"main.(*Stack[go.shape.int]).Push", "main.(*Stack[go.shape.string]).Push"},
		"main.(*P).Add":                       {"main.(*P).Add"},
		"main.Su[k-n]*":                       {"main.Sum[go.shape.float64]", "main.Sum[go.shape.int]"},
		"main.Sum[go.shape.uint8]":            nil,
		"main.S[...]":                         nil,
	} {
		if got := qualifiedNames(t, img, pattern); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
	}
}
