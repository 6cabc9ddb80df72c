package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// loadSource is a program whose children come and go: each calls tick 5,000 times, and 20 of them begin in a second, or as many as it
// takes for so many calls in a second: up to 8 run at a time. It writes how many calls there were, and in how many seconds. tick begins
// with a PUSH, as most functions do: kernels emulate it. What they step takes 30 times as long in a virtual machine, where the
// hypervisor sees each single step.
const loadSource = `
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
__attribute__((noipa)) int tick(int n) { __asm__ volatile("" : : : "rbx"); return n + 1; }
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(int argc, char **argv)
{
	double begin = now(), end = begin + atof(argv[1]);
	long calls = 0;
	int children = 0;
	while (now() < end) {
		int pid = fork();
		if (pid < 0)
			return 1;
		if (pid == 0) {
			for (int i = 0; i < 5000; i++)
				tick(i);
			_exit(0);
		}
		children++;
		calls += 5000;
		double ahead = begin + calls / atof(argv[3]) - now();
		if (ahead > 0)
			usleep(ahead * 1e6);
		while (children > 0 && waitpid(-1, 0, children < 8 ? WNOHANG : 0) > 0)
			children--;
	}
	while (wait(0) > 0)
		;
	FILE *f = fopen(argv[2], "w");
	fprintf(f, "%ld %f", calls, now() - begin);
	return fclose(f);
}
`

// TestLong traces, counts and records a load for LONG_SECONDS each, 6 if that is not set, of up to LONG_RATE hits a second: memory and
// files of the tool stay what they are, and the memory of its maps, which the kernel has, and what it reports and what it lost is all
// that happened. If LONG_RATE is set, which is 100,000 otherwise, so many hits must come.
func TestLong(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	gcc := testenv.Tool(t, "gcc-12")
	seconds, rate := 6, 100_000
	for name, to := range map[string]*int{"LONG_SECONDS": &seconds, "LONG_RATE": &rate} {
		if text := os.Getenv(name); text != "" {
			var err error
			if *to, err = strconv.Atoi(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "load")
	c := exec.Command(gcc, "-g", "-O2", "-x", "c", "-o", program, "-")
	c.Stdin = strings.NewReader(loadSource)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for verb, args := range map[string][]string{
		"trace": {"trace", "-o", "/dev/null"}, "stat": {"stat", "--interval", "200ms", "--by", "pid", "--max-keys", "100000", "--top", "3", "-o", filepath.Join(dir, "counts")},
		"record": {"record", "-o", filepath.Join(dir, "hits")},
	} {
		t.Run(verb, func(t *testing.T) {
			count := filepath.Join(dir, verb)
			args := append(slices.Clone(args), "-x", program, "tick n", "--", program, strconv.Itoa(seconds), count, strconv.Itoa(rate))
			cmd := toolCommand(t, nil, args...)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			var uses []use
			err := error(nil)
			for ended := false; !ended; {
				select {
				case err = <-done:
					ended = true
				case <-time.After(200 * time.Millisecond):
					if u, ok := useOf(cmd.Process.Pid); ok {
						uses = append(uses, u)
					}
				}
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, said.String())
			}
			text, err := os.ReadFile(count)
			if err != nil {
				t.Fatal(err)
			}
			var want uint64
			var took float64
			if _, err := fmt.Sscan(string(text), &want, &took); err != nil {
				t.Fatal(err)
			}
			totals, tables := said.String(), 1
			if verb == "stat" {
				counts, err := os.ReadFile(filepath.Join(dir, "counts"))
				if err != nil {
					t.Fatal(err)
				}
				totals, tables = string(counts), 4*seconds // at least, of the five a second
			}
			all := regexp.MustCompile(`(?m)^(\d+) hits(?:, (\d+) lost| in )`).FindAllStringSubmatch(totals, -1)
			if len(all) < tables {
				t.Fatalf("%d totals: %s", len(all), totals)
			}
			last := all[len(all)-1]
			hits, _ := strconv.ParseUint(last[1], 10, 64)
			lost, _ := strconv.ParseUint(last[2], 10, 64)
			t.Logf("%d hits, %d lost, %d calls, %.0f in a second", hits, lost, want, float64(want)/took)
			if os.Getenv("LONG_RATE") != "" && float64(want)/took < 0.95*float64(rate) {
				t.Errorf("%.0f calls in a second, want %d", float64(want)/took, rate)
			}
			if hits+lost != want {
				t.Errorf("%d hits and %d lost are not the %d calls", hits, lost, want)
			}
			if len(uses) < 20 {
				t.Fatalf("looked %d times", len(uses))
			}
			// Of what it has after a quarter of the time, and at the end, the middle one counts.
			early, late := middle(uses[len(uses)/4:len(uses)/2]), middle(uses[3*len(uses)/4:])
			t.Logf("early %+v, late %+v", early, late)
			const some = 8 << 10 // KiB: the garbage collector's own rhythm
			if late.files > early.files+2 || late.memory > early.memory+early.memory/5+some || late.maps > early.maps+early.maps/20 || early.maps == 0 {
				t.Errorf("early %+v, late %+v", early, late)
			}
		})
	}
}

// use is what a process uses: KiB that are resident, open files, and KiB of maps, which the kernel has for it.
type use struct{ memory, files, maps int }

func useOf(pid int) (u use, ok bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, false
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	_, rest, found := strings.Cut(string(status), "RssAnon:")
	if _, scanErr := fmt.Sscan(rest, &u.memory); err != nil || !found || scanErr != nil {
		return u, false
	}
	u.files = len(files)
	maps := make(map[string]int) // by their numbers: a process can have several files of one
	for _, f := range files {
		// One that was closed meanwhile is none.
		info, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, f.Name()))
		bytes := regexp.MustCompile(`(?m)^memlock:\s*(\d+)$`).FindSubmatch(info)
		id := regexp.MustCompile(`(?m)^map_id:\s*(\d+)$`).FindSubmatch(info)
		if bytes != nil && id != nil {
			maps[string(id[1])], _ = strconv.Atoi(string(bytes[1]))
		}
	}
	for _, n := range maps {
		u.maps += n >> 10
	}
	return u, true
}

// middle returns the median of each.
func middle(of []use) use {
	pick := func(what func(use) int) int {
		var all []int
		for _, u := range of {
			all = append(all, what(u))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return use{pick(func(u use) int { return u.memory }), pick(func(u use) int { return u.files }), pick(func(u use) int { return u.maps })}
}
