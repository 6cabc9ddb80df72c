package outfile

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestFile: what was there stays until the work is done, also behind a link, and what grows begins with its first byte.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "answer"), filepath.Join(dir, "link")
	if err := os.Symlink("answer", link); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string, live, done bool) {
		t.Helper()
		f, err := Create(path, live)
		if err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if _, err := io.WriteString(f, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(done); err != nil {
			t.Fatal(err)
		}
	}
	want := func(text string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	write(path, "one", false, true)
	want("one")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	write(path, "half of it", false, false)
	want("one")
	write(link, "two", false, true)
	want("two")
	if st, err := os.Lstat(link); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", st, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v, %v", st, err)
	}
	write(path, "", true, false)
	want("two")
	write(path, "three", true, false)
	want("three")
	write(path, "", true, true)
	want("")
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := Create(filepath.Join(dir, "none", "answer"), false); !os.IsNotExist(err) {
		t.Errorf("no directory: %v", err)
	}
}
