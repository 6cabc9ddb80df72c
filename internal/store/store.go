// Package store keeps files in a directory that belongs to its user: files that are there whole or not
// at all, that nobody else can have written, and of which the least recently used ones go when they
// become too many. Several processes may use one directory at once, and any may be killed at any time.
//
// Nothing in the directory is trusted because of its name. A link, a pipe, another user's file, one that
// others may write to, or one that is too large is not opened.
package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// ErrUnusable is wrapped by errors about a directory that cannot be used, now and the next time: it is
// not there and cannot be made, it is not the user's own, or nothing can be written to it.
var ErrUnusable = errors.New("the directory cannot be used")

// Dir is a directory of files.
type Dir struct {
	path  string
	f     *os.File
	files func(name string) bool
}

// Open opens a directory. files matches the names of files that are kept: others are left alone. The error
// wraps fs.ErrNotExist if the directory is not there.
func Open(path string, files func(name string) bool) (*Dir, error) {
	// A link to a directory is followed: the user, or a distribution, has made it. What counts is whose
	// the directory is that it leads to.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, unusable(&fs.PathError{Op: "open", Path: path, Err: err})
	}
	d := &Dir{path, os.NewFile(uintptr(fd), path), files}
	if err := d.check(d.f, path); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrUnusable, err), d.Close())
	}
	return d, nil
}

// Create opens a directory, which it makes if it is not there.
func Create(path string, files func(name string) bool) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, unusable(err)
	}
	return Open(path, files)
}

// unusable wraps ErrUnusable around errors that the next call would have too. A full disk is none: it may
// be another one's files that go.
func unusable(err error) error {
	for _, e := range []error{unix.EACCES, unix.EPERM, unix.EROFS, unix.ENOTDIR, unix.ELOOP} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w", ErrUnusable, err)
		}
	}
	return err
}

// Close closes the directory. Files that were opened stay open.
func (d *Dir) Close() error { return d.f.Close() }

// check returns an error for what is not this user's own.
func (d *Dir) check(f *os.File, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s is another user's (%d)", path, st.Uid)
	case !mapping.Unshared(&st):
		return fmt.Errorf("others may write to %s (mode %#o)", path, st.Mode&0o777)
	}
	return nil
}

