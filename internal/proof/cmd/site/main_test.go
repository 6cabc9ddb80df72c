package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestSite: the site can be made, and no link of it is dead.
func TestSite(t *testing.T) {
	testenv.Tool(t, "mkdocs")
	out := filepath.Join(t.TempDir(), "site")
	n, err := build("../../../..", out)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d pages, %d links", n.pages, n.links)
	for file, text := range map[string]string{
		"index.html": "docs/kmalloc.svg", "docs/walk.html": "native_load_gdt", "api/plan.html": `id="Plan.Values"`, "api/loc.html": "package loc",
		"example.html": "call_my_funcs+0x11", "docs/kmalloc.svg": "sock_kmalloc",
	} {
		data, err := os.ReadFile(filepath.Join(out, file))
		if err != nil || !strings.Contains(string(data), text) {
			t.Errorf("%s does not have %q: %v", file, text, err)
		}
	}
}

// TestCheck: what leads nowhere, and what is fetched from elsewhere, is found.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	page := `<p id="here">x</p> <a href="#here">a</a> <a href="other.html#no">b</a> <a href="gone.html">c</a> <a href=https://example.org/>d</a>
<img src="https://example.org/x.png"> <script>"<a href='never.html'>"</script>`
	for name, text := range map[string]string{"index.html": page, "other.html": "<b id=yes></b>"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := check(dir)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`other.html#no: other.html has no "no"`, "gone.html: there is no such file", "x.png: it is fetched from elsewhere"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	for _, not := range []string{"never.html", "#here", "https://example.org/:"} {
		if strings.Contains(err.Error(), not) {
			t.Errorf("%q is in\n%v", not, err)
		}
	}
}
