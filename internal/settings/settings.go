// Package settings changes settings of the kernel for as long as many kprobes are made or ended,
// and puts them back.
//
//	restore, err := settings.Hasten()
//	defer restore()
//
// Each kprobe that a perf event makes waits for a grace period of RCU, one after the other, since
// the kernel makes and ends them under one mutex (event_mutex in kernel/trace), and a probe that
// was optimized into a jump for more. With expedited grace periods and without optimization 1,580
// probes in Linux 6.1 take a fifth of the time (45 s instead of 226 in an emulator). When optimization is allowed again, the kernel
// optimizes all probes together.
package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// setting is a file of the kernel, and what is written to it meanwhile.
type setting struct{ path, hasty string }

// The settings: Documentation/RCU/checklist.rst and Documentation/trace/kprobes.rst. Kernels
// without optimization of kprobes do not have the second.
var settings = []setting{
	{"/sys/kernel/rcu_expedited", "1"},
	{"/proc/sys/debug/kprobes-optimization", "0"},
}

// note is the file that says what the settings were, for as long as they are changed: if a process
// is killed meanwhile, the next one puts them back. A process that holds a lock on it is at work.
var note = "/run/bpfprologue-settings"

var state struct {
	mu    sync.Mutex
	users int
	file  *os.File // the note, locked
	old   []string // what settings were
}

// Hasten changes the settings until the last of its callers in this process has called restore. It
// does nothing if another process has changed them. An error is no reason to go on more slowly
// than without: nothing was changed then.
func Hasten() (restore func() error, err error) {
	state.mu.Lock()
	defer state.mu.Unlock()
	if state.users == 0 {
		if err := begin(); err != nil {
			return func() error { return nil }, err
		}
	}
	state.users++
	var once sync.Once
	return func() (err error) {
		once.Do(func() {
			state.mu.Lock()
			defer state.mu.Unlock()
			if state.users--; state.users == 0 {
				err = end()
			}
		})
		return err
	}, nil
}

// Recover puts back what a process that was killed has left changed, if there is such and this one may.
// Nothing depends on it: probes are only made sooner.
func Recover() error {
	state.mu.Lock()
	defer state.mu.Unlock()
	if _, err := os.Lstat(note); state.users > 0 || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	switch err := begin(); {
	case errors.Is(err, fs.ErrPermission):
		return nil
	case err != nil:
		return err
	}
	return end()
}

// begin locks the note, puts back what it says, and changes the settings. If another process has
// the lock, it does nothing.
func begin() error {
	state.file, state.old = nil, nil
	f, err := lock()
	if f == nil {
		return err
	}
	if err := putBack(f); err != nil {
		return errors.Join(err, f.Close())
	}
	var text strings.Builder
	for _, s := range settings {
		old, err := os.ReadFile(s.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, f.Close())
		}
		state.old = append(state.old, strings.TrimSpace(string(old)))
		fmt.Fprintf(&text, "%s %s\n", s.path, state.old[len(state.old)-1])
	}
	if _, err := f.WriteAt([]byte(text.String()), 0); err != nil {
		return errors.Join(err, f.Close())
	}
	state.file = f
	for i, s := range settings {
		if state.old[i] == "" || state.old[i] == s.hasty {
			continue
		}
		if err := os.WriteFile(s.path, []byte(s.hasty), 0); err != nil {
			return errors.Join(err, end())
		}
	}
	return nil
}

// lock opens the note and locks it. The result is nil if another process has the lock.
func lock() (*os.File, error) {
	for {
		f, err := os.OpenFile(note, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			if errors.Is(err, unix.EWOULDBLOCK) {
				err = nil
			}
			return nil, errors.Join(err, f.Close())
		}
		mine, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if now, err := os.Lstat(note); err == nil && os.SameFile(mine, now) {
			return f, nil
		}
		// Another process has removed it after this one had opened it.
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// putBack writes the settings that a note has, and empties it.
func putBack(f *os.File) error {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return err
	}
	text := make([]byte, min(st.Size(), 4096))
	if _, err := f.ReadAt(text, 0); err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		path, old, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, s := range settings {
			if _, err := strconv.Atoi(old); s.path != path || err != nil {
				continue // not from this program
			}
			if err := os.WriteFile(s.path, []byte(old), 0); err != nil {
				return err
			}
		}
	}
	return f.Truncate(0)
}

// end puts the settings back and removes the note.
func end() error {
	f := state.file
	if f == nil {
		return nil // another process changed them
	}
	state.file = nil
	if err := putBack(f); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(os.Remove(note), f.Close())
}
