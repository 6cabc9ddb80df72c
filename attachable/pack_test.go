package attachable_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/pack"
)

// TestPack: Of answers for a pack's sites as At does for the image's. Without symbols, At does not say that an address is in no code.
func TestPack(t *testing.T) {
	img := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	var b bytes.Buffer
	if _, err := pack.Write(t.Context(), img, pack.Options{}, &b); err != nil {
		t.Fatal(err)
	}
	packed, err := dwarfloc.FromBytes("a pack", b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	causes := func(img *dwarfloc.Image, of func(*attachable.Table, *dwarfloc.Site) attachable.Cause) (out []string) {
		table, err := attachable.New(img)
		if err != nil {
			t.Fatal(err)
		}
		sites, err := img.Sites(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sites {
			out = append(out, fmt.Sprintf("%v: %v", s, of(table, s)))
			if m := table.Method(s.Addr); m != attachable.MethodNone && img == packed {
				t.Errorf("%v: %v", s, m)
			}
		}
		return out
	}
	at := func(table *attachable.Table, s *dwarfloc.Site) attachable.Cause { return table.At(s.Addr) }
	if diff := cmp.Diff(causes(img, at), causes(packed, (*attachable.Table).Of)); diff != "" {
		t.Errorf("causes (-image +pack):\n%s", diff)
	}
	for i, text := range causes(packed, at) {
		if strings.HasSuffix(text, ": not-code") {
			t.Errorf("site %d, %s", i, text)
		}
	}
}