// File opens a file of at most some bytes, for reading. The error wraps fs.ErrNotExist if it is not
// there.
func (d *Dir) File(name string, most int64) (*os.File, error) {
	path := d.path + "/" + name
	// A pipe without a writer would block, and a link may lead anywhere.
	fd, err := unix.Openat(int(d.f.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	st, err := f.Stat()
	switch {
	case err != nil:
	case !st.Mode().IsRegular():
		err = fmt.Errorf("%s: not a regular file", path)
	case st.Size() > most:
		err = fmt.Errorf("%s: %d bytes are too many", path, st.Size())
	default:
		err = d.check(f, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Used notes that a file is in use: List has the time. If that cannot be noted the file is only removed
// earlier.
func Used(f *os.File) {
	now := unix.NsecToTimeval(time.Now().UnixNano())
	_ = unix.Futimes(int(f.Fd()), []unix.Timeval{now, now})
}

// isUnfinished reports whether a name is that of a file that is being written: of the process, and a random number.
func isUnfinished(name string) bool {
	name, ok := strings.CutPrefix(name, ".new-")
	process, number, has := strings.Cut(name, "-")
	return ok && onlyOf(process, "0123456789") && (!has || onlyOf(number, "0123456789abcdef"))
}

func onlyOf(s, chars string) bool { return s != "" && strings.Trim(s, chars) == "" }

// Write makes a file of some parts, in place of one that has the name.
func (d *Dir) Write(name string, parts ...[]byte) error {
	f, temporary, err := d.begin()
	if err != nil {
		return unusable(err)
	}
	for _, p := range parts {
		if err == nil {
			_, err = f.Write(p)
		}
	}
	if err == nil {
		dir := int(d.f.Fd())
		if err = unix.Renameat(dir, temporary, dir, name); err != nil {
			err = &os.LinkError{Op: "rename", Old: d.path + "/" + temporary, New: d.path + "/" + name, Err: err}
		}
	}
	if err != nil {
		err = errors.Join(err, d.Remove(temporary))
	}
	return errors.Join(err, f.Close())
}

// begin makes a file with a name of its own. It is locked for as long as it is open: so other processes
// see that its writer lives.
func (d *Dir) begin() (f *os.File, name string, err error) {
	for range 100 {
		name = fmt.Sprintf(".new-%d-%x", os.Getpid(), rand.Uint64())
		fd, err := unix.Openat(int(d.f.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return nil, "", &fs.PathError{Op: "create", Path: d.path + "/" + name, Err: err}
		}
		f := os.NewFile(uintptr(fd), d.path+"/"+name)
		_ = unix.Flock(fd, unix.LOCK_EX) // not all file systems have locks: see sweep
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err == nil && st.Nlink > 0 {
			return f, name, nil
		}
		_ = f.Close() // another process has removed it before it was locked
	}
	return nil, "", fmt.Errorf("%s: no file can be made", d.path)
}

// Entry is one file.
type Entry struct {
	Name       string
	Size       int64 // bytes
	Used       time.Time
	Unfinished bool // being written, or left by a process that was killed
}

// List returns the files, the most recently used one first.
func (d *Dir) List() ([]Entry, error) {
	// Each list begins anew, whatever was read of the directory before.
	if _, err := d.f.Seek(0, 0); err != nil {
		return nil, err
	}
	names, err := d.f.Readdirnames(-1)
	var out []Entry
	for _, name := range names {
		begun := isUnfinished(name)
		if !begun && !d.files(name) {
			continue
		}
		var st unix.Stat_t
		if unix.Fstatat(int(d.f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&unix.S_IFMT == unix.S_IFDIR {
			continue // another process has removed it
		}
		out = append(out, Entry{name, st.Size, time.Unix(st.Mtim.Unix()), begun})
	}
	sort.Slice(out, func(i, j int) bool {
		return cmp.Or(out[j].Used.Compare(out[i].Used), strings.Compare(out[i].Name, out[j].Name)) < 0
	})
	return out, err
}

// Remove removes a file. It is no error if it is not there.
func (d *Dir) Remove(name string) error {
	if err := unix.Unlinkat(int(d.f.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "remove", Path: d.path + "/" + name, Err: err}
	}
	return nil
}

// Evict removes the least recently used files until the others take limit bytes or less. It never
// removes the file that is named, and none that is being written.
func (d *Dir) Evict(limit int64, except string) error {
	list, err := d.List()
	total := int64(0)
	for i := range list {
		e := &list[i]
		if total += e.Size; total > limit && e.Name != except && !e.Unfinished {
			err = errors.Join(err, d.Remove(e.Name))
		}
	}
	return err
}

// Clear removes all kept files but those that are being written.
func (d *Dir) Clear() error {
	list, err := d.List()
	for i := range list {
		if e := &list[i]; e.Unfinished {
			err = errors.Join(err, d.sweep(e))
		} else {
			err = errors.Join(err, d.Remove(e.Name))
		}
	}
	return err
}

// Sweep removes the files that processes were writing when they were killed.
func (d *Dir) Sweep() error {
	list, err := d.List()
	for i := range list {
		if e := &list[i]; e.Unfinished {
			err = errors.Join(err, d.sweep(e))
		}
	}
	return err
}

// slowest is how long a writer may take where file systems have no locks.
const slowest = time.Hour

// sweep removes a file if nobody writes it any more. It holds the lock meanwhile, so that a writer that
// has just made the file sees that it is gone: see begin.
func (d *Dir) sweep(e *Entry) error {
	fd, err := unix.Openat(int(d.f.Fd()), e.Name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return d.Remove(e.Name) // what Write makes is no link, and can be read
	}
	f := os.NewFile(uintptr(fd), e.Name)
	defer f.Close()
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || err != nil && time.Since(e.Used) < slowest {
		return nil
	}
	return d.Remove(e.Name)
}
