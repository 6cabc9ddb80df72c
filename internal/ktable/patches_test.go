package ktable

import (
	"debug/elf"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/image"
)

// TestPatches: which alternatives and calls through pv_ops are replaced, and by what.
func TestPatches(t *testing.T) {
	const lo, at, ops = uint64(dwarftest.TextAddr), uint64(0x600000), uint64(0x601000)
	const xenpv, always, la57 = 8*32 + 16, 3*32 + 21, 16*32 + 16
	cat := dwarftest.Cat
	near := func(place, to uint64) []byte { return dwarftest.LE32(lo + to - (at + place)) }
	u16 := func(v uint64) []byte { return dwarftest.LE16(v) }
	// What is called is at +0x40, and for another function, which does nothing, at +0x48.
	target := cat(dwarftest.LE64(lo+0x40), dwarftest.LE64(lo+0x48))
	code := make([]byte, dwarftest.TextSize)
	copy(code, []byte{0xff, 0x15})
	copy(code[2:], dwarftest.LE32(ops-(lo+6)))                           // call *ops
	copy(code[8:], cat([]byte{0xff, 0x14, 0x25}, dwarftest.LE32(ops+8))) // call *ops+8, absolute
	copy(code[0x20:], cat([]byte{0xe9}, dwarftest.LE32(0x1b)))           // at 0x20: a jump to 0x40
	copy(code[0x28:], []byte{0x9c, 0x58})                                // pushf; pop %rax
	call := func(from uint64) []byte { return cat([]byte{0xe8}, dwarftest.LE32(0x40-from-5)) }
	for _, tt := range []struct {
		name  string
		form  *Form
		table []byte
		want  []Patch
	}{
		{"not on Xen, until 6.2", replaced, cat(near(0, 0), near(4, 0x28), u16(xenpv|1<<15), 6, 2), []Patch{{lo, 6, []byte{0x9c, 0x58}}}},
		{"on Xen, until 6.2", replaced, cat(near(0, 0), near(4, 0x28), u16(xenpv), 6, 2), nil},
		{"not on Xen, since 6.3", replaced, cat(near(0, 0), near(4, 0x28), u16(xenpv), u16(1), 6, 2), []Patch{{lo, 6, []byte{0x9c, 0x58}}}},
		{"on Xen, since 6.3", replaced, cat(near(0, 0), near(4, 0x28), u16(xenpv), u16(0), 6, 2), nil},
		{"by processor", replaced, cat(near(0, 0), near(4, 0x28), u16(la57), 6, 2), nil},
		{"with a jump", replaced, cat(near(0, 0), near(4, 0x20), u16(always), 6, 5), []Patch{{lo, 6, cat([]byte{0xe9}, dwarftest.LE32(0x3b))}}},
		{"by nothing", replaced, cat(near(0, 0), near(4, 0x20), u16(always), 6, 0), []Patch{{lo, 6, []byte{}}}},
		{"a direct call", replaced, cat(near(0, 0), near(4, 0x28), u16(always), u16(2), 6, 5), []Patch{{lo, 6, call(0)}}},
		{"a direct call of what does nothing", replaced, cat(near(0, 8), near(4, 0x28), u16(always), u16(2), 7, 5), []Patch{{lo + 8, 7, nil}}},
		{"in order", replaced, cat(near(0, 8), near(4, 0x28), u16(always), 6, 2, near(12, 0), near(16, 0x28), u16(always), 6, 1), []Patch{{lo, 6, []byte{0x9c}}, {lo + 8, 6, []byte{0x9c, 0x58}}}},
		{"pv_ops", paravirt, cat(dwarftest.LE64(lo), 0, 6, u16(0), dwarftest.LE32(0), dwarftest.LE64(lo+8), 1, 7, u16(0), dwarftest.LE32(0)), []Patch{{lo, 6, call(0)}, {lo + 8, 7, nil}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := dwarftest.Text()
			copy(text.Data, code)
			data := func(name string, addr uint64, d []byte) dwarftest.Section {
				return dwarftest.Section{Name: name, Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: addr, Data: d}
			}
			f, err := image.FromBytes("test", dwarftest.ELF(text, data("table", at, tt.table), data("ops", ops, target)), nil)
			if err != nil {
				t.Fatal(err)
			}
			m, err := Find(f)
			if err != nil {
				t.Fatal(err)
			}
			m.at = map[string]uint64{tt.form.from: at, tt.form.to: at + uint64(len(tt.table)), "pv_ops": ops, "nop_func": lo + 0x48}
			got, err := m.Patches()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			m.at[tt.form.to] = at + 1<<20
			if _, err := m.Patches(); err == nil {
				t.Error("a table that is longer than its section is read")
			}
		})
	}
}

// TestRelease: the version in the text that a kernel prints first.
func TestRelease(t *testing.T) {
	const at = uint64(0x600000)
	for text, want := range map[string][2]int{
		"Linux version 6.12.95+deb12-cloud-amd64 (debian-kernel": {6, 12},
		"Linux version 6.1.0-56-amd64 (debian-kernel@lists":      {6, 1},
		"Linux version unknown. The rest is of no interest":      {},
		"too short": {},
	} {
		f, err := image.FromBytes("test", dwarftest.ELF(dwarftest.Text(), dwarftest.Section{Name: "b", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: at, Data: []byte(text)}), nil)
		if err != nil {
			t.Fatal(err)
		}
		m := &Marks{f: f, at: map[string]uint64{"linux_banner": at}}
		if major, minor, ok := m.Release(); ok != (want[0] > 0) || ok && [2]int{major, minor} != want {
			t.Errorf("%q: %d.%d, %v", text, major, minor, ok)
		}
	}
}
