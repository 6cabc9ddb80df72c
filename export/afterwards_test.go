package export_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/pack"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestAfterwards asks all questions of an image, and of its pack, after Close and after the file was cut short: none faults.
func TestAfterwards(t *testing.T) {
	dir := t.TempDir()
	path, err := fixtures.WriteTo(dir, "basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	var packed bytes.Buffer
	if _, err := pack.Write(context.Background(), img, pack.Options{}, &packed); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "asked")
	for kind, text := range map[string][]byte{"debug information": whole, "a pack": packed.Bytes()} {
		for name, ask := range questions {
			for _, cut := range []int64{-1, 0, int64(len(text)/2) &^ 4095} {
				if err := os.WriteFile(at, text, 0o600); err != nil {
					t.Fatal(err)
				}
				a, err := open(at, "")
				if err != nil {
					t.Fatal(err)
				}
				if cut < 0 {
					err = a.img.Close()
				} else {
					err = os.Truncate(at, cut)
				}
				if err != nil {
					t.Fatal(err)
				}
				if panicked := faults(func() { _, _ = ask(a) }); panicked != "" {
					t.Errorf("%s: %s, cut to %d: %s", kind, name, cut, panicked)
				}
				_ = a.img.Close()
			}
		}
	}
}

// faults returns the panic of a function, or "".
func faults(f func()) (what string) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			what = fmt.Sprintf("%v\n%s", r, debug.Stack())
		}
	}()
	f()
	return ""
}
