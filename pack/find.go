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
	"github.com/bpfprologue/bpfprologue/internal/packfile"
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

// archiveExtension is how the names of archives end in a directory that Find looks into.
const archiveExtension = ".packs"

// Find finds the pack of an image, by the image's build ID in hexadecimal digits, in the first of the directories that has it, or else
// in the first archive there. It returns the file's path, and of an archive the pack as dwarfloc.FromBytes takes it. Whether the pack is
// what its name says is checked by who uses it: dwarfloc.Image.BuildID.
//
// The error wraps fs.ErrNotExist if there is none. An archive that cannot be read is passed over, and is the error if no other file has
// the pack.
func Find(buildID string, dirs []string) (path string, archived []byte, err error) {
	if buildID == "" || strings.Trim(buildID, "0123456789abcdef") != "" {
		return "", nil, fmt.Errorf("no pack of build ID %q: %w", buildID, fs.ErrNotExist)
	}
	var looked []string
	for _, dir := range dirs {
		path := filepath.Join(dir, buildID+Extension)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			return path, nil, nil
		}
		looked = append(looked, path)
	}
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
				return path, d, nil
			}
			looked = append(looked, path)
		}
	}
	if failed != nil {
		return "", nil, failed
	}
	return "", nil, fmt.Errorf("no pack of build ID %s: %w; looked at %s", buildID, fs.ErrNotExist, strings.Join(looked, ", "))
}

// inArchive returns a copy of a pack in an archive, or nil if that does not have it.
func inArchive(path, buildID string) (d []byte, err error) {
	m, err := mapping.Open(path)
	if err != nil {
		return nil, err
	}
	err = mapping.Guard(func() error {
		a, err := packfile.OpenArchive(m.Data, path)
		if err == nil {
			d = bytes.Clone(a.Find(buildID))
		}
		return err
	})
	return d, errors.Join(err, m.Close())
}
