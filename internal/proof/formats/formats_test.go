package formats_test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/proof/formats"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestFormats: answers about builds in other formats are those about their plain builds. It builds some, which
// FORMATS_SEED chooses, or with FORMATS_FULL=1 all: that takes some minutes.
func TestFormats(t *testing.T) {
	seed := uint64(time.Now().YearDay())
	if text := os.Getenv("FORMATS_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	program := formats.Programs()[0]
	sources, ok := program.Exists(testenv.Cache())
	if !ok {
		testenv.Missing(t, "no sources at %s: run scripts/fetch-source.sh %s", sources, program.Package)
	}
	all := formats.Formats()
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if os.Getenv("FORMATS_FULL") == "" {
		all = some(all)
	}
	t.Logf("FORMATS_SEED=%d", seed)
	for i := range all {
		f := &all[i]
		for _, tool := range []string{f.Compiler, "dwz", "dwp", "llvm-dwp-14"} {
			testenv.Tool(t, tool)
		}
		results, err := formats.Try(context.Background(), &program, sources, f, t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		for name, r := range results {
			if len(r.Differences) > 0 {
				t.Errorf("%s, %s: %d differences; the first are\n%s", f.Name, name, len(r.Differences), strings.Join(r.Differences[:min(len(r.Differences), 4)], "\n"))
			}
			if r.Sites < 1500 || r.Located < 2000 {
				t.Errorf("%s, %s: %d sites, %d parameters located: too few", f.Name, name, r.Sites, r.Located)
			}
			t.Logf("%s, %s: %d sites, %d inlined; %d parameters, %d located", f.Name, name, r.Sites, r.Inlined, r.Parameters, r.Located)
		}
	}
}

// some returns the first formats of two of three kinds: split ones, packages, and those of dwz.
func some(all []formats.Format) (out []formats.Format) {
	kinds := []string{"split", "package", "dwz"}
	for _, f := range all {
		for i, what := range kinds {
			if strings.Contains(f.Name, what) {
				out = append(out, f)
				kinds = slices.Delete(kinds, i, i+1)
				break
			}
		}
		if len(out) == 2 {
			break
		}
	}
	return out
}
