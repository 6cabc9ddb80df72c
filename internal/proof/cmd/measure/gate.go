package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// gateQuestion is a question that the gate asks.
type gateQuestion struct {
	name string
	args []string // after the image
	kept bool     // with an index that earlier questions have left
	pack bool     // to a pack
	own  bool     // args name the image; it is skipped where it cannot be asked
}

// libc is a library with many small functions. Its debug information has to be installed, and tracing needs root.
const libc = "/lib/x86_64-linux-gnu/libc.so.6"

var gateQuestions = []gateQuestion{
	{name: "get_page page, cold", args: []string{"get_page page"}},
	{name: "vfs_read file, cold", args: []string{"vfs_read file"}},
	{name: "get_page page, kept", args: []string{"get_page page"}, kept: true},
	{name: "vfs_read file, kept", args: []string{"vfs_read file"}, kept: true},
	{name: "tcp_sendmsg sk size, kept", args: []string{"tcp_sendmsg sk size"}, kept: true},
	{name: "kmalloc size, kept", args: []string{"kmalloc size"}, kept: true},
	{name: "tcp_* $params, JSON, kept", args: []string{"--format", "json", "tcp_* $params"}, kept: true},
	{name: "funcs vfs_*, kept", args: []string{"funcs", "vfs_*"}, kept: true},
	{name: "coverage, cold", args: []string{"coverage"}},
	{name: "coverage, kept", args: []string{"coverage"}, kept: true},
	{name: "get_page page, pack", args: []string{"get_page page"}, pack: true},
	{name: "kmalloc size, pack", args: []string{"kmalloc size"}, pack: true},
	{name: "trace s* of libc, on and off", args: []string{"trace", "-q", "-x", libc, "s*", "--", "true"}, own: true, kept: true},
}

// gateFile has the commit that the gate compares with, and what it measured before.
const gateFile = "bench/gate.json"

// gateLimit is how many times the base's time, memory and allocations a question may take.
const gateLimit = 1.10

// gateHistory is the contents of gateFile.
type gateHistory struct {
	Base    string      `json:"base"` // commit
	Entries []gateEntry `json:"entries"`
}

// gateEntry is what was measured at a commit, as multiples of the base's.
type gateEntry struct {
	Commit    string               `json:"commit"`
	Base      string               `json:"base"`
	Questions map[string]gateRatio `json:"questions"`
}

type gateRatio struct {
	CPU       float64 `json:"cpu"`
	Memory    float64 `json:"memory"`              // peak
	Allocated float64 `json:"allocated,omitempty"` // in all; 0 if it is not known
}

func (r gateRatio) worst() float64 { return max(r.CPU, r.Memory, r.Allocated) }

// gateTool is one of the two tools.
type gateTool struct {
	path, cache string
	counting    string    // the test binary of the tool, which counts what is allocated; "" if the commit has none
	cpu, memory []float64 // of the question that is asked: seconds, MB
	allocated   float64   // MB
}

// measureGate asks questions of this commit's tool and of an earlier one's, in turn, and fails if one takes more than gateLimit times as
// much processor time or memory as before, or allocates more.
//
//	gate -k VMLINUX
func measureGate() {
	log.SetFlags(0)
	kernel := flag.String("k", "", "kernel `image`")
	base := flag.String("base", "", "`commit` to compare with, in place of that in "+gateFile)
	pairs := flag.Int("pairs", 7, "how many times each question is asked, at least")
	write := flag.Bool("w", false, "add the result to "+gateFile+", with which the next commits are compared then")
	flag.Parse()
	if *kernel == "" {
		log.Fatal("gate: -k is missing")
	}
	if err := gate(*kernel, *base, *pairs, *write); err != nil {
		log.Fatalf("gate: %v", err)
	}
}

func gate(kernel, base string, pairs int, write bool) error {
	var history gateHistory
	text, err := os.ReadFile(gateFile)
	if err == nil {
		err = json.Unmarshal(text, &history)
	}
	if err != nil {
		return err
	}
	if base == "" {
		base = history.Base
	}
	if err := command("git", "cat-file", "-e", base+"^{commit}"); err != nil {
		fmt.Printf("The history of commits is not here, or not with %s: there is nothing to compare with.\n", base)
		return nil
	}
	dir, err := os.MkdirTemp("", "gate")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tools, err := gateTools(dir, base)
	if err != nil {
		return err
	}
	for _, t := range tools {
		if err := t.run("pack", "write", kernel, "-o", t.pack()); err != nil {
			return err
		}
	}
	head, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return err
	}
	entry := gateEntry{Commit: strings.TrimSpace(string(head)), Base: base, Questions: make(map[string]gateRatio)}
	fmt.Printf("| question | processor time, s, at %s | now | times | memory, MB, then | now | times | allocated, MB, then | now | times |\n", base)
	fmt.Println("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	var worse []string
	for _, q := range gateQuestions {
		if q.own && tools[1].run(q.args...) != nil {
			fmt.Printf("| %s | cannot be asked here | | | | | | | | |\n", q.name)
			continue
		}
		ratio, err := q.measure(tools, kernel, pairs)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		entry.Questions[q.name] = ratio
		fmt.Printf("| %s | %.3f | %.3f | %.2f | %.1f | %.1f | %.2f |", q.name, median(tools[0].cpu), median(tools[1].cpu), ratio.CPU,
			median(tools[0].memory), median(tools[1].memory), ratio.Memory)
		if ratio.Allocated > 0 {
			fmt.Printf(" %.1f | %.1f | %.2f |\n", tools[0].allocated, tools[1].allocated, ratio.Allocated)
		} else {
			fmt.Printf(" – | %.1f | – |\n", tools[1].allocated)
		}
		if ratio.worst() > gateLimit {
			worse = append(worse, q.name)
		}
	}
	if write {
		history.Base, history.Entries = entry.Commit, append(history.Entries, entry)
		text, err := json.MarshalIndent(&history, "", "\t")
		if err == nil {
			err = os.WriteFile(gateFile, append(text, '\n'), 0o644)
		}
		if err != nil {
			return err
		}
	}
	if worse != nil {
		return fmt.Errorf("more than %.2f times what they took at %s: %s", gateLimit, base, strings.Join(worse, "; "))
	}
	return nil
}

