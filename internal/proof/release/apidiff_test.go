package release_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestAPI: a name that a version had and that is gone must be named in the list of changes, and from v1 on may not go. Without a version
// there is nothing to compare with.
func TestAPI(t *testing.T) {
	testenv.Tool(t, "git")
	dir := filepath.Join(t.TempDir(), "clone")
	run(t, command(nil, "git", "clone", "-q", "--no-tags", ".", dir))
	script, err := os.ReadFile(filepath.Join(root, "scripts/apidiff"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("scripts/apidiff", string(script), 0o700)
	in := func(name string, args ...string) (string, error) {
		c := command([]string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}, name, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		return string(out), err
	}
	must := func(name string, args ...string) string {
		t.Helper()
		out, err := in(name, args...)
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return out
	}
	if out := must("scripts/apidiff"); !strings.Contains(out, "no version has a tag yet") {
		t.Errorf("without a tag:\n%s", out)
	}
	const changes = "# Changes\n\n## Unreleased\n\n### Breaks\n\n"
	write("glob/api.go", "package glob\n\n// Old is old.\nfunc Old() {}\n", 0o600)
	write("CHANGELOG.md", changes+"## v0.0.9\n\n### Breaks\n\n- `glob.Old` of that version.\n", 0o600)
	must("git", "add", "-A")
	must("git", "commit", "-q", "-m", "a version")
	must("git", "tag", "v0.0.9")
	must("scripts/apidiff")
	write("glob/api.go", "package glob\n\n// New is new.\nfunc New() {}\n", 0o600)
	out, err := in("scripts/apidiff")
	if err == nil || !strings.Contains(out, "glob.Old: a break that CHANGELOG.md does not name") || !strings.Contains(out, "./glob.New: added") {
		t.Errorf("a name that is gone: %v\n%s", err, out)
	}
	write("CHANGELOG.md", changes+"- `glob.Old` is `New`.\n", 0o600)
	must("scripts/apidiff")
	must("git", "tag", "v1.0.0", "v0.0.9")
	must("git", "tag", "-d", "v0.0.9")
	if out, err := in("scripts/apidiff"); err == nil || !strings.Contains(out, "glob.Old: a break, and v1.0.0 promises none") {
		t.Errorf("a break after v1: %v\n%s", err, out)
	}
}
