package dwarfloc

import (
	"bytes"
	"context"
	"debug/elf"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// spillImage has a function whose frame address is %rsp+8, from 0x20 to 0x28 %rbp+16,
// and instances inlined at 0x10, 0x20, 0x28, 0x7f and 0x80. At 0x13, 0x20, 0x28 and 0xbb are
// stores.
func spillImage(t *testing.T, text elf.SectionType) *Image {
	list := []byte{2, 0, 0, 0} // views of two lists after
	at := func(lo, hi byte, expr []byte) int {
		off := len(list)
		list = append(list, dwarftest.Cat(dw.LleOffsetPair, dwarftest.ULEB(uint64(lo)), dwarftest.ULEB(uint64(hi)), dwarftest.ULEB(uint64(len(expr))), expr, dw.LleEndOfList)...)
		return off
	}
	u64 := &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrByteSize, dw.FormData1, 8), dwarftest.At(dw.AttrEncoding, dw.FormData1, dw.EncUnsigned)}}
	u32 := &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrByteSize, dw.FormData1, 4), dwarftest.At(dw.AttrEncoding, dw.FormData1, dw.EncUnsigned)}}
	param := func(name string, typ *dwarftest.DIE, more ...dwarftest.Attr) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: append([]dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, name), dwarftest.At(dw.AttrType, dw.FormRef4, typ)}, more...)}
	}
	whole := func(expr []byte) dwarftest.Attr { return dwarftest.At(dw.AttrLocation, dw.FormExprloc, expr) }
	listed := func(lo, hi byte, expr []byte) dwarftest.Attr {
		return dwarftest.At(dw.AttrLocation, dw.FormSecOffset, at(lo, hi, expr))
	}
	sp := func(off int64) []byte { return dwarftest.Cat(xBreg0+rsp, dwarftest.SLEB(off)) }
	bp := dwarftest.Cat(xBreg0+rbp, dwarftest.SLEB(-8))
	abstract := func(name string) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, name), dwarftest.At(dw.AttrInline, dw.FormData1, 1)}}
	}
	inline := func(of *dwarftest.DIE, pc uint64, kids ...*dwarftest.DIE) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrAbstractOrigin, dw.FormRef4, of), dwarftest.At(dw.AttrLowpc, dw.FormAddr, dwarftest.TextAddr+pc), dwarftest.At(dw.AttrHighpc, dw.FormData1, 8)}, Kids: kids}
	}
	// each has an instance for each parameter: of two in one place it would not be known which is passed there.
	each := func(of *dwarftest.DIE, pc uint64, params ...*dwarftest.DIE) (out []*dwarftest.DIE) {
		for _, p := range params {
			out = append(out, inline(of, pc, p))
		}
		return out
	}
	in, framed, unframed, far, farther := abstract("in"), abstract("framed"), abstract("unframed"), abstract("far"), abstract("farther")
	fun := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "fun"), dwarftest.At(dw.AttrCallingConv, dw.FormData1, dw.CallNoCall), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), dwarftest.At(dw.AttrHighpc, dw.FormData2, 0x100), dwarftest.At(dw.AttrFrameBase, dw.FormExprloc, dwarftest.Cat(xCFA))}, Kids: []*dwarftest.DIE{
		param("register", u64, whole(dwarftest.Cat(xReg0+rdi))), // the code is optimised
		param("argument", u64, whole(dwarftest.Cat(xFbreg, dwarftest.SLEB(8)))),
		param("below", u64, whole(dwarftest.Cat(xFbreg, dwarftest.SLEB(-24)))),
		param("read", u64, whole(dwarftest.Cat(xFbreg, dwarftest.SLEB(-24), xDeref, xLit0+1, xPlus, xStackValue))),
		param("address", u64, whole(dwarftest.Cat(xFbreg, dwarftest.SLEB(-24), xStackValue))),
		param("piece", u64, whole(dwarftest.Cat(xReg0+rsi, xPiece, 4, xFbreg, dwarftest.SLEB(-24), xPiece, 4))),
		param("other", u64, whole(dwarftest.Cat(xBreg0+rdi, dwarftest.SLEB(-24)))),
	}}
	fun.Kids = append(fun.Kids, each(in, 0x10,
		param("late", u64, listed(0x10, 0x18, sp(8))),
		param("later", u64, listed(0x10, 0x18, sp(8)), dwarftest.At(dw.AttrGNULocviews, dw.FormSecOffset, 0)),
		param("view", u64, listed(0x10, 0x18, sp(8)), dwarftest.At(dw.AttrGNULocviews, dw.FormSecOffset, 2)),
		param("read", u64, listed(0x10, 0x18, dwarftest.Cat(sp(8), xDeref, xLit0+1, xPlus, xStackValue))),
		param("through", u32, listed(0x10, 0x18, dwarftest.Cat(sp(8), xDeref))),
		param("piece", u64, listed(0x10, 0x18, dwarftest.Cat(xReg0+rsi, xPiece, 8, sp(8), xPiece, 8))),
		param("address", u64, listed(0x10, 0x18, dwarftest.Cat(sp(8), xStackValue))),
		param("narrow", u32, listed(0x10, 0x18, sp(8))),
		param("elsewhere", u64, listed(0x10, 0x18, sp(16))),
		param("longer", u64, listed(0x10, 0x19, sp(8))),
		param("whole", u64, whole(sp(8))),
		param("below", u64, whole(sp(-16))))...)
	fun.Kids = append(fun.Kids,
		inline(framed, 0x20, param("late", u64, listed(0x20, 0x24, bp))),
		inline(unframed, 0x28, param("late", u64, listed(0x28, 0x2c, bp))),
		inline(far, 0x80, param("late", u64, listed(0x80, 0xc0, sp(8)))),
		inline(farther, 0x7f, param("late", u64, listed(0x7f, 0xc0, sp(8)))),
	)
	code := bytes.Repeat([]byte{0x90}, 0x100)
	copy(code[0x10:], dwarftest.Cat(0x48, 0x89, 0xc1, 0x48, 0x89, 0x44, 0x24, 0x08, 0xc3)) // mov %rax,%rcx; mov %rax,8(%rsp); ret
	copy(code[0x20:], dwarftest.Cat(0x48, 0x89, 0x45, 0xf8))                               // mov %rax,-8(%rbp)
	copy(code[0x28:], code[0x20:0x24])
	copy(code[0xbb:], code[0x13:0x18])
	frame := dwarftest.Cat(dwarftest.FrameEntry(dwarftest.LE32(0xffffffff), 1, "", 1, dwarftest.SLEB(-8), 16, 0x0c, 7, 8),
		dwarftest.FrameEntry(dwarftest.LE32(0), dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(64), 0x60, 0x0c, 6, 16, 0x48, 0x0c, 7, 8)) // from +0x20 rbp+16, from +0x28 rsp+8
	var w dwarftest.Writer
	root := dwarftest.Root(u64, u32, in, framed, unframed, far, farther, fun)
	root.Attrs = append(root.Attrs, dwarftest.At(dw.AttrProducer, dw.FormString, "GNU C17 -O2"))
	w.Add(dwarftest.CU{Version: 5, Root: root})
	img, err := FromBytes("test", dwarftest.ELF(
		dwarftest.Section{Name: ".text", Type: text, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: dwarftest.TextAddr, Data: code},
		dwarftest.Debug(".debug_info", w.Info), dwarftest.Debug(".debug_abbrev", w.Abbrev), dwarftest.Debug(".debug_frame", frame), dwarftest.Debug(".debug_loclists", list)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// spillText prints the parameters of a site, a line each.
func spillText(t *testing.T, s *Site) string {
	t.Helper()
	params, err := s.Params()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, v := range params {
		b.WriteString(v.Name + ": ")
		if v.Located() {
			b.WriteString(v.Loc.Text(s.Image.Arch()))
			if d := v.Loc.Doubt; d != reasons.None {
				b.WriteString(" ~" + d.String())
			}
		} else {
			b.WriteString(v.Reason.String())
		}
		if v.Reason.Code == reasons.NotStoredYet && v.Loc.Kind != loc.KindNone {
			b.WriteString(" and a location")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestNotStored(t *testing.T) {
	const (
		atEntry = "not-stored-yet: it is below the stack pointer at the function's entry"
		fun     = "register: %rdi\nargument: [%rsp+16]\nbelow: " + atEntry + "\nread: " + atEntry +
			"\naddress: %rsp-16 ~reassigned\npiece: " + atEntry + "\nother: [%rdi-24]\n"
		late = "not-stored-yet: stored at 0x401013"
		in   = "late: " + late + "\nlater: " + late + "\nview: " + late + "\nread: " + late + "\nthrough: " + late + "\npiece: " + late +
			"\naddress: %rsp+8 ~reassigned\nnarrow: " + late + "\nelsewhere: [%rsp+16]\nlonger: [%rsp+8]\nwhole: [%rsp+8]\nbelow: [%rsp-16] ~contradictory\n"
		unchecked = "late: [%rsp+8]\nlater: [%rsp+8] ~reassigned\nview: [%rsp+8]\nread: u64[%rsp+8]+1 ~reassigned\nthrough: [u64[%rsp+8]]\npiece: {%rsi:8, [%rsp+8]:8}" +
			"\naddress: %rsp+8 ~reassigned\nnarrow: [%rsp+8]\nelsewhere: [%rsp+16]\nlonger: [%rsp+8]\nwhole: [%rsp+8]\nbelow: [%rsp-16]\n"
	)
	img := spillImage(t, elf.SHT_PROGBITS)
	noCode := spillImage(t, elf.SHT_NOBITS)
	noDecoder := spillImage(t, elf.SHT_PROGBITS)
	noDecoder.r.Code = body.New(openFixture(t, "foreign-gcc12-mips64el-O2-dwarf5.elf").file, noDecoder.r.Data) // whose instructions are not decoded
	for _, tt := range []struct {
		name string
		img  *Image
		fun  string
		want string
	}{
		{"entry", img, "fun", fun},
		{"inlined", img, "in", in},
		{"a slot of the frame pointer", img, "framed", "late: not-stored-yet: stored at 0x401020\n"},
		{"an object", img, "unframed", "late: [%rbp-8]\n"},
		{"far", img, "far", "late: not-stored-yet: stored at 0x4010bb\n"},
		{"farther", img, "farther", "late: not-stored-yet: stored at 0x4010bb\n"},
		{"entry of an image without code", noCode, "fun", fun},
		{"inlined in an image without code", noCode, "in", unchecked},
		{"inlined, of an architecture without a decoder", noDecoder, "in", unchecked},
	} {
		got, sites := "", 1
		if tt.fun == "in" {
			sites = strings.Count(tt.want, "\n")
		}
		for _, s := range sitesOf(t, tt.img, tt.fun, sites) {
			got += spillText(t, s)
		}
		if got != tt.want {
			t.Errorf("%s: got\n%swant\n%s", tt.name, got, tt.want)
		}
	}
	// Sites of other kinds are not looked at.
	for _, off := range []uint64{0, 0x10} {
		s, err := img.SiteAt(context.Background(), dwarftest.TextAddr+off)
		if err != nil {
			t.Fatal(err)
		}
		if got := spillText(t, s); s.Kind != SiteInstruction || strings.Contains(got, "not-stored-yet") {
			t.Errorf("an instruction: %v, got\n%s", s.Kind, got)
		}
	}
	entry := sitesOf(t, img, "fun", 1)[0]
	at, ok, err := entry.atOffset(4)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if got := spillText(t, at); strings.Contains(got, "not-stored-yet") {
		t.Errorf("after the entry: got\n%s", got)
	}
}
