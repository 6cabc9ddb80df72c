package dwarfloc

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/resolve"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
)

// loc5 is an entry's expression with its length: the register n.
func loc5(n int) []byte { return dwarftest.Cat(1, xReg0+n) }

func loc4(n int) []byte { return dwarftest.Cat(dwarftest.LE16(1), xReg0+n) }

// listImage is an image of one unit of a DWARF version with base address textAddr
// whose location and range lists are d.
func listImage(t testing.TB, version int, d []byte) *unit {
	addrs := dwarftest.Cat(dwarftest.LE32(0), 5, 0, 8, 0, dwarftest.LE64(dwarftest.TextAddr+0x10), dwarftest.LE64(dwarftest.TextAddr+0x20))
	names := [][2]string{{".debug_loc", ".debug_ranges"}, {".debug_loclists", ".debug_rnglists"}}[max(version-4, 0)]
	img := testImage(t, []dwarftest.CU{{Version: version, Root: dwarftest.Root()}},
		dwarftest.Debug(names[0], d), dwarftest.Debug(names[1], d), dwarftest.Debug(".debug_addr", addrs))
	return &img.units[0]
}

// chosenText prints what a list has for an address (relative to the text) and view.
func chosenText(u *unit, list, views dw.Value, addr, view uint64) string {
	c, err := u.Choose(list, views, entries.Place{Addr: dwarftest.TextAddr + addr, View: view}, false)
	if err != nil {
		return err.Error()
	}
	if c.Rule == rule.None {
		return fmt.Sprintf("none, others %v", c.Others)
	}
	at := &entries.Spot{U: u.Unit, At: entries.Place{Addr: dwarftest.TextAddr + addr}}
	var l loc.Location
	r, err := resolve.At(at).Locate(c.Expr, c.Sec, c.Off, &l)
	dwarftest.Must(err)
	if r.Code != reasons.None {
		return r.String()
	}
	return c.Rule.String() + " " + l.Text(u.img.Arch())
}

