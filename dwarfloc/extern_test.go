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
