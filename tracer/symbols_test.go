package tracer_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// What it passes to its functions, and gets from them, it prints.
const printsSource = `
#include <stdio.h>
struct pair { int a; long b; } p = {7, -8};
char words[2][8] = {"even", "odd"}; // what is written to is in memory
__attribute__((noinline)) long call(long a, const char *b, int c, unsigned char d, struct pair *e, long f, const char *g, short h)
{
	printf("call arg1=%ld arg2=\"%s\" arg3=%d arg4=%u arg5=%d arg6=%ld arg7=\"%s\" arg8=%d\n", a, b, c, d, e->a, f, g, h);
	return a - 100;
}
__attribute__((noinline)) int early(int n) { if (n > 2) return n * 3; return -n; }
int main(int argc, char **argv)
{
	words[0][0] = argv[0] ? 'e' : 0;
	for (int i = 0; i < 4; i++) {
		printf("call retval=%ld\n", call(i, words[i & 1], -i, 200 + i, &p, 1L << 40, words[0], -3));
		printf("early retval=%d\n", early(i));
	}
	return 0;
}
`

// TestSymbols traces programs without debug information, and compares with what they print.
func TestSymbols(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, c := range []struct{ compiler, options string }{{"gcc-12", "-O2"}, {"gcc-12", "-O0 -no-pie"}, {"clang-14", "-O2"}} {
		t.Run(c.compiler+" "+c.options, func(t *testing.T) {
			path, types := build(t, c.compiler, "source.c", printsSource, strings.Fields(c.options)...)
			bare := path + ".bare"
			if out, err := exec.Command(testenv.Tool(t, "objcopy"), "--strip-debug", path, bare).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			img, err := dwarfloc.Open(bare, &dwarfloc.Options{Symbols: true, TypesOf: types})
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			p := plans(t, img,
				"call $arg1:s64 $arg2:string $arg3:s32 $arg4:u8 arg5=(struct pair *)$arg5->a $arg6 $arg7:string $arg8:s16",
				"call%return $retval:s64", "early%return $retval:s32")
			printed, err := exec.Command(bare).Output()
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			run(t, p, "", []string{bare}, func(pid int, h *tracer.Hit) {
				if h.PID != pid {
					return
				}
				got.WriteString(h.Plan.Sites[h.Site].Function)
				for i := range h.Values {
					fmt.Fprintf(&got, " %s=%s", h.Values[i].Name, h.Values[i])
				}
				got.WriteByte('\n')
			})
			if diff := cmp.Diff(string(printed), got.String()); diff != "" {
				t.Errorf("(-printed +traced):\n%s", diff)
			}
		})
	}
}

// What it passes to its functions it prints. The stack of deep grows meanwhile, which begins functions again.
const goPrintsSource = `package main

import "fmt"

type item struct{ n int }

//go:noinline
func work(a int, s string, c uint8, p *item) (int, error) {
	fmt.Printf("main.work arg1=~%d s=~%q arg4=~%d memory=~%d\n", a, s, c, p.n)
	return a * 3, nil
}

//go:noinline
func (p *item) deep(n int) int {
	var room [2000]byte
	if n == 0 {
		return int(room[0])
	}
	room[n] = 1
	return p.deep(n-1) + int(room[n])
}

func main() {
	p := &item{7}
	for i := range 3 {
		r, _ := work(i-1, "hello"[i:], uint8(200+i), p)
		fmt.Printf("main.work retval=~%d\n", r)
	}
	done := make(chan int)
	go func() { done <- p.deep(99) }()
	fmt.Println(<-done + 1, "runs of deep")
}
`

