package dwarfloc

import (
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

// TestLaterInstance: GCC 16 moves the last instruction of one instance behind the place where the next one of the same
// function begins. What begins there is the next one, although the instruction is the first one's.
func TestLaterInstance(t *testing.T) {
	const base = uint64(dwarftest.TextAddr)
	text := dwarftest.Text()
	// nop; inc %eax and inc %ecx, the first instance's and the caller's; inc %edx, the first one's; inc %ebx, the second one's; ret
	copy(text.Data, dwarftest.Hex(t, "90ffc0ffc1ffc2ffc3c3"))

	at := dwarftest.At
	abstract := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
		at(dw.AttrName, dw.FormString, "inner"), at(dw.AttrInline, dw.FormData1, 1), at(dw.AttrDeclFile, dw.FormData1, 1), at(dw.AttrDeclLine, dw.FormData1, 1),
	}}
	instance := func(entry, view, ranges uint64) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: []dwarftest.Attr{
			at(dw.AttrAbstractOrigin, dw.FormRef4, abstract), at(dw.AttrEntrypc, dw.FormAddr, entry), at(dw.AttrGNUEntryView, dw.FormUdata, view),
			at(dw.AttrRanges, dw.FormSecOffset, ranges), at(dw.AttrCallFile, dw.FormData1, 1), at(dw.AttrCallLine, dw.FormData1, 20),
		}}
	}
	outer := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
		at(dw.AttrName, dw.FormString, "outer"), at(dw.AttrDeclFile, dw.FormData1, 1), at(dw.AttrDeclLine, dw.FormData1, 19),
		at(dw.AttrLowpc, dw.FormAddr, base), at(dw.AttrHighpc, dw.FormData1, 10),
	}, Kids: []*dwarftest.DIE{instance(base+1, 0, 0), instance(base+5, 1, 48)}}
	root := dwarftest.Root(abstract, outer)
	root.Attrs = append(root.Attrs, at(dw.AttrProducer, dw.FormString, "GNU C17 16.2.0 -O2"), at(dw.AttrStmtList, dw.FormSecOffset, 0))
	var ranges []byte
	for _, v := range []uint64{1, 3, 5, 7, 0, 0, 7, 9, 0, 0} {
		ranges = append(ranges, dwarftest.LE64(v)...)
	}

	// Rows: address, line, and whether it begins a statement. Views count those of one address.
	var program []byte
	line, addr, stmt := 1, base, true
	program = append(program, dwarftest.Cat(0, 9, 2, dwarftest.LE64(base))...) // DW_LNE_set_address
	for _, r := range []struct {
		addr uint64
		line int
		stmt bool
	}{{base, 20, true}, {base + 1, 2, true}, {base + 3, 20, true}, {base + 5, 3, false}, {base + 5, 2, true}, {base + 7, 3, true}, {base + 9, 21, true}} {
		if r.stmt != stmt {
			program, stmt = append(program, 6), r.stmt // DW_LNS_negate_stmt
		}
		if r.addr != addr {
			program = append(program, dwarftest.Cat(2, dwarftest.ULEB(r.addr-addr))...) // DW_LNS_advance_pc
		}
		program = append(program, dwarftest.Cat(3, dwarftest.SLEB(int64(r.line-line)), 1)...) // DW_LNS_advance_line, DW_LNS_copy
		line, addr = r.line, r.addr
	}
	program = append(program, 2, 1, 0, 1, 1) // DW_LNS_advance_pc, DW_LNE_end_sequence

	var w dwarftest.Writer
	w.Add(dwarftest.CU{Version: 4, Root: root})
	img, err := FromBytes("test", dwarftest.ELF(text, dwarftest.Debug(".debug_info", w.Info), dwarftest.Debug(".debug_abbrev", w.Abbrev),
		dwarftest.Debug(".debug_ranges", ranges), dwarftest.Debug(".debug_line", dwarftest.LineTable("source.c", program))), nil)
	if err != nil {
		t.Fatal(err)
	}
	found := sitesOf(t, img, "inner", 2)
	ways, err := img.waysOfSites(t.Context(), found)
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for i, w := range ways {
		if len(w.In) != 1 || w.Unknown != "" || w.Within {
			t.Errorf("%v: %+v", found[i], w)
		}
		for _, y := range w.In {
			got = append(got, y.Probe-base)
		}
	}
	if want := []uint64{1, 5}; !slices.Equal(got, want) {
		t.Errorf("ways in at %d, want %d", got, want)
	}

}
