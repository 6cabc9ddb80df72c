package index

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/store"
)

// KeptFile is one kept scan.
type KeptFile struct {
	Key        string
	Size       int64 // bytes
	Used       time.Time
	Unfinished bool // it is being written, or was when its writer was killed
}

// ListKept returns the scans kept in a directory, the most recently used one first.
func ListKept(dir string) ([]KeptFile, error) {
	d, err := store.Open(dir, isKept)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.List()
	var out []KeptFile
	for _, e := range entries {
		out = append(out, KeptFile{strings.TrimSuffix(e.Name, KeptSuffix), e.Size, e.Used, e.Unfinished})
	}
	return out, err
}

// ClearKept removes all scans kept in a directory.
func ClearKept(dir string) error {
	d, err := store.Open(dir, isKept)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Clear()
}

// defaultLimit is the size in bytes that all kept scans may have together.
const defaultLimit = 1 << 30

func limitOf(limit int64) int64 {
	if limit == 0 {
		return defaultLimit
	}
	return limit
}

// Evict removes the least recently used files until the others take limit bytes or
// less. It never removes the file at path.
func Evict(dir string, limit int64, path string) error {
	d, err := store.Open(dir, isKept)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Evict(limitOf(limit), filepath.Base(path))
}
