package debuginfod_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/debuginfod"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/pack"
)

// packOf returns the pack of a fixture, and its build ID.
func packOf(t *testing.T, name string) (d []byte, id string) {
	t.Helper()
	img := testenv.Fixture(t, name)
	var b bytes.Buffer
	if _, err := pack.Write(t.Context(), img, pack.Options{}, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), img.BuildID()
}

// TestPack fetches a pack once, which then is an image.
func TestPack(t *testing.T) {
	data, id := packOf(t, "basic-gcc12-O2-dwarf5.elf")
	var asked atomic.Int32
	c := &debuginfod.Client{Dir: t.TempDir(), URLs: []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1); r.URL.Path != "/x/buildid/"+id+"/pack" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	}) + "/x"}}
	for range 2 {
		path, err := c.Pack(t.Context(), id)
		if err != nil || path != filepath.Join(c.Dir, id, "pack") {
			t.Fatalf("%q, %v", path, err)
		}
		img := testenv.Open(t, path)
		if img.BuildID() != id {
			t.Errorf("%s, want %s", img.BuildID(), id)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}

// TestBadPacks: what a hostile or broken server sends in the place of a pack is an error, and nothing is left of it; and the next server's is
// taken.
func TestBadPacks(t *testing.T) {
	data, id := packOf(t, "basic-gcc12-O2-dwarf5.elf")
	other, _ := packOf(t, "basic-clang14-O2-dwarf5.elf")
	damaged := func(at int) []byte {
		d := slices.Clone(data)
		d[at] ^= 1
		return d
	}
	send := func(d []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(d) }
	}
	good := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(20 * time.Millisecond)
		_, _ = w.Write(data)
	})
	open := serve(t, send(data))
	for what, x := range map[string]struct {
		f    http.HandlerFunc
		want string
	}{
		"another build":   {send(other), "its build ID is "},
		"cut short":       {send(data[:len(data)/2]), "cut short"},
		"the last byte":   {send(data[:len(data)-1]), ""},
		"a page":          {send([]byte("<!DOCTYPE html><html>log in</html>")), "no ELF file"},
		"no pack":         {send([]byte(elfOf(id, "debug"))), "it is no pack"},
		"a changed byte":  {send(damaged(len(data) - 3)), ""},
		"a changed type":  {send(damaged(bytes.Index(data, []byte{0x9f, 0xeb, 1, 0}) + 30)), "checksum"},
		"more than it is": {send(append(slices.Clone(data), 0)), "checksum"},
		"too large":       {send(make([]byte, 1<<20)), fmt.Sprintf("more than %d bytes", 1<<19)},
		"empty":           {func(http.ResponseWriter, *http.Request) {}, "the file is empty"},
		"slow": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(data[:10])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "does not go on sending"},
		"silent":           {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "does not go on sending"},
		"leads in circles": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }, "stopped after 10 redirects"},
		"leads to a file": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}, "unsupported protocol"},
	} {
		c := &debuginfod.Client{Dir: t.TempDir(), MaxSize: 1 << 19, Timeout: 300 * time.Millisecond, URLs: []string{serve(t, x.f)}}
		if path, err := c.Pack(t.Context(), id); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %q, %v, want %q", what, path, err, x.want)
		}
		if left, _ := filepath.Glob(filepath.Join(c.Dir, "*", "*")); len(left) > 0 {
			t.Errorf("%s: left %s", what, left)
		}
		c.URLs = append(c.URLs, good)
		if _, err := c.Pack(t.Context(), id); err != nil {
			t.Errorf("%s, and another server: %v", what, err)
		}
	}
	// An encrypted connection leads to no open one, but to another encrypted one.
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, open+r.URL.Path, http.StatusFound) }))
	defer secure.Close()
	c := &debuginfod.Client{Dir: t.TempDir(), URLs: []string{secure.URL}, Transport: secure.Client().Transport}
	if path, err := c.Pack(t.Context(), id); err == nil || !strings.Contains(err.Error(), "it leads from https to http://") {
		t.Errorf("from https to http: %q, %v", path, err)
	}
}

// TestRedirectSecrets: the headers are for the server that was named, and not for one to which it leads.
func TestRedirectSecrets(t *testing.T) {
	data, id := packOf(t, "basic-gcc12-O2-dwarf5.elf")
	var got [2]atomic.Value
	elsewhere := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got[1].Store(r.Header.Get("X-Token"))
		_, _ = w.Write(data)
	})
	here := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got[0].Store(r.Header.Get("X-Token"))
		http.Redirect(w, r, elsewhere, http.StatusFound)
	})
	c := &debuginfod.Client{Dir: t.TempDir(), URLs: []string{here}, Header: http.Header{"X-Token": {"secret"}}}
	if _, err := c.Pack(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got[0].Load() != "secret" || got[1].Load() != "" {
		t.Errorf("here %q, elsewhere %q", got[0].Load(), got[1].Load())
	}
}

// TestPacksFromEnvironment: servers of packs have headers of their own.
func TestPacksFromEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DEBUGINFOD_CACHE_PATH", dir)
	t.Setenv("DEBUGINFOD_TIMEOUT", "7")
	t.Setenv("DEBUGINFOD_URLS", "http://debug")
	t.Setenv("PACK_URLS", "")
	t.Setenv("PACK_HEADERS_FILE", "")
	for name, text := range map[string]string{"debug": "A: debug", "packs": "A: packs"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("DEBUGINFOD_HEADERS_FILE", filepath.Join(dir, "debug"))
	if c, err := debuginfod.PacksFromEnvironment(); c != nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
	t.Setenv("PACK_URLS", "http://one  http://two")
	c, err := debuginfod.PacksFromEnvironment("http://first")
	if err != nil || fmt.Sprintln(c.URLs, c.Dir, c.Timeout, c.Header) != fmt.Sprintln("[http://first http://one http://two]", dir, "7s", "map[]") {
		t.Errorf("%v, %+v", err, c)
	}
	t.Setenv("PACK_HEADERS_FILE", filepath.Join(dir, "packs"))
	if c, err := debuginfod.PacksFromEnvironment(); err != nil || c.Header.Get("A") != "packs" {
		t.Errorf("%v, %+v", err, c)
	}
	t.Setenv("PACK_HEADERS_FILE", filepath.Join(dir, "none"))
	if _, err := debuginfod.PacksFromEnvironment(); err == nil || !strings.HasPrefix(err.Error(), "PACK_HEADERS_FILE: ") {
		t.Error(err)
	}
}
