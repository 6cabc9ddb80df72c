package dwarfloc

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// TestLeftBehind: LLVM says that an argument is in the slot to which a variable of the caller was stored, but on one path that has another value, which is in a register that the
// body uses (clang 14's gen_modrm in load of tcc, at -O2).
func TestLeftBehind(t *testing.T) {
	const (
		base  = uint64(dwarftest.TextAddr)
		store = "4883ec18" + "897c2408" + "89fb" + "85f6" + "7403" // sub $24,%rsp; mov %edi,8(%rsp); mov %edi,%ebx; test %esi,%esi; je over the next one
		ends  = "4883c418c3"
		low   = 17 // of the body: mov %ebx,%eax, and another instruction
	)
	for _, tt := range []struct {
		name, code string
		doubt      loc.ReasonCode
	}{
		{"and $7,%ebx", store + "83e307" + "89d8" + "01c8" + ends, reasons.Contradictory},
		{"nothing else", store + "0f1f00" + "89d8" + "01c8" + ends, reasons.None},
		{"a load from elsewhere", store + "8b5f08" + "89d8" + "01c8" + ends, reasons.None},
		{"the slot is read behind", store + "83e307" + "89d8" + "03442408" + ends, reasons.None},
		{"the register is not used", store + "83e307" + "89c8" + "01c8" + ends, reasons.None},
	} {
		text := dwarftest.Text()
		copy(text.Data, dwarftest.Hex(t, tt.code))
		at := dwarftest.At
		s32 := &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "int"), at(dw.AttrByteSize, dw.FormData1, 4), at(dw.AttrEncoding, dw.FormData1, dw.EncSigned)}}
		n := &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "n"), at(dw.AttrType, dw.FormRef4, s32)}}
		abstract := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
			at(dw.AttrName, dw.FormString, "inner"), at(dw.AttrInline, dw.FormData1, 1), at(dw.AttrDeclFile, dw.FormData1, 1), at(dw.AttrDeclLine, dw.FormData1, 1),
		}, Kids: []*dwarftest.DIE{n}}
		inner := &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: []dwarftest.Attr{
			at(dw.AttrAbstractOrigin, dw.FormRef4, abstract), at(dw.AttrLowpc, dw.FormAddr, base+low), at(dw.AttrHighpc, dw.FormData1, len(tt.code)/2-len(ends)/2-low),
			at(dw.AttrCallFile, dw.FormData1, 1), at(dw.AttrCallLine, dw.FormData1, 20),
		}, Kids: []*dwarftest.DIE{{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{
			at(dw.AttrAbstractOrigin, dw.FormRef4, n), at(dw.AttrLocation, dw.FormExprloc, dwarftest.Cat(0x77, 8)), // DW_OP_breg7 8
		}}}}
		outer := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
			at(dw.AttrName, dw.FormString, "outer"), at(dw.AttrDeclFile, dw.FormData1, 1), at(dw.AttrDeclLine, dw.FormData1, 19),
			at(dw.AttrLowpc, dw.FormAddr, base), at(dw.AttrHighpc, dw.FormData1, len(tt.code)/2),
		}, Kids: []*dwarftest.DIE{inner}}
		root := dwarftest.Root(s32, abstract, outer)
		root.Attrs = append(root.Attrs, at(dw.AttrProducer, dw.FormString, "Debian clang version 14.0.6"))
		var w dwarftest.Writer
		w.Add(dwarftest.CU{Version: 4, Root: root})
		img, err := FromBytes("test", dwarftest.ELF(text, dwarftest.Debug(".debug_info", w.Info), dwarftest.Debug(".debug_abbrev", w.Abbrev)), nil)
		if err != nil {
			t.Fatal(err)
		}
		v, err := sitesOf(t, img, "inner", 1)[0].Lookup("n")
		if err != nil || v.Loc.Kind != loc.KindMemory || v.Loc.Doubt != tt.doubt {
			t.Errorf("%s: %v, %v: %v", tt.name, v, v.Loc.Doubt, err)
		}
	}
}
