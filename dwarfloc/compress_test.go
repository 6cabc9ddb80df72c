package dwarfloc

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// run calls a program; without it the test is skipped, or fails with CI=true.
func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// TestObjcopyCompression: however objcopy compresses the sections of an image, linked
// or not, its answers are the same.
func TestObjcopyCompression(t *testing.T) {
	for _, name := range []string{"basic-gcc12-O2-dwarf5.elf", "basic-clang14-O2-dwarf4.elf", aModule} {
		plain := listing(t, openFixture(t, name))
		for _, kind := range []string{"zlib", "zlib-gnu", "zstd"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				dir := t.TempDir()
				path, err := fixtures.WriteTo(dir, name)
				if err != nil {
					t.Fatal(err)
				}
				packed := filepath.Join(dir, "packed")
				run(t, "objcopy", "--compress-debug-sections="+kind, path, packed)
				file, err := elf.Open(packed)
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				if !slices.ContainsFunc(file.Sections, func(s *elf.Section) bool {
					return s.Flags&elf.SHF_COMPRESSED != 0 || strings.HasPrefix(s.Name, ".zdebug_")
				}) {
					t.Fatal("objcopy compressed nothing")
				}
				img, err := Open(packed, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer img.Close()
				if diff := cmp.Diff(plain, listing(t, img)); diff != "" {
					t.Errorf("compressed sections give other sites (-plain +compressed):\n%s", diff)
				}
			})
		}
	}
}

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
		{"too small, by and by", dwarftest.Cat(chdr(elf.COMPRESS_ZSTD, 1<<20-1), zstdBytes(zeros)), ".debug_str+0x8: the header announces 1048575 bytes, the data holds more"},
		{"too large, by and by", dwarftest.Cat(chdr(elf.COMPRESS_ZSTD, 1<<20+1), zstdBytes(zeros)), ".debug_str+0x8: the header announces 1048577 bytes, the data holds 1048576"},
		{"damaged", dwarftest.Cat(chdr(elf.COMPRESS_ZSTD, 1000), damaged), ".debug_str+0x18: decompress: "},
		{"no data", chdr(elf.COMPRESS_ZLIB, 1), ".debug_str+0x18: decompress: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}},
				dwarftest.Section{Name: ".debug_str", Type: elf.SHT_PROGBITS, Flags: elf.SHF_COMPRESSED, Data: tt.data})
			img, err := FromBytes("test", data, nil)
			if err == nil {
				t.Fatalf("accepted: %v", img)
			}
			if want := "test: " + tt.want; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
	// What is compressed beyond expectation is read all the same.
	data := dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}},
		dwarftest.Section{Name: ".debug_str", Type: elf.SHT_PROGBITS, Flags: elf.SHF_COMPRESSED, Data: dwarftest.Cat(chdr(elf.COMPRESS_ZSTD, 1<<20), zstdBytes(zeros))})
	img, err := FromBytes("test", data, nil)
	if err != nil || !bytes.Equal(img.d.Str, zeros) {
		t.Errorf("zeros: %v", err)
	}
}

// TestWholeFile: a module's file may be compressed.
func TestWholeFile(t *testing.T) {
	plain := fixture(t, aModule)
	want := listing(t, openFixture(t, aModule))
	var gz, x bytes.Buffer
	gw := gzip.NewWriter(&gz)
	_, err := gw.Write(plain)
	dwarftest.Must(err)
	dwarftest.Must(gw.Close())
	xw, err := xz.NewWriter(&x)
	dwarftest.Must(err)
	_, err = xw.Write(plain)
	dwarftest.Must(err)
	dwarftest.Must(xw.Close())
	for name, data := range map[string][]byte{"toy.ko.gz": gz.Bytes(), "toy.ko.xz": x.Bytes(), "toy.ko.zst": zstdBytes(plain)} {
		path := filepath.Join(t.TempDir(), name)
		dwarftest.Must(os.WriteFile(path, data, 0o600))
		img, err := Open(path, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, listing(t, img)); diff != "" {
			t.Errorf("%s: other sites:\n%s", name, diff)
		}
		dwarftest.Must(img.Close())
		dwarftest.Must(os.WriteFile(path, data[:len(data)/2], 0o600))
		if _, err := Open(path, nil); err == nil || !strings.HasPrefix(err.Error(), path+": decompress ") {
			t.Errorf("%s cut short: %v", name, err)
		}
	}
}
