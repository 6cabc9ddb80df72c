package debuginfod_test

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/debuginfod"
	"github.com/bpfprologue/bpfprologue/internal/elfwrite"
)

const buildID = "64951e6f3d84b1f8809ffc988316d4f08fc996a7"

// serve starts a server.
func serve(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// elfOf returns a file with a build ID, with the rest as what it has for debug information.
func elfOf(id, rest string) string {
	b, err := hex.DecodeString(id)
	if err != nil {
		panic(err)
	}
	note := binary.LittleEndian.AppendUint32(nil, 4)
	note = binary.LittleEndian.AppendUint32(note, uint32(len(b)))
	note = append(append(binary.LittleEndian.AppendUint32(note, 3), "GNU\x00"...), b...)
	f := elfwrite.File{Arch: arch.ByName("amd64"), Type: elf.ET_DYN, Sections: []elfwrite.Section{
		{Name: ".note.gnu.build-id", Type: elf.SHT_NOTE, Data: note},
	}}
	if rest != "" {
		f.Sections = append(f.Sections, elfwrite.Section{Name: ".debug_info", Type: elf.SHT_PROGBITS, Data: []byte(rest)})
	}
	return string(f.Bytes())
}

// TestFetch fetches each kind of file once.
func TestFetch(t *testing.T) {
	var asked atomic.Int32
	c := &debuginfod.Client{Dir: filepath.Join(t.TempDir(), "new"), Header: http.Header{"X-Token": {"secret"}}, URLs: []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		text := fmt.Sprintf("%s %s", r.URL.EscapedPath(), r.Header.Get("X-Token"))
		if !strings.Contains(text, "/section/") {
			text = elfOf(buildID, text)
		}
		_, _ = io.WriteString(w, text)
	}) + "/"}}
	var last, total uint64
	c.Progress = func(d, all uint64) { last, total = d, all }
	for i, f := range []struct {
		get        func() (string, error)
		path, file string
	}{
		{func() (string, error) { return c.DebugInfo(t.Context(), buildID) }, "debuginfo", "debuginfo"},
		{func() (string, error) { return c.Executable(t.Context(), buildID) }, "executable", "executable"},
		{func() (string, error) { return c.Section(t.Context(), buildID, ".debug_info") }, "section/.debug_info", "section-.debug_info"},
		{func() (string, error) { return c.Section(t.Context(), buildID, "a b") }, "section/a%20b", "section-a b"},
	} {
		for range 2 {
			path, err := f.get()
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(c.Dir, buildID, f.file); path != want {
				t.Errorf("%s, want %s", path, want)
			}
			if got, want := read(t, path), "/buildid/"+buildID+"/"+f.path+" secret"; !strings.Contains(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			if last != total || last == 0 {
				t.Errorf("progress %d of %d", last, total)
			}
		}
		if n := int(asked.Load()); n != i+1 {
			t.Errorf("asked %d times for %d files", n, i+1)
		}
	}
}

// TestServers asks several servers, of which one has the file.
func TestServers(t *testing.T) {
	it := elfOf(buildID, "it")
	has := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, it) })
	none := serve(t, http.NotFound)
	broken := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) })
	stop := make(chan struct{})
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	defer close(stop)
	for _, urls := range [][]string{{has}, {none, has}, {broken, has}, {silent, has}, {has, silent, none, broken}, {"ftp://example.org", "::", has}} {
		c := &debuginfod.Client{Dir: t.TempDir(), URLs: urls, Timeout: 20 * time.Second}
		path, err := c.DebugInfo(t.Context(), buildID)
		if err != nil {
			t.Errorf("%s: %v", urls, err)
		} else if got := read(t, path); got != it {
			t.Errorf("%s: %q", urls, got)
		}
	}
	for want, urls := range map[string][]string{
		"no server has it":                      {none, none},
		"500 Internal Server Error":             {none, broken},
		"the server does not go on sending":     {silent},
		"begins with http:// or https://":       {"file:///etc"},
		"no server is known":                    nil,
		"begins with http:// or https://; ::: ": {"x", "::"},
	} {
		c := &debuginfod.Client{Dir: t.TempDir(), URLs: urls, Timeout: 100 * time.Millisecond}
		_, err := c.DebugInfo(t.Context(), buildID)
		if err == nil || !strings.Contains(err.Error(), want) && !strings.HasPrefix(want, "begins") || !strings.Contains(err.Error(), buildID) {
			t.Errorf("%s: %v, want %s", urls, err, want)
		}
		if is := errors.Is(err, debuginfod.ErrNotFound); is != strings.HasPrefix(want, "no server has") || is != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v: ErrNotFound %v", urls, err, is)
		}
	}
}

