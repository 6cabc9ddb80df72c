package dwarfloc_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/raced"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestKeptPlain: parameters of bodies of which it is kept that nothing is lacking are what they were when it was found out.
func TestKeptPlain(t *testing.T) {
	raced.OneGoroutine(t)
	path := testenv.Vmlinux(t)
	o := &dwarfloc.Options{CacheDir: filepath.Join(t.TempDir(), "cache"), Warn: func(err error) { t.Error(err) }}
	var sums [2]uint64
	for i := range sums {
		img, err := dwarfloc.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		own := make([]uint64, runtime.GOMAXPROCS(0))
		err = img.EachSite(context.Background(), nil, func(worker int, s dwarfloc.SiteRef) error {
			params, err := s.Params()
			if err != nil {
				return err
			}
			h := fnv.New64a()
			fmt.Fprint(h, s.DIE)
			for _, v := range params {
				fmt.Fprintln(h, v.Name, v.Loc.Text(img.Arch()), v.Loc.Rule, v.Loc.Doubt, v.Reason, v.Because, v.LowBit, v.Entries)
			}
			own[worker] += h.Sum64()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range own {
			sums[i] += n
		}
		if err := img.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if sums[0] != sums[1] {
		t.Error("parameters are others when the index is kept")
	}
}
