package pack

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// Extension is how the names of packs end in a directory that Find looks into: BUILD-ID.pack.
const Extension = ".pack"

// Dirs returns where packs of all users and of this user are installed. The user's directory counts if it is the
// user's own, and nobody else may write to it: root with another user's home (sudo can keep that) does not believe
// that user's packs.
func Dirs() []string {
	dirs := []string{"/usr/lib/bpfprologue/packs"}
	dir, err := os.UserConfigDir()
	if err != nil {
		return dirs
	}
	dir = filepath.Join(dir, "bpfprologue", "packs")
	if st, err := os.Stat(dir); err == nil && st.Mode().Perm()&0o022 == 0 {
		if own, ok := st.Sys().(*syscall.Stat_t); ok && own.Uid == uint32(os.Geteuid()) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// NotFoundError is the error of Find if no directory has a pack of the build.
type NotFoundError struct {
	BuildID string
	Looked  []string // paths
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no pack of build ID %s found; looked at %s", e.BuildID, strings.Join(e.Looked, ", "))
}

// Is makes errors.Is(err, fs.ErrNotExist) true.
func (e *NotFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// Find returns the path of the pack of an image, by the image's build ID in hexadecimal digits, in the first of the
// directories that has it. The error is a *NotFoundError. Whether the pack is what its name says is checked by
// who uses it: dwarfloc.Image.BuildID.
func Find(buildID string, dirs []string) (string, error) {
	e := &NotFoundError{BuildID: buildID}
	if buildID == "" || strings.Trim(buildID, "0123456789abcdef") != "" {
		return "", e
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, buildID+Extension)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			return path, nil
		}
		e.Looked = append(e.Looked, path)
	}
	return "", e
}

// archiveExtension is how the names of archives end in a directory that FindArchived looks into.
const archiveExtension = ".packs"

// FindArchived returns the pack of an image from the first archive in the directories that has it, and the archive's path.
// An archive that cannot be read is passed over, and told in the error if no other one has the pack; that is a
// *NotFoundError otherwise.
func FindArchived(buildID string, dirs []string) (data []byte, path string, err error) {
	missing := &NotFoundError{BuildID: buildID}
	var failed error
	for _, dir := range dirs {
		archives, err := filepath.Glob(filepath.Join(dir, "*"+archiveExtension))
		if err != nil {
			continue // the directory's name is no pattern
		}
		for _, path := range archives {
			d, err := inArchive(path, buildID)
			switch {
			case err != nil:
				failed = errors.Join(failed, err)
			case d != nil:
				return d, path, nil
			}
			missing.Looked = append(missing.Looked, path)
		}
	}
	if failed != nil {
		return nil, "", failed
	}
	return nil, "", missing
}

// inArchive returns a copy of a pack in an archive, or nil if that does not have it.
func inArchive(path, buildID string) (d []byte, err error) {
	m, err := mapping.Open(path)
	if err != nil {
		return nil, err
	}
	err = mapping.Guard(func() error {
		a, err := OpenArchive(m.Data, path)
		if err == nil {
			d = bytes.Clone(a.Find(buildID))
		}
		return err
	})
	return d, errors.Join(err, m.Close())
}
