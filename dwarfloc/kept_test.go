package dwarfloc

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/index"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// keptImage opens a fixture that keeps its scan in dir.
func keptImage(t testing.TB, name string, o Options) *Image {
	t.Helper()
	data, err := fixtures.Bytes(name)
	if err != nil {
		t.Fatal(err)
	}
	img, err := FromBytes(name, data, &o)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// answersOf is everything an image says of its sites.
func answersOf(t testing.TB, img *Image) string {
	t.Helper()
	sites, err := img.Sites(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, s := range sites {
		b.WriteString(s.String() + " " + s.Section)
		for _, c := range s.Callers {
			b.WriteString(" < " + c.Function)
		}
		params, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range params {
			b.WriteString("\n\t" + v.Name + " " + v.Loc.Text(img.Arch()) + " " + v.Reason.String())
		}
		b.WriteByte('\n')
	}
	names, err := img.FunctionNames(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + strings.Join(names, " ")
}

// TestKept: with a kept scan the answers are those of a scan, and there is none.
func TestKept(t *testing.T) {
	for _, name := range fixtures.Names() {
		c := Options{CacheDir: filepath.Join(t.TempDir(), "new"), Warn: func(err error) { t.Errorf("%s: %v", name, err) }}
		want := answersOf(t, keptImage(t, name, Options{}))
		if got := answersOf(t, keptImage(t, name, c)); got != want {
			t.Errorf("%s: the scan that was kept answers otherwise", name)
		}
		img := keptImage(t, name, c)
		if got := answersOf(t, img); got != want {
			t.Errorf("%s: the kept scan answers otherwise:\n%s\nwant\n%s", name, got, want)
		}
		if img.r.Index.Kept == nil {
			t.Errorf("%s: the kept scan was not used", name)
		}
		sites, err := img.Sites(context.Background(), Name("pkt_hold"))
		other, err2 := keptImage(t, name, Options{}).Sites(context.Background(), Name("pkt_hold"))
		if err != nil || err2 != nil || len(sites) != len(other) {
			t.Errorf("%s: one function: %d sites, without the cache %d", name, len(sites), len(other))
		}
		if err := img.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestKeptDamaged: whatever a kept file holds, the answer is that of a scan, with one
// warning, and the file is made anew.
func TestKeptDamaged(t *testing.T) {
	const name = "basic-gcc12-O2-dwarf5.elf"
	dir := t.TempDir()
	want := answersOf(t, keptImage(t, name, Options{CacheDir: dir}))
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("kept files: %v, %v", files, err)
	}
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for what, bad := range map[string][]byte{
		"empty":          {},
		"cut short":      good[:len(good)/2],
		"another format": append([]byte("bpfpack\n"), good[8:]...),
		"a bit":          slices.Concat(good[:len(good)-137], []byte{good[len(good)-137] ^ 1}, good[len(good)-136:]),
		"more":           append(slices.Clone(good), 0),
	} {
		if err := os.WriteFile(files[0], bad, 0o600); err != nil {
			t.Fatal(err)
		}
		var warnings []error
		img := keptImage(t, name, Options{CacheDir: dir, Warn: func(err error) { warnings = append(warnings, err) }})
		if got := answersOf(t, img); got != want {
			t.Errorf("%s: the answers differ", what)
		}
		if len(warnings) != 1 || !errors.Is(warnings[0], index.ErrDamagedIndex) {
			t.Errorf("%s: warnings %v", what, warnings)
		}
		if now, err := os.ReadFile(files[0]); err != nil || string(now) != string(good) {
			t.Errorf("%s: the file was not made anew: %v", what, err)
		}
	}
}

// TestKeptPartsDamaged: records whose checksum is wrong, and frames that are none, are found again in the image. Records that are none and have a
// checksum that is right are an error: the rest of such a file is not to be believed either.
func TestKeptPartsDamaged(t *testing.T) {
	const name = "basic-gcc12-O2-dwarf5.elf"
	dir := t.TempDir()
	img := keptImage(t, name, Options{CacheDir: dir})
	want, path := answersOf(t, img), img.r.Index.KeptPath()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	own := len(good) - index.KeptKnown
	file, err := index.KeptKind.Open(good[:own], path)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range index.KeptKind.Parts {
		at := file.Part(i)
		if part != "records" && part != "frames" || at.From == at.To {
			continue
		}
		from, to := own-file.Size()+at.From, own-file.Size()+at.To
		bad := slices.Concat(good[:from], bytes.Repeat([]byte{0x7f}, to-from), good[to:])
		lies := slices.Clone(bad)
		index.KeptKind.Reseal(lies[:own])
		if part == "frames" {
			bad = lies
		} else {
			if err := os.WriteFile(path, lies, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := keptImage(t, name, Options{CacheDir: dir}).Sites(context.Background(), nil); !errors.Is(err, index.ErrDamagedIndex) {
				t.Errorf("%s that are none: %v", part, err)
			}
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		var warnings []error
		o := Options{CacheDir: dir, Warn: func(err error) { warnings = append(warnings, err) }}
		if got := answersOf(t, keptImage(t, name, o)); got != want {
			t.Errorf("%s: the answers differ", part)
		}
		if part == "records" && (len(warnings) != 1 || !errors.Is(warnings[0], index.ErrDamagedIndex)) {
			t.Errorf("%s: warnings %v", part, warnings)
		}
		if got := answersOf(t, keptImage(t, name, o)); got != want || len(warnings) > 1 {
			t.Errorf("%s: the next answers differ, or %v", part, warnings)
		}
	}
}

// TestKeptOtherSections: one build ID, other sections: the kept scan is not used.
func TestKeptOtherSections(t *testing.T) {
	dir := t.TempDir()
	a := keptImage(t, "basic-gcc12-O2-dwarf5.elf", Options{CacheDir: dir})
	if err := a.r.Index.Scan(context.Background()); err != nil {
		t.Fatal(err)
	}
	b := keptImage(t, "basic-gcc12-O0-dwarf5.elf", Options{CacheDir: dir})
	b.r.Index.O.Key = a.BuildID()
	if err := b.r.Index.Scan(context.Background()); err != nil || b.r.Index.Kept != nil {
		t.Errorf("the scan of another image was used (%v)", err)
	}
}

// TestCacheLimit: what was not used for longest goes first.
func TestCacheLimit(t *testing.T) {
	dir := t.TempDir()
	o := Options{CacheDir: dir}
	var ids []string
	for i, name := range []string{"basic-gcc12-O2-dwarf5.elf", "basic-gcc12-O2-dwarf4.elf", "basic-gcc12-O0-dwarf5.elf"} {
		img := keptImage(t, name, o)
		if err := img.r.Index.Scan(context.Background()); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, img.BuildID())
		old := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, img.BuildID()+index.KeptSuffix), old, old); err != nil {
			t.Fatal(err)
		}
	}
	list, err := index.ListKept(dir)
	if err != nil || len(list) != 3 || list[0].Key != ids[2] || list[2].Key != ids[0] {
		t.Fatalf("list: %v, %v", list, err)
	}
	// Using the oldest makes it the newest.
	if err := keptImage(t, "basic-gcc12-O2-dwarf5.elf", o).r.Index.Scan(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := index.Evict(dir, list[0].Size+list[2].Size+1, ""); err != nil {
		t.Fatal(err)
	}
	list, err = index.ListKept(dir)
	if err != nil || len(list) != 2 || list[0].Key != ids[0] || list[1].Key != ids[2] {
		t.Errorf("after eviction: %v, %v", list, err)
	}
	if err := index.ClearKept(dir); err != nil {
		t.Fatal(err)
	}
	if list, err = index.ListKept(dir); err != nil || len(list) != 0 {
		t.Errorf("after clearing: %v, %v", list, err)
	}
}
