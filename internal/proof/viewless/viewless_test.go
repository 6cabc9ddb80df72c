package viewless

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// source has a parameter that is in one register to the end, one that its body assigns at once, and one that it assigns behind its first instructions.
const source = `
volatile long sink;
__attribute__((noipa)) void use(long v) { sink += v; }
static inline void kept(long n) { use(n); use(n); }
static inline void assigned(long n) { n &= 0xff; use(n); use(n); }
static inline long scaled(long *p, long n) { p++; n <<= 2; return p[n] + n; }
static inline void later(long n) { use(n); n = sink; use(n); }
__attribute__((noipa)) void all(long a, long b, long c) { kept(a); assigned(b); later(c); kept(b + c); assigned(a * c); later(7); }
int main(int n, char **v) { all(n, n + 1, n + 2); return scaled((long *)v, n); }
`

// TestStrip: without views a list has one note where it had two, and what is sure then is what the views say.
func TestStrip(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("a.c"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(testenv.Tool(t, "gcc-12"), "-O2", "-g", "-o", at("a"), at("a.c")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := Strip(at("a"), at("stripped")); err != nil {
		t.Fatal(err)
	}
	notes := func(name string) (views, lists, empty int) {
		out, err := exec.Command(testenv.Tool(t, "readelf"), "--debug-dump=info,loc", "-W", at(name)).Output()
		if err != nil {
			t.Fatal(err)
		}
		text := string(out)
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) > 2 && f[0] == f[1] && strings.HasPrefix(f[2], "(DW_OP") {
				empty++
			}
		}
		return strings.Count(text, "DW_AT_GNU_locviews") + strings.Count(text, "DW_AT_GNU_entry_view"), strings.Count(text, "(location list)"), empty
	}
	views, lists, empty := notes("a")
	if views == 0 || empty == 0 {
		t.Fatalf("the program has %d views, and %d entries without code: it shows nothing", views, empty)
	}
	if v, l, e := notes("stripped"); v != 0 || l != lists || e != 0 {
		t.Errorf("stripped, it has %d views, %d lists and %d entries without code, and had %d, %d and %d", v, l, e, views, lists, empty)
	}
	open := func(name string) *dwarfloc.Image {
		img, err := dwarfloc.Open(at(name), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = img.Close() })
		return img
	}
	r, err := Compare(t.Context(), open("a"), open("stripped"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Same < 8 || len(r.Other) != 0 {
		t.Errorf("%d the same, %d doubtful, other %+v", r.Same, r.Doubtful, r.Other)
	}
}

// TestTables: a table that ends within an attribute is an error, and so is a list.
func TestTables(t *testing.T) {
	if err := rename([]byte{1, 0x2e, 1, 0xb7, 0x42}); err == nil || !strings.HasPrefix(err.Error(), "+0x3: ") {
		t.Error(err)
	}
	if err := shortenList([]byte{4, 0, 0, 1, 0x50}, 0); err == nil {
		t.Error("a list without an end is read")
	}
	list := []byte{4, 0, 0, 1, 0x50, 4, 0, 8, 1, 0x51, 0}
	if err := shortenList(list, 0); err != nil || string(list[:6]) != "\x04\x00\x08\x01\x51\x00" {
		t.Errorf("%v, %x", err, list)
	}
}
