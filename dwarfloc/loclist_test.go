package dwarfloc

import (
	"bytes"
	"fmt"
	"testing"
)

// loc5 is an entry's expression with its length: the register n.
func loc5(n int) []byte { return cat(1, xReg0+n) }

func loc4(n int) []byte { return cat(le16(1), xReg0+n) }

// listImage is an image of one unit of a DWARF version with base address textAddr
// whose location and range lists are d.
func listImage(t testing.TB, version int, d []byte) *unit {
	addrs := cat(le32(0), 5, 0, 8, 0, le64(textAddr+0x10), le64(textAddr+0x20))
	names := [][2]string{{".debug_loc", ".debug_ranges"}, {".debug_loclists", ".debug_rnglists"}}[max(version-4, 0)]
	img := testImage(t, []cu{{version: version, root: unitRoot()}},
		debugSection(names[0], d), debugSection(names[1], d), debugSection(".debug_addr", addrs))
	return &img.units[0]
}

// chosenText prints what a list has for an address (relative to the text) and view.
func chosenText(u *unit, loc, views value, addr, view uint64) string {
	c, err := u.choose(loc, views, textAddr+addr, view)
	if err != nil {
		return err.Error()
	}
	if c.rule == RuleNone {
		return fmt.Sprintf("none, others %v", c.others)
	}
	ev := &evaluator{u: u, site: &Site{u: u, Addr: textAddr + addr}}
	l, st := ev.locate(c.expr, c.sec, c.off)
	if st != nil {
		return st.reason.String()
	}
	return c.rule.String() + " " + l.Text(u.img.arch)
}

