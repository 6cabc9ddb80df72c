package plan_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/pack"
	"github.com/bpfprologue/bpfprologue/plan"
)

// declaredSources are two units: clang describes the classes in the second one alone, which has their constructors. A third one has
// another class of the same name.
var declaredSources = map[string]string{
	"v.h": `
struct V { V(float a, float b); float x, y; };
namespace app { enum class E : short; struct V { V(int n); int n; }; template <class T> struct Box { Box(T v); T v; }; extern template struct Box<int>; }
struct Lost { Lost(int); int n; };
struct Empty {};
struct B { V lo; const V more[2]; app::V v; app::Box<int> box; app::E kind; Empty e; };
enum class Unknown : short;
struct L { int n; Unknown kind; Lost lost, all[2]; };
extern int sink;
`,
	"a.cpp": `
#include "v.h"
__attribute__((noinline)) int move(const B &b, const V &d, V *p) { return b.lo.x + d.y + p->x; }
__attribute__((noinline)) int lose(const L &l) { return l.n; }
int use(const B *b, const V *d, const L *l) { return move(*b, *d, (V *)d) + lose(*l); }
`,
	"b.cpp": `
#include "v.h"
int sink; V::V(float a, float b) : x(a), y(b) {}
namespace app { enum class E : short { one = 1, two }; V::V(int n) : n(n) {} template <class T> Box<T>::Box(T v) : v(v) {} template struct Box<int>; }
int use(const B *, const V *, const L *);
int main() { V d(3, 4); B b = {V(1, 2), {V(5, 6), V(7, 8)}, app::V(9), app::Box<int>(10), app::E::two, Empty()}; return use(&b, &d, (const L *)&b) == 99; }
`,
}

const otherV = `
struct V { V(int n); double q[3]; }; V::V(int n) { q[0] = n; }
__attribute__((noinline)) double other(const V &v) { return v.q[1]; }
double all() { V v(3); return other(v); }
`

// packedImage is the pack of an image.
func packedImage(t *testing.T, img *dwarfloc.Image) *dwarfloc.Image {
	t.Helper()
	var b bytes.Buffer
	if _, err := pack.Write(context.Background(), img, pack.Options{}, &b); err != nil {
		t.Fatal(err)
	}
	packed, err := dwarfloc.FromBytes("pack", b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// TestDeclaredOnly: an object of a class that its unit only declares is fetched and printed by the definition in another unit. What no unit
// defines, or two do differently, is not known, and never printed as if it were empty.
func TestDeclaredOnly(t *testing.T) {
	data := make([]byte, 128) // a record
	_, err := binary.Encode(data, binary.NativeEndian, struct {
		Lo, More0, More1 [2]float32
		V, Box           int32
		Kind, Empty      int16
		_                int32
		D                [2]float32
	}{[2]float32{1, 2}, [2]float32{5, 6}, [2]float32{7, 8}, 9, 10, 2, 0, 0, [2]float32{3, 4}})
	if err != nil {
		t.Fatal(err)
	}
	twice := map[string]string{"c.cpp": otherV}
	for name, text := range declaredSources {
		twice[name] = text
	}
	for _, tt := range []struct {
		compiler, options string
		sources           map[string]string
		b, d              string
	}{
		{"clang++-14", "-O1", declaredSources, "{lo={x=1, y=2}, more=[{x=5, y=6}, {x=7, y=8}], v={n=9}, box={v=10}, kind=two, e={}}", "{x=3, y=4}"},
		{"clang++-14", "-O1 -gdwarf-4", declaredSources, "{lo={x=1, y=2}, more=[{x=5, y=6}, {x=7, y=8}], v={n=9}, box={v=10}, kind=two, e={}}", "{x=3, y=4}"},
		{"clang++-14", "-O1 -fdebug-types-section", declaredSources, "{lo={x=1, y=2}, more=[{x=5, y=6}, {x=7, y=8}], v={n=9}, box={v=10}, kind=two, e={}}", "{x=3, y=4}"},
		{"clang++-22", "-O1 -gsimple-template-names", declaredSources, "{lo={x=1, y=2}, more=[{x=5, y=6}, {x=7, y=8}], v={n=9}, box=?, kind=two, e={}}", "{x=3, y=4}"},
		{"clang++-22", "-O1", twice, "{lo=?, more=?, v={n=9}, box={v=10}, kind=two, e={}}", ""},
	} {
		t.Run(tt.compiler+" "+tt.options, func(t *testing.T) {
			img := built(t, tt.compiler, tt.options, tt.sources)
			for _, img := range []*dwarfloc.Image{img, packedImage(t, img)} {
				p := plantest.New(t, img, "move b d p", plan.Options{})
				s := &p.Sites[0]
				v := p.Values(0, 0, data)
				if got := v[0].String(); got != tt.b {
					t.Errorf("b is %s, not %s", got, tt.b)
				}
				switch d := &s.Args[1]; {
				case tt.d == "":
					if d.Unfetched.Code != reasons.IncompleteType {
						t.Errorf("d is %v: %v", v[1], d.Unfetched)
					}
				case v[1].String() != tt.d || d.Size != 8:
					t.Errorf("d is %v, of %d bytes", v[1], d.Size)
				}
				if p := &s.Args[2]; !strings.HasSuffix(p.Variable.Type.String(), "V *") || p.Size != 8 {
					t.Errorf("p is %v of %d bytes", p.Variable.Type, p.Size)
				}
				lost := plantest.New(t, img, "lose l", plan.Options{}).Values(0, 0, data)
				if got := lost[0].String(); !strings.HasSuffix(got, ", kind=?, lost=?, all=?}") {
					t.Errorf("l is %s", got)
				}
				if tt.d == "" {
					at := plantest.New(t, img, "other v", plan.Options{}).Values(0, 0, make([]byte, 64))
					if got := at[0].String(); got != "{q=[0, 0, 0]}" {
						t.Errorf("v is %s", got)
					}
				}
			}
		})
	}
}
