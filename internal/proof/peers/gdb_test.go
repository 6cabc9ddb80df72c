package peers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// gdb's "info scope *ADDRESS" prints the variables of the innermost function at an
// address, inlined or not, with their locations:
//
//	Symbol page is a variable in $rdi, length 8.
//	Symbol factor is a constant with value 12 (0xc), length 8.
//	Symbol where is optimized out.
//	Symbol g is a variable at frame base reg $rsp offset 0+8, length 8.
//	Symbol kind is multi-location:
//	  Range 0xffffffff810000da-0xffffffff810000de: the constant 1
//	  Range 0xffffffff810000de-0xffffffff810000e2: a complex DWARF expression:
//	     0: DW_OP_breg0 56 [$rax]
//	, length 1.
//
// A breakpoint there shows which function gdb assumes. gdb is right about variables whose
// list has one entry at the address. Its faults elsewhere, seen with gdb 13.1, and what the
// comparison leaves out for each:
//   - it knows no views: of several instances at one address it sees one, and none
//     that is empty by address. Left out: addresses with several sites, or where
//     gdb is in another function.
//   - it ignores list entries that are empty by address, and uses the later of two that
//     meet at the address, whatever the views say. Left out: lists with more than one
//     entry that touches the address, or none that covers it, and our own answers by the
//     rule later-view.
//   - it gives up the rest of a scope, with "No function found for block for
//     symbol", at the frame-base expression of a list entry that begins (and, by
//     address, ends) after the end of the function's code. Left out: the variables
//     after it.
//   - it prints a name once for each block that declares it. Left out: such names.
var (
	gdbScope    = regexp.MustCompile(`^Scope for \*0x([0-9a-f]+):$`)
	gdbWhere    = regexp.MustCompile(`^\d+ +breakpoint +keep y +0x([0-9a-f]+) in (\S+) at `)
	gdbSymbol   = regexp.MustCompile(`^Symbol (\w+) is (.*)$`)
	gdbRange    = regexp.MustCompile(`^ +(?:Base address 0x[0-9a-f]+ +)?Range 0x([0-9a-f]+)-0x([0-9a-f]+): (.*)$`)
	gdbOp       = regexp.MustCompile(`^ +\d+: (DW_OP_.*)$`)
	gdbRegister = regexp.MustCompile(`^a variable in \$(\w+)(?:, length \d+\.)?$`)
	gdbConstant = regexp.MustCompile(`^(?:the constant|constant|a constant with value) (-?\d+)(?: \(0x[0-9a-f]+\))?(?:, length \d+\.)?$`)
	gdbFrame    = regexp.MustCompile(`^a variable at frame base reg \$(\w+) offset (-?\d+)\+(-?\d+)(?:, length \d+\.)?$`)
	gdbStatic   = regexp.MustCompile(`^static storage at address 0x([0-9a-f]+)(?:, length \d+\.)?$`)
)

// gdbVariable is what gdb prints about a variable.
type gdbVariable struct {
	out   bool // optimized out
	multi bool
	twice bool
	list  []gdbEntry // one entry if multi is not set
}

type gdbEntry struct {
	entry
	text string // after the range, or after "is"
}

// place returns the place that gdb prints for a variable.
func (e *gdbEntry) place() (place, bool) {
	if m := gdbRegister.FindStringSubmatch(e.text); m != nil {
		return place{base: m[1]}, true
	}
	if m := gdbConstant.FindStringSubmatch(e.text); m != nil {
		v, ok := integer(m[1])
		return place{off: v}, ok
	}
	if m := gdbFrame.FindStringSubmatch(e.text); m != nil {
		base, err1 := strconv.ParseInt(m[2], 10, 64)
		off, err2 := strconv.ParseInt(m[3], 10, 64)
		return place{memory: true, base: m[1], off: base + off}, err1 == nil && err2 == nil
	}
	if m := gdbStatic.FindStringSubmatch(e.text); m != nil {
		return place{memory: true, base: "@", off: int64(hex(m[1]))}, true
	}
	if e.text == "a complex DWARF expression:" {
		return expression(e.operations)
	}
	return place{}, false
}

// gdbAnswer is what gdb prints about an address.
type gdbAnswer struct {
	function  string
	variables map[string]*gdbVariable
}