// TestGoSymbols traces stripped programs of Go, whose functions only the runtime's own table names.
func TestGoSymbols(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, options := range []string{"-ldflags=-s -w", "-ldflags=-w", "-buildmode=pie -ldflags=-s"} {
		t.Run(options, func(t *testing.T) {
			dir := t.TempDir()
			source, path := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
			if err := os.WriteFile(source, []byte(goPrintsSource), 0o600); err != nil {
				t.Fatal(err)
			}
			mode, flags, _ := strings.Cut(options, "-ldflags=")
			args := append(append([]string{"build"}, strings.Fields(mode)...), "-ldflags="+flags, "-o", path, source)
			if out, err := exec.Command(testenv.Tool(t, "go"), args...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			img, err := dwarfloc.Open(path, &dwarfloc.Options{Symbols: true})
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			p, err := plansOf(img, plan.Options{Doubt: plan.DoubtMark},
				"main.work $arg1:s64 s=((char *)$arg2)[0..$arg3]:string $arg4:u8 +0($arg5):s64", "main.work%return $retval:s64",
				"main.(*item).deep", "main.(*item).deep%return")
			if err != nil {
				t.Fatal(err)
			}
			printed, err := exec.Command(path).Output()
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			deep := make(map[bool]int)
			run(t, p, "", []string{path}, func(pid int, h *tracer.Hit) {
				s := &h.Plan.Sites[h.Site]
				if h.PID != pid {
					return
				}
				if s.Function != "main.work" {
					deep[h.Plan.Definition.Point.Return]++
					return
				}
				got.WriteString(s.Function)
				for i := range h.Values {
					fmt.Fprintf(&got, " %s=%s", h.Values[i].Name, h.Values[i])
				}
				got.WriteByte('\n')
			})
			fmt.Fprintln(&got, deep[false], "runs of deep")
			if diff := cmp.Diff(string(printed), got.String()); diff != "" || deep[false] != deep[true] {
				t.Errorf("%d ends of deep (-printed +traced):\n%s", deep[true], diff)
			}
		})
	}
}

// What its functions return, the program prints. Parts of them are elsewhere: one goes on in the function, one throws, and one begins where the
// frame has more than a call makes.
const coldSource = `
#include <cstdio>
#include <stdexcept>
volatile int sink;
extern "C" {
__attribute__((cold, noinline)) int complain(int n) { sink = sink + n; return n * 2; }
__attribute__((noinline)) int back(int n, int *p)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += p[i & 3] * i;
	if (__builtin_expect(n > 5, 0)) {
		sum += complain(n);
		p[0] = sum = sum + complain(sum);
		if (n > 7)
			return -7;
	}
	for (int i = 0; i < n; i++)
		sum ^= p[i & 3], sink = sink + 1;
	return sum;
}
__attribute__((noinline)) int throws(int n)
{
	if (n == 3)
		throw std::runtime_error("three");
	sink = sink + n;
	return n + 1;
}
__attribute__((noinline)) int deep(int n, int *p)
{
	int a = complain(n), b = complain(a);
	if (__builtin_expect(a + b > 50, 0)) {
		complain(b);
		complain(a);
		return a - b + p[1];
	}
	return a + b + p[0];
}
}
int main()
{
	int p[4] = {1, 2, 3, 4};
	for (int i = 0; i < 12; i++) {
		printf("back retval=%d\n", back(i, p));
		try {
			printf("throws retval=%d\n", throws(i));
		} catch (std::exception &) {
		}
		printf("deep retval=%d\n", deep(i, p));
	}
}
`

// TestColdParts: a stripped file has no symbols of the parts of functions that are elsewhere, and their frame descriptions tell them.
func TestColdParts(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, options := range []string{"-O2", "-O1 -freorder-blocks-and-partition -fno-omit-frame-pointer", "-O3 -no-pie"} {
		path, _ := build(t, "g++-12", "cold.cc", coldSource, append(strings.Fields(options), "-rdynamic")...)
		if out, err := exec.Command(testenv.Tool(t, "strip"), path).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		img, err := dwarfloc.Open(path, &dwarfloc.Options{Symbols: true})
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		want, err := exec.Command(path).Output()
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		run(t, plans(t, img, "back%return $retval:s32", "throws%return $retval:s32", "deep%return $retval:s32"), "", []string{path}, func(_ int, h *tracer.Hit) {
			fmt.Fprintf(&got, "%s retval=%s\n", h.Plan.Sites[h.Site].Function, h.Values[0])
		})
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-printed +traced):\n%s", options, diff)
		}
	}
}

// TestInsideSymbols: an instruction of a function of which there is only a symbol has registers, and the first one also what is passed. An address
// that is none, and one of no function, are errors.
func TestInsideSymbols(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, described := build(t, "gcc-12", "source.c", printsSource, "-O2", "-no-pie")
	bare := path + ".bare"
	if out, err := exec.Command(testenv.Tool(t, "objcopy"), "--strip-debug", path, bare).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	img, err := dwarfloc.Open(bare, &dwarfloc.Options{Symbols: true})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	all, err := described.Sites(t.Context(), dwarfloc.Name("early"))
	if err != nil {
		t.Fatal(err)
	}
	entry := all[0].Addr
	want := []string{"0", "1", "2", "3"}
	passed := func(definition string) (got []string) {
		run(t, plans(t, img, definition), "", []string{bare}, func(_ int, h *tracer.Hit) { got = append(got, h.Values[0].String()) })
		return got
	}
	if got := passed(fmt.Sprintf("%#x $arg1:s32", entry)); !slices.Equal(got, want) {
		t.Errorf("at its address: %q", got)
	}
	inside := 0
	for off := 1; off < 8; off++ {
		for _, definition := range []string{fmt.Sprintf("early+%d %%di:s32 $arg1 $frame", off), fmt.Sprintf("%#x %%di:s32 $arg1 $frame", entry+uint64(off))} {
			// The debug information knows the same of where instructions are.
			_, wrong := plansOf(described, plan.Options{}, fmt.Sprintf("early+%d", off))
			p, err := plansOf(img, plan.Options{}, definition)
			if (err == nil) != (wrong == nil) || err != nil && !errors.Is(err, refusals.ErrMidInstruction) {
				t.Fatalf("%s: %v, and with debug information %v", definition, err, wrong)
			}
			if err != nil {
				continue
			}
			inside++
			if a := p[0].Sites[0].Args; a[1].Fetched() || a[2].Fetched() {
				t.Errorf("%s: what is passed, or the frame, is known", definition)
			}
			if got := passed(definition); inside < 3 && !slices.Equal(got, want) {
				t.Errorf("%s: %q", definition, got)
			}
		}
	}
	if inside == 0 {
		t.Error("no instruction was inside")
	}
	for definition, want := range map[string]string{"early+4000": "is outside the code", "0x10": "no symbol is of code there"} {
		if _, err := plansOf(img, plan.Options{}, definition); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", definition, err)
		}
	}
}
