package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Browser returns what a page is after its scripts have run.
func Browser(t testing.TB, page string) string {
	t.Helper()
	browser := Tool(t, "chromium")
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+filepath.Join(dir, "user"), "--dump-dom", "file://"+file)
	c.Env = append(os.Environ(), "HOME="+dir)
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("<br>", "\n", "&gt;", ">", "&lt;", "<", "&amp;", "&").Replace(string(out))
}
