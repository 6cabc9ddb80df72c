package plan_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// program writes a program: f is neg %edi; mov $5, %eax; push %es, which does not decode;
// ret. In it g is inlined at each of two offsets.
func program(t *testing.T, inlined ...int) *dwarfloc.Image {
	t.Helper()
	text := dwarftest.Text()
	copy(text.Data, dwarftest.Hex(t, "f7dfb80500000006c3"))
	at := dwarftest.At
	g := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "g"), at(dw.AttrInline, dw.FormData1, 1)}}
	f := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
		at(dw.AttrName, dw.FormString, "f"), at(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), at(dw.AttrHighpc, dw.FormData8, 9),
	}}
	for _, off := range inlined {
		f.Kids = append(f.Kids, &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: []dwarftest.Attr{
			at(dw.AttrAbstractOrigin, dw.FormRef4, g), at(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr+off)), at(dw.AttrHighpc, dw.FormData8, 1),
		}})
	}
	var w dwarftest.Writer
	w.Add(dwarftest.CU{Version: 4, Root: dwarftest.Root(g, f)})
	img, err := dwarfloc.FromBytes("program", dwarftest.ELF(text, dwarftest.Debug(".debug_info", w.Info), dwarftest.Debug(".debug_abbrev", w.Abbrev)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// TestInstructions: an offset or an address inside an instruction is refused, in a program
// as in a kernel, and one of which that is not known needs force.
func TestInstructions(t *testing.T) {
	img := program(t)
	for _, tt := range []struct {
		def  string
		want error
		text string
	}{
		{"f", nil, ""},
		{"f%return", nil, ""},
		{"f+2", nil, ""},
		{"0x401002", nil, ""},
		{"f+1", refusals.ErrMidInstruction, "0x401001 is in the one at 0x401000; the next is at 0x401002"},
		{"0x401004", refusals.ErrMidInstruction, "0x401004 is in the one at 0x401002; the next is at 0x401007"},
		{"force=yes;f+1", refusals.ErrMidInstruction, "program: "},
		{"f+7", refusals.ErrNotDecoded, "the instruction at 0x401007 does not decode (06 c3)"},
		{"f+8", refusals.ErrNotDecoded, "the instruction at 0x401007 does not decode (06 c3)"},
		{"force=yes;f+8", nil, ""},
	} {
		for _, reads := range []prologue.Reads{prologue.ReadUser, prologue.ReadKernel} {
			def, err := probe.Parse(tt.def)
			if err != nil {
				t.Fatal(err)
			}
			_, err = plan.New(context.Background(), img, def, plan.Options{Target: plan.Target{Reads: reads}})
			var pointed *probe.Error
			if tt.want == nil && err != nil || tt.want != nil && (!errors.Is(err, tt.want) || !errors.As(err, &pointed) || !strings.Contains(err.Error(), tt.text)) {
				t.Errorf("%s: got %v, want %v with %q", tt.def, err, tt.want, tt.text)
			}
		}
	}
}

// TestRefused: an inlined instance that the debug information puts inside an instruction has
// no probe, and the others have one.
func TestRefused(t *testing.T) {
	def, err := probe.Parse("g")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(context.Background(), program(t, 0, 1, 2, 8), def, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, refused := range []bool{false, true, false, false} {
		s := &p.Sites[i]
		if is := errors.Is(s.Refused, refusals.ErrMidInstruction); is != refused || is != (s.Instance < 0) {
			t.Errorf("%#x: refused with %v, instance %d", s.Addr, s.Refused, s.Instance)
		}
	}
	if p.NumProbes() != 3 {
		t.Errorf("%d probes, want 3", p.NumProbes())
	}
}
