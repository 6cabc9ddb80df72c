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

// loadSource is a program whose children come and go: each calls tick 5,000 times, and 20 of them begin in a second. It writes how many
// calls there were.
const loadSource = `
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
__attribute__((noipa)) int tick(int n) { return n + 1; }
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(int argc, char **argv)
{
	double begin = now(), end = begin + atof(argv[1]);
	long calls = 0;
	while (now() < end) {
		int pid = fork();
		if (pid == 0) {
			for (int i = 0; i < 5000; i++)
				tick(i);
			_exit(0);
		}
		waitpid(pid, 0, 0);
		calls += 5000;
		double ahead = begin + calls / 100000.0 - now();
		if (ahead > 0)
			usleep(ahead * 1e6);
	}
	FILE *f = fopen(argv[2], "w");
	fprintf(f, "%ld", calls);
	return fclose(f);
}
`

// TestLong traces, counts and records a load of up to 100,000 hits a second for LONG_SECONDS each, 6 if that is not set: memory and files
// of the tool stay what they are, and what it reports and what it lost is all that happened.
func TestLong(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	gcc := testenv.Tool(t, "gcc-12")
	seconds := 6
	if text := os.Getenv("LONG_SECONDS"); text != "" {
		var err error
		if seconds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
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
			args := append(slices.Clone(args), "-x", program, "tick n", "--", program, strconv.Itoa(seconds), count)
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
			want, err := strconv.ParseUint(string(text), 10, 64)
			if err != nil {
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
			t.Logf("%d hits, %d lost, %d calls", hits, lost, want)
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
			if late.files > early.files+2 || late.memory > early.memory+early.memory/5+some {
				t.Errorf("early %+v, late %+v", early, late)
			}
		})
	}
}

// use is what a process uses: KiB that are resident, open files.
type use struct{ memory, files int }

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
	return u, true
}

// middle returns the median of each.
func middle(of []use) use {
	var memory, files []int
	for _, u := range of {
		memory, files = append(memory, u.memory), append(files, u.files)
	}
	slices.Sort(memory)
	slices.Sort(files)
	return use{memory[len(memory)/2], files[len(files)/2]}
}
