package main

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestRefusedByPack: a pack has no code, but knows why the kernel refuses its sites. A cause about the code that it
// does not have would be false.
func TestRefusedByPack(t *testing.T) {
	image, err := fixtures.WriteTo(t.TempDir(), "basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{image, writePack(t, image)} {
		img, err := dwarfloc.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		for definition, want := range map[string]string{"page_trap": "kprobes-text: ", "my_func_*_abcd": unix.EINVAL.Error()} {
			def, err := probe.Parse(definition)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.New(t.Context(), img, def, plan.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			x := &subject{img: img, kernel: true}
			if err := x.reportAttached(&out, p, "", &instances.Attachment{Refused: []instances.Refusal{{Site: 0, Err: unix.EINVAL}}}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), "\n  not at 1 site: "+want) {
				t.Errorf("%s: %s: want %q in\n%s", path, definition, want, &out)
			}
		}
	}
}
