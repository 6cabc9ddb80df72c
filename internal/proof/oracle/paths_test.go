package oracle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// No path from a function's entry to a statement of an inlined body avoids all its ways in, by
// another disassembler and a graph of its own. ORACLE_FULL=1 checks a whole kernel,
// ORACLE_SEED=N chooses the units otherwise.
func TestPaths(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a whole vmlinux")
	}
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			path := ""
			if arch == "amd64" {
				path = testenv.Vmlinux(t)
			} else if path = testenv.VmlinuxOf(t, arch); path == "" {
				t.Skip("another kernel image was chosen")
			}
			testenv.Tool(t, map[string]string{"amd64": "objdump", "arm64": "llvm-objdump"}[arch])
			checkPaths(t, path)
		})
	}
}

func checkPaths(t *testing.T, path string) {
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	file, err := oracle.Open(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	units := file.Units
	if os.Getenv("ORACLE_FULL") != "1" {
		seed := uint64(time.Now().UnixNano())
		if s := os.Getenv("ORACLE_SEED"); s != "" {
			if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: ORACLE_SEED=%d", path, seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		units = slices.Clone(units)
		rng.Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
		units = units[:min(sampleSize, len(units))]
	}
	r, err := file.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	var functions []oracle.Function
	noReturn := make(map[uint64]bool)
	for _, u := range units {
		fs, err := r.Functions(u, noReturn)
		if err != nil {
			t.Fatal(err)
		}
		functions = append(functions, fs...)
	}
	var ranges [][2]uint64
	checked := make(map[uint64]*runs.Ways)
	for i := range functions {
		ranges = append(ranges, functions[i].Ranges...)
		for _, b := range functions[i].Bodies {
			checked[b.DIE] = nil
		}
	}
	listing, err := oracle.ReadListing(path, t.TempDir(), ranges)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	if len(units) < len(file.Units) {
		sites, err := img.Sites(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		sites = slices.DeleteFunc(sites, func(s *dwarfloc.Site) bool { _, is := checked[s.DIE]; return !is })
		ways, err := inside.Ways(img, context.Background(), sites)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range sites {
			checked[s.DIE] = &ways[i]
		}
	} else {
		err := inside.EachWays(img, context.Background(), func(_ int, s *dwarfloc.Site, w *runs.Ways) error {
			if w == nil {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			copied := *w
			copied.In = slices.Clone(w.In)
			checked[s.DIE] = &copied
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	count := make(map[string]int)
	var examples []string
	for i := range functions {
		f := &functions[i]
		if len(f.Bodies) == 0 {
			continue
		}
		p := listing.Paths(f, noReturn)
		// A run of one body can end in the code of another of the same function, if the
		// compiler merged their ends: it has passed a way into the first.
		every := make(map[string][]uint64)
		for k := range f.Bodies {
			if w := checked[f.Bodies[k].DIE]; w != nil {
				for _, x := range w.In {
					every[f.Bodies[k].Function] = append(every[f.Bodies[k].Function], x.Probe)
				}
			}
		}
		for k := range f.Bodies {
			b := &f.Bodies[k]
			w := checked[b.DIE]
			switch {
			case w == nil:
				count["no site"]++
				continue
			case w.Within:
				count["part of the body around it"]++
				continue
			case w.Unknown != "":
				count["unknown"]++
				continue
			case p.Lost != "":
				count["not followed by this check"]++
				continue
			case len(b.Statements) == 0:
				count["without a statement"]++
				continue
			}
			if len(w.In) > 0 {
				if _, ok := p.Avoid(b, []uint64{w.In[0].Probe}); ok {
					count["entered at several places"]++
				}
			}
			ways := every[b.Function]
			s, failed := p.Avoid(b, ways)
			if !failed {
				count["passed"]++
				continue
			}
			count["failed"]++
			examples = append(examples, fmt.Sprintf("%s in %s+%#x (%#x, DIE %#x): the statement at %#x avoids %#x", b.Function, f.Name, s-f.Entry, f.Entry, b.DIE, s, ways))
		}
	}
	t.Logf("%d functions: %v", len(functions), count)
	if count["passed"] < 1000 {
		t.Error("next to nothing was checked")
	}
	if n := len(examples); n > 0 {
		t.Errorf("%d bodies have statements that avoid their ways in", n)
		rand.New(rand.NewPCG(1, 0)).Shuffle(n, func(i, j int) { examples[i], examples[j] = examples[j], examples[i] })
		for _, e := range examples[:min(n, 20)] {
			t.Log(e)
		}
	}
}
