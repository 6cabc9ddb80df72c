package sites_test

import (
	"context"
	"errors"
	"testing"

	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/sites"
)

func TestSelect(t *testing.T) {
	const name = "basic-gcc12-O2-dwarf5.elf"
	img := testenv.Fixture(t, name)
	for _, c := range []struct {
		pattern, filter, source string
		entries                 bool
		sites                   int
		err                     string
	}{
		{pattern: "my_func_*_abcd", sites: 11},
		{pattern: "my_func_[!t]*_abcd", sites: 4},
		{pattern: "my_func_*_abcd", entries: true, sites: 3},
		{pattern: "my_func_*_abcd", filter: "!*one* & !*two*", sites: 4},
		{pattern: "slot_reset", sites: 2},
		{pattern: "slot_reset", source: "page.c", sites: 1},
		{pattern: "slot_reset", source: "*/page.c", err: name + `: "slot_reset": no matching function is declared in "*/page.c"`},
		{pattern: "pkt_hold", entries: true, err: name + `: "pkt_hold": all sites are inlined instances, which the definition excludes`},
		{pattern: "pkt_hodl", err: name + `: no function matches "pkt_hodl"; nearest: pkt_hold`},
	} {
		p, err := glob.Compile(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		sel := sites.Selection{Functions: p, Source: c.source, EntriesOnly: c.entries}
		if c.filter != "" {
			if sel.Filter, err = glob.ParseFilter(c.filter); err != nil {
				t.Fatal(err)
			}
		}
		found, err := sites.Select(context.Background(), img, sel)
		if len(found) != c.sites {
			t.Errorf("%+v: %d sites, want %d: %v", c, len(found), c.sites, found)
		}
		var missing *sites.NotFoundError
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%+v: %v", c, err)
		case c.err != "" && (!errors.As(err, &missing) || err.Error() != c.err):
			t.Errorf("%+v: got error %v", c, err)
		}
		for i := 1; i < len(found); i++ {
			a, b := found[i-1], found[i]
			if a.Function > b.Function || a.Function == b.Function && a.Addr > b.Addr {
				t.Errorf("%+v: %v stands before %v", c, a, b)
			}
		}
	}
}
