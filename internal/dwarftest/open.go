package dwarftest

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/image"
)

// Open reads the debug information of an ELF file in memory, all units loaded. The name
// stands for the file's path in errors.
func Open(t testing.TB, name string, file []byte) *dw.Data {
	t.Helper()
	f, err := image.FromBytes(name, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	sections, err := f.DebugSections()
	if err != nil {
		t.Fatal(err)
	}
	s := dw.Sections{
		Path: name, BigEndian: f.BigEndian(), WordSize: f.Arch().WordSize,
		Errorf: func(section string, off uint64, format string, args ...any) error {
			return &image.FormatError{Path: name, Section: section, Offset: off, Msg: fmt.Sprintf(format, args...)}
		},
	}
	for _, sec := range f.Sections() {
		if sec.Name == ".gcc_except_table" {
			s.ExceptAddr = sec.Addr
		}
		if sec.Name == ".eh_frame" {
			s.EhFrameAddr = sec.Addr
		}
	}
	d := dw.New(s, sections)
	if err := d.ReadUnits(); err != nil {
		t.Fatal(err)
	}
	for i := range d.Units {
		if err := d.Units[i].Load(); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// FrameEntry is an entry of .debug_frame: its parts after their length.
func FrameEntry(parts ...any) []byte {
	b := Cat(parts...)
	return Cat(LE32(uint64(len(b))), b)
}

// SectionOf returns a section of an ELF file in memory, to be changed there.
func SectionOf(t testing.TB, data []byte, name string) []byte {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	s := file.Section(name)
	if s == nil {
		t.Fatalf("no section %s", name)
	}
	return data[s.Offset : s.Offset+s.FileSize]
}

// Hex returns the bytes that hexadecimal digits stand for.
func Hex(t testing.TB, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
