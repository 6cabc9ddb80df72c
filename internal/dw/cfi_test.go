package dw_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/frame"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestFramesAgainstDelve compares the rule for the canonical frame address with
// delve's reader, at every 3rd address and both ends of every frame description of
// every fixture. Known faults of delve v1.27.2: it reads a common information entry of
// version 4 as one of version 3 (see asVersion3); and, in no fixture, it panics on
// damaged entries and refuses DW_CFA_AARCH64_negate_ra_state.
func TestFramesAgainstDelve(t *testing.T) {
	for _, name := range fixtures.Names() {
		t.Run(name, func(t *testing.T) {
			file, err := fixtures.Bytes(name)
			dwarftest.Must(err)
			image := dwarftest.Open(t, name, file)
			d, base := image.Frame, uint64(0)
			if len(d) == 0 {
				d, base = image.EhFrame, image.EhFrameAddr
			}
			fdes, err := frame.Parse(asVersion3(d), binary.LittleEndian, 0, 8, base)
			if err != nil {
				t.Fatalf("delve: %v", err)
			}
			compared, registers := 0, 0
			for _, f := range fdes {
				for pc := f.Begin(); pc < f.End(); pc++ {
					if (pc-f.Begin())%3 != 0 && pc != f.End()-1 {
						continue
					}
					ctx, err := f.EstablishFrame(pc)
					if err != nil {
						t.Fatalf("delve at %#x: %v", pc, err)
					}
					want := dw.CFARule{Reg: ctx.CFA.Reg, Off: ctx.CFA.Offset, Expr: ctx.CFA.Expression}
					got, ok, err := image.CFA(pc)
					if err != nil || !ok || got.Reg != want.Reg && want.Expr == nil || got.Off != want.Off && want.Expr == nil || !bytes.Equal(got.Expr, want.Expr) {
						t.Fatalf("at %#x: got %+v, %v, %v; delve has %+v", pc, got, ok, err, want)
					}
					saved, ok, err := image.FrameAt(pc)
					if err != nil || !ok {
						t.Fatalf("at %#x: no registers: %v", pc, err)
					}
					for n, rule := range ctx.Regs {
						registers++
						if text := savedText(saved, n); text != delveText(rule) {
							t.Fatalf("at %#x: register %d: got %s; delve has %s", pc, n, text, delveText(rule))
						}
					}
					compared++
				}
			}
			if len(fdes) < 4 || compared < 70 || registers < 70 {
				t.Errorf("only %d addresses of %d descriptions, and %d registers, compared", compared, len(fdes), registers)
			}
		})
	}
}

// savedText prints where a register is saved.
func savedText(f dw.Frame, n uint64) string {
	r, known := f.Register(n)
	switch {
	case !known: // delve has no other rule for what is restored to none
		return fmt.Sprint(dw.SavedNowhere)
	case r.Kind == dw.SavedIn:
		return fmt.Sprintf("in %d", r.Reg)
	case r.Kind == dw.SavedAt, r.Kind == dw.SavedValue:
		return fmt.Sprintf("%d %d", r.Kind, r.Off)
	}
	return fmt.Sprint(r.Kind)
}

// delveText is savedText of delve's rule.
func delveText(r frame.DWRule) string {
	switch r.Rule {
	case frame.RuleSameVal:
		return fmt.Sprint(dw.SavedSame)
	case frame.RuleOffset:
		return fmt.Sprintf("%d %d", dw.SavedAt, r.Offset)
	case frame.RuleValOffset:
		return fmt.Sprintf("%d %d", dw.SavedValue, r.Offset)
	case frame.RuleRegister:
		return fmt.Sprintf("in %d", r.Reg)
	case frame.RuleExpression, frame.RuleValExpression:
		return fmt.Sprint(dw.SavedBy)
	}
	return fmt.Sprint(dw.SavedNowhere)
}

