package guest_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestTool runs the tool and an example in live kernels, as their users would: on a
// function that is inlined everywhere, for five seconds of a small workload, and on a
// module.
func TestTool(t *testing.T) {
	all := kernels(t)
	t.Parallel()
	onKernels(t, someOf(t, all), runTool)
}

func runTool(t *testing.T, k testKernel) {
	t.Helper()
	dir := t.TempDir()
	const path = "github.com/bpfprologue/bpfprologue/"
	testenv.Build(t, dir, k.static(), path+"cmd/prolog-dump", path+"examples/hits")
	const image, toolPath = "/debug/vmlinux", "/prolog-dump"
	trace := func(definition string, command ...string) []string {
		return append([]string{toolPath, "--no-cache", "-k", image, "trace", definition, "--"}, command...)
	}
	task := &guest.Task{
		KASLR: true, Limit: 12 * time.Minute,
		Module: "/tun.ko",
		Files: map[string]string{
			toolPath: filepath.Join(dir, "prolog-dump"), image: k.Vmlinux, "/tun.ko": k.Module, "/debug/kernel/drivers/net/tun.ko": k.DebugModule(),
		},
		Calls: []guest.Call{
			call("openat", number(-100), text("/dev/net/tun"), number(unix.O_RDWR), number(0)),
			call("ioctl", result(0), number(unix.TUNGETFEATURES), memory(4)),
			call("ioctl", result(0), number(18193), number(4660)),
		},
		Commands: [][]string{
			trace("module=tun;tun_chr_ioctl cmd arg", "/init", guest.Calls),
			// The same calls, but of process 1 only: it does not make them.
			{toolPath, "--no-cache", "-k", image, "trace", "--pid", "1", "module=tun;tun_chr_ioctl cmd arg", "--", "/init", guest.Calls},
		},
	}
	// Most time goes into attaching at some 2,000 sites: each kernel does so once, but of two of one version one.
	check := checkMalloc
	switch {
	case k.old() && k.GOARCH != "amd64" && !full():
		check = nil
	case k.old():
		task.Commands = append(task.Commands, []string{"/init", guest.Interrupt, toolPath, "--no-cache", "-k", image, "trace", "kmalloc size flags"})
	default:
		check = checkHitsTable
		task.Files["/hits"], task.Files["/kmalloc.o"] = filepath.Join(dir, "hits"), "../../../examples/hits/bpf/kmalloc.o"
		task.Commands = append(task.Commands, []string{"/hits", "/kmalloc.o", image, "/init", guest.Workload, "5s"})
	}
	task.Calls = append(task.Calls, conditionCalls(len(task.Calls))...)
	task.Calls = append(task.Calls, spanCalls(len(task.Calls))...)
	spans := len(task.Commands)
	task.Commands = append(task.Commands, spanCommands(toolPath, image)...)
	summaries := len(task.Commands)
	task.Commands = append(task.Commands, summaryCommands(toolPath, image)...)
	conditions := len(task.Commands)
	// These attach at many sites too.
	conditional := check == nil || full()
	if conditional {
		task.Commands = append(task.Commands, conditionCommands(k, toolPath, image)...)
	}
	start := time.Now()
	r, err := k.Boot(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Outputs) != len(task.Commands) {
		t.Fatalf("%d commands ended, of %d", len(r.Outputs), len(task.Commands))
	}
	for i, o := range r.Outputs {
		if o.Failed != "" {
			t.Fatalf("%q: %s\n%s", task.Commands[i], o.Failed, o.Err)
		}
	}
	module := &r.Outputs[0]
	t.Logf("a module:\n%s%s", module.Err, module.Out)
	if !moduleLine.MatchString(module.Out) || !strings.Contains(module.Err, "2 hits, 0 lost") {
		t.Errorf("no %v", moduleLine)
	}
	if one := &r.Outputs[1]; !strings.Contains(one.Err, "0 hits, 0 lost") {
		t.Errorf("hits by process 1 alone:\n%s%s", one.Err, one.Out)
	}
	if check != nil {
		check(t, &r.Outputs[2])
	}
	if check != nil && k.old() {
		checkInterrupted(t, &r.Outputs[2])
	}
	checkSpans(t, r.Outputs[spans:summaries])
	checkSummaries(t, r.Outputs[summaries:conditions])
	if conditional {
		checkConditions(t, r.Outputs[conditions:])
	}
	t.Log(time.Since(start).Round(time.Millisecond))
}

