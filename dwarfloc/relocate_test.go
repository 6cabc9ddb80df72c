package dwarfloc

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

const (
	aModule     = "module-gcc12-O2-dwarf5.ko"
	elfRelaSize = 24
)

// TestModuleKept: a module's scan can be kept as well.
func TestModuleKept(t *testing.T) {
	c := Options{CacheDir: t.TempDir(), Warn: func(err error) { t.Error(err) }}
	want := answersOf(t, keptImage(t, aModule, Options{}))
	for _, what := range []string{"that was kept", "of a kept scan"} {
		if diff := cmp.Diff(want, answersOf(t, keptImage(t, aModule, c))); diff != "" {
			t.Errorf("the answers %s differ:\n%s", what, diff)
		}
	}
}

// TestUnsortedRelocations: the order of relocations changes no answer.
func TestUnsortedRelocations(t *testing.T) {
	want := listing(t, openFixture(t, aModule))
	data := fixture(t, aModule)
	relas := dwarftest.SectionOf(t, data, ".rela.debug_info")
	n := len(relas) / elfRelaSize
	for i := range n / 2 {
		a, b := relas[i*elfRelaSize:][:elfRelaSize], relas[(n-1-i)*elfRelaSize:][:elfRelaSize]
		var tmp [elfRelaSize]byte
		copy(tmp[:], a)
		copy(a, b)
		copy(b, tmp[:])
	}
	img, err := FromBytes(aModule, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, listing(t, img)); diff != "" {
		t.Errorf("relocations in another order give other sites:\n%s", diff)
	}
}

// TestModuleAddress: what is an address in a module has a reason that says where,
// by whatever name it is asked for.
func TestModuleAddress(t *testing.T) {
	img := openFixture(t, aModule)
	sites, err := img.Sites(context.Background(), Name("page_fault"))
	if err != nil || len(sites) == 0 {
		t.Fatalf("%d sites, %v", len(sites), err)
	}
	for name, want := range map[string]string{"ring_zero": "module-address: .data+0x", "page_root": "module-address: .bss+0x"} {
		v, err := sites[0].Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Reason.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestSeparateModule: the debug information of a stripped module is in another
// file, with its sections at the same addresses.
func TestSeparateModule(t *testing.T) {
	dir := t.TempDir()
	path, err := fixtures.WriteTo(dir, aModule)
	if err != nil {
		t.Fatal(err)
	}
	debug, bare := filepath.Join(dir, "toy.debug"), filepath.Join(dir, "toy.ko")
	run(t, "objcopy", "--only-keep-debug", path, debug)
	run(t, "objcopy", "--strip-debug", "--add-gnu-debuglink="+debug, path, bare)
	img, err := Open(bare, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	if img.file.DebugPath() != debug {
		t.Errorf("taken from %q", img.file.DebugPath())
	}
	if diff := cmp.Diff(listing(t, openFixture(t, aModule)), listing(t, img)); diff != "" {
		t.Errorf("the sites differ (-whole +separate):\n%s", diff)
	}
}
