package dwarfloc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/nametest"
	"github.com/bpfprologue/bpfprologue/internal/raced"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/internal/store"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

const enemyFixture = "basic-gcc12-O2-dwarf5.elf"

// asked opens a file, and returns all that it says, and whether a kept index was used.
func askedFile(t *testing.T, path, cache string) (said string, used bool, warnings []error) {
	t.Helper()
	img, err := Open(path, &Options{CacheDir: cache, Warn: func(err error) { warnings = append(warnings, err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	if err := img.r.Index.Scan(context.Background()); err != nil {
		t.Fatal(err)
	}
	return answersOf(t, img), img.r.Index.Kept != nil, warnings
}

// TestKeptHostileCopy: a copy with the same build ID and the same sizes, but other names and symbols, does
// not give its answers to the genuine image, nor get that one's.
func TestKeptHostileCopy(t *testing.T) {
	genuine, err := fixtures.Bytes(enemyFixture)
	if err != nil {
		t.Fatal(err)
	}
	other, err := nametest.Hostile(genuine, "XY")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "genuine"), filepath.Join(dir, "hostile")}
	var want []string
	for i, d := range [][]byte{genuine, other} {
		if err := os.WriteFile(paths[i], d, 0o600); err != nil {
			t.Fatal(err)
		}
		said, _, _ := askedFile(t, paths[i], "")
		want = append(want, said)
	}
	if want[0] == want[1] {
		t.Fatal("the copy says the same")
	}
	for _, order := range [][]int{{1, 0}, {0, 1}, {1, 1, 0, 0, 1, 0}} {
		cache := filepath.Join(t.TempDir(), "cache")
		for n, i := range order {
			if said, used, _ := askedFile(t, paths[i], cache); said != want[i] {
				t.Errorf("%v: question %d (kept index used: %v): the answer is another file's", order, n, used)
			}
		}
	}
	// In place, with the time put back: the inode's own time cannot be.
	cache := filepath.Join(t.TempDir(), "cache")
	if _, used, _ := askedFile(t, paths[0], cache); used {
		t.Error("an index was there")
	}
	if _, used, _ := askedFile(t, paths[0], cache); !used {
		t.Error("the index was not used")
	}
	st, err := os.Stat(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(paths[0], os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(other); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), os.Chtimes(paths[0], st.ModTime(), st.ModTime())); err != nil {
		t.Fatal(err)
	}
	if said, _, _ := askedFile(t, paths[0], cache); said != want[1] {
		t.Error("the file was written to, and the answer is the former one")
	}
}

// TestKeptSameContents: a copy with the same contents uses the index, and is known from then on.
func TestKeptSameContents(t *testing.T) {
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache")
	path, err := fixtures.WriteTo(dir, enemyFixture)
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := askedFile(t, path, cache)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(dir, "again")
	if err := os.WriteFile(again, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if said, used, warnings := askedFile(t, again, cache); said != want || !used || len(warnings) > 0 {
			t.Errorf("used %v, warnings %v", used, warnings)
		}
	}
	img, err := Open(again, &Options{CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	img.r.Index.O.Contents = func() ([32]byte, error) { return [32]byte{}, errors.New("they were compared before") }
	img.r.Index.O.Warn = func(err error) { t.Error(err) }
	if err := img.r.Index.Scan(context.Background()); err != nil || img.r.Index.Kept == nil {
		t.Errorf("%v", err)
	}
}

// TestKeptOfSharedImage: of an image that others can write to no index is kept, or used.
func TestKeptOfSharedImage(t *testing.T) {
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache")
	path, err := fixtures.WriteTo(dir, enemyFixture)
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := askedFile(t, path, cache)
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if said, used, warnings := askedFile(t, path, cache); said != want || used || len(warnings) > 0 {
		t.Errorf("used %v, warnings %v", used, warnings)
	}
	if err := os.RemoveAll(cache); err != nil {
		t.Fatal(err)
	}
	_, _, _ = askedFile(t, path, cache)
	if list, err := index.ListKept(cache); len(list) > 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// TestKeptMended: whatever is in a kept index, with a checksum that is right, there is an answer or an
// error.
func TestKeptMended(t *testing.T) {
	raced.OneGoroutine(t)
	cache := filepath.Join(t.TempDir(), "cache")
	img := keptImage(t, enemyFixture, Options{CacheDir: cache})
	want := answersOf(t, img)
	path := img.r.Index.KeptPath()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	own := len(good) - index.KeptKnown
	if _, err := index.KeptKind.Open(good[:own], path); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	same, failed := 0, 0
	for i := range 600 {
		bad := bytes.Clone(good)
		for range 1 + random.IntN(3) {
			at := random.IntN(own - 8)
			if random.IntN(2) == 0 {
				at %= 1000 // the header, the pages, and the first units
			}
			switch random.IntN(4) {
			case 0:
				bad[at] ^= 1 << random.IntN(8)
			case 1:
				bad[at] = 0
			case 2:
				bad[at] = 0xff
			default:
				copy(bad[at:], binary.LittleEndian.AppendUint64(nil, random.Uint64()>>random.IntN(64)))
			}
		}
		index.KeptKind.Reseal(bad[:own])
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		img := keptImage(t, enemyFixture, Options{CacheDir: cache})
		got, err := allSaid(img)
		switch {
		case err != nil:
			failed++
		case got == want:
			same++
		}
		if err := img.Close(); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if failed == 0 || same == 0 {
		t.Errorf("%d failed, %d were as without", failed, same)
	}
}

// allSaid is answers with its errors.
func allSaid(img *Image) (string, error) {
	var b strings.Builder
	sites, err := img.Sites(context.Background(), nil)
	if err != nil {
		return "", err
	}
	for _, s := range sites {
		b.WriteString(s.String() + " " + s.Section)
		for _, c := range s.Callers {
			b.WriteString(" < " + c.Function)
		}
		params, err := s.Params()
		if err != nil {
			return "", err
		}
		for _, v := range params {
			b.WriteString("\n\t" + v.Name + " " + v.Loc.Text(img.Arch()) + " " + v.Reason.String())
		}
		b.WriteByte('\n')
		if _, err := s.Variables(); err != nil {
			return "", err
		}
	}
	if err := img.eachWithWays(context.Background(), func(int, *Site, *runs.Ways) error { return nil }); err != nil {
		return "", err
	}
	names, err := img.FunctionNames(context.Background())
	if err != nil {
		return "", err
	}
	for _, n := range names[:min(len(names), 3)] {
		if _, err := img.Sites(context.Background(), Name(n)); err != nil {
			return "", err
		}
	}
	if _, err := img.FileLines(context.Background(), anyFile{}); err != nil {
		return "", err
	}
	return b.String() + strings.Join(names, " "), nil
}

// TestKeptNotAFile: what is in the place of a kept index is not opened as one, and replaced.
func TestKeptNotAFile(t *testing.T) {
	for what, place := range map[string]func(path string) error{
		"pipe": func(path string) error { return unix.Mkfifo(path, 0o600) },
		"link": func(path string) error { return os.Symlink("/dev/zero", path) },
		"sparse": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 200<<30))
		},
		"open": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("x"), 0o600), os.Chmod(path, 0o666))
		},
	} {
		dir := t.TempDir()
		cache := filepath.Join(dir, "cache")
		path, err := fixtures.WriteTo(dir, enemyFixture)
		if err != nil {
			t.Fatal(err)
		}
		want, _, _ := askedFile(t, path, cache)
		kept, err := filepath.Glob(filepath.Join(cache, "*"))
		if err != nil || len(kept) != 1 {
			t.Fatalf("%v, %v", kept, err)
		}
		if err := errors.Join(os.Remove(kept[0]), place(kept[0])); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		said, used, warnings := askedFile(t, path, cache)
		if said != want || used || len(warnings) != 1 || time.Since(start) > 5*time.Second {
			t.Errorf("%s: used %v, warnings %v, after %v", what, used, warnings, time.Since(start))
		}
		if said, used, warnings := askedFile(t, path, cache); said != want || !used || len(warnings) > 0 {
			t.Errorf("%s, then: used %v, warnings %v", what, used, warnings)
		}
	}
}

