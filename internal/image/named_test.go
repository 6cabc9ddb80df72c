package image_test

import (
	"bytes"
	"maps"
	"testing"

	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestAsked: what was asked for once is answered as before, in the same file; another file's answers, and damaged ones, are none.
func TestAsked(t *testing.T) {
	names := []string{"ring_zero", "queue_send", "no_such_symbol", "toy_ticks"}
	data, other := contents(t, "basic-gcc12-O2-dwarf5.elf"), contents(t, "basic-clang14-O2-dwarf5.elf")
	ask := func(data, packed []byte) (map[string]uint64, []byte, bool) {
		f := fromBytes(t, data)
		f.UseAsked(packed)
		addresses, err := f.SymbolAddresses(names...)
		if err != nil {
			t.Fatal(err)
		}
		asked, more := f.Asked()
		return addresses, asked, more
	}
	want, packed, more := ask(data, nil)
	if len(want) != 3 || !more {
		t.Fatalf("%v, and more %v", want, more)
	}
	if got, _, more := ask(data, packed); !maps.Equal(got, want) || more {
		t.Errorf("asked again: %v and more %v; want %v and no more", got, more, want)
	}
	elsewhere, _, _ := ask(other, nil)
	if got, _, more := ask(other, packed); !maps.Equal(got, elsewhere) || !more {
		t.Errorf("with what another file answered: %v, want %v", got, elsewhere)
	}
	// A place where there is another symbol, or none.
	at := bytes.Index(packed, []byte("\x09ring_zero")) + len("\x09ring_zero") + 1
	for _, place := range []byte{0, 1, 0x7f} {
		moved := bytes.Clone(packed)
		moved[at] = place
		if got, _, more := ask(data, moved); !maps.Equal(got, want) || !more {
			t.Errorf("with ring_zero at %d: %v, more %v; want %v", place, got, more, want)
		}
	}
	for n := range packed {
		if got, _, _ := ask(data, packed[:n]); !maps.Equal(got, want) {
			t.Errorf("the first %d bytes: %v, want %v", n, got, want)
		}
	}
}

func contents(t *testing.T, name string) []byte {
	t.Helper()
	data, err := fixtures.Bytes(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
