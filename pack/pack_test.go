package pack_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/pack"
	"github.com/bpfprologue/bpfprologue/probe"
)

// write returns a pack of a file.
func write(t *testing.T, path string, o pack.Options) ([]byte, *dwarfloc.Image) {
	t.Helper()
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = img.Close() })
	var b bytes.Buffer
	if _, err := pack.Write(context.Background(), img, o, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), img
}

// build compiles a program.
func build(t *testing.T, text string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	src, out := filepath.Join(dir, "p.c"), filepath.Join(dir, "p")
	if err := os.WriteFile(src, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := exec.Command("gcc", append(args, "-o", out, src)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return out
}

const program = `struct s { int a; struct s *n; };
static inline int add(struct s *p, long k) { return p->a + k; }
__attribute__((noinline)) int f(struct s *p, const char *q, long k) { if (q[0]) return add(p, k); return add(p->n, k + 1) * 2; }
int main(int c, char **v) { struct s x = {c, 0}; x.n = &x; return f(&x, v[0], c); }
`

// TestOutline opens packs as images are opened: sections, build ID, kind, and offsets in the file are the image's.
func TestOutline(t *testing.T) {
	object := build(t, program, "-O2", "-g", "-c")
	for _, path := range []string{build(t, program, "-O2", "-g"), build(t, program, "-O2", "-g", "-static", "-no-pie"), object} {
		d, img := write(t, path, pack.Options{})
		f, err := image.FromBytes("pack", d, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f.BuildID() != img.BuildID() || f.IsRelocatable() != inside.File(img).IsRelocatable() || f.IsPositionIndependent() != inside.File(img).IsPositionIndependent() || f.Arch() != img.Arch() {
			t.Errorf("%s: the pack is another kind of file", path)
		}
		want, have := inside.File(img).Sections(), f.Sections()
		if len(want) != len(have) {
			t.Fatalf("%s: %d sections, and the image has %d", path, len(have), len(want))
		}
		for i := range want {
			if want[i] != have[i] {
				t.Errorf("%s: section %+v, and the image's is %+v", path, have[i], want[i])
			}
			a, errA := inside.File(img).FileOffset(want[i].Addr)
			b, errB := f.FileOffset(want[i].Addr)
			if a != b || (errA == nil) != (errB == nil) {
				t.Errorf("%s: %#x is at %#x, and in the image at %#x", path, want[i].Addr, b, a)
			}
		}
	}
}

// TestSame writes a pack twice.
func TestSame(t *testing.T) {
	path := build(t, program, "-O2", "-g")
	a, _ := write(t, path, pack.Options{})
	b, _ := write(t, path, pack.Options{})
	if !bytes.Equal(a, b) {
		t.Error("two packs of one image differ")
	}
}

// TestAmbiguous: of two types with one name, a definition means the first unit's, in a pack too.
func TestAmbiguous(t *testing.T) {
	dir := t.TempDir()
	second, third := filepath.Join(dir, "q.c"), filepath.Join(dir, "r.c")
	for path, text := range map[string]string{
		second: "struct two { char c[40]; };\nint e(struct two *p) { return p->c[3]; }\n", third: "int g(void *p) { return *(int *)p; }\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const first = "struct two { char c[24]; };\nint g(void *);\nint e(void *);\nint f(struct two *p) { return g(p) + e(p); }\nint main(void) { return f(0); }\n"
	path := build(t, first, "-O2", "-g", third, second)
	d, img := write(t, path, pack.Options{})
	if !bytes.Contains(d, []byte("bpfprologue:first\x00")) {
		t.Error("no type of the two is said to be the first")
	}
	packed, err := dwarfloc.FromBytes("pack", d, nil)
	if err != nil {
		t.Fatal(err)
	}
	def, err := probe.Parse("g x=sizeof(struct two)")
	if err != nil {
		t.Fatal(err)
	}
	var sizes []string
	for _, x := range []*dwarfloc.Image{img, packed} {
		sites, err := x.Sites(context.Background(), dwarfloc.Name("g"))
		if err != nil || len(sites) != 1 {
			t.Fatal(sites, err)
		}
		v, err := compute.Resolve(sites[0], &def.Args[0].Expr)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, v.Loc.Text(img.Arch()))
	}
	if sizes[0] != sizes[1] {
		t.Errorf("the pack says %s, and the image %s", sizes[1], sizes[0])
	}
}

// packed returns a pack of a fixture.
func packed(t *testing.T) *dwarfloc.Image {
	t.Helper()
	var b bytes.Buffer
	if _, err := pack.Write(t.Context(), testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf"), pack.Options{}, &b); err != nil {
		t.Fatal(err)
	}
	img, err := dwarfloc.FromBytes("p", b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = img.Close() })
	return img
}

// TestNamesKept: who asks for many functions that are not there is told the nearest ones each time, and the names are listed once.
func TestNamesKept(t *testing.T) {
	img := packed(t)
	first, err := img.QualifiedNames(t.Context())
	if err != nil || len(first) < 20 {
		t.Fatal(len(first), err)
	}
	slices.Reverse(first) // the caller's own
	var again []string
	n := testing.AllocsPerRun(10, func() { again, err = img.QualifiedNames(t.Context()) })
	if err != nil || !slices.IsSorted(again) || len(again) != len(first) || n > 20 {
		t.Errorf("%v, %d names, %v allocations", err, len(again), n)
	}
}

// TestListed: the sites that a selection has looked at are read once, and are those that are read alone; whoever asks again gets others.
func TestListed(t *testing.T) {
	img := packed(t)
	for _, inlined := range []bool{false, true} {
		list, err := inside.List(img, t.Context(), nil, func(s *dwarfloc.Site) (bool, error) { return s.Inlined() == inlined, nil })
		if err != nil || list.Len() < 5 {
			t.Fatal(list.Len(), err)
		}
		var first, again []*dwarfloc.Site
		if first, err = list.Sites(t.Context()); err != nil {
			t.Fatal(err)
		}
		if again, err = list.Sites(t.Context()); err != nil || len(first) != list.Len() || len(again) != len(first) {
			t.Fatal(len(first), len(again), list.Len(), err)
		}
		for i, s := range first {
			if s == again[i] || s.String() != again[i].String() || s.Inlined() != inlined {
				t.Errorf("site %d: %v, then %v", i, s, again[i])
			}
			if diff := cmp.Diff(s.Callers, again[i].Callers); diff != "" {
				t.Errorf("callers of %v (-first +again):\n%s", s, diff)
			}
		}
	}
}
