package peers

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/loc"
)

// readelf of binutils prints location lists with their views:
//
//	00000184 v000000000000001 v000000000000000 location view pair
//	...
//	00000188 v000000000000001 v000000000000000 views at 00000184 for:
//	         ffffffff81000619 ffffffff8100061e (DW_OP_reg13 (r13))
//	0000019b <End of list>
//
// It is the only other reader of views. It does not print which variable a list belongs to;
// llvm-dwarfdump does, but prints no views. Together they are a complete reader, and only
// the rule is implemented here again.
var (
	elfPair = regexp.MustCompile(`^ +([0-9a-f]{8}) v[0-9a-f]+ v[0-9a-f]+ location view pair$`)
	elfView = regexp.MustCompile(`^ +([0-9a-f]{8}) v([0-9a-f]+) v([0-9a-f]+) views at ([0-9a-f]+) for:$`)
	elfItem = regexp.MustCompile(`^ +([0-9a-f]{16}) ([0-9a-f]{16}) \((.*)\)(?: \(start == end\))?$`)
)

// viewLists returns the lists with views of an image, by the offset of their first
// pair of views (DW_AT_GNU_locviews).
func viewLists(t *testing.T, path string) map[uint64][]entry {
	t.Helper()
	cmd := exec.Command(testenv.Tool(t, "readelf"), "--wide", "--debug-dump=loc", path)
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("readelf: %v", err)
	}
	lists := make(map[uint64][]entry)
	var first uint64 // views of the present list
	pairs := 0
	var e entry
	pending := false
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		if m := elfPair.FindStringSubmatch(line); m != nil {
			if pairs++; pairs == 1 {
				first = hex(m[1])
			}
		} else if m := elfView.FindStringSubmatch(line); m != nil {
			e = entry{vlo: hex(m[2]), vhi: hex(m[3])}
			pending = true
		} else if m := elfItem.FindStringSubmatch(line); m != nil && pending {
			e.lo, e.hi, e.operations = hex(m[1]), hex(m[2]), strings.Split(m[3], "; ")
			lists[first] = append(lists[first], e)
			pending = false
		} else if strings.HasSuffix(line, "<End of list>") {
			if pairs != len(lists[first]) {
				t.Errorf("readelf: list with the views at %#x: %d pairs, %d entries", first, pairs, len(lists[first]))
			}
			pairs = 0
		}
	}
	return lists
}

// byView returns the entry for an address and view: the one that covers them, else the first
// one that begins at the address with a later view.
func byView(list []entry, addr, view uint64) (*entry, loc.Rule) {
	before := func(addr1, view1, addr2, view2 uint64) bool { // or equal, in the order of addresses and views
		return addr1 < addr2 || addr1 == addr2 && view1 <= view2
	}
	for i := range list {
		if e := &list[i]; before(e.lo, e.vlo, addr, view) && !before(e.hi, e.vhi, addr, view) {
			return e, rule.View
		}
	}
	for i := range list {
		if e := &list[i]; e.lo == addr && e.vlo > view {
			return e, rule.LaterView
		}
	}
	return nil, rule.None
}

// TestReadelfViews compares every parameter that has a list with views: the rule that chose
// the entry, and its location where that is a simple place.
func TestReadelfViews(t *testing.T) {
	for _, name := range []string{"basic-gcc12-O2-dwarf4.elf", "basic-gcc12-O2-dwarf5.elf", "lib-gcc12-O2-dwarf5.elf"} {
		t.Run(name, func(t *testing.T) {
			path, img := testenv.Program(t, name)
			lists, all := viewLists(t, path), dump(t, "--debug-info", path)
			sites, err := img.Sites(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			rules := make(map[loc.Rule]int)
			empty, places := 0, 0
			for _, s := range sites {
				params, err := s.Params()
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range params {
					p := all[s.DIE].parameter(v.Name)
					if p == nil || v.Entries > 1 || p.attrs["GNU_locviews"] == nil {
						continue
					}
					list, ok := lists[hex(dumpNumber.FindString(p.attrs["GNU_locviews"][0]))]
					if !ok {
						t.Errorf("%s: %s: readelf has no list with the views at %s", s, v.Name, p.attrs["GNU_locviews"][0])
						continue
					}
					e, rule := byView(list, s.Addr, s.View)
					rules[rule]++
					if e == nil {
						if v.Located() {
							t.Errorf("%s at %#x view %d: %s is %s, readelf has nothing there", s, s.Addr, s.View, v.Name, v.Loc.Text(img.Arch()))
						}
						continue
					}
					if v.Located() && v.Loc.Rule != rule && v.Loc.Rule.String() != "caller" {
						t.Errorf("%s at %#x view %d: %s is %s (%s), readelf says %v (%s)", s, s.Addr, s.View, v.Name, v.Loc.Text(img.Arch()), v.Loc.Rule, e.operations, rule)
					}
					if theirs, ok := expression(e.operations); ok && compare(t, "readelf", s, v, theirs) {
						places++
						if e.lo == e.hi {
							empty++
						}
					}
				}
			}
			t.Logf("%v, %d of entries that are empty by address", rules, empty)
			least := 100
			if strings.HasPrefix(name, "lib") {
				least = 5
			}
			enough(t, "places", places, least)
		})
	}
}
