package pack

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Extension is how the names of packs end in a directory that Find looks into: BUILD-ID.pack.
const Extension = ".pack"

// Dirs returns where packs of all users and of this user are installed.
func Dirs() []string {
	dirs := []string{"/usr/lib/bpfprologue/packs"}
	if dir, err := os.UserConfigDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, "bpfprologue", "packs"))
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
