package peers

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/loc"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// llvm-dwarfdump prints the debug information as a tree, with location lists
// resolved to addresses:
//
//	0x00000583:       DW_TAG_formal_parameter
//	                    DW_AT_abstract_origin	(0x00000864 "quota")
//	                    DW_AT_location	(0x00000188:
//	                       [0xffffffff81000619, 0xffffffff8100061e): DW_OP_reg13 R13
//	                       [0xffffffff81000662, 0xffffffff8100067a): DW_OP_breg13 R13+1, DW_OP_stack_value)
//	                    DW_AT_GNU_locviews	(0x00000184)
//
// It is a reader, not a debugger: it has no rule for which entry applies at an address. Here
// that is the one that covers it. Its faults, seen with llvm-dwarfdump 14:
//   - it prints no views, so an entry that is empty by address cannot be judged. Left
//     out: GCC's lists with more than one entry that touches the address, or none that
//     covers it.
//   - it prints "<decoding error>" and bytes for DW_OP_implicit_pointer,
//     DW_OP_GNU_implicit_pointer (0xf2), DW_OP_GNU_parameter_ref (0xfa) and the
//     other operations that only GCC has. Left out: these expressions.
//   - it does not resolve the frame base; for DW_OP_fbreg only the kind is compared.
var (
	dumpEntry    = regexp.MustCompile(`^0x([0-9a-f]+):( +)(DW_TAG_\w+|NULL)`)
	dumpAttr     = regexp.MustCompile(`^ +DW_AT_(\w+)\t\((.*)$`)
	dumpRange    = regexp.MustCompile(`^ +\[0x([0-9a-f]+), 0x([0-9a-f]+)\)(?:: (.*))?$`)
	dumpName     = regexp.MustCompile(`"(.*)"`)
	dumpNumber   = regexp.MustCompile(`^0x[0-9a-f]+`)
	dumpConstant = regexp.MustCompile(`^-?(?:0x)?[0-9a-f]+$`)
	dumpList     = regexp.MustCompile(`(0x[0-9a-f]+): *$`) // "(0x188:", "(indexed (0x33) loclist = 0x462:"
)

// dumped is one entry of the debug information.
type dumped struct {
	off      uint64
	tag      string
	attrs    map[string][]string // lines, without the parentheses
	children []*dumped
}

