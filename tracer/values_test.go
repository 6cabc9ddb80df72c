package tracer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// build compiles a source with a compiler and its options.
func build(t *testing.T, compiler, name, text string, options ...string) (path string, img *dwarfloc.Image) {
	t.Helper()
	tool := testenv.Tool(t, compiler)
	dir := t.TempDir()
	source, path := filepath.Join(dir, name), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, append(options, "-g", "-o", path, source)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = img.Close() })
	return path, img
}

// TestWhatWasPassed traces small programs of several compilers and compares the values with
// those in their sources. Each has been wrong once, or was lost. A value that the debug
// information does not tell is "?".
func TestWhatWasPassed(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const literals = `
volatile int sink;
struct object { int a, b; long c; };
static inline void five(const char *s, int n) { sink += s[0] + n; }
static inline int behind(struct object *o, int k) { return o->a * k + o->b; }
__attribute__((noinline)) int work(int x) { struct object o = {x, x + 1, 5}; return behind(&o, 3); }
int main(int argc, char **argv) { five("hello", 1); return work(argc) != 5; }
`
	const views = `
struct view { const char *str; int len; } v = {(char *)16, 4};
struct string { const char *str; int len, capacity; } t = {(char *)32, 5, 6};
volatile int sink;
__attribute__((noinline)) void take(struct view *v, struct view by, struct string text) { sink = v->len + by.len + text.len; }
int main(void) { take(&v, v, t); return 0; }
`
	const addresses = `
int number = 7, *pointer = &number;
static int hidden = 9;
volatile int sink;
__attribute__((noinline)) int global(int *p) { sink = *p; number++; hidden++; return number; }
__attribute__((noinline)) int is(int *p) { sink = *p; return p == &hidden; }
int main(void) { return global(&number) != 8 || is(&hidden) != 1; }
`
	const assigned = `
volatile int sink;
__attribute__((noinline)) int sum(const int *p, int n) { int s = 0; while (n--) s += *p++ ^ n; return s; }
__attribute__((noinline)) int down(int n) { int s = 0; while (--n > 0) { s += n; sink = s; } return s; }
static inline int in(int n) { int s = 0; while (n--) { s = s * 3 + n; sink = s; } return s; }
int main(int argc, char **argv) { int d[4] = {1, 2, 3, 4}; sink = sum(d, 4) + down(5); return in(argc + 2) < 0; }
`
	const unused = `
struct pair { int x; long y; };
volatile long sink;
__attribute__((noinline)) int part(struct pair p, int k) { sink += k; return p.x; }
int main(int argc, char **argv) { struct pair p = {argc + 4, (long)argv}; return part(p, 3) != 5; }
`
	const halved = `
#include <stdbool.h>
volatile int sink;
static inline int half(bool b, int k) { b >>= 1; sink = k; sink = b + k; return sink; }
__attribute__((noinline)) int call(int n) { sink = n; return half(n & 1, n) + half(n > 2, 3); }
int main(int argc, char **argv) { call(argc); call(argc + 1); return 0; }
`
	const doubled = `
volatile int sink;
static inline void twice(int n, int k) { n <<= 1; sink = k; n ^= sink; sink = n; n *= 3; sink = n; }
__attribute__((noinline)) void one(int n) { sink = n; twice(n, 1); sink = n; }
__attribute__((noinline)) void two(int n) { sink = n; twice(n * 8, 2); sink = n; }
__attribute__((noinline)) void three(int n) { sink = n; twice(40, 3); sink = n; }
int main(int argc, char **argv) { one(argc); two(argc); three(argc); return 0; }
`
	const truths = `
#include <stdbool.h>
volatile int sink;
static inline void f(bool b, int k) { if (b) sink += k; else sink -= k; sink += b; }
__attribute__((noinline)) void loop(int n) { for (int i = 0; i < n; i++) f((bool)(i & 1), i); }
int main(void) { loop(5); return 0; }
`
	const structures = `
struct two { int a, b; }; struct big { long v[5]; }; struct pair { long a, b; }; struct mixed { double d; long l; };
volatile int sink;
__attribute__((noinline)) int take(struct two t, struct big b, struct pair r, int k) { sink += t.a; return t.a + b.v[2] + r.b + k; }
__attribute__((noinline)) struct pair make(long a) { return (struct pair){a, a + 1}; }
__attribute__((noinline)) struct big large(long a) { struct big b = {{a, a + 1, a + 2, 3, 4}}; sink = a; return b; }
__attribute__((noinline)) struct mixed both(long a) { return (struct mixed){1.5, a}; }
int main(int argc, char **argv)
{
	struct two t = {33, 34}; struct big b = {{1, 2, 3, 4, 5}}; struct pair r = {7, 8};
	sink = take(t, b, r, 9) + make(5).b + large(6).v[1] + both(7).l;
	return 0;
}
`
	const references = `
struct point { int x, y; }; struct holder { point &r; };
volatile int sink;
__attribute__((noinline)) int sum(const int (&a)[3], point &p, int &i, point *&pp, holder w) { sink = a[0] + a[1] + a[2] + p.x + i + pp->y + w.r.y; return sink; }
int main() { int a[3] = {1, 2, 3}; point p{4, 5}; int i = 6; point *pp = &p; sink = sum(a, p, i, pp, holder{p}); return 0; }
`
	const static_ = `
volatile int sink;
static inline int counted(int k) { static int calls = 41; calls += k; sink = calls; return calls; }
__attribute__((noinline)) int one(int k) { return counted(k); }
int main(int argc, char **argv) { return one(1) + one(2) == 0; }
`
	const lost = `
volatile int sink;
static __attribute__((noinline)) int ignored(int n) { sink = n; return n * 3; }
static __attribute__((noinline)) int used(int n) { sink = n; return n * 5; }
int main(int argc, char **argv) { ignored(argc); ignored(argc + 1); return used(argc + 4) != 25; }
`
	const floats = `
#include <complex.h>
struct f { float f; double d; long double l; __int128 i; unsigned __int128 u; _Complex double c; _Float128 q; float a[2]; } g = {1.5f, -2.25, 3.1L, -5, 7, 1.5 - 2.0 * I, 0.1Q, {0.1f, 1e30f}};
volatile double sink;
__attribute__((noinline)) void take(struct f *f) { sink = f->d; }
int main(void) { take(&g); return 0; }
`
	const texts = `
#include <string>
#include <string_view>
volatile long sink;
__attribute__((noinline)) void take(const std::string &s, std::string by, std::string_view v, std::string *p) { sink = s.size() + by.size() + v.size() + p->size(); }
int main() { std::string a = "short", b = "a longer string, on the heap", c; std::string_view v = "view of it"; v.remove_suffix(3); take(a, b, v, &b); take(c, c, {}, &c); }
`
	const members = `
enum class color : unsigned char { red = 1, green = 2 };
struct bits { color c : 3; unsigned k : 5; int bits::*m; int n; };
volatile int sink;
__attribute__((noinline)) void take(color c, const color &r, const bits &b, int bits::*m, int (bits::*f)()) { asm volatile("" :: "r"(&b) : "memory"); sink = (int)c + (int)r + b.k + (m != nullptr) + (f != nullptr); }
int main() { color r = color::green; bits b{color::red, 7, &bits::n, 0}; take(color::green, r, b, &bits::n, nullptr); return 0; }
`
	const rust = `
static mut SINK: usize = 0;
#[inline(never)] fn black_box(n: usize) -> usize { unsafe { std::ptr::write_volatile(std::ptr::addr_of_mut!(SINK), n) }; n }
pub enum Shape { Empty, Circle(u32), Rect { w: u32, h: u32 } }
pub struct Pair(u32, u32);
pub enum Nested { None, Two(Pair, u32), Text([u8; 8], u32) }
#[inline(never)] pub fn nested(a: &Nested, b: &Nested, c: &Nested) -> usize {
    let n = |x: &Nested| match x { Nested::None => 0, Nested::Two(p, k) => p.0 + p.1 + k, Nested::Text(t, k) => t[0] as u32 + k };
    black_box((n(a) + n(b) + n(c)) as usize)
}
#[inline(never)] pub fn strings(s: &str, v: &[u8], t: &String, c: char) -> usize { black_box(s.len() + v.len() + t.len() + c as usize) }
#[inline(never)] pub fn enums(o: Option<u32>, r: Option<&u32>, e: &Shape, f: &Shape) -> u32 {
    let k = match e { Shape::Empty => 0, Shape::Circle(r) => *r, Shape::Rect { w, h } => w * h };
    let l = match f { Shape::Empty => 0, Shape::Circle(r) => *r, Shape::Rect { w, h } => w * h };
    black_box((o.unwrap_or(1) + *r.unwrap_or(&2) + k + l) as usize) as u32
}
fn main() {
    let s = String::from("on the heap");
    strings("literal", b"bytes", &s, 'é');
    enums(Some(4), None, &Shape::Circle(5), &Shape::Rect { w: 2, h: 3 });
    enums(None, Some(&7), &Shape::Empty, &Shape::Empty);
    nested(&Nested::Two(Pair(4, 5), 6), &Nested::Text(*b"__1=text", 7), &Nested::None);
}
`
	const slices = `
static mut SINK: usize = 0;
#[inline(never)] fn black_box(n: usize) -> usize { unsafe { std::ptr::write_volatile(std::ptr::addr_of_mut!(SINK), n) }; n }
#[derive(Clone, Copy)] pub struct Point { pub x: u32, pub y: u32 }
#[inline(never)] pub fn take(v: Vec<u32>, s: &[u32], m: &mut [u64], b: Box<[u16]>, p: &[Point]) -> usize { black_box(v.len() + s.len() + m.len() + b.len() + p.len()) }
fn main() {
    let mut m = [7u64, 8];
    take(vec![1, 2, 3], &[4, 5], &mut m, vec![9u16; 6].into_boxed_slice(), &[Point { x: 1, y: 2 }; 9]);
    take(vec![], &[], &mut m, Box::new([]), &[]);
}
`
	gnu, llvm := "gcc-12", "clang-14"
	for _, c := range []struct {
		name, compiler, file, source string
		options                      string
		definitions, want            []string
	}{
		{"elements of literals", gnu, "s.c", literals, "-O2",
			[]string{"five a=s[0] b=s[1] c=s[4] d=s[5] e=s[6] s:string", "behind a=o->a b=o->b c=o->c d=o[1].a"},
			[]string{"five a='h' b='e' c='o' d=0 e=? s=\"hello\"", "behind a=1 b=2 c=5 d=?"}},
		{"a length of four bytes", gnu, "s.c", views, "-O2", []string{"take v[0] by text"}, []string{"take v={str=0x10, len=4} by={str=0x10, len=4} text={str=0x20, len=5, capacity=6}"}},
		{"addresses of a position-independent program", gnu, "s.c", addresses, "-O2 -fpie -pie",
			[]string{"global number hidden @hidden:s32 p[0]", "is p[0]"},
			[]string{"global number=7 hidden=9 hidden_2=9 p=7", "is p=10"}},
		{"and where it returns", gnu, "s.c", addresses, "-O2 -fpie -pie",
			[]string{"global%return $retval number"}, []string{"global retval=8 number=8"}},
		{"assigned at once, clang", llvm, "s.c", assigned, "-O2", []string{"sum n", "down n", "in n"}, []string{"sum n=4", "down n=5", "in n=?"}},
		{"assigned at once, without views", gnu, "s.c", assigned, "-O2 -gno-variable-location-views", []string{"sum n", "down n"}, []string{"sum n=4", "down n=5"}},
		{"a part that nobody uses, clang", llvm, "s.c", unused, "-O2", []string{"part x=p.x y=p.y k"}, []string{"part x=5 y=? k=3"}},
		{"bodies without markers", gnu, "s.c", halved, "-O2 -flto", []string{"half b k"},
			[]string{"half b=? k=1", "half b=? k=?", "half b=? k=2", "half b=? k=?"}},
		{"assigned in one body, clang", llvm, "s.c", doubled, "-O2", []string{"twice n"}, []string{"twice n=1", "twice n=?", "twice n=?"}},
		{"truth values", gnu, "s.c", truths, "-O2", []string{"f b k"}, []string{"f b=false k=0", "f b=true k=1", "f b=false k=2", "f b=true k=3", "f b=false k=4"}},
		{"structures, with the address sanitizer", gnu, "s.c", structures, "-O0 -fsanitize=address", []string{"take a=t.a b=t.b v=b.v[2] r=r.b k"}, []string{"take a=33 b=34 v=3 r=8 k=9"}},
		{"structures, clang", llvm, "s.c", structures, "-O1", []string{"take a=t.a b=t.b v=b.v[2] r=r.b k"}, []string{"take a=33 b=34 v=3 r=8 k=9"}},
		{"results", gnu, "s.c", structures, "-O2",
			[]string{"make%return a=$retval.a b=$retval.b", "large%return v=$retval.v[1]", "both%return d=$retval.d l=$retval.l"},
			[]string{"make a=5 b=6", "large v=7", "both d=? l=7"}},
		{"references", "g++-12", "s.cc", references, "-O2", []string{"sum a=a[1] b=a[2] x=p.x i y=pp->y z=w.r.y"}, []string{"sum a=2 b=3 x=4 i=6 y=5 z=5"}},
		{"references, clang", "clang++-14", "s.cc", references, "-O0", []string{"sum a=a[1] b=a[2] x=p.x i y=pp->y z=w.r.y"}, []string{"sum a=2 b=3 x=4 i=6 y=5 z=5"}},
		{"a static variable", gnu, "s.c", static_, "-O2", []string{"counted calls k"}, []string{"counted calls=41 k=1", "counted calls=42 k=2"}},
		{"results that the compiler removed", llvm, "s.c", lost, "-O2", []string{"ignored%return $retval", "used%return $retval"}, []string{"ignored retval=?", "ignored retval=?", "used retval=25"}},
		{"results of clones", gnu, "s.c", lost, "-O2", []string{"ignored%return $retval", "used%return $retval"}, []string{"ignored retval=?", "ignored retval=?", "used retval=25"}},
		{"floating point and wide integers", gnu, "s.c", floats, "-O2", []string{"take f->f f->d f->l f->i f->u f->c f->q f->a"},
			[]string{"take f=1.5 d=-2.25 l=3.1 i=-5 u=7 c=1.5-2i q=0.1 a=[0.1, 1e+30]"}},
		{"strings of C++", "g++-12", "s.cc", texts, "-O2", []string{"take s by v p:string"},
			[]string{`take s="short" by="a longer string, on the heap" v="view of" p="a longer string, on the heap"`, `take s="" by="" v="" p=""`}},
		{"enumerations and pointers to members", "g++-12", "s.cc", members, "-O2", []string{"take c r b.c b.k b.m m f"},
			[]string{"take c=green r=green c_2=red k=7 m_2=16 m=16 f={0x0, 0}"}},
		{"slices of Rust", "rustc", "s.rs", slices, "-C opt-level=0", []string{"take v s m b p"},
			[]string{"take v=[1, 2, 3] s=[4, 5] m=[7, 8] b=[9, 9, 9, 9, 9, 9] p=[{x=1, y=2}, {x=1, y=2}, {x=1, y=2}, {x=1, y=2}, {x=1, y=2}, {x=1, y=2}, {x=1, y=2}, {x=1, y=2}, ... 1 more]",
				"take v=[] s=[] m=[7, 8] b=[] p=[]"}},
		{"strings and enums of Rust", "rustc", "s.rs", rust, "-C opt-level=0", []string{"strings s v:string t:string c", "enums o e=e[0] f=f[0]", "nested a[0] b[0] c[0]"},
			[]string{`strings s="literal" v="bytes" t="on the heap" c='é'`, "enums o=Some(4) e=Circle(5) f=Rect{w=2, h=3}", "enums o=None e=Empty f=Empty",
				"nested a=Two({__0=4, __1=5}, 6) b=Text([95, 95, 49, 61, 116, 101, 120, 116], 7) c=None"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, img := build(t, c.compiler, c.file, c.source, strings.Fields(c.options)...)
			p := plans(t, img, c.definitions...)
			var got []string
			run(t, p, "", []string{path}, func(pid int, h *tracer.Hit) {
				if h.PID != pid {
					return
				}
				line := h.Plan.Sites[h.Site].Function
				for i := range h.Values {
					line += fmt.Sprintf(" %s=%s", h.Values[i].Name, h.Values[i])
				}
				got = append(got, line)
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPreempted: a variable that a library exports is in the program that uses it, where the
// linker made a copy of it.
func TestPreempted(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const library = `
int counter = 5, list[4] = {1, 2, 3, 4};
int hidden __attribute__((visibility("hidden"))) = 6;
volatile int sink;
static inline void look(int *p) { sink = *p; }
__attribute__((noinline)) int bump(int k) { counter += k; hidden += k; list[2] += k; look(&counter); return counter; }
`
	const program = `
extern int counter, list[4];
int bump(int);
int main(void) { counter = 100; list[1] = 50; bump(1); return bump(2) != 103; }
`
	path, img := build(t, "gcc-12", "library.c", library, "-O2", "-fPIC", "-shared")
	source := filepath.Join(t.TempDir(), "use.c")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, option := range []string{"-pie", "-no-pie"} {
		use := filepath.Join(t.TempDir(), "use")
		if out, err := exec.Command("gcc-12", "-O2", option, "-o", use, source, path).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var got []string
		run(t, plans(t, img, "bump counter hidden a=list[1] b=list[2] @counter:s32 k", "look p[0]"), "", []string{use}, func(pid int, h *tracer.Hit) {
			for i := range h.Values {
				if h.PID == pid {
					got = append(got, h.Values[i].Name+"="+h.Values[i].String())
				}
			}
		})
		want := "counter=100 hidden=6 a=50 b=3 counter_2=100 k=1 p=101 counter=101 hidden=7 a=50 b=4 counter_2=101 k=2 p=103"
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", option, diff)
		}
	}
}
