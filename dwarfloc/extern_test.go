package dwarfloc_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestExternInBlock: a variable that a block declares is that which is defined outside of functions (C11, 6.2.2), in this unit or another one; and
// not the function's own one of that name.
func TestExternInBlock(t *testing.T) {
	for name, defined := range map[string]bool{"here": true, "nowhere": false} {
		t.Run(name, func(t *testing.T) {
			source := "int n __attribute__((used)) = 5;\n"
			if !defined {
				source = "__attribute__((weak)) extern int n;\n"
			}
			path := compile(t, "gcc", source+`int main(void) { volatile int n; n = 3; { extern int n; asm volatile("nop # %0" :: "r"(&n)); } return n; }`, "-g")
			img := testenv.Open(t, path)
			sites, err := img.Sites(t.Context(), dwarfloc.Name("main"))
			if err != nil || len(sites) != 1 {
				t.Fatal(sites, err)
			}
			at := uint64(0)
			for a := sites[0].Addr; at == 0 && a < sites[0].Addr+64; a++ { // the block is where the local variable is not seen
				s, err := img.SiteAt(t.Context(), a)
				if err != nil {
					continue
				}
				v, err := s.Lookup("n")
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case v.Role != dwarfloc.RoleGlobal:
				case defined && !v.Located(), !defined && v.Reason.Code != reasons.OptimizedOut:
					t.Errorf("%#x: %v", a, v.Reason)
				default:
					at = a
				}
			}
			if at == 0 {
				t.Error("nowhere in main the variable outside is meant")
			}
		})
	}
}

// TestNameAtBeginning: an instruction of a block that a compiler has moved to the beginning of a function does not make the block's variable what
// the function's parameter of that name is there.
func TestNameAtBeginning(t *testing.T) {
	for name, block := range map[string]string{
		"extern": "{ extern int g; sink = g; }", "static": "{ static int g = 7; sink = g++; }", "constant": "{ int g = 7; sink = g + from; }",
	} {
		for _, option := range []string{"-O1", "-O2", "-O3", "-Os"} {
			path := compile(t, "gcc", "int g = 7; volatile long sink, from;\n__attribute__((noinline)) long f(int g) { sink = 3; "+block+" return g; }\nint main(void) { return f(101) == 0; }\n", "-g", option)
			img := testenv.Open(t, path)
			sites, err := img.Sites(t.Context(), dwarfloc.Name("f"))
			if err != nil || len(sites) != 1 {
				t.Fatal(sites, err)
			}
			v, err := sites[0].Lookup("g")
			if err != nil {
				t.Fatal(err)
			}
			if v.Role != dwarfloc.RoleParameter || !v.Located() || v.Loc.Text(img.Arch()) != "%rdi" {
				t.Errorf("%s %s: %v at %s, %v", name, option, v.Role, v.Loc.Text(img.Arch()), v.Reason)
			}
		}
	}
}
