package plan

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// TestAgree: sites have one layout if possible: strings get the longest bound, and an
// argument that a site does not have gets the shape that it has at other sites.
func TestAgree(t *testing.T) {
	known := &dwarfloc.Variable{Loc: loc.Location{Kind: loc.KindRegister}}
	unknown := &dwarfloc.Variable{Reason: loc.Reason{Code: reasons.NoSuchVariable}}
	args := func(a, b Argument) Site { return Site{Args: []Argument{a, b}} }
	p := &Plan{
		Definition: &probe.Definition{Args: make([]probe.Arg, 2)},
		Sites: []Site{
			args(Argument{Variable: known, Arg: prologue.Arg{Kind: prologue.KindString, MaxBytes: 17}}, Argument{Variable: unknown}),
			args(Argument{Variable: known, Arg: prologue.Arg{Kind: prologue.KindString, MaxBytes: 64}}, Argument{Variable: known, Arg: prologue.Arg{Kind: prologue.KindObject, Size: 20}}),
			args(Argument{Variable: unknown, Arg: prologue.Arg{Kind: prologue.KindString, MaxBytes: 64}}, Argument{Variable: known, Arg: prologue.Arg{Size: 4, Signed: true}}),
		},
	}
	p.agree(p.shapes())
	for i, want := range []int{64 + 24, 64 + 24, 64 + 8} {
		pro, err := prologue.Emit(p.Sites[i].appendArgs(nil), prologue.Options{Arch: arch.ByName("amd64"), Convention: prologue.ConventionRecord})
		if err != nil || pro.Layout.Size != want {
			t.Errorf("site %d has a record of %d bytes, want %d: %v", i, pro.Layout.Size, want, err)
		}
	}
	// $params stands for other arguments at each site.
	p.Definition.Args[0].Expr.Kind = syntax.KindParams
	p.Sites[0].Args[0].MaxBytes = 17
	if p.agree(p.shapes()); p.Sites[0].Args[0].MaxBytes != 17 {
		t.Error("arguments of $params were made alike")
	}
}
