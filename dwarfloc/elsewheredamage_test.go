package dwarfloc_test

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

const damageSource = `struct s { int a, b; struct s *next; };
static inline __attribute__((always_inline)) int inl(struct s *s, int j) { return s->a * j + s->b; }
__attribute__((noinline)) int f(struct s *s, int n) { int r = 0; for (int i = 0; i < n; i++) r += inl(s, i) + inl(s->next, n); return r; }
int main(int argc, char **argv) { struct s s = {argc, 2, 0}; s.next = &s; return f(&s, argc) + inl(&s, argc + 3); }`

// TestDamagedElsewhere: whatever is in a .dwo file, a package or a supplementary file, the answer is one or an error.
func TestDamagedElsewhere(t *testing.T) {
	for _, tt := range []struct{ name, compiler, options, tool string }{
		{"split 4", "gcc-12", "-gdwarf-4 -gsplit-dwarf -fdebug-types-section", ""},
		{"split 5", "gcc-12", "-gdwarf-5 -gsplit-dwarf -fdebug-types-section", ""},
		{"split 5 clang", "clang-14", "-gdwarf-5 -gsplit-dwarf", ""},
		{"package 4", "gcc-12", "-gdwarf-4 -gsplit-dwarf -fdebug-types-section", "dwp"},
		{"package 5", "clang-14", "-gdwarf-5 -gsplit-dwarf", "llvm-dwp-14"},
		{"supplementary", "gcc-12", "-gdwarf-5", "dwz"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := compile(t, tt.compiler, damageSource, strings.Fields(tt.options)...)
			other := path + ".dwp"
			switch tt.tool {
			case "":
				found, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.dwo"))
				if err != nil || len(found) != 1 {
					t.Fatalf("%q, %v", found, err)
				}
				other = found[0]
			case "dwz":
				second := compile(t, tt.compiler, damageSource, strings.Fields(tt.options)...)
				other = path + ".common"
				if out, err := exec.Command(testenv.Tool(t, "dwz"), "-m", other, path, second).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			default:
				if out, err := exec.Command(testenv.Tool(t, tt.tool), "-e", path, "-o", other).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			good, err := os.ReadFile(other)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := askAll(path); err != nil || n < 6 {
				t.Fatalf("the good file: %d parameters, %v", n, err)
			}
			variants := 600
			if testing.Short() {
				variants = 60
			}
			failed := 0
			for seed := range uint64(variants) {
				if err := os.WriteFile(other, damage(t, good, seed), 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := askAll(path); err != nil {
					failed++
					if errors.Is(err, mapping.ErrPanic) {
						t.Fatalf("variant %d: %v", seed, err)
					}
				}
			}
			if failed < variants/10 {
				t.Errorf("%d of %d damaged files were an error", failed, variants)
			}
		})
	}
}

// askAll asks an image for all sites and parameters, their types and members, and returns how many parameters there are.
func askAll(path string) (n int, err error) {
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		return 0, err
	}
	defer img.Close()
	sites, err := img.Sites(context.Background(), nil)
	if err != nil {
		return 0, err
	}
	var first error
	for _, s := range sites {
		_, _, err := s.Declared()
		first = errors.Join(first, err)
		params, err := s.Params()
		first = errors.Join(first, err)
		for _, p := range params {
			n++
			_ = p.Type.String()
			if el, err := p.Type.Elem(); err == nil {
				_, err = el.Members()
				first = errors.Join(first, err)
			}
		}
	}
	return n, first
}

// damage changes some bytes of a section, or cuts the file.
func damage(t *testing.T, good []byte, seed uint64) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	d := bytes.Clone(good)
	if r.IntN(20) == 0 {
		return d[:r.IntN(len(d))]
	}
	file, err := elf.NewFile(bytes.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	var sections []*elf.Section
	for _, s := range file.Sections {
		if s.Size > 0 && (strings.HasPrefix(s.Name, ".debug_") || strings.HasPrefix(s.Name, ".note")) && s.Flags&elf.SHF_COMPRESSED == 0 {
			sections = append(sections, s)
		}
	}
	s := sections[r.IntN(len(sections))]
	for range 1 + r.IntN(3) {
		at := s.Offset + uint64(r.IntN(int(s.Size)))
		if r.IntN(3) == 0 {
			at = s.Offset + uint64(r.IntN(int(min(s.Size, 32)))) // a header
		}
		switch r.IntN(4) {
		case 0:
			d[at] = 0xff
		case 1:
			d[at] = 0
		case 2:
			d[at] ^= 1 << r.IntN(8)
		default:
			d[at] = byte(r.IntN(256))
		}
	}
	return d
}
