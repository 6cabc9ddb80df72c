package sealed_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/sealed"
)

var errDamaged = errors.New("it is damaged")

func kinds() []*sealed.Kind {
	k := sealed.Kind{Magic: "tryouts\n", Version: 7, Section: ".try", What: "the try", Damaged: errDamaged, Parts: []string{"first", "second", "third"}}
	m := k
	m.Mapped = true
	return []*sealed.Kind{&k, &m}
}

// tried returns three parts, of which the last has several pages.
func tried() []sealed.Data {
	r := rand.New(rand.NewPCG(1, 2))
	long := make([]byte, 3*sealed.PageSize+5)
	for i := range long {
		long[i] = byte(r.IntN(1 + i>>12)) // the further on, the less can be compressed
	}
	return []sealed.Data{{Bytes: []byte("abc"), Records: 1}, {}, {Bytes: long, Records: 9}}
}

// read returns the parts of a section.
func read(k *sealed.Kind, d []byte) (out [][]byte, err error) {
	f, err := k.Open(d, "p")
	if err != nil {
		return nil, err
	}
	for i := range k.Parts {
		p := f.Part(i)
		b, err := f.Bytes(p.From, p.To)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// TestSection reads what is written, whole and with any byte changed or cut off.
func TestSection(t *testing.T) {
	parts := tried()
	for _, k := range kinds() {
		d := bytes.Join(k.Assemble([]byte("facts"), parts), nil)
		f, err := k.Open(d, "p")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(f.Header()[sealed.AtFacts:], []byte("facts\x00")) || f.Check() != nil {
			t.Error("the header is another")
		}
		stored := f.Stored(-1)
		for i := range parts {
			if f.Part(i).N != parts[i].Records {
				t.Errorf("part %d has %d records", i, f.Part(i).N)
			}
			stored += f.Stored(i)
		}
		if stored < len(d)-len(parts) || stored > len(d) { // each may be rounded
			t.Errorf("%d bytes, and the parts have %d", len(d), stored)
		}
		want, err := read(k, d)
		if err != nil {
			t.Fatal(err)
		}
		for i := range parts {
			if !bytes.Equal(want[i], parts[i].Bytes) {
				t.Errorf("part %d is another", i)
			}
		}
		for _, r := range [][2]int{{0, 8}, {f.Size() - 1, f.Size() + 1}, {400, 399}} {
			if _, err := f.Bytes(r[0], r[1]); err == nil {
				t.Errorf("bytes %d to %d can be read", r[0], r[1])
			}
		}
		for i := range d {
			x := bytes.Clone(d)
			x[i] ^= 1 << (i % 8)
			_, err := read(k, x)
			inSum := i >= 24 && i < 56 // only Check looks at it
			if inSum != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), "p: .try+0x") {
				t.Fatalf("byte %#x changed: %v", i, err)
			}
			if f, err := k.Open(x, "p"); err == nil && !errors.Is(f.Check(), errDamaged) {
				t.Fatalf("byte %#x changed: Check sees nothing", i)
			}
			if _, err := k.Open(d[:i], "p"); err == nil {
				t.Fatalf("cut to %#x bytes", i)
			}
		}
	}
}

// FuzzSection reads what anybody can write, with right checksums.
func FuzzSection(f *testing.F) {
	for _, k := range kinds() {
		f.Add(bytes.Join(k.Assemble([]byte("facts"), tried()[:2]), nil))
	}
	f.Fuzz(func(t *testing.T, d []byte) {
		for _, k := range kinds() {
			x := bytes.Clone(d)
			k.Reseal(x)
			first, err := read(k, x)
			again, err2 := read(k, x)
			if (err == nil) != (err2 == nil) || len(first) != len(again) {
				t.Fatalf("%v, and then %v", err, err2)
			}
		}
	})
}

// TestInPlace: a page that is not compressed, because it would have more than two fifths of its size, is used where it is.
func TestInPlace(t *testing.T) {
	k := kinds()[0]
	r := rand.New(rand.NewPCG(3, 4))
	noise := make([]byte, sealed.PageSize)
	for i := range noise {
		noise[i] = byte(r.Uint32()) & 0x7f // it saves an eighth
	}
	d := bytes.Join(k.Assemble(nil, []sealed.Data{{Bytes: noise}, {}, {}}), nil)
	f, err := k.Open(d, "p")
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Bytes(sealed.HeaderSize, sealed.HeaderSize+len(noise))
	if err != nil || !bytes.Equal(b, noise) {
		t.Fatal(err)
	}
	if at := bytes.Index(d, noise); at < 0 || &b[0] != &d[at] {
		t.Error("it was copied")
	}
}
