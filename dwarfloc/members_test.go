package dwarfloc_test

import (
	"context"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// membersSource has functions that use all of a structure, which they are passed in registers, and one that uses its first half.
const membersSource = `
struct s { char x; short y; int z; };
struct w { short s; char t; int u; char v; };
struct h { long a, b; };
volatile long sink;
__attribute__((noinline)) void use(long x) { asm volatile ("" : : "r" (x) : "memory"); }
__attribute__((noinline)) void f(struct s p) { use(p.x); sink = p.z; use(p.y); sink = p.x + p.y + p.z; }
__attribute__((noinline)) void g(struct w p) { use(p.s); sink = p.u; use(p.t); sink = p.v + p.t + p.s + p.u; }
__attribute__((noinline)) void half(struct h p) { use(p.a); sink = 1; }
int main(int argc, char **argv) { struct s p = { argc, 2, 3 }; struct w q = { argc, 2, 3, 4 }; struct h r = { argc, 5 }; f(p); g(q); half(r); return 0; }
`

// TestMembersInRegisters: LLVM splits a structure that is passed in registers into its members, and what is between them: of a char and a short there are three
// bytes, converted to a type of its own (clang 22), or its note ends with the first member (clang 14). A function that reads all registers has the
// structure where it was passed; of one that does not, the last part may not have been passed.
func TestMembersInRegisters(t *testing.T) {
	for _, clang := range []string{"clang-14", "clang-22"} {
		img, err := dwarfloc.Open(compile(t, clang, membersSource, "-O2", "-g"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		for name, want := range map[string]string{"f": "%rdi", "g": "{%rdi:8, %rsi:4}", "half": "{%rdi:8}"} {
			sites, err := img.Sites(context.Background(), dwarfloc.Name(name))
			if err != nil || len(sites) != 1 {
				t.Fatal(sites, err)
			}
			v, err := sites[0].Lookup("p")
			if err != nil {
				t.Fatal(err)
			}
			got := v.Loc.Text(img.Arch())
			if !v.Located() {
				got = v.Reason.String()
			}
			if got != want || v.Loc.Doubt != 0 {
				t.Errorf("%s: %s: p is %s %v %v, want %s", clang, name, got, v.Loc.Doubt, v.Reason, want)
			}
		}
	}
}
