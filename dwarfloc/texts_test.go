package dwarfloc

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// elsewhereNamed is a program whose functions have their names in another unit than their code, with link-time optimization.
const elsewhereNamed = `
volatile int sink;
static inline __attribute__((always_inline)) void first(int n)
{
	if (n > 3)
		sink = n;
}
static inline __attribute__((always_inline)) void second(int n)
{
	first(n + 1);
	sink += n;
}
__attribute__((noinline)) static int third(int n)
{
	second(n * 3);
	return n + sink;
}
int main(int argc, char **argv)
{
	second(argc);
	return third(argc + 5);
}
`

// TestTextsInOrder: which function's text a row of the line table is in does not depend on which functions were asked about before.
func TestTextsInOrder(t *testing.T) {
	dir := t.TempDir()
	file, path := filepath.Join(dir, "source.c"), filepath.Join(dir, "program")
	if err := os.WriteFile(file, []byte(elsewhereNamed), 0o600); err != nil {
		t.Fatal(err)
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not installed: run \"make deps\"")
	}
	if out, err := exec.Command(gcc, "-g", "-O2", "-flto", "-o", path, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	type question struct {
		unit int
		rec  int32
		addr uint64
	}
	type answer struct{ first, known bool }
	ask := func(alone bool) map[question]answer {
		img, err := Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		by := img.by.(dwarfImage)
		if err := by.prepare(true); err != nil {
			t.Fatal(err)
		}
		out := make(map[question]answer)
		if err := by.r.Index.Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range by.units {
			u := &by.units[i]
			rows, err := u.Rows()
			if err != nil {
				t.Fatal(err)
			}
			for rec := range u.Recs {
				if alone {
					u.Body.Forget()
				} else if _, err := u.Body.Code(int32(len(u.Recs) - 1 - rec)); err != nil {
					t.Fatal(err)
				}
				for k := range rows {
					q := question{i, int32(rec), rows[k].Addr}
					first, known, err := u.Body.BeginsAt(q.rec, q.addr)
					if err != nil {
						t.Fatal(err)
					}
					out[q] = answer{first, known}
				}
			}
		}
		return out
	}
	alone, together := ask(true), ask(false)
	if len(alone) == 0 {
		t.Fatal("nothing was asked")
	}
	for q, a := range alone {
		if b := together[q]; a != b {
			t.Errorf("unit %d, record %d at %#x: %+v alone, %+v after others", q.unit, q.rec, q.addr, a, b)
		}
	}
}
