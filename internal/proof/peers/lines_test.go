package peers

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/sites"
)

// perf probe -D 'FUNC:LINE' prints an event for each address of the line. It prints none if
// any of them belongs to another line too ("This line is sharing the address with other
// lines"), because it does not know views. Otherwise it is right, except for
//   - a row that continues a run of the line;
//   - the start of code that was not optimised, where our site is after the prologue;
//   - an address inside an inlined instance whose call is on the line, if the table has a
//     statement of that line there: of the instance's own file, or after the run's first
//     row;
//   - two instances of one call, of which it knows one.
var perfPlace = regexp.MustCompile(`(?m)^p:\S+ ([^\s+]+)\+(\d+)`)

// comparePerfLine compares a line's sites, and reports whether perf had an answer.
func comparePerfLine(t *testing.T, perf, path string, img *dwarfloc.Image, definition string) bool {
	t.Helper()
	out, err := exec.Command(perf, "probe", "-k", path, "--max-probes=100000", "-D", definition).Output()
	if err != nil {
		return false
	}
	theirs := make(map[uint64]bool)
	for _, m := range perfPlace.FindAllStringSubmatch(string(out), -1) {
		off, err := strconv.ParseUint(m[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all, err := inside.File(img).SymbolAddresses(m[1])
		addr, ok := all[m[1]]
		if err != nil || !ok {
			t.Fatalf("perf names the symbol %s: %v", m[1], err)
		}
		theirs[addr+off] = true
	}
	p := plantest.New(t, img, definition, plan.Options{})
	ours := make(map[uint64]*plan.Site)
	for i := range p.Sites {
		ours[p.Sites[i].Addr] = &p.Sites[i]
	}
	for addr, s := range ours {
		if !theirs[addr] && !s.Inlined() && !s.AfterPrologue {
			t.Errorf("%s: %s: perf does not have it", definition, s.Site)
		}
	}
	for addr := range theirs {
		if ours[addr] != nil {
			continue
		}
		s, err := img.SiteAt(context.Background(), addr)
		if err != nil {
			t.Fatal(err)
		}
		// The instruction before belongs to the line too: a run continues.
		before, err := img.SiteAt(context.Background(), addr-1)
		goesOn := err == nil && before.Line == s.Line && before.File == s.File
		start := p.Sites[0].AfterPrologue && s.Offset == 0
		if goesOn || start {
			delete(theirs, addr)
			continue
		}
		if s.Line == p.Sites[0].Line && s.Function == p.Sites[0].Function {
			t.Errorf("%s: %s: only perf has it", definition, s)
		}
	}
	common := 0
	for addr := range theirs {
		if ours[addr] != nil {
			common++
		}
	}
	if 10*common < 9*len(theirs) && len(theirs)-common > 1 || common == 0 && len(theirs) > 0 {
		t.Errorf("%s: %d of perf's %d addresses are sites", definition, common, len(theirs))
	}
	return len(theirs) > 0
}

// everyLine calls f for lines of functions.
func everyLine(t *testing.T, img *dwarfloc.Image, pattern string, f func(function string, line int)) {
	t.Helper()
	m, err := glob.Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	all, err := sites.LinesOf(context.Background(), img, sites.Selection{Functions: m}, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]int)
	for i := range all {
		names[all[i].Name]++
	}
	for i := range all {
		for _, l := range all[i].Lines {
			if l.Sites > 0 && names[all[i].Name] == 1 {
				f(all[i].Name, l.Number)
			}
		}
	}
}

// TestPerfLines compares lines of the fixtures.
func TestPerfLines(t *testing.T) {
	if testing.Short() {
		t.Skip("runs perf often")
	}
	perf := testenv.Tool(t, "perf")
	for _, name := range []string{"basic-gcc12-O2-dwarf5.elf", "basic-gcc12-O0-dwarf5.elf"} {
		path, img := testenv.Program(t, name)
		compared := 0
		everyLine(t, img, "[cpst]*", func(function string, line int) {
			if comparePerfLine(t, perf, path, img, fmt.Sprintf("%s:%d", function, line)) {
				compared++
			}
		})
		t.Logf("%s: %d lines compared", name, compared)
		enough(t, "lines", compared, 20)
	}
}

// perfKernel is the perf tool, and a kernel image to run it on.
func perfKernel(t *testing.T) (perf, path string, img *dwarfloc.Image) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs perf on a kernel image")
	}
	path = testenv.Vmlinux(t)
	perf = testenv.Tool(t, "perf")
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = img.Close() })
	return perf, path, img
}

