package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestPackServer: a program without debug information is asked about, and the answers come from its pack, which a server of files has.
func TestPackServer(t *testing.T) {
	strip := testenv.Tool(t, "strip")
	dir := t.TempDir()
	program, err := fixtures.WriteTo(dir, "run-gcc12-O2-dwarf5.exe")
	if err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(dir, "packs")
	if out, err := toolCommand(t, nil, "pack", "write", "--out-dir", tree, program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), strip, program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	asked := 0
	files := http.FileServer(http.Dir(tree))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	empty := httptest.NewServer(http.NotFoundHandler())
	defer empty.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }))
	defer broken.Close()
	for _, c := range []struct {
		what, urls string
		args       []string
		out, err   string
		asked      int
	}{
		{"no server", "", nil, "", "no DWARF debug information", 0},
		{"a server that does not have it", empty.URL, nil, "", "no DWARF debug information", 0},
		{"a broken server", broken.URL, nil, "", "403 Forbidden", 0},
		{"no server at all", "ftp://example.org", nil, "", "begins with http:// or https://", 0},
		{"by the environment", server.URL, nil, "mix key k: 2 sites", "", 1},
		{"by a flag, of several", empty.URL, []string{"--pack-url", broken.URL, "--pack-url", server.URL}, "mix key k: 2 sites", "", 1},
		{"from a directory, without asking", server.URL, []string{"--pack-dir", filepath.Join(dir, "local")}, "mix key k: 2 sites", "", 0},
	} {
		asked = 0
		env := []string{"PACK_URLS=" + c.urls, "DEBUGINFOD_URLS=", "DEBUGINFOD_CACHE_PATH=" + t.TempDir()}
		if c.what == "from a directory, without asking" {
			packs, err := filepath.Glob(filepath.Join(tree, "buildid", "*", "pack"))
			if err != nil || len(packs) != 1 {
				t.Fatal(packs, err)
			}
			d, err := os.ReadFile(packs[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "local"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "local", filepath.Base(filepath.Dir(packs[0]))+".pack"), d, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tool := toolCommand(t, nil, append([]string{"--sites", "-x", program, "mix key k"}, c.args...)...)
		tool.Env = append(tool.Environ(), env...)
		out, err := tool.CombinedOutput()
		if (err == nil) != (c.out != "") || !strings.Contains(string(out), c.out) || !strings.Contains(string(out), c.err) || asked != c.asked {
			t.Errorf("%s: %v, asked %d times\n%s", c.what, err, asked, out)
		}
	}
}