// asVersion3 rewrites common information entries of version 4 without their address
// and segment sizes, which delve does not pass over; two DW_CFA_nop keep the length.
func asVersion3(d []byte) []byte {
	d = bytes.Clone(d)
	for p := 0; p+4 <= len(d); {
		n := 4 + int(binary.LittleEndian.Uint32(d[p:]))
		e := d[p : p+n]
		if n > 11 && binary.LittleEndian.Uint32(e[4:]) == 0xffffffff && e[8] == 4 && e[9] == 0 {
			e[8] = 3
			copy(e[10:], e[12:])
			e[n-2], e[n-1] = 0, 0
		}
		p += n
	}
	return d
}

// cfaText prints the rule at an address relative to the text.
func cfaText(d *dw.Data, addr uint64) string {
	r, ok, err := d.CFA(dwarftest.TextAddr + addr)
	switch {
	case err != nil:
		return err.Error()
	case !ok:
		return "none"
	case r.Expr != nil:
		return fmt.Sprintf("expression %x", r.Expr)
	}
	return fmt.Sprintf("r%d%+d", r.Reg, r.Off)
}

// cie and fde are a common information entry and a frame description, of 0x100 bytes, with instructions.
func cie(instr ...any) []byte {
	return dwarftest.FrameEntry(dwarftest.LE32(0xffffffff), 4, "", 8, 0, dwarftest.ULEB(2), dwarftest.SLEB(-8), dwarftest.ULEB(16), dwarftest.Cat(instr...))
}

func fde(instr ...any) []byte {
	return dwarftest.FrameEntry(dwarftest.LE32(0), dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(0x100), dwarftest.Cat(instr...))
}

// TestFrameUnset: a frame that is made later is not set before, nor behind its end, and one that is always the same is.
func TestFrameUnset(t *testing.T) {
	def := dwarftest.Cat(0x0c, 7, 8) // r7+8
	for _, tt := range []struct {
		name string
		cie  []byte
		fde  []byte
		want map[uint64]bool
	}{
		{"no frame", cie(def), fde(0x42), map[uint64]bool{0: false, 4: false}},
		{"made at +4, until +8", cie(def), fde(0x42, 0x0e, 64, 0x42, 0x0e, 8), map[uint64]bool{0: true, 3: true, 4: false, 8: true}},
		{"by another register", cie(def), fde(0x42, 0x0c, 6, 8), map[uint64]bool{0: true, 4: false}},
		{"by an expression at first", cie(0x0f, 2, 0x77, 8), fde(0x42, 0x0c, 7, 8), map[uint64]bool{0: false, 4: false}},
		{"by an expression later", cie(def), fde(0x42, 0x0f, 2, 0x77, 8), map[uint64]bool{0: true, 4: false}},
	} {
		d := dwarftest.Open(t, "test", dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}}, dwarftest.Debug(".debug_frame", dwarftest.Cat(tt.cie, tt.fde))))
		for a, want := range tt.want {
			rules, ok, err := new(dw.CFARules).Rules(d, dwarftest.TextAddr+a)
			if err != nil || !ok {
				t.Fatalf("%s: %v, %v", tt.name, ok, err)
			}
			if got := rules.Unset(dwarftest.TextAddr + a); got != want {
				t.Errorf("%s, at +%#x: %v, want %v", tt.name, a, got, want)
			}
			if both := rules.Unset(dwarftest.TextAddr, dwarftest.TextAddr+a); both != want {
				t.Errorf("%s, at both +0 and +%#x: %v, want %v", tt.name, a, both, want)
			}
		}
	}
}