func TestLocationLists(t *testing.T) {
	off := func(n uint64) dw.Value { return dw.Value{Form: dw.FormSecOffset, U: n} }
	end := byte(dw.LleEndOfList)
	pair := func(lo, hi, reg int) []byte {
		return dwarftest.Cat(dw.LleOffsetPair, dwarftest.ULEB(uint64(lo)), dwarftest.ULEB(uint64(hi)), loc5(reg))
	}
	pair4 := func(lo, hi uint64, reg int) []byte {
		return dwarftest.Cat(dwarftest.LE64(lo), dwarftest.LE64(hi), loc4(reg))
	}
	end4 := make([]byte, 16)
	type ask struct {
		addr, view uint64
		want       string
	}
	for _, tt := range []struct {
		name    string
		version int
		views   []byte // stand before the list
		list    []byte
		asks    []ask
	}{
		{"offset pairs", 5, nil, dwarftest.Cat(pair(0, 8, 0), pair(8, 16, 1), end), []ask{
			{0, 0, "address %rax"}, {7, 9, "address %rax"}, {8, 0, "address %rdx"}, {15, 0, "address %rdx"}, {16, 0, "none, others true"}}},
		{"base address", 5, nil, dwarftest.Cat(dw.LleBaseAddress, dwarftest.LE64(dwarftest.TextAddr+0x100), pair(0, 8, 0), end), []ask{
			{0x100, 0, "address %rax"}, {0, 0, "none, others true"}}},
		{"base addressx", 5, nil, dwarftest.Cat(dw.LleBaseAddressx, 1, pair(0, 8, 0), end), []ask{{0x20, 0, "address %rax"}, {0x10, 0, "none, others true"}}},
		{"startx endx", 5, nil, dwarftest.Cat(dw.LleStartxEndx, 0, 1, loc5(2), end), []ask{{0x10, 0, "address %rcx"}, {0x1f, 0, "address %rcx"}, {0x20, 0, "none, others true"}}},
		{"startx length", 5, nil, dwarftest.Cat(dw.LleStartxLength, 1, 4, loc5(2), end), []ask{{0x23, 0, "address %rcx"}, {0x24, 0, "none, others true"}}},
		{"start end", 5, nil, dwarftest.Cat(dw.LleStartEnd, dwarftest.LE64(dwarftest.TextAddr+1), dwarftest.LE64(dwarftest.TextAddr+3), loc5(3), end), []ask{{2, 0, "address %rbx"}, {3, 0, "none, others true"}}},
		{"start length", 5, nil, dwarftest.Cat(dw.LleStartLength, dwarftest.LE64(dwarftest.TextAddr+1), 2, loc5(3), end), []ask{{2, 0, "address %rbx"}, {3, 0, "none, others true"}}},
		{"default location", 5, nil, dwarftest.Cat(dw.LleDefaultLocation, loc5(5), pair(0, 8, 0), end), []ask{{4, 0, "address %rax"}, {8, 0, "default %rdi"}}},
		{"empty list", 5, nil, dwarftest.Cat(end), []ask{{0, 0, "none, others false"}}},
		{"empty range without views", 5, nil, dwarftest.Cat(pair(4, 4, 0), end), []ask{{4, 0, "none, others true"}}},
		{"first of two that cover", 5, nil, dwarftest.Cat(pair(0, 8, 0), pair(0, 8, 1), end), []ask{{4, 0, "address %rax"}}},

		// Views: three entries at one address, of views 0 to 2, 2 to 5, 5 to the next address.
		{"views", 5, []byte{0, 2, 2, 5, 5, 0}, dwarftest.Cat(pair(4, 4, 0), pair(4, 4, 1), pair(4, 9, 2), end), []ask{
			{4, 0, "view %rax"}, {4, 1, "view %rax"}, {4, 2, "view %rdx"}, {4, 4, "view %rdx"}, {4, 5, "view %rcx"}, {4, 9, "view %rcx"},
			{5, 0, "view %rcx"}, {8, 3, "view %rcx"}, {9, 0, "none, others true"}, {3, 0, "none, others true"}}},
		{"the end has a view", 5, []byte{0, 3}, dwarftest.Cat(pair(4, 9, 0), end), []ask{{9, 2, "view %rax"}, {9, 3, "none, others true"}}},
		{"later view", 5, []byte{2, 4, 6, 8}, dwarftest.Cat(pair(4, 4, 0), pair(4, 9, 1), end), []ask{
			{4, 0, "later-view %rax"}, {4, 1, "later-view %rax"}, {4, 5, "later-view %rdx"}, {5, 0, "view %rdx"}}},
		{"an exact entry goes before an earlier later view", 5, []byte{5, 0, 0, 0}, dwarftest.Cat(pair(4, 8, 0), pair(0, 8, 1), end), []ask{{4, 1, "view %rdx"}}},
		{"a later view goes before the default", 5, []byte{5, 0}, dwarftest.Cat(dw.LleDefaultLocation, loc5(5), pair(4, 8, 0), end), []ask{{4, 1, "later-view %rax"}}},
		{"view pairs in the list", 5, nil, dwarftest.Cat(dw.LleGNUViewPair, 0, 2, pair(4, 4, 0), dw.LleGNUViewPair, 2, 7, pair(4, 4, 1), pair(6, 8, 2), end), []ask{
			{4, 1, "view %rax"}, {4, 6, "view %rdx"}, {4, 7, "none, others true"}, {6, 3, "address %rcx"}}},
		{"no view for base and default entries", 5, []byte{1, 3}, dwarftest.Cat(dw.LleBaseAddressx, 0, dw.LleDefaultLocation, loc5(5), pair(0, 0, 0), end), []ask{
			{0x10, 2, "view %rax"}, {0x10, 3, "default %rdi"}}},
		{"view list too short", 5, []byte{0, 2}, dwarftest.Cat(pair(4, 4, 0), pair(4, 4, 1), end), []ask{
			{4, 1, "view %rax"}, {4, 3, "test: .debug_loclists+0x2: the list has more entries than its view list (DW_AT_GNU_locviews)"}}},

		{"does not end", 5, nil, dwarftest.Cat(pair(0, 8, 0)), []ask{{4, 0, "address %rax"}, {8, 0, "test: .debug_loclists+0x0: the location list does not end"}}},
		{"entry cut short", 5, nil, dwarftest.Cat(dw.LleOffsetPair, 0, 8, 4, 1), []ask{{0, 0, "test: .debug_loclists+0x0: the location list does not end"}}},
		{"address cut short", 5, nil, dwarftest.Cat(dw.LleStartEnd, 1, 2, 3), []ask{{0, 0, "test: .debug_loclists+0x0: the location list does not end"}}},
		{"unknown kind", 5, nil, dwarftest.Cat(pair(0, 8, 0), 0x0c), []ask{{9, 0, "test: .debug_loclists+0x5: unknown entry kind 0x0c"}}},
		{"address index outside", 5, nil, dwarftest.Cat(dw.LleStartxEndx, 0, 9, loc5(0), end), []ask{{0, 0, "test: .debug_addr+0x8: address index 9 is outside the section"}}},
		{"too many entries", 5, nil, bytes.Repeat(dwarftest.Cat(dw.LleBaseAddressx, 0), dw.MaxEntries+1), []ask{{0, 0, "test: .debug_loclists+0x0: the location list has more than 65536 entries"}}},

		{"DWARF 4", 4, nil, dwarftest.Cat(pair4(0, 8, 0), pair4(8, 16, 1), end4), []ask{{0, 0, "address %rax"}, {8, 0, "address %rdx"}, {16, 0, "none, others true"}}},
		{"DWARF 4 base", 4, nil, dwarftest.Cat(dwarftest.LE64(^uint64(0)), dwarftest.LE64(dwarftest.TextAddr+0x100), pair4(1, 8, 0), end4), []ask{{0x101, 0, "address %rax"}, {1, 0, "none, others true"}}},
		{"DWARF 4 views", 4, []byte{0, 2, 2, 5}, dwarftest.Cat(pair4(4, 4, 0), pair4(4, 4, 1), end4), []ask{
			{4, 1, "view %rax"}, {4, 3, "view %rdx"}, {4, 5, "none, others true"}}},
		{"an entry that is empty at the site's view", 5, []byte{0, 0}, dwarftest.Cat(pair(4, 4, 0), end), []ask{{4, 0, "later-view %rax"}, {4, 1, "none, others true"}}},
		{"DWARF 4 later view", 4, []byte{2, 5}, dwarftest.Cat(pair4(4, 4, 0), end4), []ask{{4, 1, "later-view %rax"}}},
		{"DWARF 4 does not end", 4, nil, dwarftest.Cat(pair4(0, 8, 0)), []ask{{8, 0, "test: .debug_loc+0x0: the location list does not end"}}},
		{"DWARF 4 expression cut short", 4, nil, dwarftest.Cat(dwarftest.LE64(0), dwarftest.LE64(8), dwarftest.LE16(9), 1), []ask{{0, 0, "test: .debug_loc+0x0: the location list does not end"}}},
		{"DWARF 4 empty", 4, nil, end4, []ask{{0, 0, "none, others false"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := listImage(t, tt.version, dwarftest.Cat(tt.views, tt.list))
			views := dw.Value{}
			if tt.views != nil {
				views = off(0)
			}
			for _, a := range tt.asks {
				if got := chosenText(u, off(uint64(len(tt.views))), views, a.addr, a.view); got != a.want {
					t.Errorf("at +%#x, view %d: got %q, want %q", a.addr, a.view, got, a.want)
				}
			}
		})
	}
	// For a parameter where a body begins, an entry without code comes first.
	first := listImage(t, 5, dwarftest.Cat(pair(4, 4, 5), pair(4, 8, 0), end))
	for _, c := range []struct {
		addr  uint64
		first bool
		want  loc.Rule
	}{{4, true, rule.First}, {4, false, rule.Address}, {5, true, rule.Address}} {
		if got, err := first.Choose(off(0), dw.Value{}, entries.Place{Addr: dwarftest.TextAddr + c.addr}, c.first); err != nil || got.Rule != c.want {
			t.Errorf("at +%#x, first %v: %v, %v, want %v", c.addr, c.first, got.Rule, err, c.want)
		}
	}
	u := listImage(t, 5, nil)
	if got, want := chosenText(u, off(77), dw.Value{}, 0, 0), "test: .debug_loclists+0x4d: the location list does not end"; got != want {
		t.Errorf("an offset outside the section: got %q, want %q", got, want)
	}
}

// TestListForm: an attribute of another class is no place in a list.
func TestListForm(t *testing.T) {
	u := listImage(t, 5, dwarftest.Cat(dw.LleOffsetPair, 0, 8, loc5(0), dw.LleEndOfList))
	if got, want := chosenText(u, dw.Value{Form: dw.FormString}, dw.Value{}, 0, 0), "test: .debug_info+0x0: form 0x8 is no location"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestListIndex looks up lists by index, with and without DW_AT_loclists_base.
func TestListIndex(t *testing.T) {
	head := dwarftest.Cat(dwarftest.LE32(0), 5, 0, 8, 0, dwarftest.LE32(2)) // 12 bytes, then two offsets from there
	d := dwarftest.Cat(head, dwarftest.LE32(8), dwarftest.LE32(14), dw.LleOffsetPair, 0, 8, loc5(0), dw.LleEndOfList)
	d = dwarftest.Cat(d, dw.LleOffsetPair, 0, 8, loc5(1), dw.LleEndOfList)
	u := listImage(t, 5, d)
	idx := func(n uint64) dw.Value { return dw.Value{Form: dw.FormLoclistx, U: n} }
	for _, base := range []uint64{0, 12} {
		u.LocBase = base
		// The first list starts 8 bytes after the base; its entry is 5 bytes and the
		// end one, so the second starts at 14.
		if got := chosenText(u, idx(0), dw.Value{}, 0, 0); got != "address %rax" {
			t.Errorf("base %d, index 0: %s", base, got)
		}
		if got := chosenText(u, idx(1), dw.Value{}, 0, 0); got != "address %rdx" {
			t.Errorf("base %d, index 1: %s", base, got)
		}
	}
	if got, want := chosenText(u, idx(99), dw.Value{}, 0, 0), "test: .debug_loclists+0xc: list index 99 is outside the section"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := chosenText(u, idx(1<<62), dw.Value{}, 0, 0), "test: .debug_loclists+0xc: list index 4611686018427387904 is outside the section"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRangeLists(t *testing.T) {
	end4 := make([]byte, 16)
	for _, tt := range []struct {
		name    string
		version int
		list    []byte
		want    string
	}{
		{"offset pairs", 5, dwarftest.Cat(dw.RleOffsetPair, 0x20, 0x30, dw.RleOffsetPair, 0, 8, dw.RleEndOfList), "[20,30) [0,8)"},
		{"base address", 5, dwarftest.Cat(dw.RleBaseAddress, dwarftest.LE64(dwarftest.TextAddr+0x100), dw.RleOffsetPair, 0, 8, dw.RleEndOfList), "[100,108)"},
		{"base addressx", 5, dwarftest.Cat(dw.RleBaseAddressx, 0, dw.RleOffsetPair, 0, 8, dw.RleEndOfList), "[10,18)"},
		{"startx endx", 5, dwarftest.Cat(dw.RleStartxEndx, 0, 1, dw.RleEndOfList), "[10,20)"},
		{"startx length", 5, dwarftest.Cat(dw.RleStartxLength, 1, 4, dw.RleEndOfList), "[20,24)"},
		{"start end", 5, dwarftest.Cat(dw.RleStartEnd, dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(dwarftest.TextAddr+3), dw.RleEndOfList), "[0,3)"},
		{"start length", 5, dwarftest.Cat(dw.RleStartLength, dwarftest.LE64(dwarftest.TextAddr+2), 3, dw.RleEndOfList), "[2,5)"},
		{"empty ranges stay", 5, dwarftest.Cat(dw.RleOffsetPair, 4, 4, dw.RleEndOfList), "[4,4)"},
		{"empty list", 5, dwarftest.Cat(dw.RleEndOfList), ""},
		{"does not end", 5, dwarftest.Cat(dw.RleOffsetPair, 0, 8), "test: .debug_rnglists+0x0: the range list does not end"},
		{"cut short", 5, dwarftest.Cat(dw.RleStartEnd, 1, 2), "test: .debug_rnglists+0x0: the range list does not end"},
		{"unknown kind", 5, dwarftest.Cat(dw.RleOffsetPair, 0, 8, 0x0c), "test: .debug_rnglists+0x3: unknown entry kind 0x0c"},
		{"address index outside", 5, dwarftest.Cat(dw.RleStartxEndx, 0, 9, dw.RleEndOfList), "test: .debug_addr+0x8: address index 9 is outside the section"},
		{"base index outside", 5, dwarftest.Cat(dw.RleBaseAddressx, 9, dw.RleEndOfList), "test: .debug_addr+0x8: address index 9 is outside the section"},
		{"too many", 5, bytes.Repeat(dwarftest.Cat(dw.RleBaseAddressx, 0), dw.MaxEntries+1), "test: .debug_rnglists+0x0: the range list has more than 65536 entries"},
		{"DWARF 4", 4, dwarftest.Cat(dwarftest.LE64(0x20), dwarftest.LE64(0x30), dwarftest.LE64(0), dwarftest.LE64(8), end4), "[20,30) [0,8)"},
		{"DWARF 4 base", 4, dwarftest.Cat(dwarftest.LE64(^uint64(0)), dwarftest.LE64(dwarftest.TextAddr+0x100), dwarftest.LE64(1), dwarftest.LE64(8), end4), "[101,108)"},
		{"DWARF 4 does not end", 4, dwarftest.Cat(dwarftest.LE64(0x20), dwarftest.LE64(0x30)), "test: .debug_ranges+0x0: the range list does not end"},
		{"DWARF 4 too many", 4, bytes.Repeat(dwarftest.Cat(dwarftest.LE64(1), dwarftest.LE64(2)), dw.MaxEntries+1), "test: .debug_ranges+0x0: the range list has more than 65536 entries"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := listImage(t, tt.version, tt.list)
			r, err := u.RangeList(dw.Value{Form: dw.FormSecOffset})
			got := ""
			for i, x := range r {
				if i > 0 {
					got += " "
				}
				got += fmt.Sprintf("[%x,%x)", x.Lo-dwarftest.TextAddr, x.Hi-dwarftest.TextAddr)
			}
			if err != nil {
				got += err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestStart: where code is entered, by each form of attributes.
func TestStart(t *testing.T) {
	list := dwarftest.Cat(dw.RleOffsetPair, 0x20, 0x30, dw.RleOffsetPair, 0, 8, dw.RleEndOfList)
	u := listImage(t, 5, list)
	addr := func(a uint64) dw.Value { return dw.Value{Form: dw.FormAddr, U: dwarftest.TextAddr + a} }
	for _, tt := range []struct {
		name string
		a    dw.PCs
		want string
	}{
		{"low_pc", dw.PCs{Low: addr(4)}, "4"},
		{"entry_pc is an address", dw.PCs{Low: addr(4), Entry: addr(6)}, "6"},
		{"entry_pc is an offset from low_pc", dw.PCs{Low: addr(4), Entry: dw.Value{Form: dw.FormUdata, U: 3}}, "7"},
		{"first range, not the lowest", dw.PCs{Ranges: dw.Value{Form: dw.FormSecOffset}}, "20"},
		{"entry_pc beside ranges", dw.PCs{Ranges: dw.Value{Form: dw.FormSecOffset}, Entry: addr(2)}, "2"},
		{"entry_pc is an offset beside ranges", dw.PCs{Ranges: dw.Value{Form: dw.FormSecOffset}, Entry: dw.Value{Form: dw.FormData1, U: 2}}, "22"},
		{"entry_pc by index", dw.PCs{Entry: dw.Value{Form: dw.FormAddrx, U: 1}}, "20"},
		{"nothing", dw.PCs{}, "none"},
		{"empty ranges", dw.PCs{Ranges: dw.Value{Form: dw.FormSecOffset, U: uint64(len(list) - 1)}}, "none"},
		{"damaged ranges", dw.PCs{Ranges: dw.Value{Form: dw.FormSecOffset, U: 1000}}, "test: .debug_rnglists+0x3e8: the range list does not end"},
		{"low_pc of another class", dw.PCs{Low: dw.Value{Form: dw.FormString}}, "test: form 0x8 is no address"},
	} {
		got := "none"
		a, ok, err := u.Start(&tt.a)
		if err != nil {
			got = err.Error()
		} else if ok {
			got = fmt.Sprintf("%x", a-dwarftest.TextAddr)
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestEntryOfRanges is TestStart for a whole site: DW_AT_ranges beside
// DW_AT_entry_pc in an inlined instance, with a view.
func TestEntryOfRanges(t *testing.T) {
	abstract := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "inner"), dwarftest.At(dw.AttrInline, dw.FormData1, 1)}}
	inlined := &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: []dwarftest.Attr{
		dwarftest.At(dw.AttrAbstractOrigin, dw.FormRef4, abstract), dwarftest.At(dw.AttrRanges, dw.FormSecOffset, 0), dwarftest.At(dw.AttrEntrypc, dw.FormUdata, 4),
		dwarftest.At(dw.AttrGNUEntryView, dw.FormUdata, 3), dwarftest.At(dw.AttrCallLine, dw.FormData1, 7)}}
	outer := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
		dwarftest.At(dw.AttrName, dw.FormString, "outer"), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), dwarftest.At(dw.AttrHighpc, dw.FormData1, 0x40)}, Kids: []*dwarftest.DIE{inlined}}
	list := dwarftest.Cat(dw.RleOffsetPair, 0x20, 0x30, dw.RleOffsetPair, 0, 8, dw.RleEndOfList)
	img := testImage(t, []dwarftest.CU{{Version: 5, Root: dwarftest.Root(abstract, outer)}}, dwarftest.Debug(".debug_rnglists", list))
	s := sitesOf(t, img, "inner", 1)[0]
	if s.Addr != dwarftest.TextAddr+0x24 || s.View != 3 || s.Callers[0].Function != "outer" || s.CallLine != 7 {
		t.Errorf("got %#x:%d in %v from line %d, want %#x:3 in outer from line 7", s.Addr, s.View, s.Callers, s.CallLine, dwarftest.TextAddr+0x24)
	}
}
