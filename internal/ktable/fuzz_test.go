package ktable_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/ktable"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// FuzzTables: whatever a kernel's tables say, and the symbols around them, they are read or damaged, and
// edges begin where they are said to.
func FuzzTables(f *testing.F) {
	good, err := fixtures.Bytes("basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		f.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(good))
	if err != nil {
		f.Fatal(err)
	}
	var places []int // of bytes in tables and symbols
	for _, s := range file.Sections {
		if s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_PROGBITS && s.Flags&elf.SHF_ALLOC != 0 && s.Size < 4096 {
			for at := range int(s.FileSize) {
				places = append(places, int(s.Offset)+at)
			}
		}
	}
	for i := range 40 {
		f.Add(uint32(i*len(places)/40), uint64(0x1000)<<i)
	}
	f.Fuzz(func(t *testing.T, place uint32, value uint64) {
		data := bytes.Clone(good)
		if at := places[int(place)%len(places)]; at+8 <= len(data) {
			binary.LittleEndian.PutUint64(data[at:], value)
		}
		img, err := image.FromBytes("test", data, nil)
		if err != nil {
			return
		}
		marks, err := ktable.Find(img)
		if err != nil {
			return
		}
		_, _ = marks.Patches()
		marks.Release()
		tables, err := marks.Tables()
		if err != nil {
			return
		}
		for _, s := range img.Sections() {
			edges, err := tables.Edges(s.Addr, s.Addr+s.Size)
			if err != nil {
				continue
			}
			for _, e := range edges {
				if e.From < s.Addr || e.From >= s.Addr+s.Size {
					t.Errorf("an edge from %#x, not from %#x to %#x", e.From, s.Addr, s.Addr+s.Size)
				}
			}
			tables.Stops(s.Addr)
			tables.Indirect(s.Addr)
		}
	})
}
