package ktable

import (
	"bytes"
	"debug/elf"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/image"
)

// TestSizes: entries of every size, and entries that cannot be any.
func TestSizes(t *testing.T) {
	const lo, at = uint64(dwarftest.TextAddr), uint64(0x600000)
	// Distances of addresses in the code from a place in the table.
	near := func(place, to uint64) []byte { return dwarftest.LE32(lo + to - (at + place)) }
	cat := dwarftest.Cat
	jump := []byte{0xe9, 0x10, 0, 0, 0} // leads to +0x15
	for _, tt := range []struct {
		name  string
		form  *Form
		table []byte
		edges []Edge
		warns []uint64
	}{
		{name: "faults of 12 bytes", form: Faults, table: cat(near(0, 1), near(4, 8), dwarftest.LE32(7), near(12, 2), near(16, 9), dwarftest.LE32(0)), edges: []Edge{{lo + 1, lo + 8}, {lo + 2, lo + 9}}},
		{name: "faults of 8 bytes", form: Faults, table: cat(near(0, 1), near(4, 8), near(8, 2), near(12, 9)), edges: []Edge{{lo + 1, lo + 8}, {lo + 2, lo + 9}}},
		{name: "faults elsewhere", form: Faults, table: cat(near(0, 1), near(4, 1<<20), dwarftest.LE32(7))},
		{name: "faults cut short", form: Faults, table: cat(near(0, 1), near(4, 8), 1, 2)},
		{name: "bugs of 12 bytes", form: Bugs, table: cat(near(0, 1), dwarftest.LE32(0), 9, 0, 1, 0, near(12, 3), dwarftest.LE32(0), 1, 0, 0, 0), warns: []uint64{lo + 1}},
		{name: "bugs of 16 bytes", form: Bugs, table: cat(near(0, 1), dwarftest.LE32(0), dwarftest.LE32(0), 9, 0, 1, 0, near(16, 3), dwarftest.LE32(0), dwarftest.LE32(0), 1, 0, 0, 0), warns: []uint64{lo + 1}},
		{name: "bugs of 8 bytes", form: Bugs, table: cat(near(0, 1), 0, 0, 0, 0, near(8, 3), 1, 0, 0, 0), warns: []uint64{lo + 3}},
		{name: "alternatives of 11 bytes", form: replaced, table: cat(near(0, 0), near(4, 8), 1, 0, 5), edges: []Edge{{lo, lo + 5}}},
		{name: "alternatives of 12 bytes", form: replaced, table: cat(near(0, 0), near(4, 8), 1, 0, 5, 0), edges: []Edge{{lo, lo + 5}}},
		{name: "alternatives of 13 bytes", form: replaced, table: cat(near(0, 0), near(4, 8), 1, 0, 5, 0, 0), edges: []Edge{{lo, lo + 5}}},
		{name: "alternatives of 14 bytes", form: replaced, table: cat(near(0, 0), near(4, 8), 1, 0, 0, 0, 5, 0), edges: []Edge{{lo, lo + 5}}},
		{name: "an alternative of nothing", form: replaced, table: cat(near(0, 0), near(4, 8), 1, 0, 5, 0, near(12, 9), near(16, 8), 1, 0, 0, 0), edges: []Edge{{lo, lo + 5}}},
		{name: "a replacement with a jump", form: replaced, table: cat(near(0, 5), near(4, 0), 1, 0, 5, 5), edges: []Edge{{lo + 5, lo + 0x15}}},
		{name: "a replacement that is too long", form: replaced, table: cat(near(0, 5), near(4, 0), 1, 0, 4, 5)},
		{name: "static branches", form: Jumps, table: cat(near(0, 0), near(4, 9), dwarftest.LE64(0), near(16, 5), near(20, 9), dwarftest.LE64(0)), edges: []Edge{{lo, lo + 5}, {lo, lo + 9}, {lo + 5, lo + 9}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := dwarftest.Text()
			copy(text.Data, cat(jump, bytes.Repeat([]byte{0x90}, 11)))
			f, err := image.FromBytes("test", dwarftest.ELF(text, dwarftest.Section{Name: "table", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: at, Data: tt.table}), nil)
			if err != nil {
				t.Fatal(err)
			}
			m, err := Find(f)
			if err != nil {
				t.Fatal(err)
			}
			m.at = map[string]uint64{tt.form.from: at, tt.form.to: at + uint64(len(tt.table))}
			got, err := m.Tables()
			if err != nil {
				t.Fatal(err)
			}
			edges, err := got.Edges(0, ^uint64(0))
			if err != nil || !slices.Equal(edges, tt.edges) || !slices.Equal(got.warns, tt.warns) {
				t.Errorf("got %#x, want %#x; warnings %#x, want %#x; %v", edges, tt.edges, got.warns, tt.warns, err)
			}
			// A table of which nothing is known is reported.
			if unread := got.Unread(); (len(unread) > 0) != (tt.edges == nil && tt.warns == nil) {
				t.Errorf("unread: %q", unread)
			}
			m.at[tt.form.to] = at + 1<<20
			if _, err := m.Tables(); err == nil {
				t.Error("a table that is longer than its section is read")
			}
		})
	}
}
