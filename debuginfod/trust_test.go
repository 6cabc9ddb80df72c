package debuginfod_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/debuginfod"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

const otherID = "0011223344556677889900112233445566778899"

// badAnswers are answers with status 200 that are not the file.
var badAnswers = map[string]string{
	"another build":         elfOf(otherID, "debug"),
	"a page":                "<!DOCTYPE html><html><body>Please log in</body></html>",
	"text":                  "it works",
	"the stripped file":     elfOf(buildID, ""),
	"half of the file":      elfOf(buildID, strings.Repeat("debug", 100))[:300],
	"a file without a note": strings.Replace(elfOf(buildID, "debug"), "GNU\x00", "XXX\x00", 1),
}

// TestBadThenGood: a server's answer that is not the file is not kept, and the next server's is taken, whichever answers first.
func TestBadThenGood(t *testing.T) {
	it := elfOf(buildID, "it")
	for name, text := range badAnswers {
		bad := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
		good := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(50 * time.Millisecond)
			fmt.Fprint(w, it)
		})
		for _, urls := range [][]string{{bad, good}, {good, bad}, {bad, bad, good}} {
			c := &debuginfod.Client{Dir: t.TempDir(), URLs: urls}
			path, err := c.DebugInfo(t.Context(), buildID)
			if err != nil || read(t, path) != it {
				t.Errorf("%s: %q, %v", name, path, err)
			}
		}
		c := &debuginfod.Client{Dir: t.TempDir(), URLs: []string{bad}}
		if path, err := c.DebugInfo(t.Context(), buildID); err == nil || !strings.Contains(err.Error(), bad+": what it sends is not the file: ") {
			t.Errorf("%s: %q, %v", name, path, err)
		}
		if left, _ := filepath.Glob(filepath.Join(c.Dir, "*", "*")); len(left) > 0 {
			t.Errorf("%s: left %s", name, left)
		}
	}
	page := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, badAnswers["a page"]) })
	good := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(50 * time.Millisecond)
		fmt.Fprint(w, "index")
	})
	c := &debuginfod.Client{Dir: t.TempDir(), URLs: []string{page, good}}
	if path, err := c.Section(t.Context(), buildID, ".gdb_index"); err != nil || read(t, path) != "index" {
		t.Errorf("a section: %q, %v", path, err)
	}
}

// TestBadKept: a bad answer that an earlier version has kept, or elfutils' client, is forgotten.
func TestBadKept(t *testing.T) {
	it := elfOf(buildID, "it")
	good := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, it) })
	for name, text := range badAnswers {
		c := &debuginfod.Client{Dir: t.TempDir(), URLs: []string{good}}
		keep(t, c.Dir, text, 0o400)
		if path, err := c.DebugInfo(t.Context(), buildID); err != nil || read(t, path) != it {
			t.Errorf("%s: %q, %v", name, path, err)
		}
		keep(t, c.Dir, text, 0o400)
		c.URLs = []string{serve(t, http.NotFound)}
		if path, err := c.DebugInfo(t.Context(), buildID); err == nil {
			t.Errorf("%s: without a server %q", name, path)
		}
	}
}

// keep puts a file into a cache.
func keep(t *testing.T, dir, text string, mode os.FileMode) (path string) {
	t.Helper()
	path = filepath.Join(dir, buildID, "debuginfo")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(path)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUntrusted: what others than the user and root can write to is not read.
func TestUntrusted(t *testing.T) {
	planted, it := elfOf(buildID, "planted"), elfOf(buildID, "it")
	good := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, it) })
	const nobody = 65534
	chown := func(t *testing.T, path string) {
		t.Helper()
		if err := os.Chown(path, nobody, nobody); err != nil {
			testenv.Missing(t, "only root can give files away: %v", err)
		}
	}
	chmod := func(t *testing.T, path string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, x := range map[string]struct {
		spoil func(t *testing.T, dir, file string)
		err   string // or it is fetched again
	}{
		"a directory that all can write to": {func(t *testing.T, dir, _ string) { chmod(t, dir, 0o777) }, "others may write to it (mode 0777): set DEBUGINFOD_CACHE_PATH"},
		"even a sticky one":                 {func(t *testing.T, dir, _ string) { chmod(t, dir, 0o777|os.ModeSticky) }, "others may write to it"},
		"the build's directory":             {func(t *testing.T, _, file string) { chmod(t, filepath.Dir(file), 0o777) }, "others may write to it"},
		"another user's directory":          {func(t *testing.T, dir, _ string) { chown(t, dir) }, "it is another user's (65534): set DEBUGINFOD_CACHE_PATH"},
		"another user's build":              {func(t *testing.T, _, file string) { chown(t, filepath.Dir(file)) }, "it is another user's"},
		"another user's file":               {func(t *testing.T, _, file string) { chown(t, file) }, ""},
		"a file that all can write to":      {func(t *testing.T, _, file string) { chmod(t, file, 0o666) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := &debuginfod.Client{Dir: t.TempDir(), URLs: []string{good}}
			x.spoil(t, c.Dir, keep(t, c.Dir, planted, 0o600))
			path, err := c.DebugInfo(t.Context(), buildID)
			switch {
			case x.err != "" && (err == nil || !strings.Contains(err.Error(), x.err) || !strings.HasPrefix(err.Error(), c.Dir)):
				t.Errorf("%q, %v", path, err)
			case x.err == "" && (err != nil || read(t, path) != it):
				t.Errorf("%q, %v", path, err)
			}
		})
	}
}

// TestMaxTime: a server that keeps sending, always a little, ends when its time is over, and leaves some to the next.
func TestMaxTime(t *testing.T) {
	slow := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write(make([]byte, 100<<10))
			w.(http.Flusher).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	})
	it := elfOf(buildID, "it")
	good := serve(t, func(w http.ResponseWriter, _ *http.Request) { time.Sleep(100 * time.Millisecond); fmt.Fprint(w, it) })
	t.Setenv("DEBUGINFOD_MAXTIME", "2")
	for _, urls := range []string{slow, slow + " " + good} {
		t.Setenv("DEBUGINFOD_URLS", urls)
		t.Setenv("DEBUGINFOD_CACHE_PATH", t.TempDir())
		c, err := debuginfod.FromEnvironment()
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		path, err := c.DebugInfo(t.Context(), buildID)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s: it took %v", urls, took)
		}
		if urls == slow {
			if err == nil || !strings.Contains(err.Error(), "too long in all: DEBUGINFOD_MAXTIME") {
				t.Errorf("%q, %v", path, err)
			}
			continue
		}
		if err != nil || read(t, path) != it {
			t.Errorf("%q, %v", path, err)
		}
	}
}