// TestKeptDirectories: whatever the directory is, the answer is right, and there is one warning at most.
func TestKeptDirectories(t *testing.T) {
	dir := t.TempDir()
	path, err := fixtures.WriteTo(dir, enemyFixture)
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := askedFile(t, path, "")
	file, shared := filepath.Join(dir, "file"), filepath.Join(dir, "shared")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(shared, 0o700), os.Chmod(shared, 0o777)); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{"a file": file, "below a file": file + "/x", "shared": shared, "nowhere": "/proc/nowhere"}
	if os.Getuid() == 0 {
		theirs := filepath.Join(dir, "theirs")
		if err := errors.Join(os.Mkdir(theirs, 0o700), os.Chown(theirs, 1, 1)); err != nil {
			t.Fatal(err)
		}
		cases["another user's"] = theirs
		for what, options := range map[string]string{"full": "size=4k,mode=700", "read-only": "ro,mode=700", "another file system": "size=4m,mode=700"} {
			at := filepath.Join(dir, strings.ReplaceAll(what, " ", "-"))
			if err := os.Mkdir(at, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount("tmpfs", at, "tmpfs", 0, strings.TrimPrefix(options, "ro,")); err != nil {
				t.Logf("%s: mount: %v", what, err)
				continue
			}
			mounted := at
			t.Cleanup(func() { _ = unix.Unmount(mounted, unix.MNT_DETACH) })
			if strings.HasPrefix(options, "ro,") {
				// With an index in it, which is used.
				if _, _, warnings := askedFile(t, path, at); len(warnings) > 0 {
					t.Errorf("%v", warnings)
				}
				if err := unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
					t.Fatal(err)
				}
				if said, used, warnings := askedFile(t, path, at); said != want || !used || len(warnings) > 0 {
					t.Errorf("%s: used %v, warnings %v", what, used, warnings)
				}
				at = filepath.Join(at, "below")
			}
			cases[what] = at
		}
	}
	for what, cache := range cases {
		for range 2 {
			said, used, warnings := askedFile(t, path, cache)
			if said != want {
				t.Errorf("%s: another answer", what)
			}
			if what == "another file system" {
				if len(warnings) > 0 {
					t.Errorf("%s: %v", what, warnings)
				}
				continue
			}
			if used || len(warnings) == 0 || len(warnings) > 2 {
				t.Errorf("%s: used %v, warnings %v", what, used, warnings)
			}
			for _, w := range warnings {
				if what != "full" && what != "nowhere" && !errors.Is(w, store.ErrUnusable) {
					t.Errorf("%s: %v", what, w)
				}
			}
		}
		if left, _ := filepath.Glob(filepath.Join(cache, ".new-*")); len(left) > 0 {
			t.Errorf("%s: %v", what, left)
		}
	}
}

