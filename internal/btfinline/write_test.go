package btfinline_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/btfinline"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/pack"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// withSections returns an image with more sections.
func withSections(t *testing.T, path string, sections map[string][]byte) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	objcopy := "objcopy"
	if strings.Contains(path, "s390x") {
		objcopy = "s390x-linux-gnu-objcopy"
	}
	var args []string
	for name, d := range sections {
		file := out + name
		if err := os.WriteFile(file, d, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--add-section", name+"="+file)
		if name == ".BTF" { // which is loaded
			args = append(args, "--set-section-flags", ".BTF=alloc,readonly", "--change-section-address", ".BTF=0x7f000000")
		}
	}
	if text, err := exec.Command(testenv.Tool(t, objcopy), append(args, path, out)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// withBTF returns a fixture with a section .BTF: with all types that its pack has.
func withBTF(t *testing.T, name string) string {
	t.Helper()
	path, err := fixtures.WriteTo(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := pack.Write(t.Context(), testenv.Open(t, path), pack.Options{}, &b); err != nil {
		t.Fatal(err)
	}
	types, err := packfile.BTF(b.Bytes(), name)
	if err != nil {
		t.Fatal(err)
	}
	return withSections(t, path, map[string][]byte{".BTF": types})
}

// TestWrite: what is written of an image says what its debug information says, of every instance, and all that the format has words for.
func TestWrite(t *testing.T) {
	for name, least := range map[string]int{ // locations
		"basic-gcc12-O2-dwarf5.elf": 100, "basic-clang14-O2-dwarf5.elf": 40, "basic-gcc12-O0-dwarf5.elf": 100, "run-gcc12-O2-dwarf5.exe": 10,
		"run-clang14-O2-dwarf5.exe": 0, "lib-gcc12-O2-dwarf5.elf": 5, "foreign-gcc12-s390x-O2-dwarf5.elf": 5, "foreign-gcc12-i386-O2-dwarf5.elf": 5,
	} {
		path := withBTF(t, name)
		img := testenv.Open(t, path)
		none := func(int, int) {}
		section, sum, err := btfinline.Of(t.Context(), img, nil, none)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, _, err := btfinline.Of(t.Context(), img, nil, none)
		if err != nil || !bytes.Equal(section, again) {
			t.Errorf("%s: %v: it is not the same each time", name, err)
		}
		both := withSections(t, path, map[string][]byte{".BTF.inline": section})
		read, err := dwarfloc.OpenBTF(both, img.Arch())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		a, err := btfinline.AgreeInline(t.Context(), read, testenv.Open(t, both))
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for why, n := range sum.LeftOut {
			if why != "not located" {
				left += n
			}
		}
		if a.Both != sum.Instances || a.OnlyBTF+a.Only+a.Other+a.ByBTF != 0 || a.Same != sum.Located || a.ByDWARF != left || a.Neither != sum.LeftOut["not located"] {
			t.Errorf("%s: %+v, of %v", name, a, sum)
		}
		if a.Both < 3 || a.Same < least {
			t.Errorf("%s: %v", name, sum)
		}
		// A reader could not tell these from others.
		if strings.Contains(name, "clang14-O2") && sum.LeftOut["doubtful"] < 10 {
			t.Errorf("%s: doubtful values are written: %v", name, sum)
		}
		if err := read.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWriteErrors: without types that it builds on there is no section.
func TestWriteErrors(t *testing.T) {
	_, img := testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
	if _, _, err := btfinline.Of(t.Context(), img, nil, nil); err == nil || !strings.Contains(err.Error(), "no section .BTF") {
		t.Error(err)
	}
	var b bytes.Buffer
	if _, err := pack.Write(t.Context(), img, pack.Options{}, &b); err != nil {
		t.Fatal(err)
	}
	p, err := dwarfloc.FromBytes("whole.pack", b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, _, err := btfinline.Of(t.Context(), p, func() ([]byte, error) { return nil, nil }, nil); err == nil || !strings.Contains(err.Error(), "whole.pack: .BTF.inline builds on the image's own BTF, and this pack has all types") {
		t.Error(err)
	}
	if _, _, err := btfinline.Of(t.Context(), testenv.Fixture(t, "module-gcc12-O2-dwarf5.ko"), nil, nil); err == nil || !strings.Contains(err.Error(), "a module's types follow its kernel's") {
		t.Error(err)
	}
	if _, _, err := btfinline.Of(t.Context(), p, func() ([]byte, error) { return nil, os.ErrNotExist }, nil); err == nil || !strings.Contains(err.Error(), "builds on the kernel's BTF") {
		t.Error(err)
	}
}
