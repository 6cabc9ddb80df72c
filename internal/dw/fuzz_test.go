package dw_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// seeds adds a section of each small image that has it.
func seeds(f *testing.F, section string, add func([]byte)) {
	f.Helper()
	for _, name := range []string{"lib-gcc12-O2-dwarf5.elf", "run-clang14-O2-dwarf5.exe", "run-gcc12-O2-dwarf5.exe", "basic-clang14-O2-dwarf4.elf"} {
		data, err := fixtures.Bytes(name)
		dwarftest.Must(err)
		if i := bytes.Index(data, []byte(section)); i < 0 {
			continue
		}
		d := dwarftest.Open(f, name, data)
		for part, b := range map[string][]byte{
			".debug_line": d.Line, ".debug_loclists": d.Loclists, ".debug_loc": d.Loc, ".debug_rnglists": d.Rnglists,
			".debug_ranges": d.Ranges, ".debug_frame": d.Frame, ".eh_frame": d.EhFrame,
		} {
			if part == section && len(b) > 0 && len(b) < 1<<14 {
				add(bytes.Clone(b))
			}
		}
	}
}

// data returns the debug information of an image that is one unit, which has code at TextAddr, and more
// sections.
func data(t testing.TB, version int, attrs []dwarftest.Attr, more map[string][]byte) *dw.Data {
	t.Helper()
	var w dwarftest.Writer
	root := dwarftest.Root()
	root.Attrs = append(root.Attrs, attrs...)
	w.Add(dwarftest.CU{Version: version, Root: root})
	more[".debug_info"], more[".debug_abbrev"] = w.Info, w.Abbrev
	return opened(t, more)
}

// opened returns the debug information in sections.
func opened(t testing.TB, sections map[string][]byte) *dw.Data {
	t.Helper()
	return dw.New(dw.Sections{Path: "test", WordSize: 8, EhFrameAddr: dwarftest.TextAddr + 0x10000,
		Errorf: func(section string, off uint64, format string, args ...any) error {
			return fmt.Errorf("%s+%#x: %s", section, off, fmt.Sprintf(format, args...))
		}}, sections)
}

// unitOf returns the one unit.
func unitOf(t testing.TB, d *dw.Data) *dw.Unit {
	t.Helper()
	dwarftest.Must(d.ReadUnits())
	dwarftest.Must(d.Units[0].Load())
	return &d.Units[0]
}

// FuzzLines: rows are in order, each byte of a line table makes at most one, and those of code are some of
// all.
func FuzzLines(f *testing.F) {
	seeds(f, ".debug_line", func(d []byte) { f.Add(d) })
	f.Add(lineProgram(0, 9, 2, dwarftest.LE64(dwarftest.TextAddr), 1, 2, 8, 0, 1, 1))
	f.Fuzz(func(t *testing.T, d []byte) {
		u := unitOf(t, data(t, 5, []dwarftest.Attr{dwarftest.At(dw.AttrStmtList, dw.FormSecOffset, 0)}, map[string][]byte{".debug_line": d}))
		rows, err := u.Rows()
		all := 0
		var table dw.LineTable
		if err == nil {
			dwarftest.Must(u.ReadLineTable(&table))
			dwarftest.Must(u.EachRow(&table, func(*dw.Row) { all++ }))
		}
		if !slices.IsSortedFunc(rows, func(a, b dw.Row) int { return cmp.Compare(a.Addr, b.Addr) }) {
			t.Error("the rows are not in order")
		}
		if len(rows) > all || all > len(d) {
			t.Errorf("%d rows of %d in %d bytes", len(rows), all, len(d))
		}
		for i := range uint64(len(d)) {
			u.File(i)
		}
		u.File(1<<64 - 1)
	})
}

// FuzzLists: lists of locations and ranges end, their expressions are in their section, and no range ends
// before it begins.
func FuzzLists(f *testing.F) {
	for _, s := range []string{".debug_loclists", ".debug_loc", ".debug_rnglists", ".debug_ranges"} {
		seeds(f, s, func(d []byte) {
			for _, off := range []uint64{0, 12, 16, uint64(len(d) / 2)} {
				f.Add(d, off, s == ".debug_loclists" || s == ".debug_rnglists", uint64(0))
			}
		})
	}
	f.Fuzz(func(t *testing.T, d []byte, off uint64, five bool, views uint64) {
		version := 4
		if five {
			version = 5
		}
		u := unitOf(t, data(t, version, nil, map[string][]byte{
			".debug_loclists": d, ".debug_loc": d, ".debug_rnglists": d, ".debug_ranges": d, ".debug_addr": d,
		}))
		for _, form := range []dw.Form{dw.FormSecOffset, dw.FormLoclistx, dw.FormRnglistx} {
			l := u.Locations(dw.Value{U: off, Form: form}, dw.Value{U: views, Form: dw.FormSecOffset})
			n := 0
			for e := (dw.LocEntry{}); l.Next(&e); n++ {
				if e.Off > uint64(len(d)) || uint64(len(e.Expr)) > uint64(len(d))-e.Off || !bytes.Equal(e.Expr, d[e.Off:e.Off+uint64(len(e.Expr))]) {
					t.Fatalf("an expression at %#x, %d bytes long, in a section of %d", e.Off, len(e.Expr), len(d))
				}
			}
			ranges, _ := u.RangeList(dw.Value{U: off, Form: form})
			for _, r := range ranges {
				if r.Hi < r.Lo {
					t.Fatalf("%#x", r)
				}
			}
			if n > len(d) || len(ranges) > len(d) {
				t.Fatalf("%d locations and %d ranges in %d bytes", n, len(ranges), len(d))
			}
		}
	})
}

