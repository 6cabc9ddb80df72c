package dwarfloc

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/runs"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestKeptWays: the ways of bodies are those that were found when the index was made, and are not looked for again; damaged ones are.
func TestKeptWays(t *testing.T) {
	const name = "run-gcc12-O2-dwarf5.exe"
	path, err := fixtures.WriteTo(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{CacheDir: filepath.Join(t.TempDir(), "cache"), Warn: func(err error) { t.Error(err) }}
	open := func(o *Options) (*Image, []*Site) {
		img, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		sites, err := img.Sites(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return img, sites
	}
	waysOf := func(img *Image, sites []*Site) []runs.Ways {
		ways, err := img.waysOfSites(context.Background(), sites)
		if err != nil {
			t.Fatal(err)
		}
		return ways
	}
	known := func(sites []*Site) (n int) {
		for _, s := range sites {
			if s.Kind == SiteInline && s.u.keptWays(s.spot.Rec, new(runs.Ways)) {
				n++
			}
		}
		return n
	}
	img, sites := open(nil)
	want := waysOf(img, sites)
	if n := known(sites); n > 0 {
		t.Errorf("%d ways are kept without a place for it", n)
	}
	_ = img.Close()

	img, sites = open(o)
	some := 0
	for i, s := range sites {
		if s.Kind == SiteInline {
			if some++; some == 1 {
				waysOf(img, sites[i:i+1]) // of one body alone
			}
		}
	}
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, some} { // the second process adds what the first did not ask for
		img, sites = open(o)
		if got := known(sites); got != n {
			t.Errorf("%d ways are kept, want %d", got, n)
		}
		got := waysOf(img, sites)
		for i := range want {
			if !sameWays(&got[i], &want[i]) {
				t.Errorf("%v: ways %+v, want %+v", sites[i], got[i], want[i])
			}
		}
		_ = img.Close()
	}

	img, sites = open(o)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range img.units {
		block := append([]byte(nil), img.r.Index.Derived(i)...)
		for range min(len(block), 8) {
			block[random.IntN(len(block))] ^= byte(1 + random.IntN(255))
		}
		img.r.Index.Derive(i, block)
	}
	waysOf(img, sites) // answers or others, and no panic
	_ = img.Close()
}

func sameWays(a, b *runs.Ways) bool {
	same := func(a, b []runs.Way) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }
	return a.Unknown == b.Unknown && a.Within == b.Within && a.NoReturn == b.NoReturn && same(a.In, b.In) && same(a.Out, b.Out)
}
