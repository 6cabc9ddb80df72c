package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func kept(name string) bool { return strings.HasSuffix(name, ".idx") }

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Create(path, kept)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func read(d *Dir, name string) (string, error) {
	f, err := d.File(name, 1<<20)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return string(b), err
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	if _, err := Open(path, kept); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	d := open(t, path)
	for _, text := range []string{"one", "other"} {
		if err := d.Write("x.idx", []byte(text), []byte("!")); err != nil {
			t.Fatal(err)
		}
		if got, err := read(d, "x.idx"); got != text+"!" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	if _, err := d.File("x.idx", 3); err == nil {
		t.Error("a file that is too large was opened")
	}
	if _, err := d.File("y.idx", 3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if list, err := d.List(); len(list) != 1 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// TestNotOurs: what is not a regular file of this user is not opened, and nothing waits for it.
func TestNotOurs(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	elsewhere := filepath.Join(t.TempDir(), "target")
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, err := range []error{
		os.WriteFile(elsewhere, []byte("x"), 0o600), os.Chtimes(elsewhere, old, old),
		os.Symlink(elsewhere, filepath.Join(dir, "link.idx")), unix.Mkfifo(filepath.Join(dir, "pipe.idx"), 0o600),
		os.Mkdir(filepath.Join(dir, "dir.idx"), 0o700), os.Symlink("/dev/zero", filepath.Join(dir, "zero.idx")),
		os.WriteFile(filepath.Join(dir, "open.idx"), []byte("x"), 0o600), os.Chmod(filepath.Join(dir, "open.idx"), 0o666),
		os.WriteFile(filepath.Join(dir, "large.idx"), []byte("x"), 0o600), os.Truncate(filepath.Join(dir, "large.idx"), 200<<30),
		os.WriteFile(filepath.Join(dir, "theirs.idx"), []byte("x"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"link.idx", "pipe.idx", "dir.idx", "zero.idx", "open.idx", "large.idx"}
	if os.Getuid() == 0 {
		if err := os.Chown(filepath.Join(dir, "theirs.idx"), 1, 1); err != nil {
			t.Fatal(err)
		}
		names = append(names, "theirs.idx")
	}
	for _, name := range names {
		if text, err := read(d, name); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was opened: %q, %v", name, text, err)
		}
	}
	if st, err := os.Stat(elsewhere); err != nil || !st.ModTime().Equal(old) {
		t.Errorf("the link's target: %v, %v", st.ModTime(), err)
	}
	// What is written takes their place.
	for _, name := range []string{"link.idx", "pipe.idx", "open.idx", "large.idx"} {
		if err := d.Write(name, []byte("new")); err != nil {
			t.Error(err)
		}
		if text, err := read(d, name); text != "new" || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if text, err := os.ReadFile(elsewhere); string(text) != "x" || err != nil {
		t.Errorf("the link's target: %q, %v", text, err)
	}
}

// TestUnusable: directories that are not the user's own are not used.
func TestUnusable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	shared := filepath.Join(dir, "shared")
	for _, err := range []error{os.WriteFile(file, nil, 0o600), os.Mkdir(shared, 0o700), os.Chmod(shared, 0o777)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	bad := []string{file, filepath.Join(file, "below"), shared, "/proc/no"}
	if os.Getuid() == 0 {
		theirs := filepath.Join(dir, "theirs")
		if err := errors.Join(os.Mkdir(theirs, 0o700), os.Chown(theirs, 1, 1)); err != nil {
			t.Fatal(err)
		}
		bad = append(bad, theirs)
	}
	for _, path := range bad {
		if d, err := Create(path, kept); err == nil {
			t.Errorf("%s is used: %v", path, d.Close())
		} else if path != "/proc/no" && !errors.Is(err, ErrUnusable) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSweep: what killed writers left is removed, what living ones write is not.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	for _, name := range []string{".new-1234567", ".new-12-ab34", ".new-notes", "other", "x.idx"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("left"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, living, err := d.begin()
	if err != nil {
		t.Fatal(err)
	}
	list, err := d.List()
	unfinished := 0
	for _, e := range list {
		if e.Unfinished {
			unfinished++
		}
	}
	if err != nil || len(list) != 4 || unfinished != 3 {
		t.Errorf("%v, %v", list, err)
	}
	if err := d.Sweep(); err != nil {
		t.Fatal(err)
	}
	var names []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got, want := strings.Join(names, " "), strings.Join([]string{living, ".new-notes", "other", "x.idx"}, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := errors.Join(f.Close(), d.Clear()); err != nil {
		t.Fatal(err)
	}
	if list, err := d.List(); len(list) != 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("files of others went: %v", entries)
	}
}

// TestManyWriters: a file is one writer's whole, whoever sweeps meanwhile.
func TestManyWriters(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			d := open(t, dir)
			text := strings.Repeat(string(rune('a'+i)), 10000)
			for range 50 {
				if err := errors.Join(d.Sweep(), d.Write("x.idx", []byte(text[:5000]), []byte(text[5000:])), d.Evict(15000, "x.idx")); err != nil {
					t.Error(err)
					return
				}
				got, err := read(d, "x.idx")
				if err != nil || len(got) != 10000 || strings.Trim(got, got[:1]) != "" {
					t.Errorf("%d bytes, %v", len(got), err)
					return
				}
			}
		})
	}
	wg.Wait()
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%v", entries)
	}
}
