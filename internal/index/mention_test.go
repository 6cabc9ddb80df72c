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

// TestFindStrings: where a name is only at the ends of longer ones, the place that GNU ld uses comes first; a whole one is one of several.
func TestFindStrings(t *testing.T) {
	for _, c := range []struct {
		section string
		want    []int
		ends    bool
	}{
		// The order is that of Linux 6.1, where all references to get_page are to the end of find_get_page.
		{"try_get_page\x00pagecache_get_page\x00find_get_page\x00target_page\x00", []int{37, 4, 23, 49}, true},
		{"try_get_page\x00get_page\x00", []int{4, 13}, false},
		{"get_page\x00try_get_page\x00", []int{0, 13}, false},
		{"get_pages\x00", nil, true},
	} {
		if got, ends := findStrings([]byte(c.section), "get_page"); !slices.Equal(got, c.want) || ends != c.ends {
			t.Errorf("%q: %d, %v; want %d, %v", c.section, got, ends, c.want, c.ends)
		}
	}
}