// FuzzFrames: frame descriptions give a rule or an error at each address that is in them, the same each time, and by the table that is kept.
// A table of something else is an error or none.
func FuzzFrames(f *testing.F) {
	seeds(f, ".debug_frame", func(d []byte) { f.Add(d, false) })
	seeds(f, ".eh_frame", func(d []byte) { f.Add(d, true) })
	f.Fuzz(func(t *testing.T, d []byte, eh bool) {
		name := ".debug_frame"
		if eh {
			name = ".eh_frame"
		}
		first, second, kept, wrong := data(t, 5, nil, map[string][]byte{name: d}), data(t, 5, nil, map[string][]byte{name: d}),
			data(t, 5, nil, map[string][]byte{name: d}), data(t, 5, nil, map[string][]byte{name: d})
		kept.UseFrameTable(second.FrameTable)
		wrong.UseFrameTable(func() []byte { return d[:len(d)&^15] })
		addrs := []uint64{0, dwarftest.TextAddr, dwarftest.TextAddr + 1, 1<<64 - 1}
		for at := 0; at+8 <= len(d) && at < 4096; at += 4 {
			addrs = append(addrs, binary.LittleEndian.Uint64(d[at:]), dwarftest.TextAddr+0x10000+uint64(at)+uint64(int64(int32(binary.LittleEndian.Uint32(d[at:])))))
		}
		for _, addr := range addrs {
			rule, ok, err := first.CFA(addr)
			again, ok2, err2 := second.CFA(addr)
			if ok != ok2 || (err == nil) != (err2 == nil) || rule.Reg != again.Reg || rule.Off != again.Off || !bytes.Equal(rule.Expr, again.Expr) {
				t.Fatalf("%#x: %+v %v %v, then %+v %v %v", addr, rule, ok, err, again, ok2, err2)
			}
			again, ok2, err2 = kept.CFA(addr)
			if ok != ok2 || (err == nil) != (err2 == nil) || rule.Reg != again.Reg || rule.Off != again.Off || !bytes.Equal(rule.Expr, again.Expr) {
				t.Fatalf("%#x: %+v %v %v, by the kept table %+v %v %v", addr, rule, ok, err, again, ok2, err2)
			}
			_, _, _ = wrong.CFA(addr)
			if _, is, err := first.FrameOf(addr); err == nil && ok && !is {
				t.Fatalf("%#x: a rule of no frame", addr)
			}
			_, _ = first.SteadyFrame(addr)
		}
	})
}

// FuzzEntries: whatever abbreviations say, entries and their attributes come one after the other, and end
// within their unit.
func FuzzEntries(f *testing.F) {
	for _, name := range []string{"lib-gcc12-O2-dwarf5.elf", "run-clang14-O2-dwarf5.exe"} {
		file, err := fixtures.Bytes(name)
		dwarftest.Must(err)
		d := dwarftest.Open(f, name, file)
		f.Add(d.Info, d.Abbrev)
	}
	f.Fuzz(func(t *testing.T, info, abbrev []byte) {
		d := opened(t, map[string][]byte{".debug_info": info, ".debug_abbrev": abbrev, ".debug_str_offsets": info, ".debug_addr": info, ".debug_str": abbrev})
		if d.ReadUnits() != nil {
			return
		}
		n := 0
		for i := range d.Units {
			u := &d.Units[i]
			if u.Off >= u.First || u.First > u.End || u.End > uint64(len(info)) || i > 0 && u.Off < d.Units[i-1].End {
				t.Fatalf("unit %d is at %#x, %#x to %#x", i, u.Off, u.First, u.End)
			}
			if u.Load() != nil {
				continue
			}
			var walk func(e dw.Entry) (bool, error)
			walk = func(e dw.Entry) (bool, error) {
				if n++; n > len(info) {
					t.Fatal("more entries than bytes")
				}
				b := e.Data()
				for _, at := range e.Specs() {
					from := b.P
					v := u.ReadAttr(&b, at)
					if b.Bad {
						return false, nil
					}
					if b.P < from || uint64(b.P) > u.End {
						t.Fatalf("the value of %v is at %#x to %#x in a unit that ends at %#x", at.Name, from, b.P, u.End)
					}
					u.Text(v)
				}
				return true, e.Children(walk)
			}
			if root, err := u.Entry(u.First); err == nil && !root.IsEnd() {
				_, _ = walk(root)
			}
		}
	})
}

// FuzzPads: where exceptions lead is known or not.
func FuzzPads(f *testing.F) {
	f.Add([]byte{0xff, 0xff, 1, 4, 0, 4, 8, 0}, []byte{})
	f.Fuzz(func(t *testing.T, except, frames []byte) {
		d := data(t, 5, nil, map[string][]byte{".gcc_except_table": except, ".eh_frame": frames})
		pads, err := d.LandingPads(0, 1<<64-1)
		if err == nil && len(pads) > len(except)*max(1, len(frames)) {
			t.Fatalf("%d pads", len(pads))
		}
	})
}
