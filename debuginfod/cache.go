package debuginfod

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cacheDir returns the directory of elfutils' client: DEBUGINFOD_CACHE_PATH, or .debuginfod_client_cache in
// the home directory if that is there, or debuginfod_client in the user's cache directory.
func cacheDir() (string, error) {
	if dir := os.Getenv("DEBUGINFOD_CACHE_PATH"); dir != "" {
		return dir, nil
	}
	if home, err := os.UserHomeDir(); err == nil {
		old := filepath.Join(home, ".debuginfod_client_cache")
		if st, err := os.Stat(old); err == nil && st.IsDir() {
			return old, nil
		}
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no directory for downloaded files: set DEBUGINFOD_CACHE_PATH: %w", err)
	}
	return filepath.Join(dir, "debuginfod_client"), nil
}

// entry is one file of the cache: DIR/BUILDID/NAME, where an empty file says that no server had it.
type entry struct{ dir, buildID, name string }

func (e *entry) path() string { return filepath.Join(e.dir, e.buildID, e.name) }

// missing is for how long it is believed that no server has a file; the cache's own file
// cache_miss_s may say another number of seconds.
const missing = 10 * time.Minute

// lookUp returns the path of the file if it is in the cache. The error is ErrNotFound if it is known
// that no server has it.
func (e *entry) lookUp() (string, error) {
	st, err := os.Stat(e.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !st.Mode().IsRegular():
		return "", fmt.Errorf("%s: not a regular file", e.path())
	case st.Size() > 0:
		// elfutils' client removes what was not used for a week.
		now := time.Now()
		_ = os.Chtimes(e.path(), now, st.ModTime())
		return e.path(), nil
	}
	if time.Since(st.ModTime()) < e.missingFor() {
		return "", fmt.Errorf("build ID %s: %s: %w", e.buildID, e.name, ErrNotFound)
	}
	return "", nil
}

func (e *entry) missingFor() time.Duration {
	text, err := os.ReadFile(filepath.Join(e.dir, "cache_miss_s"))
	if err != nil {
		return missing
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 32)
	if err != nil || seconds < 0 {
		return missing
	}
	return time.Duration(seconds) * time.Second
}

// noteMissing notes that no server has the file. If that fails, they are asked again the next time.
func (e *entry) noteMissing() {
	if f, err := e.create(); err == nil {
		_ = errors.Join(f.Close(), os.Rename(f.Name(), e.path()))
	}
}

// create makes a new file beside the entry's.
func (e *entry) create() (*os.File, error) {
	dir := filepath.Join(e.dir, e.buildID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.CreateTemp(dir, e.name+".*")
}

// store writes what a server sends to the entry, all of it or nothing, and returns its path.
func (e *entry) store(a *answer) (string, error) {
	f, err := e.create()
	if err != nil {
		return "", err
	}
	if err = a.copyTo(f); err == nil {
		err = f.Chmod(0o400)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), e.path())
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return e.path(), nil
}
