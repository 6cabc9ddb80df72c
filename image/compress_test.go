package image_test

import (
	"bytes"
	"debug/elf"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/bpfprologue/bpfprologue/image"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

func zstdBytes(d []byte) []byte {
	w, err := zstd.NewWriter(nil)
	dwarftest.Must(err)
	return w.EncodeAll(d, nil)
}

// chdr is a compression header.
func chdr(typ elf.CompressionType, size uint64) []byte {
	return dwarftest.Cat(dwarftest.LE32(uint64(typ)), dwarftest.LE32(0), dwarftest.LE64(size), dwarftest.LE64(1))
}

// TestCompressionErrors: a header that lies, damaged data and unknown kinds are
// errors that name the section; nothing is allocated for a claim.
func TestCompressionErrors(t *testing.T) {
	text := bytes.Repeat([]byte("some text\x00"), 100)
	zeros := make([]byte, 1<<20)
	damaged := zstdBytes(text)
	damaged[len(damaged)-5] ^= 0xff
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"unknown", chdr(77, 1), ".debug_str+0x0: unknown compression type 77"},
		{"huge", dwarftest.Cat(chdr(elf.COMPRESS_ZSTD, 1<<50), zstdBytes(text)), ".debug_str+0x8: the header announces 1125899906842624 bytes, more than "},
		{"zlib ratio", dwarftest.Cat(chdr(elf.COMPRESS_ZLIB, 1<<20), make([]byte, 500)), ".debug_str+0x8: the header announces 1048576 bytes, more than 500 bytes of zlib can hold"},
		{"zstd ratio", dwarftest.Cat(chdr(elf.COMPRESS_ZSTD, 1<<30), make([]byte, 500)), ".debug_str+0x8: the header announces 1073741824 bytes, more than 500 bytes of zstd can hold"},
		{"too small", dwarftest.Cat(chdr(elf.COMPRESS_ZSTD, 999), zstdBytes(text)), ".debug_str+0x8: the header announces 999 bytes, the data holds more"},
		{"too large", dwarftest.Cat(chdr(elf.COMPRESS_ZSTD, 1001), zstdBytes(text)), ".debug_str+0x8: the header announces 1001 bytes, the data holds 1000"},
		{"too small, in steps", dwarftest.Cat(chdr(elf.COMPRESS_ZSTD, 1<<20-1), zstdBytes(zeros)), ".debug_str+0x8: the header announces 1048575 bytes, the data holds more"},
		{"too large, in steps", dwarftest.Cat(chdr(elf.COMPRESS_ZSTD, 1<<20+1), zstdBytes(zeros)), ".debug_str+0x8: the header announces 1048577 bytes, the data holds 1048576"},
		{"damaged", dwarftest.Cat(chdr(elf.COMPRESS_ZSTD, 1000), damaged), ".debug_str+0x18: decompress: "},
		{"no data", chdr(elf.COMPRESS_ZLIB, 1), ".debug_str+0x18: decompress: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}},
				dwarftest.Section{Name: ".debug_str", Type: elf.SHT_PROGBITS, Flags: elf.SHF_COMPRESSED, Data: tt.data})
			f, err := image.FromBytes("test", data)
			if err == nil {
				_, err = f.DebugSections()
			}
			if err == nil {
				t.Fatalf("accepted: %v", f)
			}
			if want := "test: " + tt.want; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
	// What is compressed beyond expectation is read all the same.
	data := dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}},
		dwarftest.Section{Name: ".debug_str", Type: elf.SHT_PROGBITS, Flags: elf.SHF_COMPRESSED, Data: dwarftest.Cat(chdr(elf.COMPRESS_ZSTD, 1<<20), zstdBytes(zeros))})
	sections, err := fromBytes(t, data).DebugSections()
	if err != nil || !bytes.Equal(sections[".debug_str"], zeros) {
		t.Errorf("zeros: %v", err)
	}
}
