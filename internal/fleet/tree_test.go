package fleet

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/pack"
)

// TestTree: many write packs into one directory at once, and the index has them all; what cannot be written leaves nothing.
func TestTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "packs[1]*")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	names := []string{"basic-gcc12-O2-dwarf5.elf", "basic-clang14-O2-dwarf5.elf", "module-gcc12-O2-dwarf5.ko", "run-gcc12-O2-dwarf5.exe", "lib-gcc12-O2-dwarf5.elf"}
	var wait sync.WaitGroup
	for _, name := range names {
		img := testenv.Fixture(t, name)
		wait.Go(func() {
			path, err := WriteInTree(dir, img, func(w io.Writer) error {
				_, err := pack.Write(t.Context(), img, pack.Options{}, w)
				return err
			})
			if err != nil || path != filepath.Join(dir, "buildid", img.BuildID(), "pack") {
				t.Errorf("%s: %q, %v", name, path, err)
			}
		})
	}
	wait.Wait()
	index, err := os.ReadFile(filepath.Join(dir, "index.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(index, []byte("\n")); n != len(names) {
		t.Errorf("%d lines for %d packs:\n%s", n, len(names), index)
	}
	img := testenv.Fixture(t, "module-gcc12-O2-dwarf5.ko")
	if want := `{"build_id":"` + img.BuildID() + `","path":"buildid/` + img.BuildID() + `/pack","bytes":`; !strings.Contains(string(index), want) {
		t.Errorf("no %s in\n%s", want, index)
	}
	if !strings.Contains(string(index), `"arch":"amd64","module":"`) {
		t.Errorf("no module in\n%s", index)
	}
	if st, err := os.Stat(filepath.Join(dir, "index.jsonl")); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("a server may be another user: %v, %v", st.Mode(), err)
	}

	// The tree is kernels too, without the programs.
	sources, err := Sources([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	table, err := Check(t.Context(), sources, wants(t, "my_func_three_abcd arg1"), Options{})
	if err != nil || len(table.Kernels) != 3 {
		t.Errorf("%v, %+v", err, table)
	}

	why := errors.New("no")
	fail := func(w io.Writer) error {
		_, err := w.Write([]byte("begun"))
		return errors.Join(err, why)
	}
	empty := t.TempDir()
	other := testenv.Fixture(t, "basic-gcc12-O0-dwarf5.elf")
	for _, in := range []string{empty, dir} {
		if _, err := WriteInTree(in, other, fail); !errors.Is(err, why) {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(in, "buildid", other.BuildID())); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something is left: %v", in, err)
		}
	}
	if left, _ := os.ReadDir(empty); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := WriteInTree(empty, testenv.Fixture(t, "object-gcc12-O0-dwarf5.o"), fail); err == nil || !strings.Contains(err.Error(), "no build ID") {
		t.Error(err)
	}
	// A pack at another build's place is no part of an index.
	own := testenv.Fixture(t, names[0]).BuildID()
	if err := os.Rename(filepath.Join(dir, "buildid", own), filepath.Join(dir, "buildid", "00"+own[2:])); err != nil {
		t.Fatal(err)
	}
	if sources, err = Sources([]string{dir}); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(t.Context(), sources, wants(t, "my_func_three_abcd arg1"), Options{}); err == nil || !strings.Contains(err.Error(), "the pack is of another build: "+own) {
		t.Error(err)
	}
	if err := writeIndex(dir); err == nil || !strings.Contains(err.Error(), "the pack is of another build: "+own) {
		t.Error(err)
	}
}
