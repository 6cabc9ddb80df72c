package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/jsonline"
	"github.com/bpfprologue/bpfprologue/internal/outfile"
	"github.com/bpfprologue/bpfprologue/internal/place"
)

// A tree of packs is what any server of static files can hand out by build ID: DIR/buildid/BUILDID/pack, as debuginfod's files are called.
// Whoever writes a pack into it makes the index anew, from what is there: so many can write at once, and need not know of each other.

// treeName is what a pack is called in a tree.
const treeName = "pack"

// indexName is the file of a tree that lists its packs, a line of JSON each.
const indexName = "index.jsonl"

// indexed is a line of the index.
type indexed struct {
	BuildID string `json:"build_id"`
	Path    string `json:"path"` // below the directory of the index
	Bytes   int64  `json:"bytes"`
	Arch    string `json:"arch"`
	Release string `json:"release,omitempty"`
	Module  string `json:"module,omitempty"`
}

// WriteInTree writes the pack of an image below a directory, and the index. It returns the pack's path. Nothing is left of a pack that cannot
// be written.
func WriteInTree(dir string, img *dwarfloc.Image, write func(w io.Writer) error) (path string, err error) {
	if img.BuildID() == "" {
		return "", fmt.Errorf("%s: no build ID, by which its pack could be asked for", img.Path())
	}
	path = filepath.Join(dir, "buildid", img.BuildID(), treeName)
	parent := filepath.Dir(path)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	o, err := outfile.Create(path, false)
	if err == nil {
		err = write(o)
		err = errors.Join(err, o.Close(err == nil))
	}
	if err != nil {
		_ = os.Remove(parent) // which succeeds if nothing is in it
		_ = os.Remove(filepath.Dir(parent))
		return "", err
	}
	return path, writeIndex(dir)
}

// writeIndex writes the index of a tree. The directory is locked meanwhile: a slower one would take back what a later one has seen.
func writeIndex(dir string) (err error) {
	lock, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOLCK) {
		return &fs.PathError{Op: "flock", Path: dir, Err: err}
	}
	builds, err := os.ReadDir(filepath.Join(dir, "buildid"))
	if err != nil {
		return err
	}
	var all []indexed
	for _, b := range builds {
		path := filepath.Join(dir, "buildid", b.Name(), treeName)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue // it is being written
		}
		x, err := readIndexed(dir, path)
		if err != nil {
			return err
		}
		all = append(all, *x)
	}
	o, err := outfile.Create(filepath.Join(dir, indexName), false)
	if err != nil {
		return err
	}
	for i := range all {
		if err = jsonline.Write(o, &all[i]); err != nil {
			break
		}
	}
	return errors.Join(err, o.Close(err == nil))
}

func readIndexed(dir, path string) (_ *indexed, err error) {
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	if own := filepath.Base(filepath.Dir(path)); img.BuildID() != own {
		return nil, fmt.Errorf("%s: the pack is of another build: %s", path, cmp.Or(img.BuildID(), "it has no build ID"))
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	x := &indexed{BuildID: img.BuildID(), Bytes: st.Size(), Arch: img.Arch().Name, Release: release(img)}
	if x.Path, err = filepath.Rel(dir, path); err != nil {
		return nil, err
	}
	if inside.File(img).IsRelocatable() {
		x.Module = place.ModuleName(img)
	}
	return x, nil
}
