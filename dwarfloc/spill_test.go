package dwarfloc

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/loc"
)

// TestStoredLast: code from a site to the end of a list's entry.
func TestStoredLast(t *testing.T) {
	const store = " 48 89 44 24 08" // mov %rax,8(%rsp)
	sp8 := slot{rsp, 8, 8}
	for _, tt := range []struct {
		name string
		code string
		m    slot
		want int // where the store begins; -1: it is no late store
	}{
		{"nothing else", store, sp8, 0},
		{"of another register", "48 89 4c 24 08", sp8, 0},                            // mov %rcx,8(%rsp)
		{"behind other instructions", "48 89 c7 90" + store, sp8, 4},                 // mov %rax,%rdi; nop
		{"behind a store of another slot", "48 89 4c 24 10" + store, sp8, 5},         // mov %rcx,16(%rsp)
		{"behind a read of another slot", "48 8b 0c 24" + store, sp8, 4},             // mov (%rsp),%rcx
		{"behind memory of another register", "48 89 4d 08" + store, sp8, 4},         // mov %rcx,8(%rbp)
		{"behind memory of another segment", "65 48 8b 4c 24 08" + store, sp8, 6},    // mov %gs:8(%rsp),%rcx
		{"behind another slot's address", "48 8d 7c 24 18" + store, sp8, 5},          // lea 24(%rsp),%rdi
		{"without a displacement", "48 89 04 24", slot{rsp, 0, 8}, 0},                // mov %rax,(%rsp)
		{"8 bits, negative", "48 89 45 f8", slot{rbp, -8, 8}, 0},                     // mov %rax,-8(%rbp)
		{"8 bits, 0", "48 89 45 00", slot{rbp, 0, 8}, 0},                             // mov %rax,0(%rbp)
		{"32 bits", "48 89 84 24 80 00 00 00", slot{rsp, 128, 8}, 0},                 // mov %rax,128(%rsp)
		{"32 bits, negative", "4c 89 85 f8 fe ff ff", slot{rbp, -264, 8}, 0},         // mov %r8,-264(%rbp)
		{"4 bytes", "89 44 24 08", slot{rsp, 8, 4}, 0},                               // mov %eax,8(%rsp)
		{"2 bytes", "66 89 44 24 08", slot{rsp, 8, 2}, 0},                            // mov %ax,8(%rsp)
		{"1 byte", "88 44 24 08", slot{rsp, 8, 1}, 0},                                // mov %al,8(%rsp)
		{"condition", "0f 94 44 24 08", slot{rsp, 8, 1}, 0},                          // sete 8(%rsp)
		{"constant", "48 c7 44 24 08 07 00 00 00", sp8, 0},                           // movq $7,8(%rsp)
		{"constant of 4 bytes", "c7 44 24 08 07 00 00 00", slot{rsp, 8, 4}, 0},       // movl $7,8(%rsp)
		{"constant of 2 bytes", "66 c7 44 24 08 07 00", slot{rsp, 8, 2}, 0},          // movw $7,8(%rsp)
		{"constant of 1 byte", "c6 44 24 08 07", slot{rsp, 8, 1}, 0},                 // movb $7,8(%rsp)
		{"vector register", "f2 0f 11 44 24 08", sp8, 0},                             // movsd %xmm0,8(%rsp)
		{"16 bytes", "0f 11 44 24 08", slot{rsp, 8, 16}, 0},                          // movups %xmm0,8(%rsp)
		{"AVX", "c5 fa 7f 44 24 08", slot{rsp, 8, 16}, -1},                           // vmovdqu: no operation of this table
		{"no code", "", sp8, -1},                                                     //
		{"no store", "48 89 c7", sp8, -1},                                            // mov %rax,%rdi
		{"the entry ends behind it", store + "90", sp8, -1},                          // nop
		{"the entry ends in it", "48 89 44 24", sp8, -1},                             // cut
		{"two stores", store + store, sp8, -1},                                       //
		{"another slot", "48 89 44 24 10", sp8, -1},                                  // mov %rax,16(%rsp)
		{"a slot that overlaps", "48 89 44 24 04", sp8, -1},                          // mov %rax,4(%rsp)
		{"a read at the end", "48 8b 44 24 08", sp8, -1},                             // mov 8(%rsp),%rax
		{"narrower", "89 44 24 08", sp8, -1},                                         // mov %eax,8(%rsp)
		{"wider", store, slot{rsp, 8, 4}, -1},                                        //
		{"of unknown size", store, slot{rsp, 8, -1}, -1},                             //
		{"behind a read", "48 8b 4c 24 08" + store, sp8, -1},                         // mov 8(%rsp),%rcx
		{"behind a read of a part", "8b 4c 24 0c" + store, sp8, -1},                  // mov 12(%rsp),%ecx
		{"behind a store of a part", "c6 44 24 0f 00" + store, sp8, -1},              // movb $0,15(%rsp)
		{"behind its address", "48 8d 7c 24 08" + store, sp8, -1},                    // lea 8(%rsp),%rdi
		{"behind an index", "48 89 0c cc" + store, sp8, -1},                          // mov %rcx,(%rsp,%rcx,8)
		{"it has an index", "48 89 44 cc 08", sp8, -1},                               // mov %rax,8(%rsp,%rcx,8)
		{"it adds", "48 01 44 24 08", sp8, -1},                                       // add %rax,8(%rsp)
		{"it exchanges", "48 87 44 24 08", sp8, -1},                                  // xchg %rax,8(%rsp)
		{"behind a call", "e8 00 00 00 00" + store, sp8, -1},                         // call
		{"behind an indirect call", "ff d0" + store, sp8, -1},                        // call *%rax
		{"behind a branch", "74 00" + store, sp8, -1},                                // je
		{"behind a jump", "eb 00" + store, sp8, -1},                                  // jmp
		{"behind a return", "c3" + store, sp8, -1},                                   // ret
		{"behind a trap", "0f 0b" + store, sp8, -1},                                  // ud2
		{"behind a high byte", "88 e1" + store, sp8, 2},                              // mov %ah,%cl
		{"behind a push", "50" + store, sp8, -1},                                     // push %rax
		{"behind a pop", "58" + store, sp8, -1},                                      // pop %rax
		{"behind a new frame", "48 83 ec 10" + store, sp8, -1},                       // sub $16,%rsp
		{"behind a new stack", "bc 00 00 00 00" + store, sp8, -1},                    // mov $0,%esp
		{"behind a part of a new stack", "40 b4 01" + store, sp8, -1},                // mov $1,%spl
		{"behind a new frame pointer", "48 89 e5 48 89 45 f8", slot{rbp, -8, 8}, -1}, // mov %rsp,%rbp
		{"behind what is not known", "f3 0f 1e fa" + store, sp8, -1},                 // endbr64
	} {
		code, err := hex.DecodeString(strings.ReplaceAll(tt.code, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		d := slotDecoders["amd64"]
		at, ok := d.storedLast(code, tt.m)
		if !ok {
			at = -1
		}
		if at != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, at, tt.want)
		}
		if ends := d.ends(code, tt.m); ok && !ends {
			t.Errorf("%s: the cheap test does not see the store", tt.name)
		}
	}
}