func TestFrameInstructions(t *testing.T) {
	def := dwarftest.Cat(0x0c, 7, 8) // DW_CFA_def_cfa: r7+8
	// Where the description of fde stands after the CIE depends on its length.
	at := func(c []byte) string { return fmt.Sprintf("test: .debug_frame+%#x: ", len(c)) }
	for _, tt := range []struct {
		name  string
		cie   []byte
		FDE   []byte
		asks  map[uint64]string
		error string // instead, everywhere
	}{
		{name: "the CIE's rule", cie: cie(def), FDE: fde(), asks: map[uint64]string{0: "r7+8", 0xff: "r7+8", 0x100: "none"}},
		{name: "no rule at all", cie: cie(), FDE: fde(0x00), asks: map[uint64]string{0: "none"}},
		{name: "advances count in code units", cie: cie(def), FDE: fde(0x41, 0x0e, 16, 0x02, 3, 0x0e, 24, 0x03, dwarftest.LE16(4), 0x0e, 32, 0x04, dwarftest.LE32(5), 0x0d, 6),
			asks: map[uint64]string{1: "r7+8", 2: "r7+16", 7: "r7+16", 8: "r7+24", 15: "r7+24", 16: "r7+32", 25: "r7+32", 26: "r6+32"}},
		{name: "set_loc", cie: cie(def), FDE: fde(0x01, dwarftest.LE64(dwarftest.TextAddr+9), 0x0e, 16), asks: map[uint64]string{8: "r7+8", 9: "r7+16"}},
		{name: "remember and restore", cie: cie(def), FDE: fde(0x0a, 0x0e, 64, 0x42, 0x0b), asks: map[uint64]string{0: "r7+64", 4: "r7+8"}},
		{name: "factored", cie: cie(0x12, 7, dwarftest.SLEB(-2)), FDE: fde(0x42, 0x13, dwarftest.SLEB(-4)), asks: map[uint64]string{0: "r7+16", 4: "r7+32"}},
		{name: "expression", cie: cie(def), FDE: fde(0x0f, 2, 0x77, 8, 0x42, 0x0c, 7, 8), asks: map[uint64]string{0: "expression 7708", 4: "r7+8"}},
		{name: "rules of registers do not matter", cie: cie(def),
			FDE:  fde(0x83, 2, 0xc3, 0x05, 3, 2, 0x06, 3, 0x07, 3, 0x08, 3, 0x09, 3, 4, 0x10, 3, 1, 0x70, 0x11, 3, dwarftest.SLEB(-2), 0x14, 3, 2, 0x15, 3, 2, 0x16, 3, 1, 0x70, 0x2d, 0x2e, 8, 0x2f, 3, 8, 0x0e, 16),
			asks: map[uint64]string{0: "r7+16"}},
		{name: "unknown instruction", cie: cie(def), FDE: fde(0x3c), error: "unknown call frame instruction 0x3c"},
		{name: "restore of nothing", cie: cie(def), FDE: fde(0x0b), error: "DW_CFA_restore_state without a remembered state"},
		{name: "too much remembered", cie: cie(def), FDE: fde(bytes.Repeat([]byte{0x0a}, 257)), error: "more than 256 remembered states"},
		{name: "instruction cut short", cie: cie(def), FDE: fde(0x0c, 7), error: "a call frame instruction is cut short"},
		{name: "offset cut short", cie: cie(def), FDE: fde(0x83), error: "a call frame instruction is cut short"},
		{name: "expression cut short", cie: cie(def), FDE: fde(0x0f, 9, 1), error: "a call frame instruction is cut short"},
		{name: "an offset for no register", cie: cie(), FDE: fde(0x0e, 8), error: "call frame instruction 0x0e without a register rule to change"},
		{name: "a register for an expression", cie: cie(0x0f, 1, 0x70), FDE: fde(0x0d, 8), error: "call frame instruction 0x0d without a register rule to change"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := dwarftest.Open(t, "test", dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}}, dwarftest.Debug(".debug_frame", dwarftest.Cat(tt.cie, tt.FDE))))
			if tt.error != "" {
				tt.asks = map[uint64]string{0: at(tt.cie) + tt.error}
			}
			for a, want := range tt.asks {
				if got := cfaText(d, a); got != want {
					t.Errorf("at +%#x: got %q, want %q", a, got, want)
				}
			}
		})
	}
}