// askGDB asks about many addresses at once.
func askGDB(t *testing.T, path string, addrs []uint64) map[uint64]*gdbAnswer {
	t.Helper()
	args := []string{"-batch", "-nx", "-iex", "set auto-load no", "-ex", "set language c"}
	for _, a := range addrs {
		args = append(args, "-ex", fmt.Sprintf("info scope *%#x", a), "-ex", fmt.Sprintf("break *%#x", a))
	}
	cmd := exec.Command(testenv.Tool(t, "gdb"), append(args, "-ex", "info breakpoints", path)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBUGINFOD_URLS=")
	out, err := cmd.Output()
	if len(out) == 0 {
		t.Fatalf("gdb: %v", err) // its status is that of the last command only
	}
	answers := make(map[uint64]*gdbAnswer)
	at := func(addr string) *gdbAnswer {
		a := answers[hex(addr)]
		if a == nil {
			a = &gdbAnswer{variables: make(map[string]*gdbVariable)}
			answers[hex(addr)] = a
		}
		return a
	}
	var answer *gdbAnswer
	var v *gdbVariable
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		if m := gdbScope.FindStringSubmatch(line); m != nil {
			answer, v = at(m[1]), nil
		} else if m := gdbWhere.FindStringSubmatch(line); m != nil {
			at(m[1]).function = m[2]
		} else if m := gdbSymbol.FindStringSubmatch(line); m != nil && answer != nil {
			v = &gdbVariable{
				out: strings.HasPrefix(m[2], "optimized out"), multi: m[2] == "multi-location:",
				twice: answer.variables[m[1]] != nil,
			}
			if !v.multi {
				v.list = []gdbEntry{{text: m[2]}}
			}
			answer.variables[m[1]] = v
		} else if m := gdbRange.FindStringSubmatch(line); m != nil && v != nil {
			v.list = append(v.list, gdbEntry{entry: entry{lo: hex(m[1]), hi: hex(m[2])}, text: m[3]})
		} else if m := gdbOp.FindStringSubmatch(line); m != nil && v != nil && len(v.list) > 0 {
			e := &v.list[len(v.list)-1]
			e.operations = append(e.operations, m[1])
		}
	}
	return answers
}

// compareGDB compares all parameters of sites, and returns how many it could.
func compareGDB(t *testing.T, img *dwarfloc.Image, path string, sites []*dwarfloc.Site) (compared int) {
	t.Helper()
	count := make(map[uint64]int)
	var addrs []uint64
	for _, s := range sites {
		if count[s.Addr]++; count[s.Addr] == 1 {
			addrs = append(addrs, s.Addr)
		}
	}
	answers := askGDB(t, path, addrs)
	for _, s := range sites {
		answer := answers[s.Addr]
		if count[s.Addr] > 1 || answer == nil || answer.function != s.Function {
			continue
		}
		params, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range params {
			theirs := answer.variables[v.Name]
			if theirs == nil || theirs.twice || v.Entries > 1 || v.Loc.Rule == rule.LaterView {
				continue
			}
			if theirs.out {
				compared++
				if v.Located() {
					t.Errorf("%s at %#x: %s is %s, gdb says optimized out", s, s.Addr, v.Name, v.Loc.Text(img.Arch()))
				}
				continue
			}
			var e *gdbEntry
			touching := 0
			for i := range theirs.list {
				if c := &theirs.list[i]; !theirs.multi || c.lo <= s.Addr && s.Addr <= c.hi {
					if touching++; !theirs.multi || s.Addr < c.hi {
						e = c
					}
				}
			}
			if e == nil || touching > 1 {
				continue
			}
			want, ok := e.place()
			if !ok {
				continue
			}
			if compare(t, "gdb", s, v, want) {
				compared++
			}
		}
	}
	return compared
}

func TestGDBFixtures(t *testing.T) {
	compared := 0
	for _, name := range fixtures.Names() {
		t.Run(name, func(t *testing.T) {
			path, img := testenv.Program(t, name)
			sites, err := img.Sites(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			n := compareGDB(t, img, path, sites)
			enough(t, "parameters", n, 5) // the library is very small
			compared += n
		})
	}
	enough(t, "parameters of all images", compared, 700)
}

func TestGDBKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("runs gdb on a kernel image")
	}
	path := testenv.Vmlinux(t)
	testenv.Tool(t, "gdb")
	img := testenv.Open(t, path)
	wanted := make(map[uint64]bool) // addresses
	for _, name := range sample(t, img, 250) {
		sites, err := img.Sites(context.Background(), dwarfloc.Name(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sites[:min(4, len(sites))] {
			wanted[s.Addr] = true
		}
	}
	// With all sites at these addresses, since gdb sees one of them.
	sites := collect(t, img, func(s dwarfloc.SiteRef) bool { return wanted[s.Addr] })
	enough(t, "parameters", compareGDB(t, img, path, sites), 200)
}