// TestKeptKilled: what a writer leaves that is killed is listed, and gone after the next question.
func TestKeptKilled(t *testing.T) {
	if os.Getenv("KEPT_WRITER") != "" {
		_, _, _ = askedFile(t, os.Getenv("KEPT_WRITER"), os.Getenv("KEPT_CACHE"))
		return
	}
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache")
	path, err := fixtures.WriteTo(dir, enemyFixture)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(cache, ".new-99-abc")
	if err := os.WriteFile(left, make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := index.ListKept(cache); err != nil || len(list) != 1 || !list[0].Unfinished || list[0].Size != 5000 {
		t.Errorf("%v, %v", list, err)
	}
	// Eight processes at once, one of which is killed somewhere.
	var wg sync.WaitGroup
	for i := range 8 {
		c := exec.Command(os.Args[0], "-test.run=^TestKeptKilled$")
		c.Env = append(os.Environ(), "KEPT_WRITER="+path, "KEPT_CACHE="+cache)
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if i == 0 {
				time.Sleep(20 * time.Millisecond)
				_ = c.Process.Kill()
				_ = c.Wait()
				return
			}
			if err := c.Wait(); err != nil {
				t.Errorf("%v\n%s", err, &out)
			}
		})
	}
	wg.Wait()
	want, _, _ := askedFile(t, path, "")
	if said, used, warnings := askedFile(t, path, cache); said != want || !used || len(warnings) > 0 {
		t.Errorf("used %v, warnings %v", used, warnings)
	}
	if list, err := index.ListKept(cache); err != nil || len(list) != 1 || list[0].Unfinished {
		t.Errorf("%v, %v", list, err)
	}
}