// TestFrameSections: damaged sections, and what is found in undamaged ones.
func TestFrameSections(t *testing.T) {
	plain := dwarftest.FrameEntry(dwarftest.LE32(0xffffffff), 1, "", 1, dwarftest.SLEB(-8), 16, 0x0c, 7, 8)
	fde := dwarftest.FrameEntry(dwarftest.LE32(0), dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(16))
	cie := func(aug string, data ...any) []byte {
		return dwarftest.FrameEntry(dwarftest.LE32(0xffffffff), 1, aug, 1, dwarftest.SLEB(-8), 16, dwarftest.Cat(data...), 0x0c, 7, 8)
	}
	cie64 := dwarftest.Cat(dwarftest.LE64(^uint64(0)), 3, "", 1, dwarftest.SLEB(-8), 16, 0x0c, 7, 8)
	fde64 := dwarftest.Cat(dwarftest.LE64(0), dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(16))
	for _, tt := range []struct {
		name, want string
		d          []byte
	}{
		{"good", "r7+8", dwarftest.Cat(plain, fde)},
		{"terminator", "r7+8", dwarftest.Cat(dwarftest.LE32(0), dwarftest.FrameEntry(dwarftest.LE32(0xffffffff), 1, "", 1, dwarftest.SLEB(-8), 16, 0x0c, 7, 8), dwarftest.FrameEntry(dwarftest.LE32(4), dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(16)))},
		{"64-bit DWARF", "r7+8", dwarftest.Cat(dwarftest.LE32(0xffffffff), dwarftest.LE64(uint64(len(cie64))), cie64, dwarftest.LE32(0xffffffff), dwarftest.LE64(uint64(len(fde64))), fde64)},
		{"an empty description at the same address", "r7+8", dwarftest.Cat(plain, fde, dwarftest.FrameEntry(dwarftest.LE32(0), dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(0)))},
		{"version", "test: .debug_frame+0x0: unsupported common information entry version 9", dwarftest.Cat(dwarftest.FrameEntry(dwarftest.LE32(0xffffffff), 9, ""), fde)},
		{"address size", "test: .debug_frame+0x0: invalid address size 3", dwarftest.Cat(dwarftest.FrameEntry(dwarftest.LE32(0xffffffff), 4, "", 3, 0), fde)},
		{"augmentation", `test: .debug_frame+0x0: unsupported augmentation "Q"`, dwarftest.Cat(cie("Q"), fde)},
		{"signal frame", "r7+8", dwarftest.Cat(cie("S"), fde)},
		{"signed return addresses, tagged stack", "r7+8", dwarftest.Cat(cie("BG"), fde)},
		{"signal frame with length", "r7+8", dwarftest.Cat(cie("zSB", 0), fde)},
		{"personality without length", "r7+8", dwarftest.Cat(cie("PS", 0x03, dwarftest.LE32(1)), fde)},
		{"unknown letter with length", "r7+8", dwarftest.Cat(cie("zQ", 2, 1, 2), fde)},
		{"old GCC", "r7+8", dwarftest.Cat(dwarftest.FrameEntry(dwarftest.LE32(0xffffffff), 1, "eh", dwarftest.LE64(1), 1, dwarftest.SLEB(-8), 16, 0x0c, 7, 8), fde)},
		{"another CIE that cannot be read", "r7+8", dwarftest.Cat(plain, fde, dwarftest.FrameEntry(dwarftest.LE32(0xffffffff), 9, ""),
			dwarftest.FrameEntry(dwarftest.LE32(uint64(len(plain)+len(fde))), dwarftest.LE64(dwarftest.TextAddr+16), dwarftest.LE64(16)))},
		{"a CIE after its description", "r7+8", dwarftest.Cat(dwarftest.FrameEntry(dwarftest.LE32(uint64(len(fde))), dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(16)), plain)},
		{"damage after it", "r7+8", dwarftest.Cat(plain, fde, dwarftest.LE32(0x1000))},
		{"augmentation data", `test: .debug_frame+0x0: the augmentation data of "zP" is cut short`, dwarftest.Cat(dwarftest.FrameEntry(dwarftest.LE32(0xffffffff), 1, "zP", 1, 1, 1, 1, 0x00), fde)},
		{"CIE cut short", "test: .debug_frame+0x0: the common information entry does not fit into its length", dwarftest.Cat(dwarftest.FrameEntry(dwarftest.LE32(0xffffffff), 1, "", 1), fde)},
		{"FDE cut short", "test: .debug_frame+0x10: the frame description does not fit into its length", dwarftest.Cat(plain, dwarftest.FrameEntry(dwarftest.LE32(0), dwarftest.LE64(dwarftest.TextAddr)))},
		{"no CIE", "test: .debug_frame+0x10: no common information entry at 0x5", dwarftest.Cat(plain, dwarftest.FrameEntry(dwarftest.LE32(5), dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(16)))},
		{"length", "test: .debug_frame+0x0: invalid entry length 0x1000", dwarftest.LE32(0x1000)},
		{"length cut short", "test: .debug_frame+0x0: invalid entry length 0x0", []byte{1, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := dwarftest.Open(t, "test", dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}}, dwarftest.Debug(".debug_frame", tt.d)))
			for range 2 { // the second question gets the same answer
				if got := cfaText(d, 0); got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			}
		})
	}
}

