package prove

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// built opens a program that gcc makes of a source for both readers.
func built(t *testing.T, source string, options ...string) (*dwarfloc.Image, *oracle.File) {
	t.Helper()
	dir := t.TempDir()
	file, path := filepath.Join(dir, "source.c"), filepath.Join(dir, "program")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(testenv.Tool(t, "gcc-12"), append(options, "-o", path, file)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	img := testenv.Open(t, path)
	second, err := Second(t.Context(), img)
	if err != nil {
		t.Fatal(err)
	}
	return img, second
}

const memberSource = `
enum e { neg = -2 };
struct in { int a; signed b : 5; unsigned c : 9; union { long d; char text[8]; }; };
struct out { char pad[12]; struct in in, *next; short list[7]; enum e e; };
long sink;
__attribute__((noinline)) long far(struct out *o, long n) { return sink += o->in.a + n; }
static inline long near(struct out o, struct in i, int n) { return sink += o.in.c + i.b + n; }
long use(struct out *o) { struct in i = { o->e, 3, 4, { o->list[2] } }; return near(*o, i, 7) + far(o->next ? (void *)o->next : o, 1); }
int main(int n, char **v) { struct out o = { .e = n }; return use(&o); }
`

// memberPaths are paths over parameters of memberSource's functions.
var memberPaths = []string{
	"far a=o->in.a b=o->in.b c=o->in.c", "far d=o->in.d t=o->in.text[3] e=o->e", "far l=o->list[6] na=o->next->a nc=o->next->c",
	"far n=o[2].e p=o->next[1].b x=o->in.a:u8", "near a=o.in.a c=o.in.c d=i.d", "near b=i.b c=i.c a=i.a", "near l=o.list[3] nb=o.next->b e=o.e",
}

// TestMembers: what paths lead to is what the second reader finds there.
func TestMembers(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, options := range [][]string{{"-g", "-O0"}, {"-g", "-O2"}, {"-gdwarf-4", "-O1"}} {
		img, second := built(t, memberSource, options...)
		for _, text := range memberPaths {
			for _, reads := range readsHere() {
				r, err := Plan(context.Background(), plantest.New(t, img, text, plan.Options{}), second, Options{Seed: seed, States: 8, Reads: reads})
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Disagreements) > 0 || r.Values+r.NotFetched == 0 || r.Unchecked > 0 {
					t.Errorf("%v, %v reads: %s: %v\n%s", options, reads, text, r, strings.Join(r.Disagreements, "\n"))
				}
			}
		}
	}
}

// TestFindsWrongMember checks that a member at another offset is found.
func TestFindsWrongMember(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	img, second := built(t, memberSource, "-g", "-O2")
	for _, text := range []string{"far o->in.a", "far o->in.d", "far o->next->a", "far o->list[6]", "far o->e"} {
		p := plantest.New(t, img, text, plan.Options{})
		for i := range p.Sites {
			a := &p.Sites[i].Args[0]
			v := *a.Variable
			v.Loc.Expr = &loc.Expr{Op: ops.Add, A: v.Loc.Expr, B: &loc.Expr{Op: ops.Const, K: 4}}
			a.Variable, a.Loc = &v, v.Loc
		}
		r, err := Plan(context.Background(), p, second, Options{Seed: seed, States: 32})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Disagreements) == 0 {
			t.Errorf("%s: nothing was found: %v", text, r)
		}
	}
}

// TestForms: the second reader reads old compressed sections and 64-bit DWARF.
func TestForms(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, options := range [][]string{{"-g", "-gz=zlib-gnu"}, {"-g", "-gz=zlib"}, {"-g", "-gdwarf64"}, {"-gdwarf-4", "-gdwarf64"}} {
		img, second := built(t, memberSource, append(options, "-O2")...)
		r, err := Image(context.Background(), img, second, Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Disagreements) > 0 || r.Values == 0 {
			t.Errorf("%v: %v\n%s", options, r, strings.Join(r.Disagreements, "\n"))
		}
	}
}

// TestModules proves the fixtures that are relocatable, and a module of Debian's.
func TestModules(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	var paths []string
	for _, name := range fixtures.Relocatable() {
		path, err := fixtures.WriteTo(t.TempDir(), name)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	if !testing.Short() {
		paths = append(paths, testenv.Module(t))
	}
	for _, path := range paths {
		img := testenv.Open(t, path)
		second, err := Second(t.Context(), img)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Image(context.Background(), img, second, Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Disagreements) > 0 || r.Values == 0 || r.Unchecked > r.Values/20 {
			t.Errorf("%s: %v\n%s", path, r, strings.Join(r.Disagreements, "\n"))
		}
	}
}

// TestNameless: parameters without names are told apart by their order, as Rust's patterns.
func TestNameless(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	at := dwarftest.At
	long := &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{
		at(dw.AttrName, dw.FormString, "long"), at(dw.AttrByteSize, dw.FormData1, 8), at(dw.AttrEncoding, dw.FormData1, dw.EncSigned),
	}}
	f := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
		at(dw.AttrName, dw.FormString, "f"), at(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), at(dw.AttrHighpc, dw.FormData8, 16),
	}}
	for _, reg := range []byte{0x55, 0x54, 0x51} {
		f.Kids = append(f.Kids, &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{
			at(dw.AttrType, dw.FormRef4, long), at(dw.AttrLocation, dw.FormExprloc, []byte{reg}),
		}})
	}
	data := dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root(long, f)}})
	img, err := dwarfloc.FromBytes("nameless", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := oracle.FromBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Image(context.Background(), img, second, Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	if r.Values != 9 || r.Agreed != 9 || r.Unchecked != 0 {
		t.Errorf("%v\n%s", r, strings.Join(r.Disagreements, "\n"))
	}
}
