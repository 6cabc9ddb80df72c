package oracle_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// program has inlined functions, bit-fields, numbers of 64 bits, pointers, structures by value and a list.
const program = `
struct pair { int a; short b; unsigned c : 5, d : 11; };
struct list { struct list *next; long long value; };
extern int sink(long long, struct pair *, const void *);
static inline __attribute__((always_inline)) int one(struct pair p, unsigned char x) { return sink(p.a + x, &p, 0) + p.d; }
static inline __attribute__((always_inline)) long long two(const struct list *l, int n) {
	long long sum = 0;
	while (n--) { sum += l->value ^ n; l = l->next; }
	return sum;
}
__attribute__((noinline)) static int local(int *p, signed char c, long long big) { return sink(big >> c, 0, p) + *p; }
int outer(struct list *l, int n, unsigned short u, long long w)
{
	struct pair p = { n, (short)u, u & 31, n >> 4 };
	int v = (int)two(l, n << 16 >> 16) + one(p, u);
	for (int i = 0; i < n; i++) v += local(&v, (signed char)i, w + i) + one(p, i);
	return v;
}
`

// TestCompiled compares both readers on object files of all architectures, with their relocations.
func TestCompiled(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "program.c")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{
		"x86_64-linux-gnu", "aarch64-linux-gnu", "armv7-linux-gnueabihf", "i686-linux-gnu", "loongarch64-linux-gnu", "mips64el-linux-gnuabi64",
		"powerpc64le-linux-gnu", "riscv64-linux-gnu", "s390x-linux-gnu",
	} {
		clang := "clang-14"
		if target == "loongarch64-linux-gnu" {
			clang = "clang-22" // with relocations for what the linker may shorten
		}
		testenv.Tool(t, clang)
		for _, flags := range [][]string{{"-O2", "-gdwarf-5"}, {"-O1", "-gdwarf-4"}, {"-O0", "-gdwarf-4"}} {
			t.Run(target+flags[0]+flags[1], func(t *testing.T) {
				path := filepath.Join(dir, target+flags[0]+flags[1]+".o")
				args := append([]string{"-target", target, "-ffreestanding", "-fno-common", "-c", "-o", path, source}, flags...)
				if out, err := exec.Command(clang, args...).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				img := testenv.Open(t, path)
				var loaded []uint64
				for _, s := range inside.File(img).Sections() {
					loaded = append(loaded, s.Addr)
				}
				file, err := oracle.Open(t.Context(), path, "", loaded...)
				if err != nil {
					t.Fatal(err)
				}
				f := compare(t, img, file, nil, false)
				report(t, f, 1)
				if f.Totals["out-of-line parameters"] == 0 || flags[0] != "-O0" && f.Totals["inlined parameters, located"] == 0 {
					t.Error("nothing was compared")
				}
			})
		}
	}
}
