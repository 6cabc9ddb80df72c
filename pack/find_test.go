package pack_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/pack"
)

// TestDirs: packs that others can replace are not believed.
func TestDirs(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	dir := filepath.Join(home, "bpfprologue", "packs")
	counts := func() bool { return slices.Contains(pack.Dirs(), dir) }
	if counts() {
		t.Error("a directory that does not exist counts")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if !counts() {
		t.Error("the user's own directory does not count")
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if counts() {
		t.Error("a directory that everybody can write to counts")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory to somebody else")
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if counts() {
		t.Error("another user's directory counts")
	}
}