// spillImage has a function whose frame address is %rsp+8, from 0x20 to 0x28 %rbp+16,
// and instances inlined at 0x10, 0x20, 0x28, 0x7f and 0x80. At 0x13, 0x20, 0x28 and 0xbb are
// stores.
func spillImage(t *testing.T, text elf.SectionType) *Image {
	list := []byte{2, 0, 0, 0} // views of two lists behind
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
	in, framed, unframed, far, farther := abstract("in"), abstract("framed"), abstract("unframed"), abstract("far"), abstract("farther")
	fun := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "fun"), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), dwarftest.At(dw.AttrHighpc, dw.FormData2, 0x100), dwarftest.At(dw.AttrFrameBase, dw.FormExprloc, dwarftest.Cat(xCFA))}, Kids: []*dwarftest.DIE{
		param("register", u64, whole(dwarftest.Cat(xReg0+rdi))), // the code is optimised
		param("argument", u64, whole(dwarftest.Cat(xFbreg, dwarftest.SLEB(8)))),
		param("below", u64, whole(dwarftest.Cat(xFbreg, dwarftest.SLEB(-24)))),
		param("read", u64, whole(dwarftest.Cat(xFbreg, dwarftest.SLEB(-24), xDeref, xLit0+1, xPlus, xStackValue))),
		param("address", u64, whole(dwarftest.Cat(xFbreg, dwarftest.SLEB(-24), xStackValue))),
		param("piece", u64, whole(dwarftest.Cat(xReg0+rsi, xPiece, 4, xFbreg, dwarftest.SLEB(-24), xPiece, 4))),
		param("other", u64, whole(dwarftest.Cat(xBreg0+rdi, dwarftest.SLEB(-24)))),
		inline(in, 0x10,
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
			param("below", u64, whole(sp(-16)))),
		inline(framed, 0x20, param("late", u64, listed(0x20, 0x24, bp))),
		inline(unframed, 0x28, param("late", u64, listed(0x28, 0x2c, bp))),
		inline(far, 0x80, param("late", u64, listed(0x80, 0xc0, sp(8)))),
		inline(farther, 0x7f, param("late", u64, listed(0x7f, 0xc0, sp(8)))),
	}}
	code := bytes.Repeat([]byte{0x90}, 0x100)
	copy(code[0x10:], dwarftest.Cat(0x48, 0x89, 0xc7, 0x48, 0x89, 0x44, 0x24, 0x08, 0xc3)) // mov %rax,%rdi; mov %rax,8(%rsp); ret
	copy(code[0x20:], dwarftest.Cat(0x48, 0x89, 0x45, 0xf8))                               // mov %rax,-8(%rbp)
	copy(code[0x28:], code[0x20:0x24])
	copy(code[0xbb:], code[0x13:0x18])
	frame := dwarftest.Cat(frameEntry(dwarftest.LE32(0xffffffff), 1, "", 1, dwarftest.SLEB(-8), 16, 0x0c, 7, 8),
		frameEntry(dwarftest.LE32(0), dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(64), 0x60, 0x0c, 6, 16, 0x48, 0x0c, 7, 8)) // from +0x20 rbp+16, from +0x28 rsp+8
	var w dwarftest.Writer
	w.Add(dwarftest.CU{Version: 5, Root: dwarftest.Root(u64, u32, in, framed, unframed, far, farther, fun)})
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
			b.WriteString(v.Loc.Text(s.Image().Arch()))
		} else {
			b.WriteString(v.Reason.String())
		}
		if v.Reason.Code == loc.ReasonNotStoredYet && v.Loc.Kind != loc.KindNone {
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
			"\naddress: %rsp-16\npiece: " + atEntry + "\nother: [%rdi-24]\n"
		late = "not-stored-yet: stored at 0x401013"
		in   = "late: " + late + "\nlater: " + late + "\nview: " + late + "\nread: " + late + "\nthrough: " + late + "\npiece: " + late +
			"\naddress: %rsp+8\nnarrow: [%rsp+8]\nelsewhere: [%rsp+16]\nlonger: [%rsp+8]\nwhole: [%rsp+8]\nbelow: [%rsp-16]\n"
		unchecked = "late: [%rsp+8]\nlater: [%rsp+8]\nview: [%rsp+8]\nread: u64[%rsp+8]+1\nthrough: [u64[%rsp+8]]\npiece: {%rsi:8, [%rsp+8]:8}" +
			"\naddress: %rsp+8\nnarrow: [%rsp+8]\nelsewhere: [%rsp+16]\nlonger: [%rsp+8]\nwhole: [%rsp+8]\nbelow: [%rsp-16]\n"
	)
	img := spillImage(t, elf.SHT_PROGBITS)
	noCode := spillImage(t, elf.SHT_NOBITS)
	noDecoder := spillImage(t, elf.SHT_PROGBITS)
	noDecoder.decoder = nil
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
		{"as far as is looked", img, "far", "late: not-stored-yet: stored at 0x4010bb\n"},
		{"farther", img, "farther", "late: [%rsp+8]\n"},
		{"entry of an image without code", noCode, "fun", fun},
		{"inlined in an image without code", noCode, "in", unchecked},
		{"inlined, of an architecture without a decoder", noDecoder, "in", unchecked},
	} {
		if got := spillText(t, sitesOf(t, tt.img, tt.fun, 1)[0]); got != tt.want {
			t.Errorf("%s: got\n%swant\n%s", tt.name, got, tt.want)
		}
	}
	// Sites of other kinds are not looked at.
	for _, off := range []uint64{0, 0x10} {
		s, err := img.SiteAt(context.Background(), dwarftest.TextAddr+off)
		if err != nil {
			t.Fatal(err)
		}
		if got := spillText(t, s); s.Kind != Instruction || strings.Contains(got, "not-stored-yet") {
			t.Errorf("an instruction: %v, got\n%s", s.Kind, got)
		}
	}
	entry := sitesOf(t, img, "fun", 1)[0]
	at, ok, err := entry.At(4)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if got := spillText(t, at); strings.Contains(got, "not-stored-yet") {
		t.Errorf("behind the entry: got\n%s", got)
	}
}
