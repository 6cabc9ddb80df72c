package packfile_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/pack"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// packed returns the pack of a fixture.
func packed(t testing.TB, name string) []byte {
	t.Helper()
	path, err := fixtures.WriteTo(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	var b bytes.Buffer
	if _, err := pack.Write(context.Background(), img, pack.Options{}, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// section returns the section of a file, with nothing around it and not compressed.
func section(t testing.TB, name string) []byte {
	t.Helper()
	d, err := packfile.Find(packed(t, name), name)
	if err != nil {
		t.Fatal(err)
	}
	if d, err = packfile.Unpacked(d); err != nil {
		t.Fatal(err)
	}
	return d
}

// withoutPointers removes what differs from run to run.
var withoutPointers = regexp.MustCompile(`0x[0-9a-f]{8,}`)

// everything is all that a section says, in words.
func everything(d []byte) (string, error) {
	f, err := packfile.Open(d, "p")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", f.Facts())
	refs, err := f.List(nil)
	if err != nil {
		return "", err
	}
	err = f.Each(refs, func(i int, s *packfile.Site) error {
		fmt.Fprintf(&b, "%d %+v %+v", i, *s, *s.Function)
		for i := range s.Values.Params {
			if e := s.Values.Params[i].Loc.Expr; e != nil {
				fmt.Fprintf(&b, " %+v", *e)
			}
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		return "", err
	}
	names, err := f.Names()
	if err == nil {
		fmt.Fprintln(&b, names)
	}
	return withoutPointers.ReplaceAllString(b.String(), ""), err
}

// TestFlipped changes each byte: the answer is an error that says where, or the same.
func TestFlipped(t *testing.T) {
	file := packed(t, "basic-gcc12-O2-dwarf5.elf")
	d, err := packfile.Find(file, "p")
	if err != nil {
		t.Fatal(err)
	}
	want, err := everything(d)
	if err != nil {
		t.Fatal(err)
	}
	for i := range d {
		x := bytes.Clone(d)
		x[i] ^= 1 << (i % 8)
		have, err := everything(x)
		switch {
		case err == nil && have != want:
			t.Fatalf("byte %#x: another answer", i)
		case err != nil && !strings.HasPrefix(err.Error(), "p: .bpfprologue.pack+0x"):
			t.Fatalf("byte %#x: %v", i, err)
		}
		if f, err := packfile.Open(x, "p"); err == nil && f.Check(1<<31) == nil {
			t.Fatalf("byte %#x: Check sees nothing", i)
		}
	}
	f, err := packfile.Open(d, "p")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.CheckFile(file); err != nil {
		t.Fatal(err)
	}
	types, err := packfile.BTF(file, "p")
	if err != nil {
		t.Fatal(err)
	}
	typesAt := bytes.Index(file, types)
	for i := 0; i < len(file); i += 7 {
		x := bytes.Clone(file)
		x[i] ^= 1 << (i % 8)
		if _, err := pack.Check(x, "p"); err == nil {
			t.Fatalf("byte %#x of the file: Check sees nothing", i)
		}
		if at := bytes.Index(file, d); i >= at && i < at+len(d) {
			continue // it is seen where it is read
		}
		if i >= typesAt && i < typesAt+len(types) {
			b, err := f.BTF(x[typesAt:][:len(types)], nil)
			if err == nil {
				err = b.Each(func(*btf.Type) bool { return true })
			}
			if err == nil || !strings.Contains(err.Error(), "the checksum of .BTF+0x0") {
				t.Fatalf("byte %#x of the file, in .BTF: %v", i, err)
			}
			continue
		}
		if err := f.CheckRest(x); err == nil {
			t.Fatalf("byte %#x of the file: CheckRest sees nothing", i)
		}
	}
}

// TestCut cuts a pack short.
func TestCut(t *testing.T) {
	d := section(t, "basic-gcc12-O2-dwarf5.elf")
	for n := range d {
		if _, err := everything(d[:n]); err == nil || !strings.HasPrefix(err.Error(), "p: .bpfprologue.pack+0x") {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

// TestVersion opens a pack of another version.
func TestVersion(t *testing.T) {
	d := section(t, "basic-gcc12-O2-dwarf5.elf")
	d[8]++
	packfile.Reseal(d)
	want := fmt.Sprintf("version %d of the format, and this program reads version %d", packfile.Version+1, packfile.Version)
	if _, err := packfile.Open(d, "p"); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

// TestHostile changes bytes and makes the checksums right: no panic, no hang.
func TestHostile(t *testing.T) {
	for _, name := range []string{"basic-gcc12-O2-dwarf5.elf", "run-gcc12-O2-dwarf5.exe"} {
		d := section(t, name)
		r := rand.New(rand.NewPCG(1, 2))
		read := 0
		for i := range len(d) / 2 {
			x := bytes.Clone(d)
			for range 1 + i%3 {
				at := r.IntN(len(x))
				switch r.IntN(3) {
				case 0:
					x[at] = byte(r.Uint32())
				case 1:
					x[at] = 0xff
				default:
					x[at] ^= 1 << r.IntN(8)
				}
			}
			if !packfile.Reseal(x) {
				continue
			}
			start := time.Now()
			if _, err := everything(x); err == nil {
				read++
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("%s, change %d: %v", name, i, took)
			}
		}
		t.Logf("%s: %d of %d changed packs can be read", name, read, len(d)/2)
	}
}

// FuzzOpen reads what any section says, with right checksums.
func FuzzOpen(f *testing.F) {
	f.Add(section(f, "basic-gcc12-O2-dwarf5.elf"))
	f.Add(section(f, "run-clang14-O2-dwarf5.exe"))
	f.Fuzz(func(t *testing.T, d []byte) {
		x := bytes.Clone(d)
		packfile.Reseal(x)
		start := time.Now()
		first, err := everything(x)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%d bytes: %v", len(x), took)
		}
		if err != nil {
			return
		}
		if again, err := everything(x); err != nil || again != first {
			t.Errorf("another answer the second time; %v", err)
		}
	})
}

// TestArchive finds packs in an archive.
func TestArchive(t *testing.T) {
	packs := []packfile.Archived{{"0102", []byte("one")}, {"01", []byte("two")}, {"ff00", nil}}
	var a, b bytes.Buffer
	if err := packfile.WriteArchive(&a, packs); err != nil {
		t.Fatal(err)
	}
	packs[0], packs[2] = packs[2], packs[0]
	if err := packfile.WriteArchive(&b, packs); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the order of packs counts", err)
	}
	d := a.Bytes()
	x, err := packfile.OpenArchive(d, "a")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"0102": "one", "01": "two", "ff00": "", "ff": "", "010200": "", "zz": ""} {
		if got := string(x.Find(id)); got != want {
			t.Errorf("%s: %q", id, got)
		}
	}
	if got := fmt.Sprint(x.BuildIDs()); got != "[01 0102 ff00]" {
		t.Error(got)
	}
	for i := range 24 + 3*56 {
		y := bytes.Clone(d)
		y[i] ^= 1 << (i % 8)
		if _, err := packfile.OpenArchive(y, "a"); err == nil && (i < 20 || i >= 24) {
			t.Errorf("byte %#x: no error", i)
		}
	}
	for n := range 24 + 3*56 {
		if _, err := packfile.OpenArchive(d[:n], "a"); err == nil {
			t.Errorf("%d bytes: no error", n)
		}
	}
}