// checkHitsTable checks the table that the example prints.
func checkHitsTable(t *testing.T, o *guest.Output) {
	t.Helper()
	t.Logf("an example:\n%s", o.Out)
	if rows := hitsRow.FindAllString(o.Out, -1); len(rows) < 10 || len(rows) != strings.Count(o.Out, "\n")-1 {
		t.Errorf("%d rows", len(rows))
	}
}

var (
	attachedLine = regexp.MustCompile(`(?m): attached at (\d+) of (\d+) sites$`)
	notAtLine    = regexp.MustCompile(`(?m)^  not at (\d+) sites?: ([a-z-]+): `)
	hitsLine     = regexp.MustCompile(`(?m)^(\d+) hits?, (\d+) lost$`)
	moduleLine   = regexp.MustCompile(`(?m)  tun_chr_ioctl( at \S+)?  cmd=18193  arg=4660$`)
	hitsRow      = regexp.MustCompile(`(?m)^\S*kmalloc\S* +\S+ +\d+ +-?\d+ +\d+$`)
	mallocLine   = regexp.MustCompile(`^ *\d+\.\d{6}  \S+ +\d+  kmalloc inlined in \S+  size=(\S+)  flags=(\S+)$`)
)

// checkInterrupted checks that the tool was gone soon after Ctrl-C, while probes were still being
// ended (init waits until there are none).
func checkInterrupted(t *testing.T, o *guest.Output) {
	t.Helper()
	var attached, prompt, probes, left int
	var ended string
	_, text, _ := strings.Cut(o.Err, "\nattached in ")
	if _, err := fmt.Sscanf("attached in "+text, guest.Interrupted, &attached, &ended, &prompt, &probes, &left); err != nil {
		t.Fatalf("%v:\n%s", err, o.Err)
	}
	const soon = 5000 // 1 s is usual in the emulator
	if prompt > soon || probes == 0 || !strings.Contains(o.Err, "do nothing any more") {
		t.Errorf("ended in %d ms with %d probes left", prompt, probes)
	}
}

// checkMalloc checks that every refused site has a cause, that no hit was lost, and that
// the fetched values can be sizes and flags.
func checkMalloc(t *testing.T, o *guest.Output) {
	t.Helper()
	t.Logf("its summary:\n%s", o.Err)
	attached := attachedLine.FindStringSubmatch(o.Err)
	hits := hitsLine.FindStringSubmatch(o.Err)
	if attached == nil || hits == nil {
		t.Fatalf("no summary in\n%s", o.Err)
	}
	n := 0
	for _, m := range notAtLine.FindAllStringSubmatch(o.Err, -1) {
		n += atoi(t, m[1])
	}
	if at, of := atoi(t, attached[1]), atoi(t, attached[2]); at+n != of || at < 1000 {
		t.Errorf("attached at %d, refused with a cause at %d, of %d sites:\n%s", at, n, of, o.Err)
	}
	lines := strings.Split(strings.TrimSuffix(o.Out, "\n"), "\n")
	if len(lines) != atoi(t, hits[1]) || hits[2] != "0" || len(lines) < 20 {
		t.Errorf("%d lines, %q", len(lines), hits[0])
	}
	sizes := 0
	for _, line := range lines {
		m := mallocLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("unexpected line %q", line)
			continue
		}
		if m[1] != "?" {
			if size := atoi(t, m[1]); size < 1 || size > 4<<20 {
				t.Errorf("a size of %d: %s", size, line)
			}
			sizes++
		}
		// include/linux/gfp_types.h: 26 or 27 bits.
		if m[2] != "?" {
			if flags := atoi(t, m[2]); flags < 0 || flags >= 1<<27 {
				t.Errorf("flags of %#x: %s", flags, line)
			}
		}
	}
	if sizes < len(lines)/2 {
		t.Errorf("only %d of %d sizes were fetched", sizes, len(lines))
	}
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
