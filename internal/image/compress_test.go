package image_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/raced"
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
			f, err := image.FromBytes("test", data, nil)
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

// TestBombs: files that unpack to far more than debug information does are errors before they take
// much memory: all sections together, and files that are compressed as a whole.
func TestBombs(t *testing.T) {
	raced.OneGoroutine(t)
	zeros := make([]byte, 64<<20)
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	_, err := w.Write(zeros)
	dwarftest.Must(errors.Join(err, w.Close()))
	var deflated bytes.Buffer
	zw := zlib.NewWriter(&deflated)
	_, err = zw.Write(zeros[:16<<20])
	dwarftest.Must(errors.Join(err, zw.Close()))
	var sections []dwarftest.Section
	for _, name := range []string{".debug_str", ".debug_line_str", ".debug_loclists", ".debug_rnglists"} {
		sections = append(sections, dwarftest.Section{Name: name, Type: elf.SHT_PROGBITS, Flags: elf.SHF_COMPRESSED,
			Data: dwarftest.Cat(chdr(elf.COMPRESS_ZLIB, 16<<20), deflated.Bytes())})
	}
	xzFile := func(dictionary byte) []byte {
		block := []byte{2, 0, 0x21, 1, dictionary, 0, 0, 0, 0, 0, 0, 0, 0x01, 0, 0, 'x', 0, 0, 0, 0}
		index := []byte{0, 1, byte(len(block)), 1, 0, 0, 0, 0}
		d := append([]byte("\xfd7zXZ\x00\x00\x00\x00\x00\x00\x00"), block...)
		return append(append(d, index...), 0, 0, 0, 0, byte(len(index)/4-1), 0, 0, 0, 0, 0, 'Y', 'Z')
	}
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"zstd", zstdBytes(zeros), "decompress zstd: "},
		{"gzip", gz.Bytes(), "decompress gzip: "},
		{"xz", xzFile(40), "decompress xz: it asks for a dictionary of 4294967296 bytes, and has 52: at most 67108864 are given"},
		{"xz with a usual dictionary", xzFile(22), "decompress xz: xz: "},
		{"xz without an index", xzFile(22)[:40], "decompress xz: damaged: "},
		{"sections", dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}}, sections...), ""},
	} {
		path := filepath.Join(t.TempDir(), "f")
		dwarftest.Must(os.WriteFile(path, tt.data, 0o600))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f, err := image.Open(path, nil)
		if err == nil {
			_, err = f.DebugSections()
		}
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
		const most = 300 << 20 // allocated in all: buffers that grow are copied
		if n := after.TotalAlloc - before.TotalAlloc; n > most {
			t.Errorf("%s: %d bytes were allocated for a file of %d", tt.name, n, len(tt.data))
		}
		t.Logf("%s: %d bytes: %v; %d MB", tt.name, len(tt.data), err, (after.TotalAlloc-before.TotalAlloc)>>20)
	}
	// Who knows better says so.
	path := filepath.Join(t.TempDir(), "f")
	dwarftest.Must(os.WriteFile(path, zstdBytes(zeros), 0o600))
	if _, err := image.Open(path, &image.Options{MaxUnpacked: 1 << 30}); !errors.Is(err, image.ErrNotELF) {
		t.Errorf("with a larger budget: %v", err)
	}
}
