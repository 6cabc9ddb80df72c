package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/elfnote"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// FuzzFile: whatever the headers of a file say, sections are in the file or unpacked within their budget,
// a symbol that is found is in code, and symbols that are kept answer as those that were read.
func FuzzFile(f *testing.F) {
	for _, name := range []string{"lib-gcc12-O2-dwarf5.elf", "object-gcc12-O0-dwarf5.o", "object-clang14-arm64-O0-dwarf5.o", "run-gcc12-O2-dwarf5.exe"} {
		data, err := fixtures.Bytes(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 1 << 20
		img, err := FromBytes("test", data, &Options{MaxUnpacked: most})
		if err != nil {
			return
		}
		sections, err := img.DebugSections()
		all := 0
		for _, d := range sections {
			all += len(d)
		}
		// Relocated sections are copies; several sections can be at one place.
		if err == nil && all > most+2*len(data)*max(1, len(sections)) {
			t.Errorf("%d bytes of debug information in a file of %d", all, len(data))
		}
		for _, s := range img.Sections() {
			_, _ = img.FileOffset(s.Addr)
			if b, err := img.Bytes(s.Addr, s.Size); err == nil && uint64(len(b)) != s.Size {
				t.Errorf("%d bytes of %d", len(b), s.Size)
			}
			if name, lo, hi, ok := img.CodeRange(s.Addr); ok && (lo > s.Addr || hi <= s.Addr) {
				t.Errorf("the code of %q at %#x is %#x to %#x", name, s.Addr, lo, hi)
			}
		}
		kept, err := img.SymbolIndex()
		if err != nil {
			return
		}
		again, err := FromBytes("test", data, nil)
		if err != nil || !again.UseSymbolIndex(bytes.Clone(kept)) {
			t.Fatalf("its own symbols are refused: %v", err)
		}
		for s := range img.Symbols() {
			if img.SectionAt(s.Addr) == nil && img.SectionAt(s.Addr-1) == nil { // the end is a label too
				t.Errorf("%q at %#x is in no section", s.Name, s.Addr)
			}
			if a, b := img.SymbolAt(s.Addr, s.Name), again.SymbolAt(s.Addr, s.Name); a == nil || b == nil || *a != *b {
				t.Errorf("%v, and kept %v", a, b)
			}
		}
	})
}

// FuzzSymbolIndex: symbols that were kept are used, or not, but never lead out of anything.
func FuzzSymbolIndex(f *testing.F) {
	data, err := fixtures.Bytes("run-gcc12-O2-dwarf5.exe")
	if err != nil {
		f.Fatal(err)
	}
	good, err := FromBytes("test", data, nil)
	if err != nil {
		f.Fatal(err)
	}
	kept, err := good.SymbolIndex()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Clone(kept))
	f.Fuzz(func(t *testing.T, kept []byte) {
		img, err := FromBytes("test", data, nil)
		if err != nil {
			t.Fatal(err)
		}
		img.UseSymbolIndex(kept)
		n := 0
		for s := range img.Symbols() {
			n++
			img.SymbolAt(s.Addr, s.Name)
			img.CodeRange(s.Addr)
		}
		if n > len(kept)+len(data) {
			t.Errorf("%d symbols in %d bytes", n, len(kept))
		}
	})
}

// FuzzXZ: what the check lets pass asks for no large dictionary, in any of its blocks.
func FuzzXZ(f *testing.F) {
	f.Add(xzFile(xzBlock(0), 13))
	f.Add(xzFile(append(xzBlock(0), xzBlock(40)...), 13, 13))
	f.Add(xzFile(append(xzBlock(0), xzBlock(40)...), 29))
	f.Fuzz(func(t *testing.T, d []byte) {
		if checkXZ(d) != nil {
			return
		}
		b := newBudget(&Options{MaxUnpacked: 1 << 20})
		out, err := unpackWhole("test", d, b)
		if err == nil && len(out) > 1<<20 {
			t.Errorf("%d bytes", len(out))
		}
	})
}

// FuzzNotes: a build ID is short, and hexadecimal.
func FuzzNotes(f *testing.F) {
	f.Add([]byte("\x04\x00\x00\x00\x04\x00\x00\x00\x03\x00\x00\x00GNU\x00\x01\x02\x03\x04"))
	f.Fuzz(func(t *testing.T, d []byte) {
		id := elfnote.BuildID(d, binary.LittleEndian)
		if len(id)%2 != 0 || len(id) > 128 || len(id)/2 > len(d) {
			t.Errorf("%q", id)
		}
	})
}

// FuzzSections: a compressed section is what its header says, or damaged.
func FuzzSections(f *testing.F) {
	data, err := fixtures.Bytes("basic-gcc12-O2-dwarf5-gz.elf")
	if err != nil {
		f.Fatal(err)
	}
	file := bytes.Clone(data)
	for _, at := range []int{0x1000, 0x2000, 0x3000} {
		f.Add(uint32(at), uint64(0xff))
	}
	f.Fuzz(func(t *testing.T, at uint32, value uint64) {
		d := bytes.Clone(file)
		binary.LittleEndian.PutUint64(d[int(at)%(len(d)-8):], value)
		img, err := FromBytes("test", d, nil)
		if err != nil {
			return
		}
		_, err = img.DebugSections()
		var damage *FormatError
		if err != nil && !errors.As(err, &damage) && !errors.Is(err, ErrNoDWARF) {
			t.Errorf("%v says no place", err)
		}
	})
}
