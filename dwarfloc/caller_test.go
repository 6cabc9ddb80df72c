package dwarfloc_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
)

// callersSource has a function for each shape of a call. All take two numbers, use the second one first, and then lose the first: so the debug
// information names what the first register had where the function was called.
const callersSource = `
volatile int sink;
int input;
#define use(x) asm volatile ("" : : "r" (x))
#define lose() asm volatile ("" : : : "rdi", "rsi", "rdx", "rcx", "memory")
#define fun __attribute__((noinline, noclone))

/* A constant, a register that is preserved, and an address. */
fun void plain(long n, long k) { use(k); lose(); sink = 1; }

/* It goes on in itself: the return address is that of the first call. */
fun void self(long n, long k) { use(k); lose(); sink = 2; if (sink) self(input + 1, 5); }

/* Two functions that go on in each other. */
fun void pong(long n, long k);
fun void ping(long n, long k) { use(k); lose(); sink = 3; pong(input + 2, 5); }
fun void pong(long n, long k) { use(k); lose(); sink = 4; if (sink) ping(input + 3, 6); }

/* It goes on in what a variable says. */
void (*volatile next)(long, long) = plain;
fun void further(long n, long k) { use(k); lose(); sink = 5; next(input + 4, 5); }

/* It goes on in a function that does not come back. */
fun void last(long n, long k) { use(k); lose(); sink = 6; plain(input, 9); }

/* The value is one of its own caller's. */
fun void inner(long n, long k) { use(k); lose(); sink = 7; }
fun void outer(long n, long k) { use(k); inner(n, 3); lose(); sink = 8; }

/* It destroys a register that it should preserve. */
fun void careless(long n, long k) { use(k); lose(); sink = 9; asm volatile ("mov $1, %ebx"); }

/* It is entered by a jump alone, with constants, and with what the function that jumps was called with. */
fun void end(long n, long k) { use(k); lose(); sink = 10; }
fun void constant(long n, long k) { use(n); lose(); sink = 11; end(123, 1); }
fun void second(long n, long k) { use(k); lose(); sink = 12; }
fun void through(long n, long k) { use(k); sink = 13; second(n, 2); }

/* It is entered by two jumps of a function, by one of a function that also goes on elsewhere, and by one of a function that is entered by a jump itself. */
fun void either(long n, long k) { use(k); lose(); sink = 14; }
fun void two(long n, long k) { use(k); lose(); sink = 15; if (sink) either(1, k); else { sink = 16; either(2, input); } }
fun void other(long n, long k) { use(k); lose(); sink = 17; }
fun void elsewhere2(long n, long k) { use(k); lose(); if (sink) other(3, 1); else further(4, 1); }
fun void third(long n, long k) { use(k); lose(); sink = 18; }
fun void middle(long n, long k) { use(k); lose(); sink = 19; third(5, 1); }
fun void first(long n, long k) { use(k); lose(); sink = 20; middle(6, 1); }

/* It is entered by a jump, and goes on in the function that jumps. */
fun void around(long n, long k);
fun void back(long n, long k) { use(k); lose(); sink = 21; if (sink) around(7, 1); }
fun void around(long n, long k) { use(k); lose(); sink = 22; back(8, 1); }

/* It is entered by a jump of a function that a variable names. */
fun void hidden(long n, long k) { use(k); lose(); sink = 23; }
fun void pointed(long n, long k) { use(k); lose(); sink = 24; hidden(9, 1); }
void (*volatile pointer)(long, long) = pointed;

int main(int argc, char **argv)
{
	long kept = argc * 10;
	use(kept);
	plain(42, 1); plain(kept, 2); plain((long)&input, 3);
	self(1, 1); use(kept);
	ping(2, 1); use(kept);
	further(3, 1); use(kept);
	last(4, 1); use(kept);
	outer(77, 1); use(kept);
	careless(kept, 1); use(kept);
	constant(5, 1); use(kept); through(55, 1); use(kept); second(56, 3); use(kept);
	two(5, 1); use(kept); elsewhere2(5, 1); use(kept); first(5, 1); use(kept); around(5, 1); use(kept); pointer(5, 1); use(kept);
	return sink + kept;
}
`

// TestCaller: what call sites say is taken where the return address proves which of them it was, and nowhere else.
func TestCaller(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other.c")
	if err := os.WriteFile(other, []byte("void outer(long, long);\nvoid elsewhere(void) { outer(78, 1); asm volatile (\"\"); }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := compile(t, "gcc", callersSource, other, "-O2", "-g", "-fno-ipa-cp", "-fno-ipa-sra", "-no-pie", "-fno-pie", "-fno-ipa-ra")
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	for _, c := range []struct{ name, want string }{
		{"plain", "caller(u64[%rsp]: @A 42, @A %rbx, @A @A)"},
		{"self", "entry-value-only: it jumps to its own beginning"},
		{"ping", "entry-value-only: it may go on in itself"},
		{"pong", "entry-value-only: no call of it is known"},
		{"further", "entry-value-only: it goes on in another function by an indirect jump"},
		{"last", "caller(u64[%rsp]: @A 4)"},
		{"careless", "entry-value-only: where the caller's registers are is not known"},
		{"inner", "caller(u64[%rsp]: @A caller(u64[%rsp+8]: @A 77, @A 78))"},
		{"outer", "caller(u64[%rsp]: @A 77, @A 78)"}, // from two units
		{"end", "caller(u64[%rsp]: @A 123)"},
		{"second", "caller(u64[%rsp]: @A 55, @A 56)"},
		{"either", "entry-value-only: no call of it is known"},
		{"other", "entry-value-only: no call of it is known"},
		{"middle", "caller(u64[%rsp]: @A 6)"},
		{"third", "entry-value-only: no call of it is known"},
		{"back", "entry-value-only: it may go on in itself"},
		{"hidden", "entry-value-only: no call of it is known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sites, err := img.Sites(context.Background(), dwarfloc.Name(c.name))
			if err != nil || len(sites) != 1 {
				t.Fatal(sites, err)
			}
			if got := addresses.ReplaceAllString(whereLost(t, sites[0], "n"), "@A"); got != c.want {
				t.Errorf("n is %s, want %s", got, c.want)
			}
		})
	}
}

var addresses = regexp.MustCompile("@0x[0-9a-f]+")

// whereLost returns where a variable is at the last byte of a function's code at which only its callers know it, or why it is lost there.
func whereLost(t *testing.T, s *dwarfloc.Site, name string) string {
	t.Helper()
	ranges, err := s.Ranges()
	if err != nil {
		t.Fatal(err)
	}
	for at := ranges[0][1] - 1; at > ranges[0][0]; at-- {
		in, err := s.Image.SiteAt(context.Background(), at)
		if err != nil {
			t.Fatal(err)
		}
		v, err := in.Lookup(name)
		switch {
		case err != nil:
			t.Fatal(err)
		case v.Loc.Rule == rule.Caller:
			return v.Loc.Text(s.Image.Arch())
		case v.Reason.Code == reasons.EntryValueOnly:
			return v.Reason.String()
		}
	}
	return "nowhere"
}