// TestMissing: that no server has a file is believed for some minutes, or as long as the cache says.
func TestMissing(t *testing.T) {
	var asked atomic.Int32
	c := &debuginfod.Client{Dir: t.TempDir(), URLs: []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.NotFound(w, r)
	})}}
	ask := func(want int32) {
		t.Helper()
		if _, err := c.DebugInfo(t.Context(), buildID); !errors.Is(err, debuginfod.ErrNotFound) {
			t.Errorf("%v", err)
		}
		if n := asked.Load(); n != want {
			t.Errorf("asked %d times, want %d", n, want)
		}
	}
	ask(1)
	ask(1)
	old := time.Now().Add(-11 * time.Minute)
	path := filepath.Join(c.Dir, buildID, "debuginfo")
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	ask(2)
	ask(2)
	if err := os.WriteFile(filepath.Join(c.Dir, "cache_miss_s"), []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask(3)
}

// TestBadAnswers: what a hostile or broken server sends is an error, and nothing is left of it.
func TestBadAnswers(t *testing.T) {
	for want, f := range map[string]http.HandlerFunc{
		"more than 1000 bytes": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1001)) },
		"has more than 1000 bytes": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5000")
			_, _ = w.Write(make([]byte, 10))
		},
		"the file is empty": func(http.ResponseWriter, *http.Request) {},
		"after 10 bytes: unexpected EOF": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "500")
			_, _ = w.Write(make([]byte, 10))
		},
		"the server does not go on sending": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"stopped after 10 redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) },
		"unsupported protocol scheme": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		},
	} {
		c := &debuginfod.Client{Dir: t.TempDir(), MaxSize: 1000, Timeout: 300 * time.Millisecond, URLs: []string{serve(t, f)}}
		path, err := c.DebugInfo(t.Context(), buildID)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", want, path, err)
		}
		if left, _ := filepath.Glob(filepath.Join(c.Dir, "*", "*")); len(left) > 0 {
			t.Errorf("%s: left %s", want, left)
		}
	}
	c := &debuginfod.Client{Dir: t.TempDir(), URLs: []string{"http://127.0.0.1:1"}}
	for _, id := range []string{"", "../..", "ABCD", "abc", "xy", strings.Repeat("ab", 65), "ab/cd"} {
		if _, err := c.DebugInfo(t.Context(), id); err == nil || !strings.Contains(err.Error(), strconv.Quote(id)+" is not a build ID") {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, name := range []string{"", "../x", "a\x00b"} {
		if _, err := c.Section(t.Context(), buildID, name); err == nil || !strings.Contains(err.Error(), "a section's name is needed") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestCancel ends a transfer, and its file with it.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	c := &debuginfod.Client{Dir: t.TempDir(), URLs: []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("begun"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})}, Progress: func(uint64, uint64) { cancel(why) }}
	if _, err := c.DebugInfo(ctx, buildID); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(c.Dir, "*", "*")); len(left) > 0 {
		t.Errorf("left %s", left)
	}
}

// TestEnvironment reads a client's settings.
func TestEnvironment(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	for _, v := range []string{"URLS", "CACHE_PATH", "TIMEOUT", "MAXTIME", "MAXSIZE", "HEADERS_FILE"} {
		t.Setenv("DEBUGINFOD_"+v, "")
	}
	if c, err := debuginfod.FromEnvironment(); c != nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
	if f := (*debuginfod.Client)(nil).Finder(t.Context()); f != nil {
		t.Error("no client finds something")
	}
	t.Setenv("DEBUGINFOD_URLS", " ima:enforcing http://one  https://two/x ")
	t.Setenv("DEBUGINFOD_TIMEOUT", "7")
	t.Setenv("DEBUGINFOD_MAXSIZE", "1000000")
	headers := filepath.Join(home, "headers")
	if err := os.WriteFile(headers, []byte("A: b\n\nC:d:e\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DEBUGINFOD_HEADERS_FILE", headers)
	c, err := debuginfod.FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintln(c.URLs, c.Dir, c.Timeout, c.MaxSize, c.Header), fmt.Sprintln([]string{"http://one", "https://two/x"}, home+"/.cache/debuginfod_client", "7s", 1000000, "map[A:[b] C:[d:e]]"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := os.Mkdir(filepath.Join(home, ".debuginfod_client_cache"), 0o700); err != nil {
		t.Fatal(err)
	}
	if c, err := debuginfod.FromEnvironment(); err != nil || c.Dir != home+"/.debuginfod_client_cache" {
		t.Errorf("%+v, %v", c, err)
	}
	t.Setenv("DEBUGINFOD_CACHE_PATH", "/x")
	if c, err := debuginfod.FromEnvironment(); err != nil || c.Dir != "/x" {
		t.Errorf("%+v, %v", c, err)
	}
	for name, value := range map[string]string{
		"DEBUGINFOD_TIMEOUT": "soon", "DEBUGINFOD_MAXTIME": "1h", "DEBUGINFOD_MAXSIZE": "-1", "DEBUGINFOD_HEADERS_FILE": home + "/none",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if _, err := debuginfod.FromEnvironment(); err == nil || !strings.HasPrefix(err.Error(), name) {
				t.Errorf("%v", err)
			}
		})
	}
}
