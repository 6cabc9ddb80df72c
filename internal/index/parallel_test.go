package index_test

import (
	"errors"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/index"
)

// TestParallelLate: what is wrong with a file can be noticed when all has been done.
func TestParallelLate(t *testing.T) {
	changed := errors.New("changed")
	x := index.New(nil, index.Options{Guard: func(f func() error) error { return errors.Join(f(), changed) }})
	if err := x.Parallel(3, func(*index.Scanner, int) error { return nil }); !errors.Is(err, changed) {
		t.Errorf("got %v", err)
	}
}
