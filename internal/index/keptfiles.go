package index

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/mapping"
	"github.com/bpfprologue/bpfprologue/internal/store"
)

// KeptFile is one kept scan.
type KeptFile struct {
	Key        string
	Path       string // where the image was that was scanned, or "": an older version's, or a damaged file
	Size       int64  // bytes
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
		key, own := strings.CutSuffix(e.Name, KeptSuffix)
		k := KeptFile{Key: key, Size: e.Size, Used: e.Used, Unfinished: e.Unfinished}
		if own {
			k.Path = placeIn(d, &e)
		}
		out = append(out, k)
	}
	return out, err
}

// placeIn returns the path that a kept file has. What is wrong with it is said when it is used.
func placeIn(d *store.Dir, e *store.Entry) (path string) {
	f, err := d.File(e.Name, e.Size)
	if err != nil {
		return ""
	}
	m, err := mapping.Of(f, e.Name)
	if err != nil {
		return ""
	}
	defer m.Close()
	err = mapping.Guard(func() error {
		section, err := KeptKind.Open(m.Data[:max(len(m.Data)-KeptKnown, 0)], e.Name)
		if err != nil {
			return err
		}
		at := section.Part(keptPath)
		text, err := section.Bytes(at.From, at.To)
		path = string(text)
		return err
	})
	if err != nil {
		return ""
	}
	return path
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
