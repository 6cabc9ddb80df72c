package debuginfod

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/elfnote"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
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

// Names of entries that are ELF files.
const (
	debugInfo  = "debuginfo"
	executable = "executable"
	packed     = "pack"
)

func (e *entry) path() string { return filepath.Join(e.dir, e.buildID, e.name) }

// missing is for how long it is believed that no server has a file; the cache's own file
// cache_miss_s may say another number of seconds.
const missing = 10 * time.Minute

// lookUp returns the path of the file if it is in the cache. The error is ErrNotFound if it is known
// that no server has it. A file that is not what it is kept for is as good as none, whoever has put it there.
func (e *entry) lookUp() (string, error) {
	for _, dir := range []string{e.dir, filepath.Dir(e.path())} {
		if err := trusted(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%w: set DEBUGINFOD_CACHE_PATH to a directory of your own", err)
		}
	}
	st, err := os.Stat(e.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !st.Mode().IsRegular():
		return "", fmt.Errorf("%s: not a regular file", e.path())
	case trusted(e.path()) != nil:
		return "", nil
	case st.Size() > 0:
		if e.checkKept() != nil {
			_ = os.Remove(e.path()) // or it is replaced by the next one
			return "", nil
		}
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

// trusted returns an error for a file or directory that others than this user and root can write to. Whoever can chooses what
// is read of programs that are traced.
func trusted(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s: it is another user's (%d)", path, st.Uid)
	case !mapping.Unshared(&st):
		return fmt.Errorf("%s: others may write to it (mode %#o)", path, st.Mode&0o777)
	}
	return nil
}

// checkKept returns an error for a kept file that is not the entry's.
func (e *entry) checkKept() error {
	f, err := os.Open(e.path())
	if err != nil {
		return err
	}
	return errors.Join(e.check(f), f.Close())
}

// check returns an error for a file that is not the entry's: another build's, or no such file at all, as a page for people that
// a proxy sends in its place.
func (e *entry) check(f *os.File) error {
	if e.name != debugInfo && e.name != executable && e.name != packed {
		// A section has no build ID.
		begin := make([]byte, 512)
		n, err := f.ReadAt(begin, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if kind := http.DetectContentType(begin[:n]); strings.HasPrefix(kind, "text/html") {
			return errors.New("it is a page for a browser")
		}
		return nil
	}
	file, err := elf.NewFile(f)
	if err != nil {
		return fmt.Errorf("it is no ELF file, or damaged: %w", err)
	}
	if id := buildIDOf(file); id != e.buildID {
		return fmt.Errorf("its build ID is %s", cmp.Or(id, "none"))
	}
	if e.name == packed {
		return nil // whoever reads it checks each part that it reads
	}
	debug := slices.ContainsFunc(file.Sections, func(s *elf.Section) bool {
		return s.Type != elf.SHT_NOBITS && (strings.HasPrefix(s.Name, ".debug_") || strings.HasPrefix(s.Name, ".zdebug_"))
	})
	if e.name == debugInfo && !debug {
		return errors.New("it has no debug information")
	}
	return nil
}

// checkPack returns an error for a new file that is to be a pack and is none, or damaged.
func (e *entry) checkPack(f *os.File) error {
	if e.name != packed {
		return nil
	}
	m, err := mapping.Open(f.Name())
	if err != nil {
		return err
	}
	err = mapping.Guard(func() error {
		section, err := packfile.Find(m.Data, packed)
		if err != nil {
			return err
		}
		p, err := packfile.Open(section, packed)
		if err != nil {
			return err
		}
		return p.CheckFile(m.Data)
	})
	return errors.Join(err, m.Close())
}

// buildIDOf returns a file's build ID, from its sections or, if it has none, its segments.
func buildIDOf(file *elf.File) string {
	const most = 1 << 20
	id := func(r io.Reader) string {
		d, _ := io.ReadAll(io.LimitReader(r, most)) // what cannot be read has no build ID
		return elfnote.BuildID(d, file.ByteOrder)
	}
	for _, s := range file.Sections {
		if s.Type != elf.SHT_NOTE {
			continue
		}
		if id := id(s.Open()); id != "" {
			return id
		}
	}
	for _, p := range file.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		if id := id(p.Open()); id != "" {
			return id
		}
	}
	return ""
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
		if err = errors.Join(e.check(f), e.checkPack(f)); err != nil {
			err = fmt.Errorf("%s: what it sends is not the file: %w", terminal.Text(a.url), err)
		}
	}
	if err == nil {
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
