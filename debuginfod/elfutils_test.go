package debuginfod_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/debuginfod"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

const program = `
static int twice(int a) { return 2 * a; }
__attribute__((noinline)) int f(int a, char *s) { return twice(a) + s[0]; }
int main(int argc, char **argv) { return f(argc, argv[0]); }
`

// TestElfutils asks elfutils' server for the debug information of a stripped program, and shares
// the cache with elfutils' client in both directions.
func TestElfutils(t *testing.T) {
	server, client, gcc, strip := testenv.Tool(t, "debuginfod"), testenv.Tool(t, "debuginfod-find"), testenv.Tool(t, "gcc-12"), testenv.Tool(t, "strip")
	dir := t.TempDir()
	files := filepath.Join(dir, "files")
	whole, bare, source := filepath.Join(files, "program"), filepath.Join(dir, "program"), filepath.Join(dir, "program.c")
	for _, err := range []error{os.Mkdir(files, 0o700), os.WriteFile(source, []byte(program), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{gcc, "-g", "-O2", "-o", whole, source}, {strip, "-o", bare, whole}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	url := startServer(t, server, dir, files)
	f, err := image.Open(bare, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := f.BuildID()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	ours := &debuginfod.Client{URLs: []string{url}, Dir: filepath.Join(dir, "ours")}
	want := answers(t, whole, nil)
	got := answers(t, bare, &dwarfloc.Options{FindDebug: ours.Finder(t.Context())})
	if got != want || strings.Count(got, "\n") < 3 {
		t.Errorf("by debuginfod:\n%s\nof the whole file:\n%s", got, want)
	}
	if _, err := ours.Section(t.Context(), id, ".debug_info"); err != nil {
		t.Error(err)
	}
	if _, err := ours.Section(t.Context(), id, ".debug_nothing"); !errors.Is(err, debuginfod.ErrNotFound) {
		t.Errorf("no such section: %v", err)
	}
	// What we have fetched elfutils finds, without a server, and the other way round.
	theirs := &debuginfod.Client{URLs: []string{"http://127.0.0.1:1"}, Dir: filepath.Join(dir, "theirs")}
	find := func(cache, url string, args ...string) string {
		c := exec.Command(client, args...)
		c.Env = append(os.Environ(), "DEBUGINFOD_URLS="+url, "DEBUGINFOD_CACHE_PATH="+cache)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for _, k := range []struct {
		args []string
		get  func(context.Context, string) (string, error)
	}{
		{[]string{"debuginfo", id}, theirs.DebugInfo},
		{[]string{"executable", id}, theirs.Executable},
		{[]string{"section", id, ".debug_info"}, func(ctx context.Context, id string) (string, error) { return theirs.Section(ctx, id, ".debug_info") }},
	} {
		fetched := find(theirs.Dir, url, k.args...)
		path, err := k.get(t.Context(), id)
		if err != nil || path != fetched {
			t.Errorf("%q: %s and %v, elfutils has it at %s", k.args, path, err, fetched)
		}
	}
	if _, err := ours.Executable(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"debuginfo", "executable"} {
		if path, want := find(ours.Dir, "http://127.0.0.1:1", kind, id), filepath.Join(ours.Dir, id, kind); path != want {
			t.Errorf("elfutils finds %s, not %s", path, want)
		}
	}
}

// startServer starts elfutils' server for a directory and waits until it has read that.
func startServer(t *testing.T, server, dir, files string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	c := exec.Command(server, "-p", fmt.Sprint(port), "-d", filepath.Join(dir, "db.sqlite"), "-F", files)
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			t.Logf("%s", log.Bytes())
		}
	})
	url = fmt.Sprintf("http://127.0.0.1:%d", port)
	f, err := image.Open(filepath.Join(files, "program"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		try := &debuginfod.Client{URLs: []string{url}, Dir: t.TempDir()}
		if _, err = try.DebugInfo(t.Context(), f.BuildID()); err == nil {
			return url
		}
		if time.Now().After(end) {
			t.Fatalf("%v\n%s", err, log.Bytes())
		}
	}
}

// answers prints where all parameters of an image's functions are.
func answers(t *testing.T, path string, o *dwarfloc.Options) string {
	t.Helper()
	img, err := dwarfloc.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	def, err := probe.Parse("* $params")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(t.Context(), img, def, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i := range p.Sites {
		s := &p.Sites[i]
		fmt.Fprintf(&b, "%s %#x", s.String(), s.Addr)
		for k := range s.Args {
			fmt.Fprintf(&b, " %s: %s", s.Args[k].Variable.Name, s.Args[k].Loc.Text(img.Arch()))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
