package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
)

// TestRelocationTables compares names with those of debug/elf.
func TestRelocationTables(t *testing.T) {
	for arch, table := range relocationTables {
		if len(table.types) == 0 {
			t.Errorf("%s has no relocations", arch)
		}
		seen := make(map[uint32]bool)
		for _, r := range table.types {
			if want := table.name(r.typ); r.name != want {
				t.Errorf("%s relocation %d: %s, debug/elf says %s", arch, r.typ, r.name, want)
			}
			if seen[r.typ] {
				t.Errorf("%s relocation %s is in the table twice", arch, r.name)
			}
			seen[r.typ] = true
		}
		if seen[uint32(elf.R_X86_64_GOTPCREL)] && arch == "amd64" {
			t.Error("R_X86_64_GOTPCREL is in the table, and debug information has none")
		}
	}
}

// TestChunks: relocations that are applied by several processors give what one
// gives, sorted or not.
func TestChunks(t *testing.T) {
	const n = 3*relaChunk + 5
	file := &elf.File{FileHeader: elf.FileHeader{Type: elf.ET_REL, Class: elf.ELFCLASS64, ByteOrder: binary.LittleEndian}}
	elfRelaSize := 24
	src := &source{path: "test", file: file}
	for _, swap := range []bool{false, true} {
		d := bytes.Repeat([]byte{0xee}, 8*n+3)
		relas := make([]byte, n*elfRelaSize)
		for i := range n {
			e := relas[i*elfRelaSize:]
			binary.LittleEndian.PutUint64(e, uint64(8*i))
			binary.LittleEndian.PutUint32(e[8:], uint32(elf.R_X86_64_32))
			binary.LittleEndian.PutUint64(e[16:], uint64(i))
		}
		if swap { // the first chunk writes into the last one's part
			binary.LittleEndian.PutUint64(relas, uint64(8*(n-1)))
			binary.LittleEndian.PutUint64(relas[(n-1)*elfRelaSize:], 0)
			binary.LittleEndian.PutUint64(relas[16:], n-1)
			binary.LittleEndian.PutUint64(relas[(n-1)*elfRelaSize+16:], 0)
		}
		r := relocator{src: src, form: src.form(), symbols: make([]relocSymbol, 1)}
		r.use(relocationTables["amd64"])
		sec := &elf.Section{SectionHeader: elf.SectionHeader{Name: ".debug_info"}}
		out, err := r.apply(&taken{sec: sec, d: d}, &elf.Section{SectionHeader: elf.SectionHeader{Name: ".rela.debug_info", Type: elf.SHT_RELA}}, relas)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if got := binary.LittleEndian.Uint64(out[8*i:]); got != 0xeeeeeeee<<32|uint64(i) {
				t.Fatalf("swapped %v: %#x at place %d", swap, got, i)
			}
		}
		if !bytes.Equal(out[8*n:], []byte{0xee, 0xee, 0xee}) {
			t.Errorf("swapped %v: the end was not copied: % x", swap, out[8*n:])
		}
	}
}

// TestInPlace: relocations that change what is there: first some bytes, then what they are after a relocation of each kind with a value.
func TestInPlace(t *testing.T) {
	form := elfForm{}
	for _, x := range []struct {
		kind         relocationKind
		value        uint64
		before, want []byte
	}{
		{addSix, 0x45, []byte{0xbf}, []byte{0x84}}, // 0x3f + 0x45, and the upper two bits stay
		{subtractSix, 1, []byte{0x80}, []byte{0xbf}},
		{setSix, 0x45, []byte{0xbf}, []byte{0x85}},
		{add, 0x10001, []byte{0xff, 0xff, 0xff}, []byte{0x00, 0x00, 0x01}},
		{subtract, 1, []byte{0x00, 0x00, 0x01}, []byte{0xff, 0xff, 0x00}},
		{addULEB, 0x90, []byte{0x80, 0x01}, []byte{0x90, 0x02}},
		{subtractULEB, 0x90, []byte{0x90, 0x02}, []byte{0x80, 0x01}},
		{addULEB, 1, []byte{0xff, 0x7f}, []byte{0x80, 0x00}}, // there is no third byte
		{setULEB, 5, []byte{0x80, 0x01}, []byte{0x85, 0x00}},
	} {
		got := bytes.Clone(x.before)
		if form.change(got, x.kind, x.value); !bytes.Equal(got, x.want) {
			t.Errorf("%d of %#x in % x: % x, want % x", x.kind, x.value, x.before, got, x.want)
		}
	}
}
