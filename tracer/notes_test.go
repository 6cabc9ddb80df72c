package tracer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// What its statically defined probes have, the program prints: where it has counters, only while one is not 0.
const notesSource = `
#ifdef COUNTED
#define _SDT_HAS_SEMAPHORES 1
#endif
#include <sys/sdt.h>
#include <stdio.h>
#ifdef COUNTED
unsigned short shop_sell_semaphore __attribute__((section(".probes"))), shop_idle_semaphore __attribute__((section(".probes")));
#else
static const int shop_sell_semaphore = 1, shop_idle_semaphore = 1;
#endif
struct item { char name[8]; short n; unsigned char kind; long price; } items[3] = {{"apple", -3, 250, -5}, {"pear", 300, 7, 1L << 40}, {"plum", 0, 0, 0}};
volatile int sink; static int counter; static long table[4];
__attribute__((noinline)) void sell(struct item *i, int by, unsigned long all)
{
	int n = by * 3;
	counter += by;
	table[by & 3] = i->price + by;
	sink = n;
	if (shop_sell_semaphore) {
		DTRACE_PROBE8(shop, sell, i->name, n, i->n, i->kind, i->price, counter, all + by, table[by & 3]);
		printf("shop:sell arg1=\"%s\" arg2=%d arg3=%d arg4=%u arg5=%ld arg6=%d arg7=%lu arg8=%ld\n", i->name, n, i->n, i->kind, i->price, counter, all + by, table[by & 3]);
	}
	sink = n + by;
}
int main(int argc, char **argv)
{
	for (int k = 0; k < 3; k++) {
		items[k].name[0] += sink & 0;
		sell(&items[k], k * 5 - 4, -k);
		if (shop_idle_semaphore) {
			DTRACE_PROBE2(shop, idle, 5, -7);
			printf("shop:idle arg1=%d arg2=%d\n", 5, -7);
		}
	}
	return 0;
}
`

// TestNotes traces statically defined probes, in a stripped program too, and compares with what the program prints.
func TestNotes(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	if err := exec.Command(testenv.Tool(t, "gcc-12"), "-E", "-include", "sys/sdt.h", "-x", "c", "/dev/null").Run(); err != nil {
		testenv.Missing(t, "sys/sdt.h is not installed: run \"make deps\"")
	}
	for _, c := range []struct{ compiler, options string }{
		{"gcc-12", "-O2"}, {"gcc-12", "-O2 -DCOUNTED"}, {"gcc-12", "-O0 -no-pie -DCOUNTED"}, {"clang-14", "-O2 -DCOUNTED"}, {"clang-14", "-O1 -no-pie"},
	} {
		t.Run(c.compiler+" "+c.options, func(t *testing.T) {
			path, _ := build(t, c.compiler, "source.c", notesSource, strings.Fields(c.options)...)
			quiet, err := exec.Command(path).Output()
			if err != nil || (len(quiet) == 0) != strings.Contains(c.options, "COUNTED") {
				t.Fatalf("without probes it prints %q, %v", quiet, err)
			}
			bare := path + ".bare"
			if out, err := exec.Command(testenv.Tool(t, "strip"), "-o", bare, path).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, path := range []string{path, bare} {
				img, err := dwarfloc.Open(path, &dwarfloc.Options{Symbols: true})
				if err != nil {
					t.Fatal(err)
				}
				defer img.Close()
				p := plans(t, img, "%sdt_shop:sell $arg1:string $arg2 $arg3 $arg4 $arg5 $arg6 $arg7 $arg8", "%sdt_shop:idle $params")
				printed, err := os.Create(filepath.Join(t.TempDir(), "printed"))
				if err != nil {
					t.Fatal(err)
				}
				defer printed.Close()
				var got strings.Builder
				run(t, p, "", []string{"sh", "-c", path + " >" + printed.Name()}, func(_ int, h *tracer.Hit) {
					if h.Comm == "sh" {
						return
					}
					got.WriteString(h.Plan.Sites[h.Site].Function)
					for i := range h.Values {
						fmt.Fprintf(&got, " %s=%s", h.Values[i].Name, h.Values[i])
					}
					got.WriteByte('\n')
				})
				want, err := os.ReadFile(printed.Name())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got.String()); diff != "" || len(want) == 0 {
					t.Errorf("(-printed +traced):\n%s", diff)
				}
			}
			if strings.Contains(c.options, "COUNTED") {
				return
			}
			// The debug information knows what the note does not.
			img, err := dwarfloc.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			got := ""
			for _, l := range traced(t, plans(t, img, "if=i->kind==7; %shop:sell $arg1:string i->name i->price by (struct item *)$arg1->n"), "", path) {
				_, value, _ := strings.Cut(l, " ")
				got += value + " "
			}
			if want := `arg1="pear" name="pear" price=1099511627776 by=1 n=300 `; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// TestSameNames: a note names a variable of the unit, and the file has no more than the name. If another unit has one of that name, nothing is said.
func TestSameNames(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "program")
	args := []string{"-O2", "-o", path}
	for name, text := range map[string]string{
		"a.c": "#include <sys/sdt.h>\nstatic volatile int n = 11, only = 5; void b(void);\nint main(void) { STAP_PROBE2(shop, a, n, only); b(); return 0; }\n",
		"b.c": "#include <sys/sdt.h>\nstatic volatile int n = 22;\nvoid b(void) { STAP_PROBE1(shop, b, n); }\n",
		"c.c": "volatile int n = 33;\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, filepath.Join(dir, name))
	}
	if out, err := exec.Command(testenv.Tool(t, "gcc-12"), args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	img, err := dwarfloc.Open(path, &dwarfloc.Options{Symbols: true})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	got := traced(t, plans(t, img, "%shop:* $params"), "", path)
	if len(got) != 1 || !strings.HasSuffix(got[0], " arg2=5") {
		t.Errorf("%q, want arg2=5 alone", got)
	}
}

// TestStart: a program begins with a function that nothing calls, which has no return, not even by force.
func TestStart(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, _ := build(t, "gcc-12", "source.c", "#include <stdio.h>\nint main(int argc, char **argv) { printf(\"%d\\n\", argc); return 0; }\n", "-O1", "-g0")
	img, err := dwarfloc.Open(path, &dwarfloc.Options{Symbols: true})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	for _, definition := range []string{"_start%return", "force=yes;_start%return"} {
		p := plans(t, img, definition)[0]
		if r := p.Sites[0].Refused; r == nil || !strings.Contains(r.Error(), "nothing calls it") {
			t.Errorf("%s: %v", definition, r)
		}
	}
}