// TestEhFrame reads a description with addresses relative to where they stand.
func TestEhFrame(t *testing.T) {
	const ehAddr = 0x500000
	write := func(enc int, lo []byte) []byte {
		cie := dwarftest.FrameEntry(dwarftest.LE32(0), 1, "zR", 1, dwarftest.SLEB(-8), 16, 1, enc, 0x0c, 7, 8)
		return dwarftest.Cat(cie, dwarftest.FrameEntry(dwarftest.LE32(uint64(len(cie)+4)), lo, dwarftest.LE32(0x10), 0, 0x0e, 24), dwarftest.LE32(0))
	}
	cieLen := uint64(len(write(0, nil))) - 4 - 4 - 4 - 4 - 1 - 2 // without the description and the end
	at := uint64(ehAddr) + cieLen + 8
	text := uint64(dwarftest.TextAddr)
	for _, tt := range []struct {
		name, want string
		d          []byte
	}{
		{"pcrel sdata4", "r7+24", write(dw.EhPCRel|dw.EhSdata4, dwarftest.LE32(text-at))},
		{"udata4", "r7+24", write(dw.EhUdata4, dwarftest.LE32(text))},
		{"data-relative", fmt.Sprintf("test: .eh_frame+%#x: the frame description does not fit into its length", cieLen), write(dw.EhDataRel|dw.EhSdata4, dwarftest.LE32(0))},
		{"unknown augmentation", `test: .eh_frame+0x0: unsupported augmentation "zQR"`, dwarftest.Cat(
			dwarftest.FrameEntry(dwarftest.LE32(0), 1, "zQR", 1, 1, 16, 2, 0, dw.EhPCRel|dw.EhSdata4),
			dwarftest.FrameEntry(dwarftest.LE32(23), dwarftest.LE32(text-(ehAddr+27)), dwarftest.LE32(0x10), 0))},
	} {
		d := dwarftest.Open(t, "test", dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}}, dwarftest.Section{Name: ".eh_frame", Type: 1, Flags: 2, Addr: ehAddr, Data: tt.d}))
		if got := cfaText(d, 4); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if strings.HasPrefix(tt.want, "r7") {
			if got := cfaText(d, 0x10); got != "none" {
				t.Errorf("%s: after the description: %q", tt.name, got)
			}
		}
	}
}
