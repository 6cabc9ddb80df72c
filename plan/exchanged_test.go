package plan_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// TestExchanged: a static function's convention need not be the platform's, but no compiler passes parameters in another order than they are declared in: what LLVM notes
// the other way round at the function's first instruction is what statements have made of them. And of "p.x = p.y" one register is left for both parts.
func TestExchanged(t *testing.T) {
	const source = `
struct pair { long x, y; };
__attribute__((noinline)) long g(long a, long b) { __asm__ volatile("" : : : "memory"); return a * 3 + b; }
static __attribute__((noinline)) long swapped(long a, long b) { long t = a; a = b; b = t; return g(a, b); }
static __attribute__((noinline)) long inside(struct pair p) { long t = p.x; p.x = p.y; p.y = t; return g(p.x, p.y); }
static __attribute__((noinline)) long straight(long a, long b) { return g(a, b); }
static __attribute__((noinline)) long whole(struct pair p) { return g(p.x, p.y); }
static __attribute__((noinline)) long shifted(long unused, long b, long c) { return g(b, c); }
static inline __attribute__((always_inline)) long doubled(struct pair p) { p.x = p.y; return g(p.x, p.y) + p.x; }
static inline __attribute__((always_inline)) long plain(struct pair p) { return g(p.x, p.y) + p.x; }
__attribute__((noinline)) long f(long x, long y)
{
	struct pair p = { x, y }, q = { y, x };
	long r = g(x, y);
	r += swapped(x, y) + inside(p) + straight(x, y) + whole(q) + shifted(r, x, y);
	r += doubled(p);
	return r + plain(p) + x;
}
int main(int c, char **v) { return f(c * 7, c + 3) & 1; }
`
	for _, tt := range []struct{ compiler, options string }{{"clang-14", "-O2"}, {"clang-14", "-Os"}, {"clang-22", "-O2"}} {
		img := built(t, tt.compiler, tt.options, map[string]string{"a.c": source})
		for definition, sure := range map[string]bool{
			"swapped a": false, "swapped b": false, "inside p": false, "straight a": true, "straight b": true, "whole p": true, "shifted b": true, "shifted c": true,
			"doubled p": false, "plain p": true,
		} {
			isSure(t, tt.compiler, img, definition, 1, sure)
		}
	}
}

// TestExchangedInGo: the registers of Go's convention are in another order than the platform's.
func TestExchangedInGo(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	err := os.WriteFile(source, []byte(`package main

//go:noinline
func four(a, b, c, d int) int { return a*b - c*d }

func main() { println(four(len("abc"), 2, 3, 4)) }
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	img, err := dwarfloc.Open(program, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	for _, definition := range []string{"main.four a", "main.four b", "main.four c", "main.four d"} {
		isSure(t, "go", img, definition, 1, true)
	}
}
