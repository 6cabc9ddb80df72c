package dwarfloc

import (
	"debug/elf"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

// TestUnread: clang 14 to 16 say of a member of what a spilled pointer points to that it is so far from the slot.
func TestUnread(t *testing.T) {
	at := dwarftest.At
	number := &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{at(dw.AttrByteSize, dw.FormData1, 8), at(dw.AttrEncoding, dw.FormData1, dw.EncUnsigned)}}
	pointer := &dwarftest.DIE{Tag: dw.TagPointerType, Attrs: []dwarftest.Attr{at(dw.AttrByteSize, dw.FormData1, 8), at(dw.AttrType, dw.FormRef4, number)}}
	constant := &dwarftest.DIE{Tag: dw.TagConstType, Attrs: []dwarftest.Attr{at(dw.AttrType, dw.FormRef4, pointer)}} // which no statement assigns
	param := func(name string, typ *dwarftest.DIE, where dwarftest.Attr) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, name), at(dw.AttrType, dw.FormRef4, typ), where}}
	}
	whole := func(expr ...any) dwarftest.Attr { return at(dw.AttrLocation, dw.FormExprloc, dwarftest.Cat(expr...)) }
	sp := func(off int64) []byte { return dwarftest.Cat(xBreg0+rsp, dwarftest.SLEB(off)) }
	member := func(off int64) dwarftest.Attr { return whole(sp(off), 0x23, 16, xStackValue) } // DW_OP_plus_uconst
	list := dwarftest.Cat(0, 0, 0, 0, dw.LleOffsetPair, dwarftest.ULEB(0x20), dwarftest.ULEB(0x28), dwarftest.ULEB(2), sp(16), dw.LleEndOfList)
	in := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "in"), at(dw.AttrInline, dw.FormData1, 1)}}
	instance := &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: []dwarftest.Attr{at(dw.AttrAbstractOrigin, dw.FormRef4, in), at(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr+0x10)), at(dw.AttrHighpc, dw.FormData1, 8)}, Kids: []*dwarftest.DIE{
		param("of_pointer", constant, member(8)),
		param("of_later_pointer", constant, member(16)),
		param("of_number", constant, member(24)),
		param("of_none", constant, member(32)),
		param("itself", constant, whole(sp(8), xStackValue)),
	}}
	fun := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "fun"), at(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), at(dw.AttrHighpc, dw.FormData2, 0x40), at(dw.AttrFrameBase, dw.FormExprloc, dwarftest.Cat(xCFA))}, Kids: []*dwarftest.DIE{
		param("pointer", pointer, whole(sp(8))),
		param("later", pointer, at(dw.AttrLocation, dw.FormSecOffset, 4)),
		param("number", number, whole(sp(24))),
		instance,
	}}
	root := dwarftest.Root(number, pointer, constant, in, fun)
	root.Attrs = append(root.Attrs, at(dw.AttrProducer, dw.FormString, "clang version 14.0.6"))
	var w dwarftest.Writer
	w.Add(dwarftest.CU{Version: 5, Root: root})
	text := dwarftest.Text()
	text.Type = elf.SHT_PROGBITS
	img, err := FromBytes("test", dwarftest.ELF(text, dwarftest.Debug(".debug_info", w.Info), dwarftest.Debug(".debug_abbrev", w.Abbrev), dwarftest.Debug(".debug_loclists", list)), nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "of_pointer: %rsp+24 ~contradictory\nof_later_pointer: %rsp+32 ~contradictory\nof_number: %rsp+40\nof_none: %rsp+48\nitself: %rsp+8\n"
	if got := spillText(t, sitesOf(t, img, "in", 1)[0]); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
