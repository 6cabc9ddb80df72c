package mapping

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestGuardTruncatedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	whole := filepath.Join(t.TempDir(), "g")
	if err := os.WriteFile(whole, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	var sum byte
	err = Guard(func() error {
		for _, b := range m.Data {
			sum += b
		}
		return nil
	})
	if want := path + ": the file was changed while it was being read: open it again when it is complete"; !errors.Is(err, ErrFault) || err.Error() != want {
		t.Errorf("reading a truncated mapping: got error %v, want %s", err, want)
	}
	if !errors.Is(m.Faulted(), ErrFault) || other.Faulted() != nil || other.Changed() != nil {
		t.Errorf("faulted: %v, and another file: %v, %v", m.Faulted(), other.Faulted(), other.Changed())
	}
}

// TestChanged checks that a file that was written to is an error, and that one that was
// replaced is not.
func TestChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	open := func() *Mapping {
		if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		if err := m.Changed(); err != nil {
			t.Error(err)
		}
		return m
	}
	m := open()
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("another"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := m.Changed(); err != nil {
		t.Errorf("replaced: %v", err)
	}
	m = open()
	if err := os.WriteFile(path, []byte("behind its back"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.Changed(); !errors.Is(err, ErrFault) {
		t.Errorf("written to: %v", err)
	}
	if err := m.Faulted(); !errors.Is(err, ErrFault) {
		t.Errorf("written to, and asked again: %v", err)
	}
}

// TestGuardAfterClose checks that reading a closed mapping is an error too, as long as
// nothing else was mapped in its place.
func TestGuardAfterClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	data := m.Data
	if err := errors.Join(m.Close(), m.Close()); err != nil {
		t.Fatal(err)
	}
	err = Guard(func() error {
		if data[0] == 1 {
			return errors.New("read")
		}
		return nil
	})
	if !errors.Is(err, ErrFault) {
		t.Errorf("got %v", err)
	}
}

func TestGuardPassesOtherPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Guard swallowed a panic that was no fault")
		}
	}()
	_ = Guard(func() error { panic("a bug") })
}

// TestWork: where nobody could recover a panic, it is an error.
func TestWork(t *testing.T) {
	err := Work(func() error { panic("a bug") })
	if !errors.Is(err, ErrPanic) || !strings.HasPrefix(err.Error(), "internal error: a bug\n") {
		t.Errorf("got %v", err)
	}
}

// TestPutBack: a file that was written to, and whose time of that was put back, has changed.
func TestPutBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond) // the kernel's clock of files has ticks
	if err := errors.Join(os.WriteFile(path, []byte("behind"), 0o600), os.Chtimes(path, st.ModTime(), st.ModTime())); err != nil {
		t.Fatal(err)
	}
	if err := m.Changed(); !errors.Is(err, ErrFault) {
		t.Errorf("got %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a directory was mapped")
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(empty)
	if err != nil || len(m.Data) != 0 {
		t.Errorf("empty file: %v, %v", m, err)
	}
}
