package dwarfloc

import (
	"bytes"
	"debug/elf"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

// boundImage has a body inlined at 0x10, view 1, whose first statement is at view 2.
func boundImage(t *testing.T) *Image {
	t.Helper()
	const rcx, rdx = 2, 1
	var lists []byte
	type entry struct {
		lo, hi, from, to byte // addresses, views
		expr             []byte
	}
	listed := func(entries ...entry) []dwarftest.Attr {
		views := len(lists)
		for _, e := range entries {
			lists = append(lists, e.from, e.to)
		}
		off := len(lists)
		for _, e := range entries {
			lists = append(lists, dwarftest.Cat(dw.LleOffsetPair, e.lo, e.hi, dwarftest.ULEB(uint64(len(e.expr))), e.expr)...)
		}
		lists = append(lists, dw.LleEndOfList)
		return []dwarftest.Attr{dwarftest.At(dw.AttrLocation, dw.FormSecOffset, off), dwarftest.At(dw.AttrGNULocviews, dw.FormSecOffset, views)}
	}
	u64 := &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrByteSize, dw.FormData1, 8), dwarftest.At(dw.AttrEncoding, dw.FormData1, dw.EncUnsigned)}}
	variable := func(tag dw.Tag, name string, entries ...entry) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: tag, Attrs: append([]dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, name), dwarftest.At(dw.AttrType, dw.FormRef4, u64)}, listed(entries...)...)}
	}
	param := func(name string, entries ...entry) *dwarftest.DIE {
		return variable(dw.TagFormalParameter, name, entries...)
	}
	declared := func(name string, line, column int) []dwarftest.Attr {
		return []dwarftest.Attr{
			dwarftest.At(dw.AttrName, dw.FormString, name), dwarftest.At(dw.AttrDeclFile, dw.FormData1, 1), dwarftest.At(dw.AttrDeclLine, dw.FormData1, line),
			dwarftest.At(dw.AttrDeclColumn, dw.FormData1, column),
		}
	}
	reg := func(n int) []byte { return dwarftest.Cat(xReg0 + n) }
	plus := func(n int) []byte { return dwarftest.Cat(xBreg0+n, 5, xStackValue) }
	inner := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: append(declared("inner", 10, 5), dwarftest.At(dw.AttrInline, dw.FormData1, 1))}
	body := &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: []dwarftest.Attr{
		dwarftest.At(dw.AttrAbstractOrigin, dw.FormRef4, inner), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr+0x10)),
		dwarftest.At(dw.AttrHighpc, dw.FormData1, 8), dwarftest.At(dw.AttrGNUEntryView, dw.FormData1, 1),
	}, Kids: []*dwarftest.DIE{
		param("bound", entry{0x10, 0x18, 2, 0, plus(rdx)}),
		param("after_a_statement", entry{0x10, 0x18, 3, 0, plus(rdx)}),
		param("the_callers", entry{0x10, 0x18, 3, 0, reg(rcx)}),
		param("constant", entry{0x10, 0x18, 3, 0, dwarftest.Cat(xLit0, xStackValue)}),
		param("changed", entry{0x10, 0x10, 0, 1, reg(rdx)}, entry{0x10, 0x18, 1, 0, plus(rdx)}),
		param("changed_before", entry{0xc, 0xc, 0, 1, reg(rdx)}, entry{0xc, 0x18, 1, 0, plus(rdx)}),
		param("moved", entry{0xc, 0xe, 0, 0, reg(rdx)}, entry{0xe, 0x18, 0, 0, plus(rdx)}),
		param("same", entry{0x10, 0x10, 0, 1, reg(rdx)}, entry{0x10, 0x18, 1, 0, reg(rdx)}),
	}}
	outer := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: append(declared("outer", 30, 5),
		dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), dwarftest.At(dw.AttrHighpc, dw.FormData1, 0x40)),
		Kids: []*dwarftest.DIE{
			param("a", entry{0, 0x40, 2, 0, plus(rbp)}), // at an entry there are no statements before
			variable(dw.TagVariable, "i", entry{0, 0x40, 0, 0, reg(rcx)}), body,
		}}
	root := dwarftest.Root(u64, inner, outer)
	root.Attrs = append(root.Attrs, dwarftest.At(dw.AttrProducer, dw.FormString, "GNU C11 12.2.0 -O2 -g"), dwarftest.At(dw.AttrStmtList, dw.FormSecOffset, 0))

	// A line program: each row is an address from the start, a line and a column.
	var program []byte
	at, line := 0, 1
	program = dwarftest.Cat(program, 0, 9, 2, dwarftest.LE64(dwarftest.TextAddr))
	for _, r := range [][3]int{{0, 30, 5}, {0x10, 31, 2}, {0x10, 10, 5}, {0x10, 11, 2}, {0x10, 12, 2}, {0x18, 32, 2}} {
		program = dwarftest.Cat(program, 2, r[0]-at, 3, dwarftest.SLEB(int64(r[1]-line)), 5, r[2], 1) // advance_pc, advance_line, set_column, copy
		at, line = r[0], r[1]
	}
	program = dwarftest.Cat(program, 2, 2, 3, 1, 6, 1)    // negate_stmt: the row of an instruction, as GCC writes it beside markers
	program = dwarftest.Cat(program, 2, 0x3e-at, 0, 1, 1) // end_sequence

	var w dwarftest.Writer
	w.Add(dwarftest.CU{Version: 5, Root: root})
	img, err := FromBytes("test", dwarftest.ELF(
		dwarftest.Section{Name: ".text", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: dwarftest.TextAddr, Data: bytes.Repeat([]byte{0x90}, 0x40)},
		dwarftest.Debug(".debug_info", w.Info), dwarftest.Debug(".debug_abbrev", w.Abbrev), dwarftest.Debug(".debug_loclists", lists),
		dwarftest.Debug(".debug_line", dwarftest.LineTable("a.c", program))), nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// TestBoundTooLate: where an entry of a list with views begins after a statement of the body, or where another one was before it
// at the same address, it may be of a value that the body assigned.
func TestBoundTooLate(t *testing.T) {
	const reassigned = " ~reassigned\n"
	img := boundImage(t)
	for _, tt := range []struct{ fun, want string }{
		{"inner", "bound: %rdx+5\nafter_a_statement: %rdx+5" + reassigned + "the_callers: %rcx\nconstant: 0" + reassigned + "changed: %rdx+5" + reassigned +
			"changed_before: %rdx+5" + reassigned + "moved: %rdx+5\nsame: %rdx\n"},
		{"outer", "a: %rbp+5\n"},
	} {
		if got := spillText(t, sitesOf(t, img, tt.fun, 1)[0]); got != tt.want {
			t.Errorf("%s: got\n%swant\n%s", tt.fun, got, tt.want)
		}
	}
}
