package agree

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/btfinline"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestBTFInline writes .BTF.inline of a whole kernel, reads it, and compares it with the debug information: every instance, and every
// location that the format can say.
func TestBTFInline(t *testing.T) {
	img := testenv.Open(t, testenv.Vmlinux(t))
	section, sum, err := btfinline.Of(t.Context(), img, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(sum)
	image, err := InlineImage(img, section)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := dwarfloc.OpenBTF(path, img.Arch())
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	a, err := btfinline.AgreeInline(t.Context(), read, img)
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for why, n := range sum.LeftOut {
		if why != "not located" {
			left += n
		}
	}
	if a.Both != sum.Instances || a.OnlyBTF+a.Only+a.Other+a.ByBTF != 0 || a.Same != sum.Located || a.ByDWARF != left || a.Both < 300_000 || a.Same < 300_000 {
		t.Errorf("%+v, of %v", a, sum)
	}
}
