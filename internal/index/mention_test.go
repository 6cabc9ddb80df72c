package index

import (
	"slices"
	"strings"
	"testing"

	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

type only string

func (o only) Match(name string) bool  { return name == string(o) }
func (o only) Literal() (string, bool) { return string(o), true }

// TestMentions: the units that mention a name are all that have sites of it, in either byte order.
func TestMentions(t *testing.T) {
	searched := make(map[bool]int) // names, by whether the image is big-endian
	for _, name := range slices.Concat(fixtures.Names(), fixtures.Foreign()) {
		if strings.HasSuffix(name, ".ko") || strings.HasSuffix(name, ".o") {
			continue
		}
		x := scanned(t, name)
		with := make(map[string][]int)
		for i := range x.Units {
			u := &x.Units[i]
			for j := range u.Recs {
				if n := u.NameRefOf(&u.Recs[j]); u.Recs[j].Flags&HasPC != 0 && n != NameNone {
					with[x.NameOf(n)] = append(with[x.NameOf(n)], i)
				}
			}
		}
		for function, want := range with {
			sel := x.SelectorFor(only(function))
			units, ok, err := x.Mentions(t.Context(), &sel)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				continue
			}
			searched[x.Data.BigEndian]++
			for _, i := range want {
				if !slices.Contains(units, i) {
					t.Errorf("%s: unit %d has sites of %s, and does not mention it", name, i, function)
				}
			}
		}
	}
	if searched[false] == 0 || searched[true] == 0 {
		t.Errorf("names searched for: %v", searched)
	}
}
