package dwarfloc_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/loc"
)

// TestConvention: where the calling convention puts arguments that compilers describe
// by stack slots which are not set up at the functions' first instructions, or by what the
// body assigns first. GCC, which describes them right, is the judge.
func TestConvention(t *testing.T) {
	const source = `
typedef struct { int a, b; } two;
typedef struct { long a, b; } pair;
typedef struct { double d; long l; } mixed;
typedef struct { long v[5]; } big;
typedef struct __attribute__((packed)) { char c; long l; } packed;
typedef union { int i; float f; } either;
volatile long sink;
#define USE(x) (sink = (long)&(x))
__attribute__((noinline)) long scalars(char a, short b, int c, long d, unsigned char e, void *f, int g, char h) { while (a--) sink = a; while (c--) sink = c; USE(g); USE(h); return a + b + c + d + e + (long)f + g + h; }
__attribute__((noinline)) long structures(two t, pair p, big b, mixed m, int k) { USE(t); USE(p); USE(b); while (k--) sink = k; return t.a + p.b + b.v[2] + m.l + k; }
__attribute__((noinline)) long floats(float a, int b, double c, long d, mixed m, long e) { while (b--) sink = b; while (e--) sink = e; return a + b + c + d + m.l + e; }
__attribute__((noinline)) long spilled(long a, long b, long c, long d, long e, pair p, long f) { USE(p); while (f--) sink = f; return a + b + c + d + e + p.a + f; }
__attribute__((noinline)) big result(int k) { big b = {{k}}; while (k--) sink = k; return b; }
__attribute__((noinline)) long others(either e, packed p, long double l, __int128 w, int k) { USE(e); while (k--) sink = k; return e.i + p.l + (long)l + (long)w + k; }
int main(void)
{
	two t = {1}; pair p = {2}; big b = {{3}}; mixed m = {4}; either e = {5}; packed q = {6};
	return scalars(1, 2, 3, 4, 5, &t, 7, 8) + structures(t, p, b, m, 5) + floats(1, 2, 3, 4, m, 5) + spilled(1, 2, 3, 4, 5, p, 6) + result(2).v[0] + others(e, q, 1, 2, 3);
}
`
	answersOf := func(compiler string) map[string]string {
		img, err := dwarfloc.Open(compile(t, compiler, source, "-g", "-w"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		sites, err := img.Sites(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		out := make(map[string]string)
		for _, s := range sites {
			if s.Kind != dwarfloc.SiteEntry || s.Function == "main" {
				continue
			}
			params, err := s.Params()
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range params {
				text := v.Reason.String()
				if v.Located() {
					text = v.Loc.Text(img.Arch())
				}
				if v.Reason.Code == reasons.OptimizedOut || strings.HasPrefix(text, "missing-piece") || strings.HasPrefix(text, "vector-register") {
					continue // no fault of the convention
				}
				out[s.Function+" "+v.Name] = text
			}
		}
		return out
	}
	gnu, llvm := answersOf("gcc-12"), answersOf("clang-14")
	compared := 0
	for name, text := range llvm {
		if want, ok := gnu[name]; ok {
			compared++
			if text != want {
				t.Errorf("%s: clang's is %s, GCC's %s", name, text, want)
			}
		}
	}
	if compared < 25 {
		t.Errorf("only %d parameters compared: %s", compared, cmp.Diff(gnu, llvm))
	}
}

// TestParamsAsNamed: the parameters of a site are those that their names stand for there,
// also of a function that is both inlined and out of line.
func TestParamsAsNamed(t *testing.T) {
	const source = `
volatile long sink;
#define USE(x) (sink = (long)&(x))
long down(int n, long k) { while (n--) sink = n; return n + k; }
long slot(int n, long k, long m) { USE(k); while (m--) sink = m; return n + k; }
int main(int argc, char **argv) { return down(argc, 3) + slot(argc, 4, 5); }
`
	for _, options := range []string{"clang-14", "clang-14 -O2", "gcc-12 -O2", "gcc-12 -O2 -gno-variable-location-views"} {
		command := strings.Fields(options)
		img := testenv.Open(t, compile(t, command[0], source, append(command[1:], "-g", "-w")...))
		sites, err := img.Sites(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		inlined := 0
		for _, s := range sites {
			params, err := s.Params()
			if err != nil {
				t.Fatal(err)
			}
			if s.Inlined() {
				inlined++
			}
			for _, v := range params {
				if v.Name == "" {
					continue // of an external function
				}
				named, err := s.Lookup(v.Name)
				if err != nil {
					t.Fatal(err)
				}
				a, b := v.Loc.Text(img.Arch()), named.Loc.Text(img.Arch())
				if a != b || v.Loc.Rule != named.Loc.Rule || v.Reason != named.Reason || v.LowBit != named.LowBit {
					t.Errorf("%s: %v: %s is %s (%v) %v; by its name %s (%v) %v", options, s, v.Name, a, v.Loc.Rule, v.Reason, b, named.Loc.Rule, named.Reason)
				}
			}
		}
		if inlined == 0 {
			t.Errorf("%s: nothing is inlined", options)
		}
	}
}

// TestLinkageNameBeforeDWARF4: names of C++ are the same in all versions.
func TestLinkageNameBeforeDWARF4(t *testing.T) {
	const source = `
#include <string>
struct A { std::string f(int x) const; };
std::string __attribute__((noinline)) A::f(int x) const { return std::string(x, 'a'); }
template <class T> T __attribute__((noinline)) twice(T v) { return v + v; }
int main(int argc, char **) { A a; return a.f(argc).size() + twice<long>(argc); }
`
	for _, compiler := range []string{"g++-12", "clang++-14"} {
		for _, version := range []string{"-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5"} {
			img := testenv.Open(t, compile(t, compiler, source, "-x", "c++", "-g", version))
			for name, want := range map[string]string{"f": "A::f[abi:cxx11]", "twice<long int>": "twice<long>", "twice<long>": "twice<long>"} {
				sites, err := img.Sites(context.Background(), dwarfloc.Name(name))
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range sites {
					if got, err := s.QualifiedName(); err != nil || got != want {
						t.Errorf("%s %s: %s is %s, and should be %s; %v", compiler, version, name, got, want, err)
					}
				}
				if name == "f" && len(sites) == 0 {
					t.Errorf("%s %s: no site of f", compiler, version)
				}
			}
		}
	}
}

// TestConstantBeforeDWARF4: a constant that clang describes in DWARF 2 and 3, which cannot say that it is no address, is the
// value, as in later versions.
func TestConstantBeforeDWARF4(t *testing.T) {
	const source = `
volatile int s;
static inline __attribute__((always_inline)) void f(int *p, int k) { if (*p) s = k; for (int i = 0; i < *p; i++) s = k; k += *p; s = k; }
int main(int argc, char **argv) { s = argc; f((int *)argv, 274); return 0; }
`
	for _, version := range []string{"-gdwarf-2", "-gdwarf-3"} {
		img := testenv.Open(t, compile(t, "clang-14", source, "-g", version))
		sites, err := img.Sites(context.Background(), dwarfloc.Name("f"))
		if err != nil || len(sites) != 1 {
			t.Fatalf("%v, %v", sites, err)
		}
		v, err := sites[0].Lookup("k")
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Loc.Text(img.Arch()); got != "274" || v.Loc.Kind != loc.KindConstant {
			t.Errorf("%s: k is %s (%v)", version, got, v.Reason)
		}
	}
}

// TestSetFirst: clang 19 and 22 describe an argument that is passed on the stack, and loaded by one of the function's first instructions, as
// if it were in the register from the beginning. A function that only its unit calls may be called in another way: nothing tells where the
// argument is.
func TestSetFirst(t *testing.T) {
	const source = `
volatile long sink;
#define BODY { sink = a; sink = b; sink = c; sink = d; sink = e; sink = f; sink = g; sink = h; sink = i; return sink; }
long external(long a, long b, long c, long d, long e, long f, long g, long h, unsigned short i) BODY
__attribute__((noinline)) static long local(long a, long b, long c, long d, long e, long f, long g, long h, unsigned short i) BODY
long caller(long a, short s) { return local(a, s, 3, 4, 5, 6, 7, 8, s) + local(s, a, 4, 5, 6, 7, 8, 9, s + 1); }
`
	for _, to := range []struct{ triple, want string }{
		{"loongarch64-linux-gnu", "[sp]"}, {"s390x-linux-gnu", "[r15+190]"},
	} {
		for _, compiler := range []string{"clang-19", "clang-22"} {
			img := testenv.Open(t, compile(t, compiler, source, "-O2", "-g", "-c", "-ffreestanding", "-fomit-frame-pointer", "--target="+to.triple))
			for _, function := range []string{"external", "local"} {
				sites, err := img.Sites(context.Background(), dwarfloc.Name(function))
				if err != nil || len(sites) != 1 {
					t.Fatalf("%s: %v, %v", function, sites, err)
				}
				v, err := sites[0].Lookup("i")
				if err != nil {
					t.Fatal(err)
				}
				got := v.Loc.Text(img.Arch())
				t.Logf("%s %s: %s: %s %v", to.triple, compiler, function, got, v.Reason)
				if got != to.want && (function == "external" || v.Located()) {
					t.Errorf("%s %s: i of %s is %s (%v), want %s", to.triple, compiler, function, got, v.Reason, to.want)
				}
			}
		}
	}
}

// TestArgumentWithoutUse: LLVM has no place for an argument that nothing comes of, and a caller in the same image need not pass it. One
// that only calls through a pointer does.
func TestArgumentWithoutUse(t *testing.T) {
	const source = `
volatile long sink, in;
__attribute__((noinline)) long keep(long a) { return in + a; }
#define LEFT_OUT(name) __attribute__((noinline)) long name(long a, _Bool n, long b) { n ^= keep(a); sink = a; n >>= 1; return b; }
LEFT_OUT(called)
LEFT_OUT(pointed)
long (*volatile pointer)(long, _Bool, long) = pointed;
int main(int argc, char **argv) { sink = called(argc, in * 3 < 7, argc); return pointer(argc, in * 3 < 7, argc); }
`
	img := testenv.Open(t, compile(t, "clang-19", source, "-O2", "-g", "-w"))
	for name, want := range map[string]loc.ReasonCode{"called": reasons.Contradictory, "pointed": reasons.None} {
		sites, err := img.Sites(t.Context(), dwarfloc.Name(name))
		if err != nil || len(sites) != 1 {
			t.Fatalf("%s: %d sites, %v", name, len(sites), err)
		}
		v, err := sites[0].Lookup("n")
		if err != nil || v.Loc.Text(img.Arch()) != "%rsi" || v.Loc.Doubt != want {
			t.Errorf("%s: n is at %s %v, doubt %v, %v; want %%rsi, doubt %v", name, v.Loc.Text(img.Arch()), v.Reason, v.Loc.Doubt, err, want)
		}
	}
}

// TestStructureRead: clang has a note of a structure only behind the instructions that take it apart, or of a part of it, and GCC notes the slot into which it is stored.
// Where the function's code reads the registers that the convention names, they have the structure, also if its own unit calls the function.
func TestStructureRead(t *testing.T) {
	const source = `
typedef struct { int a, b; } two;
typedef struct { two p; struct { int z; char w[4]; } q; } nest;
typedef struct { short v[4]; } shorts;
volatile int sink;
#define NI __attribute__((noinline))
NI static int apart(two s) { return s.a + s.b; }
NI int part(nest s) { sink = s.p.b; return s.q.z * 3 + s.q.w[1]; }
NI static int local(nest s, int k) { sink = s.p.b + k; return s.q.z * 3 + s.q.w[1]; }
NI static int less(nest s, int k) { sink = s.p.b + k; return s.q.z * 3 + s.q.w[1]; }
NI static int promoted(const two *p, nest s) { sink = s.p.b + p->a - p->b; return s.q.z * 3 + s.q.w[1]; }
NI int indexed(shorts s, int i) { return s.v[i] + s.v[3 - i]; }
typedef struct { double d; int i; } mixed;
NI int half(mixed s) { return s.i * 3; }
NI static int unused(two s, int k) { sink = k; return 1; }
int main(int argc, char **argv)
{
	return apart((two){argc, 2}) + part((nest){{3, argc}, {5, "abc"}}) + local((nest){{3, argc}, {argc, {argc, argc}}}, argc) + less((nest){{3, argc}, {5, "abc"}}, argc) + promoted(&(two){argc, 7}, (nest){{3, argc}, {5, "abc"}}) + indexed((shorts){{argc}}, argc) + half((mixed){1, argc}) + unused((two){argc}, argc);
}
`
	for _, tt := range []struct{ compiler, option, function, param, want string }{
		{"clang-19", "-O2", "apart", "s", "%rdi"},
		{"clang-19", "-O2", "part", "s", "{%rdi:8, %rsi:8}"},
		{"clang-14", "-O2", "part", "s", "{%rdi:8, %rsi:8}"},
		{"clang-19", "-O2", "local", "s", "{%rdi:8, %rsi:8}"},
		{"clang-14", "-O2", "local", "s", "{%rdi:8, %rsi:8}"},
		{"clang-19", "-O2", "less", "s", "{u32(%rdi):4}"}, // its second half is not passed
		{"clang-14", "-O2", "less", "s", "{u32(%rdi):4}"},
		{"clang-19", "-O2", "promoted", "s", "{u32(%rsi):4}"},
		{"clang-14", "-O2", "promoted", "s", "{u32(%rsi):4}"},
		{"clang-19", "-O2", "indexed", "s", "%rdi"},
		{"clang-14", "-O2", "indexed", "s", "%rdi"},
		{"gcc-12", "-Os", "indexed", "s", "%rdi"},
		{"gcc-12", "-O2", "indexed", "s", "%rdi"},
		{"clang-19", "-O2", "half", "s", "missing-piece"},
		{"clang-19", "-O2", "unused", "s", "optimized-out"},
	} {
		img := testenv.Open(t, compile(t, tt.compiler, source, tt.option, "-g", "-w"))
		sites, err := img.Sites(t.Context(), dwarfloc.Name(tt.function))
		if err != nil || len(sites) == 0 {
			t.Fatalf("%s: %d sites, %v", tt.function, len(sites), err)
		}
		v, err := sites[0].Lookup(tt.param)
		got := v.Loc.Text(img.Arch())
		if v.Loc.Doubt != reasons.None {
			got = "~" + got
		}
		if v.Reason.Code != reasons.None {
			got = v.Reason.Code.String()
		}
		if err != nil || got != tt.want {
			t.Errorf("%s %s: %s of %s is %s, %v; want %s", tt.compiler, tt.option, tt.param, tt.function, got, err, tt.want)
		}
	}
}

// TestStackRead: clang notes an argument on the stack relative to the frame that the function has not set up at its first instruction. There it is where the
// convention says, also at the line that begins there; and if the function reads it, all callers pass it.
func TestStackRead(t *testing.T) {
	const source = `
volatile int sink, in;
__attribute__((noinline)) void clobber(void) { __asm__ volatile("" ::: "memory", "rdi", "rsi", "rbx"); }
__attribute__((noinline)) int read(int a, int b, int c, int d, int e, int f, int n) {
	volatile int slots[4];
	slots[0] = a + b + c + d + e + f;
	slots[3] = n;
	clobber();
	return slots[3] * 5 + d;
}
__attribute__((noinline)) int left(int a, int b, int c, int d, int e, int f, int n) { n = b * 3; volatile int *volatile p = &n; sink = *p; return d; }
int main(void) { return read(1, 2, 3, 4, 5, 6, in) + left(1, 2, 3, 4, 5, 6, in); }
`
	for _, compiler := range []string{"clang-14", "clang-19"} {
		img := testenv.Open(t, compile(t, compiler, source, "-O2", "-g"))
		at := func(s *dwarfloc.Site) string {
			v, err := s.Lookup("n")
			switch {
			case err != nil:
				t.Fatal(err)
			case v.Reason.Code != reasons.None:
				return v.Reason.String()
			case v.Loc.Doubt != reasons.None:
				return "~" + v.Loc.Text(img.Arch())
			}
			return v.Loc.Text(img.Arch())
		}
		for name, want := range map[string]string{"read": "[%rsp+8]", "left": "~[%rsp+8]"} {
			sites, err := img.Sites(t.Context(), dwarfloc.Name(name))
			if err != nil || len(sites) != 1 {
				t.Fatalf("%s: %d sites, %v", name, len(sites), err)
			}
			if got := at(sites[0]); got != want {
				t.Errorf("%s: n of %s is %s, want %s", compiler, name, got, want)
			}
			lines, err := img.LineSites(t.Context(), sites, func(_ *dwarfloc.Site, _ string, line int) bool { return line == 4 })
			if err != nil || name == "read" && len(lines) == 0 {
				t.Fatal(len(lines), err)
			}
			if name == "read" && at(lines[0]) != want {
				t.Errorf("%s: n at the line of read is %s", compiler, at(lines[0]))
			}
		}
	}
}

// TestUnstored: without optimization GCC stores a parameter that a nested function uses, and clang 22 all of a function with variable arguments, only behind what is said to be
// the function's prologue. There they are where they were passed, if the prologue sets none of these registers.
func TestUnstored(t *testing.T) {
	const nested = `int f(int n, long m) { int in(int k) { return k * n; } return in(m); } int main(int argc, char **argv) { return f(argc, 2); }`
	const variable = `#include <stdarg.h>
int f(int n, ...) { va_list l; va_start(l, n); int m = va_arg(l, int); va_end(l); return n + m; } int main(int argc, char **argv) { return f(argc, 2); }`
	for _, tt := range []struct{ compiler, source, param, want string }{
		{"gcc-12", nested, "n", "%rdi"},
		{"gcc-12", nested, "m", "[%rbp-32]"},
		{"clang-22", variable, "n", "%rdi"},
	} {
		img := testenv.Open(t, compile(t, tt.compiler, tt.source, "-O0", "-g"))
		sites, err := img.Sites(t.Context(), dwarfloc.Name("f"))
		if err != nil || len(sites) != 1 {
			t.Fatal(len(sites), err)
		}
		v, err := sites[0].Lookup(tt.param)
		if got := v.Loc.Text(img.Arch()); err != nil || v.Reason.Code != reasons.None || got != tt.want {
			t.Errorf("%s: %s is %s, %v, %v; want %s", tt.compiler, tt.param, got, v.Reason, err, tt.want)
		}
	}
}
