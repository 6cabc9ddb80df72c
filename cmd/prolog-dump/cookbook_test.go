package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// session is a block of a page that has commands, each after a "$", and what they print. A line of three dots stands for any lines.
var session = regexp.MustCompile("(?ms)^```console\n(.*?)^```")

// asked is one command of a session.
type asked struct {
	command string
	printed []string
}

func sessions(page string) (out []asked) {
	for _, m := range session.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(m[1]) {
			line = strings.TrimSuffix(line, "\n")
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				out = append(out, asked{command: command})
			} else if n := len(out); n > 0 {
				out[n-1].printed = append(out[n-1].printed, line)
			}
		}
	}
	return out
}

// What differs between two runs, machines and compilers: times, processes, addresses, offsets in code, and the width of columns.
var (
	differing = []struct {
		is *regexp.Regexp
		by string
	}{
		{regexp.MustCompile(`^ *\d+\.\d{6}  (\S+ +)\d+ `), "TIME $1PID "},
		{regexp.MustCompile(`"time":[\d.]+,"comm":"(.*?)","pid":\d+,"tid":\d+`), `"time":TIME,"comm":"$1","pid":PID,"tid":PID`},
		{regexp.MustCompile(`"address":\d+`), `"address":ADDRESS`},
		{regexp.MustCompile(`\b\d+(\.\d+)?(ns|µs|ms|s)\b`), "DURATION"},
		{regexp.MustCompile(`\b\d+\.\d+ s\b`), "DURATION"},
		{regexp.MustCompile(`DURATION to DURATION +\d+( +#+)?$`), "DURATION to DURATION COUNT"},
		{regexp.MustCompile(`\+0x[0-9a-f]+`), "+OFFSET"},
		{regexp.MustCompile(`0x[0-9a-f]{3,}`), "ADDRESS"},
		{regexp.MustCompile(` +`), " "},
	}
	number = regexp.MustCompile(`\d+`)
)

// alike is a line without that, and with loose without numbers: in a kernel they are others after each update of it, and what happens in
// an interval depends on the machine.
func alike(line string, loose bool) string {
	for _, d := range differing {
		line = d.is.ReplaceAllString(line, d.by)
	}
	if loose {
		line = number.ReplaceAllString(line, "N")
	}
	return strings.TrimSpace(line)
}

// runSessions runs the commands of a page in a directory, one after the other, and compares what they print. Which line of standard
// error, of standard output and of the program comes first is not the same each time.
func runSessions(t *testing.T, page, dir string) (n int) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range sessions(string(text)) {
		n++
		loose := strings.Contains(a.command, "vmlinux") || strings.Contains(a.command, "--interval")
		c := exec.Command("sh", "-c", a.command)
		c.Dir = dir
		out, _ := c.CombinedOutput() // a page has what a failure prints, too
		out = bytes.ReplaceAll(out, []byte(dir), []byte("/tmp/shop"))
		var want, got []string
		rest := false
		for _, line := range a.printed {
			if rest = rest || line == "..."; line != "..." {
				want = append(want, alike(line, loose))
			}
		}
		for line := range strings.Lines(string(out)) {
			line = alike(strings.TrimSuffix(line, "\n"), loose)
			if i := slices.Index(want, line); i >= 0 {
				want = slices.Delete(want, i, i+1)
			} else if line != "" && !rest {
				got = append(got, line)
			}
		}
		want = slices.DeleteFunc(want, func(line string) bool { return line == "" })
		if len(want)+len(got) > 0 {
			t.Errorf("%s\nprinted\n%s\nof the page it has not printed\n\t%s\nand the page has not\n\t%s", a.command, out, strings.Join(want, "\n\t"), strings.Join(got, "\n\t"))
		}
	}
	return n
}

// TestCookbook runs the tasks of the cookbook as it says: the programs are built, and traced.
func TestCookbook(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs compilers: make test-all")
	}
	if err := bpfexec.Available(); err != nil {
		testenv.Missing(t, "%v", err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/shop")); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir() // the compilers that the page was written with
	for name, tool := range map[string]string{"gcc": "gcc-12", "g++": "g++-12"} {
		if err := os.Symlink(testenv.Tool(t, tool), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Tool(t, "rustc")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("BPFPROLOGUE_CACHE", filepath.Join(bin, "cache"))
	if err := os.Symlink(testenv.Vmlinux(t), filepath.Join(dir, "vmlinux")); err != nil {
		t.Fatal(err)
	}
	if n := runSessions(t, "../../docs/cookbook.md", dir); n < 25 {
		t.Errorf("%d commands", n)
	}
}

// TestAgents: what AGENTS.md states is so.
func TestAgents(t *testing.T) {
	dir := t.TempDir()
	for name, fixture := range map[string]string{"demo.elf": "basic-gcc12-O2-dwarf5.elf", "run": "run-gcc12-O2-dwarf5.exe"} {
		data, err := fixtures.Bytes(fixture)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("BPFPROLOGUE_CACHE", filepath.Join(dir, "cache"))
	if n := runSessions(t, "../../AGENTS.md", dir); n < 8 {
		t.Errorf("%d commands", n)
	}
}
