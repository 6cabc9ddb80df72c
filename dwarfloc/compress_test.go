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
