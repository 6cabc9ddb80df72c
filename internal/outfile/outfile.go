// Package outfile writes the file that a user has named: whole, or not at all.
package outfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// File is a file that a verb writes. A regular file that was there stays as it is until the work is done: then the new one takes its
// place, also where a link leads to it. What grows while somebody looks at it begins with the first byte. A device or a pipe is written
// to as it stands, and so is what /dev/stdout and the like lead to.
type File struct {
	path string   // without links
	f    *os.File // nil before the first byte of a live one
	live bool
	temp bool // f is renamed in the end
}

// Create begins a file. A live one grows while somebody looks at it; any other is there when it is whole.
func Create(path string, live bool) (*File, error) {
	path, opened, err := throughLinks(path)
	if err != nil {
		return nil, err
	}
	o := &File{path: path, live: live}
	st, err := os.Stat(path)
	switch {
	case opened:
		// Not from the beginning: it may be a file that others have written to.
		o.f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		return o, err
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
		}
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		o.f, err = os.OpenFile(path, os.O_WRONLY, 0)
		return o, err
	}
	if live {
		return o, nil
	}
	o.temp = true
	if o.f, err = os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"); err != nil {
		return nil, err
	}
	mode := fs.FileMode(0o644)
	if st != nil {
		mode = st.Mode().Perm()
		if sys, ok := st.Sys().(*syscall.Stat_t); ok {
			_ = o.f.Chown(int(sys.Uid), int(sys.Gid)) // root writes to another user's file
		}
	}
	return o, o.f.Chmod(mode)
}

// throughLinks returns the path to which links lead. opened is set if that is a file that a process has opened, as for /dev/stdout,
// which cannot be replaced.
func throughLinks(path string) (to string, opened bool, err error) {
	for range 40 { // as many as the kernel follows
		st, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && st.Mode()&fs.ModeSymlink == 0 {
			return path, false, nil
		}
		if err != nil {
			return "", false, err
		}
		var system unix.Statfs_t
		if unix.Statfs(filepath.Dir(path), &system) == nil && system.Type == unix.PROC_SUPER_MAGIC {
			if st, err := os.Stat(path); err == nil && !st.IsDir() {
				return path, true, nil
			}
		}
		next, err := os.Readlink(path)
		if err != nil {
			return "", false, err
		}
		if !filepath.IsAbs(next) {
			next = filepath.Dir(path) + "/" + next // not joined: ".." after a link to a directory is elsewhere
		}
		path = next
	}
	return "", false, &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
}

func (o *File) Write(b []byte) (int, error) {
	if o.f == nil {
		var err error
		if o.f, err = os.Create(o.path); err != nil {
			return 0, err
		}
	}
	return o.f.Write(b)
}

// Close ends the file. done is set if the work is done: an answer that is not whole is removed, but what grew stays.
func (o *File) Close(done bool) error {
	if o.f == nil {
		if !done {
			return nil
		}
		return os.WriteFile(o.path, nil, 0o644) // nothing was to be written
	}
	err := o.f.Close()
	switch {
	case !o.temp:
		return err
	case err != nil || !done:
		return errors.Join(err, os.Remove(o.f.Name()))
	}
	return os.Rename(o.f.Name(), o.path)
}
