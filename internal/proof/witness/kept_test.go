package witness

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/claim"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestKept: what the bodies of all functions say is kept with the index, and says the same then: whether all of it is asked for, or one function.
func TestKept(t *testing.T) {
	testenv.Tool(t, "gcc")
	path := build(t, []string{"-O2"})
	o := &dwarfloc.Options{CacheDir: filepath.Join(t.TempDir(), "cache"), Warn: func(err error) { t.Error(err) }}
	answers := func(o *dwarfloc.Options, m dwarfloc.Matcher) (lines []string, said int, controls map[string]claim.Count) {
		t.Helper()
		img, err := dwarfloc.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		var mu sync.Mutex
		err = img.EachSite(t.Context(), m, func(_ int, s dwarfloc.SiteRef) error {
			params, err := s.Params()
			mu.Lock()
			defer mu.Unlock()
			for _, v := range params {
				lines = append(lines, fmt.Sprint(s.DIE, v.Name, v.Loc.Text(img.Arch()), v.Loc.Rule, v.Reason, v.Because))
				if strings.Contains(v.Because, "where it is known") {
					said++
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(lines)
		return lines, said, inside.Controls(img)
	}
	want, said, controls := answers(nil, nil)
	one, _, none := answers(nil, dwarfloc.Name("set"))
	if said < 100 || len(controls) == 0 || none != nil {
		t.Fatalf("%d parameters by instructions, controls %v; of one function %v", said, controls, none)
	}
	for i := range 3 {
		if got, _, c := answers(o, nil); !slices.Equal(got, want) || !reflect.DeepEqual(c, controls) {
			t.Errorf("time %d: other answers, or controls: %v, and not %v", i, c, controls)
		}
		if got, _, c := answers(o, dwarfloc.Name("set")); !slices.Equal(got, one) || c != nil {
			t.Errorf("time %d: another answer for one function, or controls: %v", i, c)
		}
	}
}
