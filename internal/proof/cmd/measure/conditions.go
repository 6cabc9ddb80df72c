package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
)

// calls is the number of system calls that are timed.
const calls = 10_000

// Paths in the guest.
const (
	tool  = "/prolog-dump"
	image = "/debug/vmlinux"
	trace = "/usr/bin/bpftrace"
)

// measureConditions conditions measures what a condition saves in a live kernel, which QEMU emulates, beside
// bpftrace's filter, and prints bench/CONDITIONS.md. It needs what the tests of internal/proof/guest need, and
// bpftrace.
func measureConditions() {
	if err := conditionsRun(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "conditions:", err)
		os.Exit(1)
	}
}

// finder ends the command if a kernel or the emulator is missing.
type finder struct{}

func (finder) Helper() {}

func (f finder) Skipf(format string, args ...any) { f.Fatalf(format, args...) }

func (finder) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

// way is a way to look at the workload.
type way struct {
	name    string
	command []string
}

func ways() []way {
	work := []string{"/init", guest.Allocate, strconv.Itoa(calls)}
	ours := func(args ...string) []string {
		args = append([]string{tool, args[0], "--no-cache", "-k", image}, args[1:]...)
		return append(append(args, "--"), work...)
	}
	const file = "/tmp/hits"
	return []way{
		{"no probe", work},
		{"`stat 'kmalloc size'`", ours("stat", "kmalloc size")},
		{"`stat --if 'size > 8192' 'kmalloc size'`", ours("stat", "--if", "size > 8192", "kmalloc size")},
		{"`trace -o FILE --if 'size > 8192' 'kmalloc size'`", ours("trace", "-o", file, "--if", "size > 8192", "kmalloc size")},
		{"`stat --if 'size > 8192' '__kmalloc size'`", ours("stat", "--if", "size > 8192", "__kmalloc size")},
		{"bpftrace: `kprobe:__kmalloc /arg0 > 8192/ { @ = count(); }`", []string{
			trace, "-e", "kprobe:__kmalloc /arg0 > 8192/ { @ = count(); }", "-c", strings.Join(work, " "),
		}},
		{"no probe, at the end", work},
	}
}

func conditionsRun(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "conditions")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	k := guest.FindKernels(finder{}, guest.AMD64)[0]
	// The guest's clock goes forward one nanosecond with each instruction: what else the machine does
	// makes no difference.
	k.Args = slices.Concat(k.Args, []string{"-icount", "shift=0,align=off,sleep=off"})
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", dir, "github.com/bpfprologue/bpfprologue/cmd/prolog-dump")
	build.Env = append(build.Environ(), "CGO_ENABLED=0", "GOARCH="+k.GOARCH)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	task := &guest.Task{Limit: 9 * time.Minute, Files: map[string]string{tool: filepath.Join(dir, "prolog-dump"), image: k.Vmlinux}}
	if err := withLibraries(ctx, task.Files, trace); err != nil {
		return err
	}
	list := ways()
	for _, w := range list {
		task.Commands = append(task.Commands, w.command)
	}
	r, err := k.Boot(ctx, task)
	if err != nil {
		return err
	}
	version, err := exec.CommandContext(ctx, trace, "--version").Output()
	if err != nil {
		return err
	}
	return table(list, r, k.Release, strings.TrimSpace(string(version)))
}

// withLibraries adds a program and what it is linked to.
func withLibraries(ctx context.Context, files map[string]string, program string) error {
	out, err := exec.CommandContext(ctx, "ldd", program).Output()
	if err != nil {
		return fmt.Errorf("ldd %s: %w", program, err)
	}
	files[program] = program
	for _, path := range regexp.MustCompile(`(?m)/\S+`).FindAllString(string(out), -1) {
		files[path] = path
	}
	return nil
}

var (
	sitesOf  = regexp.MustCompile(`(?m): attached at (\d+) of \d+ sites?$`)
	hitsOf   = regexp.MustCompile(`(?m)^(\d+) hits?(?: in |, )|^@: (\d+)$`)
	lostLine = regexp.MustCompile(`(?m)^\d+ hits?, (\d+) lost$`)
)

func table(list []way, r *guest.Report, release, version string) error {
	fmt.Printf(`# What a condition saves

Written by %s. Debian's kernel %s in QEMU, which
emulates the processor and counts its instructions. %s.

%d system calls each have the kernel allocate memory in sock_kmalloc, into which kmalloc is inlined; one of %d
allocates %d bytes, the others %d. The kernel may make jumps of probes.
Of %d rounds, the one with the fewest instructions counts.

| probes | attached at | hits reported | lost | instructions per call | more than without |
| --- | ---: | ---: | ---: | ---: | ---: |
`, "`go run ./internal/proof/cmd/measure conditions >bench/CONDITIONS.md`", release, version, calls, guest.LargeEvery, guest.LargeSize, guest.SmallSize, calls/guest.Round)
	var errs []error
	base := 0.0 // of the first row, for the difference
	for i, o := range r.Outputs {
		said := o.Err + "\n" + o.Out
		n, took := 0, int64(0)
		at := strings.Index(said, "of "+strconv.Itoa(calls)+" calls")
		if o.Failed != "" || at < 0 {
			errs = append(errs, fmt.Errorf("%s: %s\n%s", list[i].name, o.Failed, said))
			continue
		}
		if _, err := fmt.Sscanf(said[at:], guest.Allocated, &n, &took); err != nil {
			return err
		}
		each := float64(took) / guest.Round
		if i == 0 {
			base = each
		}
		sites, hits, lost := "", "", ""
		if m := sitesOf.FindStringSubmatch(said); m != nil {
			sites = m[1]
		}
		if m := hitsOf.FindStringSubmatch(said); m != nil {
			hits = m[1] + m[2]
		}
		if m := lostLine.FindStringSubmatch(said); m != nil {
			lost = m[1]
		}
		fmt.Printf("| %s | %s | %s | %s | %.0f | %.0f |\n", list[i].name, sites, hits, lost, each, each-base)
	}
	return errors.Join(errs...)
}
