package dwarfloc

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/runs"
)

// TestSitesAreInCode: sections of a damaged file overlap, or end in the middle of a function. No site,
// line or way is where no instruction is, and no probe would be put there.
func TestSitesAreInCode(t *testing.T) {
	for _, tt := range []struct {
		name, image, section string
		field                int // offset in the section's header
		value                func(s *elf.Section) uint64
	}{
		{"data where code is", "basic-gcc12-O2-dwarf5.elf", ".init.data", 16, func(*elf.Section) uint64 { return 0xffffffff81002040 }},
		{"code is data", "basic-gcc12-O2-dwarf5.elf", ".init.text", 8, func(*elf.Section) uint64 { return uint64(elf.SHF_ALLOC) }},
		{"in a prologue", "object-gcc12-O0-dwarf5.o", ".text", 32, func(*elf.Section) uint64 { return 4 }},
		{"in a body", "run-gcc12-O2-dwarf5.exe", ".text", 32, func(s *elf.Section) uint64 { return s.Size / 2 }},
		{"in an unoptimized body", "basic-gcc12-O0-dwarf5.elf", ".text", 32, func(s *elf.Section) uint64 { return s.Size/2 + 1 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := bytes.Clone(fixture(t, tt.image))
			file, err := elf.NewFile(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range file.Sections {
				if s.Name == tt.section {
					at := int(binary.LittleEndian.Uint64(data[40:])) + 64*i + tt.field
					binary.LittleEndian.PutUint64(data[at:], tt.value(s))
				}
			}
			img, err := FromBytes("test", data, nil)
			if err != nil {
				t.Fatal(err)
			}
			check := func(what string, s *Site) {
				if sec := img.file.SectionAt(s.Addr); sec == nil || !sec.Exec {
					t.Errorf("%s %v at %#x is in no code", what, s, s.Addr)
				}
			}
			sites, err := img.Sites(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range sites {
				check("site", s)
			}
			lines, err := img.LineSites(t.Context(), sites, func(*Site, string, int) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range lines {
				check("line", s)
			}
			ways, err := img.waysOfSites(t.Context(), sites)
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range sites {
				for _, in := range s.waysIn(&ways[i], false) {
					check("way in", in)
				}
				for _, out := range s.waysOut(&ways[i]) {
					check("way out", out)
				}
			}
		})
	}
}

// TestNamelessHaveNoWays: what has no name is no site, whoever asks.
func TestNamelessHaveNoWays(t *testing.T) {
	pcs := func(lo uint64) []dwarftest.Attr {
		return []dwarftest.Attr{dwarftest.At(dw.AttrLowpc, dw.FormAddr, lo), dwarftest.At(dw.AttrHighpc, dw.FormData4, 0x10)}
	}
	abstract := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrInline, dw.FormData1, 1)}}
	inlined := &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: append(pcs(dwarftest.TextAddr+4), dwarftest.At(dw.AttrAbstractOrigin, dw.FormRef4, abstract))}
	f := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: append(pcs(dwarftest.TextAddr), dwarftest.At(dw.AttrName, dw.FormString, "f")), Kids: []*dwarftest.DIE{inlined}}
	img := testImage(t, []dwarftest.CU{{Version: 5, Root: dwarftest.Root(abstract, f)}})
	if sites, err := img.Sites(t.Context(), nil); len(sites) != 1 || err != nil {
		t.Errorf("%v, %v", sites, err)
	}
	err := img.eachWithWays(t.Context(), func(_ int, s *Site, w *runs.Ways) error {
		if w != nil {
			t.Errorf("%v has ways", s)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRangesDoNotEndBeforeTheyBegin, in any of the forms that ranges have.
func TestRangesDoNotEndBeforeTheyBegin(t *testing.T) {
	const lo, hi = dwarftest.TextAddr + 0x20, dwarftest.TextAddr + 0x10
	at := dwarftest.At
	low := at(dw.AttrLowpc, dw.FormAddr, uint64(lo))
	v4 := dwarftest.Debug(".debug_ranges", dwarftest.Cat(dwarftest.LE64(1<<64-1), dwarftest.LE64(0), dwarftest.LE64(lo), dwarftest.LE64(hi), dwarftest.LE64(0), dwarftest.LE64(0)))
	list := dwarftest.Cat(byte(dw.RleStartEnd), dwarftest.LE64(lo), dwarftest.LE64(hi), byte(dw.RleStartLength), dwarftest.LE64(lo), dwarftest.ULEB(1<<64-8), 0)
	v5 := dwarftest.Debug(".debug_rnglists", list)
	for _, tt := range []struct {
		name    string
		version int
		attrs   []dwarftest.Attr
		n       int
	}{
		{"address", 5, []dwarftest.Attr{low, at(dw.AttrHighpc, dw.FormAddr, uint64(hi))}, 1},
		{"length", 5, []dwarftest.Attr{low, at(dw.AttrHighpc, dw.FormData8, uint64(1<<64-0x10))}, 1},
		{"list of version 4", 4, []dwarftest.Attr{at(dw.AttrRanges, dw.FormSecOffset, 0)}, 1},
		{"list of version 5", 5, []dwarftest.Attr{at(dw.AttrRanges, dw.FormSecOffset, 0)}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: append([]dwarftest.Attr{at(dw.AttrName, dw.FormString, "f")}, tt.attrs...)}
			img := testImage(t, []dwarftest.CU{{Version: tt.version, Root: dwarftest.Root(f)}}, v4, v5)
			ranges, err := sitesOf(t, img, "f", 1)[0].Ranges()
			if err != nil || len(ranges) != tt.n {
				t.Fatal(ranges, err)
			}
			for _, r := range ranges {
				if r != [2]uint64{lo, lo} {
					t.Errorf("%#x", r)
				}
			}
		})
	}
}

// TestUnitsInOneOrder: with a kept index or without, units are asked in the same order. Of several that
// are damaged, the error is about the first.
func TestUnitsInOneOrder(t *testing.T) {
	var units []dwarftest.CU
	for i, names := range [][]string{{"a"}, {"b", "c"}, {"d", "e", "f"}} {
		var kids []*dwarftest.DIE
		for j, n := range names {
			kids = append(kids, &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
				dwarftest.At(dw.AttrName, dw.FormString, n), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr+0x100*i+0x10*j)), dwarftest.At(dw.AttrHighpc, dw.FormData4, 0x10),
			}})
		}
		units = append(units, dwarftest.CU{Version: 5, Root: dwarftest.Root(kids...)})
	}
	note := dwarftest.Section{Name: ".note.gnu.build-id", Type: elf.SHT_NOTE, Data: dwarftest.Cat(dwarftest.LE32(4), dwarftest.LE32(4), dwarftest.LE32(3), "GNU", 1, 2, 3, 4)}
	path, cache := filepath.Join(t.TempDir(), "image"), t.TempDir()
	dwarftest.Must(os.WriteFile(path, dwarftest.Image(units, note), 0o600))
	var orders [3][]int
	for i, dir := range []string{"", cache, cache} {
		img, err := Open(path, &Options{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		dwarftest.Must(img.prepare(true))
		if _, orders[i], err = img.r.Index.Candidates(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if used := img.r.Index.Kept != nil; used != (i == 2) {
			t.Errorf("a kept index is used: %v", used)
		}
		dwarftest.Must(img.Close())
	}
	if want := []int{2, 1, 0}; !slices.Equal(orders[0], want) || !slices.Equal(orders[1], want) || !slices.Equal(orders[2], want) {
		t.Errorf("%v", orders)
	}
}

// TestPairThatIsSmallerThanItsParts: how a Rust slice of one byte is passed is not known.
func TestPairThatIsSmallerThanItsParts(t *testing.T) {
	at := dwarftest.At
	word := &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "usize"), at(dw.AttrByteSize, dw.FormData1, 8), at(dw.AttrEncoding, dw.FormData1, dw.EncUnsigned)}}
	for _, size := range []int{1, 8, 15, 16} {
		pair := &dwarftest.DIE{Tag: dw.TagStructType, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "&[u32]"), at(dw.AttrByteSize, dw.FormData1, size)}}
		for i, name := range []string{"data_ptr", "length"} {
			pair.Kids = append(pair.Kids, &dwarftest.DIE{Tag: dw.TagMember, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, name), at(dw.AttrType, dw.FormRef4, word), at(dw.AttrDataMemberLoc, dw.FormData1, 8*i)}})
		}
		p := &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "p"), at(dw.AttrType, dw.FormRef4, pair),
			at(dw.AttrLocation, dw.FormExprloc, dwarftest.Cat(0x55, 0x93, 8, 0x54, 0x93, 8))}}
		f := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "f"), at(dw.AttrExternal, dw.FormFlagPresent, nil),
			at(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), at(dw.AttrHighpc, dw.FormData4, 0x10)}, Kids: []*dwarftest.DIE{p}}
		root := dwarftest.Root(word, pair, f)
		root.Attrs = append(root.Attrs, at(dw.AttrLanguage, dw.FormData1, dw.LangRust))
		img := testImage(t, []dwarftest.CU{{Version: 5, Root: root}})
		v, err := sitesOf(t, img, "f", 1)[0].Lookup("p")
		if err != nil {
			t.Fatal(err)
		}
		for i, piece := range v.Loc.Pieces {
			if piece.BitSize == 0 {
				t.Errorf("%d bytes: piece %d of %s has no bits", size, i, v.Loc.Text(img.Arch()))
			}
		}
	}
}
