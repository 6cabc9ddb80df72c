package mapping

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
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
	if !errors.Is(err, ErrFault) {
		t.Errorf("reading a truncated mapping: got error %v, want ErrFault", err)
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
