package imports

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/loc"
)

// TestLists: where a type's values are told apart by their names, and no constant is exported, its comment lists each name. Numbers
// without a name print as "rule-200".
func TestLists(t *testing.T) {
	for _, list := range []struct {
		pkg, name string
		first     int // the first one that has a name
		text      func(int) string
	}{
		{"loc", "Op", 0, func(i int) string { return loc.Op(i).String() }},
		{"loc", "Rule", 0, func(i int) string { return loc.Rule(i).String() }},
		{"loc", "ReasonCode", 1, func(i int) string { return loc.ReasonCode(i).String() }},
	} {
		s, err := surfaceOf("../../" + list.pkg)
		if err != nil {
			t.Fatal(err)
		}
		n := list.first
		for ; !strings.HasSuffix(list.text(n), fmt.Sprint("-", n)); n++ {
			if !strings.Contains(s.types[list.name], "  - "+list.text(n)+": ") {
				t.Errorf("the comment of %s.%s does not say what %s means", list.pkg, list.name, list.text(n))
			}
		}
		if got := strings.Count(s.types[list.name], "  - "); got != n-list.first {
			t.Errorf("the comment of %s.%s has %d items, want %d", list.pkg, list.name, got, n-list.first)
		}
	}
}