// dump runs llvm-dwarfdump and returns all entries that it prints, by offset.
func dump(t *testing.T, args ...string) map[uint64]*dumped {
	t.Helper()
	out, err := exec.Command(testenv.Tool(t, "llvm-dwarfdump"), args...).Output()
	if err != nil {
		t.Fatalf("llvm-dwarfdump %v: %v", args, err)
	}
	all := make(map[uint64]*dumped)
	type level struct {
		indent int
		entry  *dumped
	}
	var stack []level
	var e *dumped
	attr := ""
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		if m := dumpEntry.FindStringSubmatch(line); m != nil {
			for len(stack) > 0 && stack[len(stack)-1].indent >= len(m[2]) {
				stack = stack[:len(stack)-1]
			}
			e, attr = &dumped{off: hex(m[1]), tag: m[3], attrs: make(map[string][]string)}, ""
			if len(stack) > 0 {
				up := stack[len(stack)-1].entry
				up.children = append(up.children, e)
			}
			stack = append(stack, level{len(m[2]), e})
			all[e.off] = e
		} else if m := dumpAttr.FindStringSubmatch(line); m != nil && e != nil {
			attr = m[1]
			e.attrs[attr] = append(e.attrs[attr], m[2])
		} else if attr != "" && strings.TrimSpace(line) != "" {
			e.attrs[attr] = append(e.attrs[attr], line)
		} else {
			attr = ""
		}
		if attr != "" && e != nil {
			// The last line of a value ends with the parenthesis that its first line opened.
			if lines := e.attrs[attr]; strings.Count(strings.Join(lines, ""), "(")+1 == closing(lines) {
				lines[len(lines)-1] = strings.TrimSuffix(lines[len(lines)-1], ")")
				attr = ""
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("llvm-dwarfdump %v printed nothing", args)
	}
	return all
}

// closing counts closing parentheses, but not those of the half-open ranges.
func closing(lines []string) (n int) {
	for _, l := range lines {
		n += strings.Count(l, ")")
		if dumpRange.MatchString(l) || dumpRange.MatchString(strings.TrimSuffix(l, ")")) {
			n--
		}
	}
	return n
}

// name returns an entry's own name, or that of its origin.
func (e *dumped) name() string {
	for _, a := range []string{"name", "abstract_origin", "specification"} {
		if lines := e.attrs[a]; lines != nil {
			if m := dumpName.FindStringSubmatch(lines[0]); m != nil {
				return m[1]
			}
		}
	}
	return ""
}

// start returns the address of an entry's first instruction: DW_AT_entry_pc, else
// DW_AT_low_pc, else the first range.
func (e *dumped) start() (uint64, bool) {
	for _, a := range []string{"entry_pc", "low_pc"} {
		if lines := e.attrs[a]; lines != nil {
			if n := dumpNumber.FindString(lines[0]); n != "" {
				return hex(n), true
			}
		}
	}
	for _, line := range e.attrs["ranges"] {
		if m := dumpRange.FindStringSubmatch(line); m != nil {
			return hex(m[1]), true
		}
	}
	return 0, false
}

// location returns DW_AT_location as a list, with its offset, or as one expression. Both are
// nil without the attribute.
func (e *dumped) location() (list []entry, off uint64, whole []string) {
	lines := e.attrs["location"]
	if lines == nil {
		return nil, 0, nil
	}
	m := dumpList.FindStringSubmatch(lines[0])
	if m == nil {
		return nil, 0, strings.Split(lines[0], ", ")
	}
	for _, line := range lines[1:] {
		if r := dumpRange.FindStringSubmatch(line); r != nil {
			list = append(list, entry{lo: hex(r[1]), hi: hex(r[2]), operations: strings.Split(r[3], ", ")})
		}
	}
	return list, hex(m[1]), nil
}

// parameter finds the entry of a parameter. It returns nil if there is none, or more than
// one.
func (e *dumped) parameter(name string) (found *dumped) {
	for _, c := range e.children {
		if c.tag == "DW_TAG_formal_parameter" && c.name() == name {
			if found != nil {
				return nil
			}
			found = c
		}
	}
	return found
}

// place returns the place that an entry has at a site.
func (e *dumped) place(s *dwarfloc.Site, chosen loc.Rule) (place, bool) {
	if lines := e.attrs["const_value"]; lines != nil {
		if !dumpConstant.MatchString(lines[0]) {
			return place{}, false
		}
		v, ok := integer(lines[0])
		return place{off: v}, ok
	}
	list, _, whole := e.location()
	if whole != nil {
		return expression(whole)
	}
	covering, touching := byAddress(list, s.Addr)
	views := e.attrs["GNU_locviews"] != nil
	if covering == nil || views && (touching > 1 || chosen == rule.LaterView) {
		return place{}, false
	}
	return expression(covering.operations)
}

// compareDump compares the address and all parameters of sites.
func compareDump(t *testing.T, all map[uint64]*dumped, sites []*dwarfloc.Site) (addresses, parameters int) {
	t.Helper()
	for _, s := range sites {
		e := all[s.DIE]
		if e == nil {
			t.Errorf("%s: llvm-dwarfdump has no entry at %#x", s, s.DIE)
			continue
		}
		if e.name() != s.Function {
			t.Errorf("%s: llvm-dwarfdump names it %q", s, e.name())
		}
		if !s.AfterPrologue {
			addresses++
			if addr, ok := e.start(); !ok || addr != s.Addr {
				t.Errorf("%s is at %#x, llvm-dwarfdump says %#x", s, s.Addr, addr)
			}
		}
		params, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range params {
			p := e.parameter(v.Name)
			if p == nil || v.Entries > 1 {
				continue
			}
			if theirs, ok := p.place(s, v.Loc.Rule); ok && compare(t, "llvm-dwarfdump", s, v, theirs) {
				parameters++
			}
		}
	}
	return addresses, parameters
}

func TestDwarfdumpFixtures(t *testing.T) {
	addresses, parameters := 0, 0
	for _, name := range fixtures.Names() {
		t.Run(name, func(t *testing.T) {
			path, img := testenv.Program(t, name)
			all := dump(t, "--debug-info", path)
			sites, err := img.Sites(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			a, p := compareDump(t, all, sites)
			enough(t, "addresses", a, 5) // the library is very small
			enough(t, "parameters", p, 5)
			addresses, parameters = addresses+a, parameters+p

			// The other direction: every entry with code must be a site.
			ours := make(map[uint64]bool)
			for _, s := range sites {
				ours[s.DIE] = true
			}
			for off, e := range all {
				if e.tag != "DW_TAG_subprogram" && e.tag != "DW_TAG_inlined_subroutine" {
					continue
				}
				if addr, ok := e.start(); ok && !ours[off] {
					t.Errorf("%s at %#x (.debug_info+%#x) is not a site", e.name(), addr, off)
				}
			}
		})
	}
	enough(t, "addresses of all images", addresses, 600)
	enough(t, "parameters of all images", parameters, 800)
}

func TestDwarfdumpKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("runs llvm-dwarfdump on a kernel image")
	}
	path := testenv.Vmlinux(t)
	testenv.Tool(t, "llvm-dwarfdump")
	img := testenv.Open(t, path)
	all := make(map[uint64]*dumped)
	for _, name := range sample(t, img, 40) {
		sites, err := img.Sites(context.Background(), dwarfloc.Name(name))
		if err != nil {
			t.Fatal(err)
		}
		// An out-of-line function is compared with the functions that are inlined into it.
		if s := sites[0]; s.Kind == dwarfloc.SiteEntry && len(all) < 20000 {
			for off, e := range dump(t, fmt.Sprintf("--debug-info=%#x", s.DIE), "--show-children", path) {
				all[off] = e
			}
		}
	}
	sites := collect(t, img, func(s dwarfloc.SiteRef) bool { return all[s.DIE] != nil })
	addresses, parameters := compareDump(t, all, sites)
	enough(t, "addresses", addresses, 100)
	enough(t, "parameters", parameters, 200)
}
