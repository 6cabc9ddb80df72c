package argument_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/argument"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// TestSet: the variable that is given stays as it is.
func TestSet(t *testing.T) {
	for _, kind := range []probe.TypeSpec{{Kind: probe.TypeString}, {Kind: probe.TypeUnsigned, Bits: 64, Count: 9}, {Kind: probe.TypeBitfield, Bits: 3, Container: 64}} {
		img := testenv.Fixture(t, "run-gcc12-O2-dwarf5.exe")
		sites, err := img.Sites(t.Context(), dwarfloc.Name("words"))
		if err != nil {
			t.Fatal(err)
		}
		v, err := sites[0].Lookup("e") // an enumeration of 4 bytes
		if err != nil {
			t.Fatal(err)
		}
		before := v.Loc.Text(img.Arch())
		var a prologue.Arg
		own := argument.Set(&a, "e", v, kind, argument.Options{StringBytes: 64})
		if a.Reason.Code != loc.ReasonTypeMismatch || own.Reason != a.Reason {
			t.Errorf("%v: the argument's reason is %v, its variable's %v", kind, a.Reason, own.Reason)
		}
		if !v.Located() || v.Loc.Text(img.Arch()) != before {
			t.Errorf("%v: the variable was changed: %v, %s", kind, v.Reason, v.Loc.Text(img.Arch()))
		}
	}
}
