package dwarfloc

import (
	"debug/elf"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
)

// TestWidth: GCC's arithmetic is as wide as its operands show.
func TestWidth(t *testing.T) {
	const (
		derefSize, and, mul, plus, shl, shr, shra, consts, const1u, const4u = 0x94, 0x1a, 0x1e, 0x22, 0x24, 0x25, 0x26, 0x11, 0x08, 0x0c
		rdx                                                                 = 1
	)
	negative := dwarftest.Cat(consts, dwarftest.SLEB(-0x61c8864f))
	word := dwarftest.Cat(xBreg0+rdx, dwarftest.SLEB(-2), derefSize, 4) // memory of 32 bits
	reg := dwarftest.Cat(xBreg0+rdx, 0)
	number := func(bytes, encoding int) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrByteSize, dw.FormData1, bytes), dwarftest.At(dw.AttrEncoding, dw.FormData1, encoding)}}
	}
	u64, u32, u8 := number(8, dw.EncUnsigned), number(4, dw.EncUnsigned), number(1, dw.EncUnsigned)
	var kids []*dwarftest.DIE
	add := func(name string, of *dwarftest.DIE, parts ...any) {
		kids = append(kids, &dwarftest.DIE{Tag: dw.TagVariable, Attrs: []dwarftest.Attr{
			dwarftest.At(dw.AttrName, dw.FormString, name), dwarftest.At(dw.AttrType, dw.FormRef4, of),
			dwarftest.At(dw.AttrLocation, dw.FormExprloc, dwarftest.Cat(append(parts, xStackValue)...)),
		}})
	}
	add("hash", u32, word, negative, mul, xLit0+19, shr)
	add("divided", u32, word, const4u, dwarftest.LE32(0xffffffff), and, const4u, dwarftest.LE32(3435973837), mul, const1u, 35, shr)
	add("hash_of_register", u32, reg, negative, mul, xLit0+19, shr)
	add("sum_of_register", u32, reg, xLit0+1, plus, xLit0+3, shr)
	add("shifted_register", u32, reg, xLit0+3, shr)
	add("signed_register", u32, reg, xLit0+3, shra)
	add("signed_memory", u32, word, xLit0+3, shra)
	add("low_bits", u8, reg, xLit0+1, plus, xLit0+8, shr)
	add("negated_byte", u32, reg, 0x20, const1u, 0xff, and)
	add("negated", u8, reg, 0x20)
	add("extended", u32, reg, const1u, 48, shl, const1u, 48, shra)
	add("wide", u64, reg, xLit0+1, plus, xLit0+3, shr)
	add("product", u32, word, negative, mul)
	fun := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
		dwarftest.At(dw.AttrName, dw.FormString, "f"), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), dwarftest.At(dw.AttrHighpc, dw.FormData1, 64),
	}, Kids: kids}
	want := map[string]string{
		"hash":             "u32(u32[%rdx-2] * -0x61c8864f) >>u 19",
		"divided":          "((u32[%rdx-2] & 0xffffffff) * 0xcccccccd) >>u 35",
		"hash_of_register": "u32(%rdx * -0x61c8864f) >>u 19",
		"sum_of_register":  "%rdx+1 >>u 3 ~contradictory",
		"shifted_register": "%rdx >>u 3 ~contradictory", // at the beginning of a function: nobody says what is above 32 bits
		"signed_register":  "%rdx >> 3 ~contradictory",
		"signed_memory":    "s32(u32[%rdx-2]) >> 3",
		"low_bits":         "%rdx+1 >>u 8",
		"extended":         "(%rdx << 48) >> 48",
		"wide":             "%rdx+1 >>u 3",
		"product":          "u32[%rdx-2] * -0x61c8864f",
		"negated":          "~%rdx",
		"negated_byte":     "~%rdx & 255 ~contradictory",
	}
	asWritten := map[string]string{"hash": "(u32[%rdx-2] * -0x61c8864f) >>u 19", "sum_of_register": "%rdx+1 >>u 3"}
	for producer, want := range map[string]map[string]string{"GNU C11 12.2.0 -O2 -g": want, "clang version 16": asWritten} {
		root := dwarftest.Root(u64, u32, u8, fun)
		root.Attrs = append(root.Attrs, dwarftest.At(dw.AttrProducer, dw.FormString, producer))
		var w dwarftest.Writer
		w.Add(dwarftest.CU{Version: 5, Root: root})
		img, err := FromBytes("test", dwarftest.ELF(
			dwarftest.Section{Name: ".text", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: dwarftest.TextAddr, Data: make([]byte, 64)},
			dwarftest.Debug(".debug_info", w.Info), dwarftest.Debug(".debug_abbrev", w.Abbrev)), nil)
		if err != nil {
			t.Fatal(err)
		}
		s := sitesOf(t, img, "f", 1)[0]
		for name, want := range want {
			v, err := s.Lookup(name)
			if err != nil || !v.Located() {
				t.Fatalf("%s: %v, %v", name, v, err)
			}
			got := v.Loc.Text(img.Arch())
			if d := v.Loc.Doubt; d != reasons.None {
				got += " ~" + d.String()
			}
			if got != want {
				t.Errorf("%s, %s: %s, want %s", producer, name, got, want)
			}
		}
	}
}
