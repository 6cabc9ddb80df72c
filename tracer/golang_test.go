package tracer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// The stack of deep grows, and is moved, several times. sign has three returns, one of them
// reached only through a jump table.
const goSource = `package main

import "os"

type point struct{ x, y int32 }
type large struct{ a, b, c, d, e, f, g, h, i, j, k int }

//go:noinline
func deep(n int) int {
	var room [2000]byte
	if n == 0 {
		return int(room[0])
	}
	room[n] = 1
	return deep(n-1) + int(room[n])
}

//go:noinline
func sign(n int) (s string, err error) {
	switch n {
	case 0:
		return "zero", nil
	case 1, 2, 3, 4, 5, 6, 7, 8, 9:
		return "digit", os.ErrExist
	}
	return "more", nil
}

//go:noinline
func both(x, y int32) point { return point{x, y} }

//go:noinline
func fill(n int, f float64) large { return large{a: n, k: int(f)} }

//go:noinline
func half(f float64) float64 { return f / 2 }

//go:noinline
func root(n int) (z complex64, size int) { return complex(0, float32(n)), n * n }

type name string
type sizes []int

//go:noinline
func label(n name, all sizes) int { return len(n) + len(all) }

//go:noinline
func nothing() {}

func main() {
	done := make(chan bool)
	go func() {
		if deep(99) != 99 {
			os.Exit(1)
		}
		for _, n := range []int{0, 5, 99} {
			sign(n)
		}
		both(-3, 4)
		fill(7, half(16))
		root(3)
		label("first", sizes{2, 3})
		nothing()
		done <- true
	}()
	<-done
}
`

// buildGo builds a program of one file.
func buildGo(t *testing.T, text string, options ...string) (path string, img *dwarfloc.Image) {
	t.Helper()
	dir := t.TempDir()
	source, path := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testenv.Tool(t, "go"), append(append([]string{"build", "-o", path}, options...), source)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path, testenv.Open(t, path)
}

// TestGoReturns: returns of Go functions are probed at their return instructions, and the
// program, whose stack moves meanwhile, goes on.
func TestGoReturns(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, options := range [][]string{nil, {"-gcflags=all=-N -l"}, {"-buildmode=pie"}} {
		path, img := buildGo(t, goSource, options...)
		p := plans(t, img, "main.deep%return $retval", "main.sign%return len=$retval.len s=$retval.str[0] failed=err.tab",
			"main.both%return y=$retval.y $retval", "main.fill%return a=$retval.a k=$retval.k", "main.half%return $retval",
			"main.root%return z size", "main.label n all", "main.nothing%return")
		var got []string
		var deep []int64
		run(t, p, "", []string{path}, func(pid int, h *tracer.Hit) {
			if h.Plan == p[0] {
				deep = append(deep, h.Values[0].Any().(int64))
				return
			}
			line := h.Plan.Sites[h.Site].Function
			for i := range h.Values {
				v := &h.Values[i]
				text := v.String()
				if v.Name == "failed" {
					text = fmt.Sprint(text != "0x0" && text != "0")
				}
				line += " " + v.Name + "=" + text
			}
			got = append(got, line)
		})
		want := []string{
			"main.sign len=4 s=122 failed=false", "main.sign len=5 s=100 failed=true", "main.sign len=4 s=109 failed=false",
			"main.both y=4 retval={x=-3, y=4}", "main.half retval=?", "main.fill a=7 k=8",
			"main.root z=? size=9", `main.label n="first" all=[2, 3]`, "main.nothing",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: (-want +got):\n%s", options, diff)
		}
		var all []int64
		for n := range int64(100) {
			all = append(all, n)
		}
		if !slices.Equal(deep, all) {
			t.Errorf("%v: deep returns %v", options, deep)
		}
	}
}