// gateTools builds the base's tool and this commit's.
func gateTools(dir, base string) ([]*gateTool, error) {
	then := filepath.Join(dir, "then")
	if err := command("git", "worktree", "add", "--detach", then, base); err != nil {
		return nil, err
	}
	defer func() { _ = command("git", "worktree", "remove", "--force", then) }()
	tools := []*gateTool{{path: filepath.Join(dir, "tool-then"), cache: filepath.Join(dir, "cache-then")}, {path: filepath.Join(dir, "tool-now"), cache: filepath.Join(dir, "cache-now")}}
	for i, at := range []string{then, "."} {
		// As scripts/release does: what that has compiled is not compiled again.
		build := exec.Command("go", "build", "-tags", "nethttpomithttp2", "-trimpath", "-o", tools[i].path, "./cmd/prolog-dump")
		build.Dir, build.Env = at, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, out)
		}
		if err := tools[i].buildCounting(at); err != nil {
			return nil, err
		}
	}
	return tools, nil
}

// counting is the name by which a test binary of the tool is the tool that counts what it allocates: see cmd/prolog-dump/script_test.go.
const counting = "prolog-dump-counting"

// buildCounting builds the tool's test binary, if it counts.
func (t *gateTool) buildCounting(at string) error {
	dir := t.path + "-counting"
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, counting)
	build := exec.Command("go", "test", "-c", "-tags", "nethttpomithttp2", "-trimpath", "-o", path, "./cmd/prolog-dump")
	build.Dir, build.Env = at, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	if _, err := countedBy(exec.Command(path, "--version")); err == nil {
		t.counting = path
	}
	return nil
}

// countedBy runs a tool that counts what it allocates, and returns the number of bytes.
func countedBy(cmd *exec.Cmd) (bytes uint64, err error) {
	var text strings.Builder
	cmd.Stderr = &text
	if err := cmd.Run(); err != nil {
		return 0, err
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	_, err = fmt.Sscanf(lines[len(lines)-1], "allocated %d", &bytes)
	return bytes, err
}

// count runs the tool that counts.
func (t *gateTool) count(args ...string) error {
	if t.allocated = 0; t.counting == "" {
		return nil
	}
	cmd := exec.Command(t.counting, args...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.cache)
	n, err := countedBy(cmd)
	t.allocated = float64(n) / 1e6
	return err
}

// mostRounds is how often a question is measured again before it is said to be slower: other work on the machine makes single rounds slow.
const mostRounds = 4

// measure asks a question of both tools in turn.
func (q *gateQuestion) measure(tools []*gateTool, kernel string, pairs int) (ratio gateRatio, err error) {
	args := func(t *gateTool) []string {
		switch {
		case q.own:
			return q.args
		case q.pack:
			return append([]string{"-k", t.pack()}, q.args...)
		case q.kept:
			return append([]string{"-k", kernel}, q.args...)
		}
		return append([]string{"-k", kernel, "--no-cache"}, q.args...)
	}
	for _, t := range tools {
		if q.kept { // the second one has all that it left
			if err := t.run(args(t)...); err != nil {
				return ratio, err
			}
		}
		if err := t.count(args(t)...); err != nil {
			return ratio, err
		}
		t.cpu, t.memory = nil, nil
	}
	for round := range mostRounds {
		for _, t := range tools {
			if err := q.keepAnew(t, round, args(t)); err != nil {
				return ratio, err
			}
		}
		for i := range pairs {
			for k := range tools {
				if err := tools[(i+k)%2].run(args(tools[(i+k)%2])...); err != nil {
					return ratio, err
				}
			}
		}
		ratio = gateRatio{CPU: median(tools[1].cpu) / median(tools[0].cpu), Memory: median(tools[1].memory) / max(median(tools[0].memory), 1)}
		if ratio.worst() <= gateLimit {
			break
		}
	}
	if tools[0].allocated > 0 {
		ratio.Allocated = tools[1].allocated / tools[0].allocated
	}
	return ratio, nil
}

// keepAnew has the tool write what it keeps once more, for a round behind the first. A small question takes a few milliseconds, of which a good part is to map that file, and that stays what it
// is as long as the file does: 28 pairs had 1.10, and with files that were written anew 0.93 to 0.95.
func (q *gateQuestion) keepAnew(t *gateTool, round int, args []string) error {
	if round == 0 || !q.kept {
		return nil
	}
	if err := os.RemoveAll(t.cache); err != nil {
		return err
	}
	n := len(t.cpu)
	err := t.run(args...)
	t.cpu, t.memory = t.cpu[:n], t.memory[:n]
	return err
}

func (t *gateTool) pack() string { return t.path + ".pack" }

// run runs the tool, and notes what it takes.
func (t *gateTool) run(args ...string) error {
	cmd := exec.Command(t.path, args...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.cache)
	peak, err := peakOf(cmd)
	if err != nil {
		return fmt.Errorf("%s: %w", cmd, err)
	}
	t.cpu = append(t.cpu, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	t.memory = append(t.memory, float64(peak)/1e6)
	return nil
}

func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