func TestLocationLists(t *testing.T) {
	off := func(n uint64) value { return value{form: formSecOffset, u: n} }
	end := byte(lleEndOfList)
	pair := func(lo, hi, reg int) []byte { return cat(lleOffsetPair, uleb(uint64(lo)), uleb(uint64(hi)), loc5(reg)) }
	pair4 := func(lo, hi uint64, reg int) []byte { return cat(le64(lo), le64(hi), loc4(reg)) }
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
		{"offset pairs", 5, nil, cat(pair(0, 8, 0), pair(8, 16, 1), end), []ask{
			{0, 0, "address %rax"}, {7, 9, "address %rax"}, {8, 0, "address %rdx"}, {15, 0, "address %rdx"}, {16, 0, "none, others true"}}},
		{"base address", 5, nil, cat(lleBaseAddress, le64(textAddr+0x100), pair(0, 8, 0), end), []ask{
			{0x100, 0, "address %rax"}, {0, 0, "none, others true"}}},
		{"base addressx", 5, nil, cat(lleBaseAddressx, 1, pair(0, 8, 0), end), []ask{{0x20, 0, "address %rax"}, {0x10, 0, "none, others true"}}},
		{"startx endx", 5, nil, cat(lleStartxEndx, 0, 1, loc5(2), end), []ask{{0x10, 0, "address %rcx"}, {0x1f, 0, "address %rcx"}, {0x20, 0, "none, others true"}}},
		{"startx length", 5, nil, cat(lleStartxLength, 1, 4, loc5(2), end), []ask{{0x23, 0, "address %rcx"}, {0x24, 0, "none, others true"}}},
		{"start end", 5, nil, cat(lleStartEnd, le64(textAddr+1), le64(textAddr+3), loc5(3), end), []ask{{2, 0, "address %rbx"}, {3, 0, "none, others true"}}},
		{"start length", 5, nil, cat(lleStartLength, le64(textAddr+1), 2, loc5(3), end), []ask{{2, 0, "address %rbx"}, {3, 0, "none, others true"}}},
		{"default location", 5, nil, cat(lleDefaultLocation, loc5(5), pair(0, 8, 0), end), []ask{{4, 0, "address %rax"}, {8, 0, "default %rdi"}}},
		{"empty list", 5, nil, cat(end), []ask{{0, 0, "none, others false"}}},
		{"empty range without views", 5, nil, cat(pair(4, 4, 0), end), []ask{{4, 0, "none, others true"}}},
		{"first of two that cover", 5, nil, cat(pair(0, 8, 0), pair(0, 8, 1), end), []ask{{4, 0, "address %rax"}}},

		// Views: three entries at one address, of views 0 to 2, 2 to 5, 5 to the next address.
		{"views", 5, []byte{0, 2, 2, 5, 5, 0}, cat(pair(4, 4, 0), pair(4, 4, 1), pair(4, 9, 2), end), []ask{
			{4, 0, "view %rax"}, {4, 1, "view %rax"}, {4, 2, "view %rdx"}, {4, 4, "view %rdx"}, {4, 5, "view %rcx"}, {4, 9, "view %rcx"},
			{5, 0, "view %rcx"}, {8, 3, "view %rcx"}, {9, 0, "none, others true"}, {3, 0, "none, others true"}}},
		{"the end has a view", 5, []byte{0, 3}, cat(pair(4, 9, 0), end), []ask{{9, 2, "view %rax"}, {9, 3, "none, others true"}}},
		{"later view", 5, []byte{2, 4, 6, 8}, cat(pair(4, 4, 0), pair(4, 9, 1), end), []ask{
			{4, 0, "later-view %rax"}, {4, 1, "later-view %rax"}, {4, 5, "later-view %rdx"}, {5, 0, "view %rdx"}}},
		{"an exact entry goes before an earlier later view", 5, []byte{5, 0, 0, 0}, cat(pair(4, 8, 0), pair(0, 8, 1), end), []ask{{4, 1, "view %rdx"}}},
		{"a later view goes before the default", 5, []byte{5, 0}, cat(lleDefaultLocation, loc5(5), pair(4, 8, 0), end), []ask{{4, 1, "later-view %rax"}}},
		{"view pairs in the list", 5, nil, cat(lleGNUViewPair, 0, 2, pair(4, 4, 0), lleGNUViewPair, 2, 7, pair(4, 4, 1), pair(6, 8, 2), end), []ask{
			{4, 1, "view %rax"}, {4, 6, "view %rdx"}, {4, 7, "none, others true"}, {6, 3, "address %rcx"}}},
		{"no view for base and default entries", 5, []byte{1, 3}, cat(lleBaseAddressx, 0, lleDefaultLocation, loc5(5), pair(0, 0, 0), end), []ask{
			{0x10, 2, "view %rax"}, {0x10, 3, "default %rdi"}}},
		{"view list too short", 5, []byte{0, 2}, cat(pair(4, 4, 0), pair(4, 4, 1), end), []ask{
			{4, 1, "view %rax"}, {4, 3, "test: .debug_loclists+0x2: the list has more entries than its view list (DW_AT_GNU_locviews)"}}},

		{"does not end", 5, nil, cat(pair(0, 8, 0)), []ask{{4, 0, "address %rax"}, {8, 0, "test: .debug_loclists+0x0: the location list does not end"}}},
		{"entry cut short", 5, nil, cat(lleOffsetPair, 0, 8, 4, 1), []ask{{0, 0, "test: .debug_loclists+0x0: the location list does not end"}}},
		{"address cut short", 5, nil, cat(lleStartEnd, 1, 2, 3), []ask{{0, 0, "test: .debug_loclists+0x0: the location list does not end"}}},
		{"unknown kind", 5, nil, cat(pair(0, 8, 0), 0x0c), []ask{{9, 0, "test: .debug_loclists+0x5: unknown entry kind 0x0c"}}},
		{"address index outside", 5, nil, cat(lleStartxEndx, 0, 9, loc5(0), end), []ask{{0, 0, "test: .debug_addr+0x8: address index 9 is outside the section"}}},
		{"too many entries", 5, nil, bytes.Repeat(cat(lleBaseAddressx, 0), maxEntries+1), []ask{{0, 0, "test: .debug_loclists+0x0: the location list has more than 65536 entries"}}},

		{"DWARF 4", 4, nil, cat(pair4(0, 8, 0), pair4(8, 16, 1), end4), []ask{{0, 0, "address %rax"}, {8, 0, "address %rdx"}, {16, 0, "none, others true"}}},
		{"DWARF 4 base", 4, nil, cat(le64(^uint64(0)), le64(textAddr+0x100), pair4(1, 8, 0), end4), []ask{{0x101, 0, "address %rax"}, {1, 0, "none, others true"}}},
		{"DWARF 4 views", 4, []byte{0, 2, 2, 5}, cat(pair4(4, 4, 0), pair4(4, 4, 1), end4), []ask{
			{4, 1, "view %rax"}, {4, 3, "view %rdx"}, {4, 5, "none, others true"}}},
		{"DWARF 4 later view", 4, []byte{2, 5}, cat(pair4(4, 4, 0), end4), []ask{{4, 1, "later-view %rax"}}},
		{"DWARF 4 does not end", 4, nil, cat(pair4(0, 8, 0)), []ask{{8, 0, "test: .debug_loc+0x0: the location list does not end"}}},
		{"DWARF 4 expression cut short", 4, nil, cat(le64(0), le64(8), le16(9), 1), []ask{{0, 0, "test: .debug_loc+0x0: the location list does not end"}}},
		{"DWARF 4 empty", 4, nil, end4, []ask{{0, 0, "none, others false"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := listImage(t, tt.version, cat(tt.views, tt.list))
			views := value{}
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
	u := listImage(t, 5, nil)
	if got, want := chosenText(u, off(77), value{}, 0, 0), "test: .debug_loclists+0x4d: the location list does not end"; got != want {
		t.Errorf("an offset outside the section: got %q, want %q", got, want)
	}
}

// TestListForm: an attribute of another class is no place in a list.
func TestListForm(t *testing.T) {
	u := listImage(t, 5, cat(lleOffsetPair, 0, 8, loc5(0), lleEndOfList))
	if got, want := chosenText(u, value{form: formString}, value{}, 0, 0), "test: .debug_info+0x0: form 0x8 is no location"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestListIndex looks up lists by index, with and without DW_AT_loclists_base.
func TestListIndex(t *testing.T) {
	head := cat(le32(0), 5, 0, 8, 0, le32(2)) // 12 bytes, then two offsets from there
	d := cat(head, le32(8), le32(14), lleOffsetPair, 0, 8, loc5(0), lleEndOfList)
	d = cat(d, lleOffsetPair, 0, 8, loc5(1), lleEndOfList)
	u := listImage(t, 5, d)
	idx := func(n uint64) value { return value{form: formLoclistx, u: n} }
	for _, base := range []uint64{0, 12} {
		u.locBase = base
		// The first list starts 8 bytes behind the base; its entry is 5 bytes and the
		// end one, so the second starts at 14.
		if got := chosenText(u, idx(0), value{}, 0, 0); got != "address %rax" {
			t.Errorf("base %d, index 0: %s", base, got)
		}
		if got := chosenText(u, idx(1), value{}, 0, 0); got != "address %rdx" {
			t.Errorf("base %d, index 1: %s", base, got)
		}
	}
	if got, want := chosenText(u, idx(99), value{}, 0, 0), "test: .debug_loclists+0xc: list index 99 is outside the section"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := chosenText(u, idx(1<<62), value{}, 0, 0), "test: .debug_loclists+0xc: list index 4611686018427387904 is outside the section"; got != want {
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
		{"offset pairs", 5, cat(rleOffsetPair, 0x20, 0x30, rleOffsetPair, 0, 8, rleEndOfList), "[20,30) [0,8)"},
		{"base address", 5, cat(rleBaseAddress, le64(textAddr+0x100), rleOffsetPair, 0, 8, rleEndOfList), "[100,108)"},
		{"base addressx", 5, cat(rleBaseAddressx, 0, rleOffsetPair, 0, 8, rleEndOfList), "[10,18)"},
		{"startx endx", 5, cat(rleStartxEndx, 0, 1, rleEndOfList), "[10,20)"},
		{"startx length", 5, cat(rleStartxLength, 1, 4, rleEndOfList), "[20,24)"},
		{"start end", 5, cat(rleStartEnd, le64(textAddr), le64(textAddr+3), rleEndOfList), "[0,3)"},
		{"start length", 5, cat(rleStartLength, le64(textAddr+2), 3, rleEndOfList), "[2,5)"},
		{"empty ranges stay", 5, cat(rleOffsetPair, 4, 4, rleEndOfList), "[4,4)"},
		{"empty list", 5, cat(rleEndOfList), ""},
		{"does not end", 5, cat(rleOffsetPair, 0, 8), "test: .debug_rnglists+0x0: the range list does not end"},
		{"cut short", 5, cat(rleStartEnd, 1, 2), "test: .debug_rnglists+0x0: the range list does not end"},
		{"unknown kind", 5, cat(rleOffsetPair, 0, 8, 0x0c), "test: .debug_rnglists+0x3: unknown entry kind 0x0c"},
		{"address index outside", 5, cat(rleStartxEndx, 0, 9, rleEndOfList), "test: .debug_addr+0x8: address index 9 is outside the section"},
		{"base index outside", 5, cat(rleBaseAddressx, 9, rleEndOfList), "test: .debug_addr+0x8: address index 9 is outside the section"},
		{"too many", 5, bytes.Repeat(cat(rleBaseAddressx, 0), maxEntries+1), "test: .debug_rnglists+0x0: the range list has more than 65536 entries"},
		{"DWARF 4", 4, cat(le64(0x20), le64(0x30), le64(0), le64(8), end4), "[20,30) [0,8)"},
		{"DWARF 4 base", 4, cat(le64(^uint64(0)), le64(textAddr+0x100), le64(1), le64(8), end4), "[101,108)"},
		{"DWARF 4 does not end", 4, cat(le64(0x20), le64(0x30)), "test: .debug_ranges+0x0: the range list does not end"},
		{"DWARF 4 too many", 4, bytes.Repeat(cat(le64(1), le64(2)), maxEntries+1), "test: .debug_ranges+0x0: the range list has more than 65536 entries"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := listImage(t, tt.version, tt.list)
			r, err := u.rangeList(value{form: formSecOffset})
			got := ""
			for i, x := range r {
				if i > 0 {
					got += " "
				}
				got += fmt.Sprintf("[%x,%x)", x.lo-textAddr, x.hi-textAddr)
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
	list := cat(rleOffsetPair, 0x20, 0x30, rleOffsetPair, 0, 8, rleEndOfList)
	u := listImage(t, 5, list)
	addr := func(a uint64) value { return value{form: formAddr, u: textAddr + a} }
	for _, tt := range []struct {
		name string
		a    pcAttrs
		want string
	}{
		{"low_pc", pcAttrs{low: addr(4)}, "4"},
		{"entry_pc is an address", pcAttrs{low: addr(4), entry: addr(6)}, "6"},
		{"entry_pc is an offset from low_pc", pcAttrs{low: addr(4), entry: value{form: formUdata, u: 3}}, "7"},
		{"first range, not the lowest", pcAttrs{ranges: value{form: formSecOffset}}, "20"},
		{"entry_pc beside ranges", pcAttrs{ranges: value{form: formSecOffset}, entry: addr(2)}, "2"},
		{"entry_pc is an offset beside ranges", pcAttrs{ranges: value{form: formSecOffset}, entry: value{form: formData1, u: 2}}, "22"},
		{"entry_pc by index", pcAttrs{entry: value{form: formAddrx, u: 1}}, "20"},
		{"nothing", pcAttrs{}, "none"},
		{"empty ranges", pcAttrs{ranges: value{form: formSecOffset, u: uint64(len(list) - 1)}}, "none"},
		{"damaged ranges", pcAttrs{ranges: value{form: formSecOffset, u: 1000}}, "test: .debug_rnglists+0x3e8: the range list does not end"},
		{"low_pc of another class", pcAttrs{low: value{form: formString}}, "test: form 0x8 is no address"},
	} {
		got := "none"
		a, ok, err := u.start(&tt.a)
		if err != nil {
			got = err.Error()
		} else if ok {
			got = fmt.Sprintf("%x", a-textAddr)
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestEntryOfRanges is TestStart for a whole site: DW_AT_ranges beside
// DW_AT_entry_pc in an inlined instance, with a view.
func TestEntryOfRanges(t *testing.T) {
	abstract := &die{tag: tagSubprogram, attrs: []attribute{{attrName_, formString, "inner"}, {attrInline, formData1, 1}}}
	inlined := &die{tag: tagInlinedSubroutine, attrs: []attribute{
		{attrAbstractOrigin, formRef4, abstract}, {attrRanges, formSecOffset, 0}, {attrEntrypc, formUdata, 4},
		{attrGNUEntryView, formUdata, 3}, {attrCallLine, formData1, 7}}}
	outer := &die{tag: tagSubprogram, attrs: []attribute{
		{attrName_, formString, "outer"}, {attrLowpc, formAddr, uint64(textAddr)}, {attrHighpc, formData1, 0x40}}, kids: []*die{inlined}}
	list := cat(rleOffsetPair, 0x20, 0x30, rleOffsetPair, 0, 8, rleEndOfList)
	img := testImage(t, []cu{{version: 5, root: unitRoot(abstract, outer)}}, debugSection(".debug_rnglists", list))
	s := sitesOf(t, img, "inner", 1)[0]
	if s.Addr != textAddr+0x24 || s.View != 3 || s.Callers[0].Function != "outer" || s.CallLine != 7 {
		t.Errorf("got %#x:%d in %v from line %d, want %#x:3 in outer from line 7", s.Addr, s.View, s.Callers, s.CallLine, textAddr+0x24)
	}
}
