package dwarfloc_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
)

const symbolSource = `
#include <setjmp.h>
#include <stdlib.h>
volatile long sink;
__attribute__((noinline)) long sum(long a, const char *b, int c, long d, long e, long f, long g) { sink = a + *b + c; return sink + d + e + f + g; }
long total(long a, const char *b, int c, long d, long e, long f, long g) __attribute__((alias("sum")));
__attribute__((noipa)) static long own(long a, long b) { sink = a; return a * b; }
__attribute__((noinline)) static long by(long a, long b) { sink = a; return sink * b; }
static long (*chosen(void))(long) { extern long real(long); return real; }
long real(long a) { return a + 1; }
long pick(long a) __attribute__((ifunc("chosen")));
__attribute__((noinline)) long leaves(long n) { if (n > 3) return sum(n, "", 1, 2, 3, 4, 5); sink = n; return n; }
__asm__(".globl label\n.text\nlabel: ret\n.globl bare\n.type bare, @function\nbare: ret\n");
void bare(void);
int main(int argc, char **argv) { if (argc > 99) abort(); bare(); return own(argc, 2) + by(argc, 7) + by(argc + 1, 7) + pick(argc) + leaves(argc) == 0; }
`

func planned(img *dwarfloc.Image, definition string, o plan.Options) (*plan.Plan, error) {
	def, err := probe.Parse(definition)
	if err != nil {
		return nil, err
	}
	return plan.New(context.Background(), img, def, o)
}

// openStripped opens a copy of a program without debug information, and with its symbols.
func openStripped(t *testing.T, path string, o dwarfloc.Options) *dwarfloc.Image {
	t.Helper()
	bare := path + ".bare"
	if out, err := exec.Command(testenv.Tool(t, "objcopy"), "--strip-debug", path, bare).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	o.Symbols = true
	img, err := dwarfloc.Open(bare, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = img.Close() })
	return img
}

// TestBySymbols: what only symbols say of a program's functions.
func TestBySymbols(t *testing.T) {
	img := openStripped(t, compile(t, "gcc-12", symbolSource, "-O2"), dwarfloc.Options{})
	for _, c := range []struct{ definition, want string }{
		{"sum $arg1 $arg2:string $arg3:s32 $arg6 $arg7", "sum: %rdi, [%rsi], %rdx, %r9, u64[%rsp+8]"},
		{"to*l $arg1", "total: %rdi"},     // the other name of sum
		{"own $arg1 $arg2", "own: ~, ~"},  // a compiler may have changed how it is called
		{"by $arg1", "by: not-described"}, // it has
		{"by.constprop.0 $arg1", "by: not-described"},
		{"pick $arg1", "pick: no function begins there"},
		{"label $arg1", "label: no function begins there"},
		{"bare $arg1", "bare: ~"}, // by hand, perhaps with a convention of its own
		{"sum%return $retval", "sum: %rax"},
	} {
		p, err := planned(img, c.definition, plan.Options{Doubt: plan.DoubtMark})
		if err != nil {
			t.Errorf("%s: %v", c.definition, err)
			continue
		}
		var got []string
		for i := range p.Sites {
			s := &p.Sites[i]
			if s.Refused != nil {
				_, why, _ := strings.Cut(s.Refused.Error(), fmt.Sprintf("%#x: ", s.Addr))
				why, _, _ = strings.Cut(why, ": ")
				got = append(got, s.Function+": "+why)
				continue
			}
			var args []string
			for j := range s.Args {
				switch v := s.Args[j].Variable; {
				case !v.Located():
					args = append(args, v.Reason.Code.String())
				case v.Loc.Doubt != 0:
					args = append(args, "~")
				default:
					args = append(args, s.Args[j].Loc.Text(img.Arch()))
				}
			}
			got = append(got, s.Function+": "+strings.Join(args, ", "))
		}
		if text := strings.Join(slices.Compact(got), "; "); text != c.want {
			t.Errorf("%s: %s, want %s", c.definition, text, c.want)
		}
	}
}

// TestReturnsBySymbols: where a function returns is the same with debug information and without.
func TestReturnsBySymbols(t *testing.T) {
	path := compile(t, "gcc-12", symbolSource, "-O2", "-g")
	whole := testenv.Open(t, path)
	bare := openStripped(t, path, dwarfloc.Options{})
	for _, name := range []string{"sum", "own", "real", "leaves", "main"} {
		var at [2][]string
		for i, img := range []*dwarfloc.Image{whole, bare} {
			p, err := planned(img, name+"%return", plan.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for k := range p.Sites {
				at[i] = append(at[i], fmt.Sprintf("%#x %v", p.Sites[k].Addr, p.Sites[k].Return))
			}
		}
		if !slices.Equal(at[0], at[1]) || len(at[0]) == 0 {
			t.Errorf("%s returns at %q, without debug information at %q", name, at[0], at[1])
		}
	}
}

// TestAlsoSymbols: debug information answers for what it has, by all names, and symbols for the rest.
func TestAlsoSymbols(t *testing.T) {
	path := compile(t, "gcc-12", symbolSource, "-O2", "-g")
	img, err := dwarfloc.Open(path, &dwarfloc.Options{Symbols: true})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	for _, c := range []struct{ pattern, want string }{
		{"total", "sum "},
		{"to*l", "sum "},
		{"bare", "bare symbol"},
		{"ba?e", "bare symbol"},
		{"s?m", "sum "},
		{"_start", "_start symbol"},
		{"abort", path + `: "abort": it is in a library that the file needs: name that one`},
	} {
		m, err := glob.Compile(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		found, err := sites.Select(t.Context(), img, sites.Selection{Functions: m})
		if err != nil && err.Error() == c.want {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		for _, s := range found {
			if got := s.Function + " " + inside.Evidence(s); got != c.want {
				t.Errorf("%s: %s, want %s", c.pattern, got, c.want)
			}
		}
	}
	// The Nth argument is the Nth parameter where these are known.
	p, err := planned(img, "sum $arg2 $arg3", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a := p.Sites[0].Args; a[0].TypeText() != "const char *" || a[1].TypeText() != "int" {
		t.Errorf("$arg2 and $arg3 are %s and %s", a[0].TypeText(), a[1].TypeText())
	}
	if _, err := planned(img, "sum $arg8", plan.Options{}); err == nil || !strings.Contains(err.Error(), "column 5: no $arg8: sum has 7 parameters") {
		t.Errorf("$arg8: %v", err)
	}
}

// TestTypesForSymbols: what has only symbols takes the types that a definition names from another image.
func TestTypesForSymbols(t *testing.T) {
	types := testenv.Open(t, compile(t, "gcc-12", "struct pair { int a; long b; } pair; int main(void) { return pair.a; }", "-g"))
	img := openStripped(t, compile(t, "gcc-12", symbolSource, "-O2"), dwarfloc.Options{TypesOf: types})
	p, err := planned(img, "sum (struct pair *)$arg1->b", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Sites[0].Args[0].Loc.Text(img.Arch()); got != "[%rdi+8]" {
		t.Errorf("it is at %s", got)
	}
}
