package packfile_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/packfile"
)

// TestDelta makes one pack of another, and refuses others, and a delta with any byte changed.
func TestDelta(t *testing.T) {
	var packs []packfile.Image
	for _, name := range []string{"basic-gcc12-O2-dwarf4.elf", "basic-gcc12-O2-dwarf5.elf", "module-gcc12-O2-dwarf5.ko"} {
		packs = append(packs, packfile.Image{Data: packed(t, name), Path: name, BuildID: name[:3]})
	}
	for _, from := range packs {
		for _, to := range packs {
			d, err := packfile.Delta(from, to)
			if err != nil {
				t.Fatal(err)
			}
			again, err := packfile.Delta(from, to)
			if err != nil || !bytes.Equal(d, again) {
				t.Error("another delta of the same packs", err)
			}
			got, err := packfile.Apply(from, d, "d")
			if err != nil || !bytes.Equal(got, to.Data) {
				t.Errorf("%s to %s: another pack, %v", from.Path, to.Path, err)
			}
			t.Logf("%s to %s: %d bytes of %d", from.Path, to.Path, len(d), len(to.Data))
			for _, other := range packs {
				var wrong *packfile.WrongPackError
				if _, err := packfile.Apply(other, d, "d"); other.Path != from.Path && (!errors.As(err, &wrong) || wrong.Want != from.BuildID) {
					t.Errorf("%s takes the place of %s: %v", other.Path, from.Path, err)
				}
			}
		}
	}
	d, err := packfile.Delta(packs[0], packs[1])
	if err != nil {
		t.Fatal(err)
	}
	for i := range d {
		x := bytes.Clone(d)
		x[i] ^= 1 << (i % 8)
		if got, err := packfile.Apply(packs[0], x, "d"); err == nil && !bytes.Equal(got, packs[1].Data) || err != nil && !strings.Contains(err.Error(), "d: delta+0x") {
			t.Fatalf("byte %#x: %v", i, err)
		}
		if _, err := packfile.Apply(packs[0], d[:i], "d"); err == nil {
			t.Fatalf("cut to %#x bytes", i)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		x := bytes.Clone(d)
		x[r.IntN(len(x))] = byte(r.Uint32())
		packfile.ResealDelta(x)
		if got, err := packfile.Apply(packs[0], x, "d"); err == nil && !bytes.Equal(got, packs[1].Data) {
			t.Fatal("another pack")
		}
	}
}

// FuzzDelta applies any delta, with right checksums: the result is the pack that was meant, or an error.
func FuzzDelta(f *testing.F) {
	from := packfile.Image{Data: packed(f, "basic-gcc12-O2-dwarf4.elf"), Path: "from"}
	to := packed(f, "basic-gcc12-O2-dwarf5.elf")
	d, err := packfile.Delta(from, packfile.Image{Data: to, Path: "to"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(d)
	f.Fuzz(func(t *testing.T, d []byte) {
		x := bytes.Clone(d)
		packfile.ResealDelta(x)
		got, err := packfile.Apply(from, x, "d")
		again, err2 := packfile.Apply(from, x, "d")
		if (err == nil) != (err2 == nil) || !bytes.Equal(got, again) {
			t.Errorf("%v, and then %v", err, err2)
		}
	})
}
