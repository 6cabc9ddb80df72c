package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// output is a file that a verb writes. A file that was there stays as it is until the work is done: then the new one takes its
// place. What grows while somebody looks at it begins with the first byte. A device, a pipe or a link is written to as it stands.
type output struct {
	path string
	f    *os.File // nil before the first byte of a live one
	live bool
	temp bool // f is renamed in the end
}

func newOutput(path string, live bool) (*output, error) {
	o := &output{path: path, live: live}
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
		}
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		o.f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
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
	}
	return o, o.f.Chmod(mode)
}

func (o *output) Write(b []byte) (int, error) {
	if o.f == nil {
		var err error
		if o.f, err = os.Create(o.path); err != nil {
			return 0, err
		}
	}
	return o.f.Write(b)
}

// close ends the file. done is set if the work is done: an answer that is not whole is removed, but what grew stays.
func (o *output) close(done bool) error {
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