// TestPerfLinesOfKernel compares lines of a kernel, inlined ones among them.
func TestPerfLinesOfKernel(t *testing.T) {
	perf, path, img := perfKernel(t)
	compared := 0
	for _, d := range []string{
		"vfs_read:0", "vfs_read:6", "vfs_read:14", "vfs_read:20", "get_page:0", "tcp_sendmsg_locked:36", "tcp_sendmsg_locked:228",
		"copy_process:443", "copy_process:24", "fput:17", "schedule:10", "kfree_skb_reason:8", "ksys_write:12", "do_exit:2",
	} {
		if comparePerfLine(t, perf, path, img, d) {
			compared++
		}
	}
	enough(t, "lines", compared, 10)
}

// TestAddr2line compares the function, and the line, at each instruction that begins a
// row: addr2line names the innermost function that holds an address. It takes the
// last row at it, as SiteAt does.
func TestAddr2line(t *testing.T) {
	tool := testenv.Tool(t, "addr2line")
	for _, name := range []string{"basic-gcc12-O2-dwarf4.elf", "basic-gcc12-O2-dwarf5.elf"} {
		path, img := testenv.Program(t, name)
		bodies, err := img.Sites(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := img.LineSites(context.Background(), bodies, func(*dwarfloc.Site, string, int) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		addrs := make(map[uint64]bool)
		for _, s := range lines {
			addrs[s.Addr] = true
		}
		compared := 0
		for _, addr := range slices.Sorted(maps.Keys(addrs)) {
			out, err := exec.Command(tool, "-f", "-e", path, fmt.Sprintf("%#x", addr)).Output()
			if err != nil {
				t.Fatal(err)
			}
			f := strings.Fields(string(out))
			s, err := img.SiteAt(context.Background(), addr)
			if err != nil {
				if len(f) < 2 || f[0] != "??" {
					t.Errorf("%#x: %v; addr2line has %s", addr, err, out)
				}
				continue
			}
			compared++
			if s.Function != f[0] {
				t.Errorf("%s: %s, addr2line has %s", name, s, f[0])
			}
		}
		enough(t, "addresses", compared, 100)
	}
}

// TestPerfDefinitions compares what package export writes for the kernel with perf's
// definitions, where all arguments are in registers, or in memory that one leads to.
func TestPerfDefinitions(t *testing.T) {
	perf, path, img := perfKernel(t)
	unsigned := regexp.MustCompile(`:[ux](8|16|32|64)\b`) // perf 6.1 shows all unsigned numbers in hexadecimal
	name := regexp.MustCompile(`^p:\S+ `)
	normal := func(text string) []string {
		var out []string
		for l := range strings.Lines(text) {
			if !strings.HasPrefix(l, "#") {
				out = append(out, name.ReplaceAllString(unsigned.ReplaceAllString(strings.TrimSpace(l), ":u$1"), ""))
			}
		}
		slices.Sort(out)
		return out
	}
	for _, d := range []string{
		"vfs_read file->f_path.dentry->d_name.len count", "vfs_read:6 file pos", "vfs_write file->f_flags count buf",
		"tcp_sendmsg sk size msg->msg_flags", "do_sys_openat2 dfd", "ksys_read fd count",
		"wake_up_new_task p->pid p->comm:string", "vfs_read%return",
	} {
		out, err := exec.Command(perf, "probe", "-k", path, "--no-inlines", "-D", d).Output()
		if err != nil {
			t.Errorf("perf probe -D '%s': %v", d, err)
			continue
		}
		var b strings.Builder
		if err := export.Tracefs(&b, plantest.New(t, img, "inlines=no;"+d, plan.Options{}), export.Options{Kernel: true}); err != nil {
			t.Fatal(err)
		}
		theirs, ours := normal(string(out)), normal(b.String())
		if !slices.Equal(theirs, ours) {
			t.Errorf("%s: %q, perf has %q", d, ours, theirs)
		}
	}
}
