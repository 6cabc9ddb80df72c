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

// TestMentionsSilent: a search that reads units shows no progress, which the question that then asks these units shows, from 0 on.
func TestMentionsSilent(t *testing.T) {
	read := 0
	for _, name := range fixtures.Names() {
		if strings.HasSuffix(name, ".ko") || strings.HasSuffix(name, ".o") {
			continue
		}
		x := scanned(t, name)
		x.O.Progress = func(uint64, uint64) { t.Errorf("%s: the search shows progress", name) }
		for i := range x.Units {
			for j := range x.Units[i].Recs {
				ref := x.Units[i].NameRefOf(&x.Units[i].Recs[j])
				if ref == NameNone {
					continue
				}
				sel := x.SelectorFor(only(x.NameOf(ref)))
				if sel.ends = len(sel.offsets) > 0; !sel.ends { // as where a linker has merged it with the ends of longer ones
					continue
				}
				if _, ok, err := x.mentionsFirst(t.Context(), &sel); err != nil {
					t.Fatal(err)
				} else if ok {
					read++
				}
			}
		}
	}
	if read == 0 {
		t.Error("no search has read a unit")
	}
}
