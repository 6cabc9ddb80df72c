package dwarfloc

import (
	"bytes"
	"debug/elf"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
)

// reassignedImage has bodies inlined at 0x10, in two ranges as an unrolled loop leaves them,
// and at 0x40, with a loop that decrements %rax.
func reassignedImage(t *testing.T) *Image {
	lists := []byte{}
	type entry struct {
		lo, hi byte
		expr   []byte
	}
	listed := func(entries ...entry) dwarftest.Attr {
		off := len(lists)
		for _, e := range entries {
			lists = append(lists, dwarftest.Cat(dw.LleOffsetPair, dwarftest.ULEB(uint64(e.lo)), dwarftest.ULEB(uint64(e.hi)), dwarftest.ULEB(uint64(len(e.expr))), e.expr)...)
		}
		lists = append(lists, dw.LleEndOfList)
		return dwarftest.At(dw.AttrLocation, dw.FormSecOffset, off)
	}
	whole := func(expr []byte) dwarftest.Attr { return dwarftest.At(dw.AttrLocation, dw.FormExprloc, expr) }
	u64 := &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrByteSize, dw.FormData1, 8), dwarftest.At(dw.AttrEncoding, dw.FormData1, dw.EncUnsigned)}}
	variable := func(tag dw.Tag, name string, where dwarftest.Attr) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: tag, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, name), dwarftest.At(dw.AttrType, dw.FormRef4, u64), where}}
	}
	param := func(name string, where dwarftest.Attr) *dwarftest.DIE {
		return variable(dw.TagFormalParameter, name, where)
	}
	local := func(name string, where dwarftest.Attr) *dwarftest.DIE {
		return variable(dw.TagVariable, name, where)
	}
	abstract := func(name string) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, name), dwarftest.At(dw.AttrInline, dw.FormData1, 1)}}
	}
	inline := func(of *dwarftest.DIE, kids []*dwarftest.DIE, where ...dwarftest.Attr) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: append([]dwarftest.Attr{dwarftest.At(dw.AttrAbstractOrigin, dw.FormRef4, of)}, where...), Kids: kids}
	}
	const rcx, rdx = 2, 1
	reg := func(n int) []byte { return dwarftest.Cat(xReg0 + n) }
	lit := func(n int) []byte { return dwarftest.Cat(xLit0+n, xStackValue) }
	next := func(n int) []byte { return dwarftest.Cat(xBreg0+n, 0, xLit0+1, xOr, xStackValue) }
	flip := func(n int) []byte { return dwarftest.Cat(xBreg0+n, 0, xLit0+1, xXor, xStackValue) }
	half := func(n int) []byte { return dwarftest.Cat(xBreg0+n, 0, xLit0+1, xShr, xStackValue) }
	extended := func(n int) []byte {
		return dwarftest.Cat(xBreg0+n, 0, xLit0+24, xShl, xLit0+24, xShra, xStackValue)
	}
	third := func(n int) []byte { return dwarftest.Cat(xBreg0+n, 0, xLit0+3, xDiv, xStackValue) }
	// An instance of a function that is itself an instance of another one, such as a
	// constructor's: all three declare the parameter, two with its name and type.
	declare := func(kids *dwarftest.DIE, more ...dwarftest.Attr) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: append(more, dwarftest.At(dw.AttrInline, dw.FormData1, 1)), Kids: []*dwarftest.DIE{kids}}
	}
	first := param("n", dwarftest.At(dw.AttrDeclLine, dw.FormData1, 1))
	base := declare(first, dwarftest.At(dw.AttrName, dw.FormString, "chain"))
	second := param("n", dwarftest.At(dw.AttrAbstractOrigin, dw.FormRef4, first))
	clone := declare(second, dwarftest.At(dw.AttrAbstractOrigin, dw.FormRef4, base))
	turns, loop := abstract("turns"), abstract("loop")
	fun := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
		dwarftest.At(dw.AttrName, dw.FormString, "fun"), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), dwarftest.At(dw.AttrHighpc, dw.FormData2, 0x80),
	}, Kids: []*dwarftest.DIE{
		local("i", listed(entry{8, 0x30, reg(rcx)})),
		local("zero", listed(entry{0x10, 0x18, lit(0)})),
		local("half", whole(half(rcx))),
		local("third", whole(third(rcx))),
		inline(loop, []*dwarftest.DIE{
			param("n", listed(entry{0x40, 0x48, reg(rax)})),
			param("slot", listed(entry{0x40, 0x48, dwarftest.Cat(xBreg0+rsp, 8)})),
			param("step", listed(entry{0x40, 0x48, reg(rdx)})),
		}, dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr+0x40)), dwarftest.At(dw.AttrHighpc, dw.FormData1, 8)),
		inline(clone, []*dwarftest.DIE{
			{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{
				dwarftest.At(dw.AttrAbstractOrigin, dw.FormRef4, second), listed(entry{0x60, 0x64, reg(rcx)}, entry{0x64, 0x68, next(rcx)}),
			}},
		}, dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr+0x60)), dwarftest.At(dw.AttrHighpc, dw.FormData1, 8)),
		inline(clone, []*dwarftest.DIE{
			{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrAbstractOrigin, dw.FormRef4, second), dwarftest.At(dw.AttrConstValue, dw.FormData1, 7)}},
		}, dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr+0x68)), dwarftest.At(dw.AttrHighpc, dw.FormData1, 8)),
	}}
	for _, p := range []*dwarftest.DIE{ // an instance for each: of two in one place it would not be known which is passed there
		param("index", listed(entry{0x10, 0x18, reg(rcx)}, entry{0x20, 0x28, next(rcx)})),
		param("not_the_callers", listed(entry{0x10, 0x18, reg(rdx)}, entry{0x20, 0x28, next(rdx)})),
		param("changes_inside", listed(entry{0x10, 0x14, reg(rcx)}, entry{0x14, 0x18, next(rcx)})),
		param("constant", listed(entry{0x10, 0x18, lit(0)}, entry{0x20, 0x28, lit(1)})),
		param("less_by_one", listed(entry{0x10, 0x18, lit(2)}, entry{0x20, 0x28, lit(3)})),
		param("computed", whole(half(rcx))),
		param("computed_here", whole(half(rdx))),
		param("divided", whole(third(rcx))), // as what LLVM computes from a loop's counter
		param("flipped", listed(entry{0x10, 0x18, reg(rdx)}, entry{0x20, 0x28, flip(rdx)})),
		param("halved", listed(entry{0x10, 0x18, reg(rdx)}, entry{0x20, 0x28, half(rdx)})),
		param("extended", listed(entry{0x10, 0x18, reg(rdx)}, entry{0x20, 0x28, extended(rdx)})),
		param("same", listed(entry{0x10, 0x14, reg(rdx)}, entry{0x14, 0x18, reg(rbp)})),
	} {
		fun.Kids = append(fun.Kids, inline(turns, []*dwarftest.DIE{p}, dwarftest.At(dw.AttrRanges, dw.FormSecOffset, 0)))
	}
	ranges := dwarftest.Cat(dw.RleOffsetPair, 0x10, 0x18, dw.RleOffsetPair, 0x20, 0x28, dw.RleEndOfList)
	code := bytes.Repeat([]byte{0x90}, 0x80)
	copy(code[0x42:], dwarftest.Cat(0xff, 0xc8, 0x75, 0xfa)) // dec %eax; jne to its beginning, 0x40
	code[0x7f] = 0xc3                                        // ret
	var w dwarftest.Writer
	root := dwarftest.Root(u64, turns, loop, base, clone, fun)
	root.Attrs = append(root.Attrs, dwarftest.At(dw.AttrProducer, dw.FormString, "clang version 16"))
	w.Add(dwarftest.CU{Version: 5, Root: root})
	img, err := FromBytes("test", dwarftest.ELF(
		dwarftest.Section{Name: ".text", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: dwarftest.TextAddr, Data: code},
		dwarftest.Debug(".debug_info", w.Info), dwarftest.Debug(".debug_abbrev", w.Abbrev),
		dwarftest.Debug(".debug_loclists", lists), dwarftest.Debug(".debug_rnglists", ranges)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestReassigned(t *testing.T) {
	const reassigned = " ~reassigned\n"
	img := reassignedImage(t)
	for _, tt := range []struct {
		fun   string
		sites int
		want  string
	}{
		{"turns", 12, "index: %rcx\nnot_the_callers: %rdx\nchanges_inside: %rcx\nconstant: 0" + reassigned + "less_by_one: 2" + reassigned +
			"computed: %rcx >>u 1" + reassigned + "computed_here: %rdx >>u 1" + reassigned + "divided: %rcx / 3 ~contradictory\nflipped: %rdx\nhalved: %rdx\nextended: %rdx\nsame: %rdx\n"},
		{"loop", 1, "n: %rax" + reassigned + "slot: [%rsp+8]\nstep: %rdx\n"},
	} {
		got := ""
		for _, s := range sitesOf(t, img, tt.fun, tt.sites) {
			got += spillText(t, s)
		}
		if got != tt.want {
			t.Errorf("%s: got\n%swant\n%s", tt.fun, got, tt.want)
		}
	}
	for i, s := range sitesOf(t, img, "chain", 2) { // the first has a register that nothing computes before, the second one constant
		v, err := s.Lookup("n")
		if err != nil || (v.Loc.Doubt == reasons.Reassigned) != (i == 1) {
			t.Errorf("n of the instance of an instance at %#x: %v, %s, %v; doubt %v", s.Addr, v.Reason, v.Loc.Text(img.Arch()), err, v.Loc.Doubt)
		}
	}
}
