package tracer_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// familySource waits, and then starts children and grandchildren, and one whose parent ends before it
// calls touch. Each process calls it ten times, one of the children in a thread.
const familySource = `
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) void touch(int who) { sink += who; }
static void *ten(void *who) { for (int i = 0; i < 10; i++) touch((int)(long)who); return 0; }
int main(int argc, char **argv) {
	char c;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (read(0, &c, 1) != 1) return 1;
	ten((void *)1);
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			pthread_t t;
			pthread_create(&t, 0, ten, (void *)2);
			pthread_join(t, 0);
			for (int k = 0; k < 2; k++)
				if (fork() == 0) { ten((void *)3); _exit(0); }
			while (wait(0) > 0);
			_exit(0);
		}
	pid_t middle = fork();
	if (middle == 0) {
		pid_t me = getpid();
		if (fork() == 0) {
			while (getppid() == me) usleep(1000);
			ten((void *)4);
		}
		_exit(0);
	}
	while (wait(0) > 0);
	return 0;
}
`

// TestDescendants: the hits of a process and of all that descend from it are seen, each once, and none of
// another instance of the same program.
func TestDescendants(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := build(t, "gcc-12", "family.c", familySource, "-O2", "-pthread")
	r, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	started := func() (*exec.Cmd, io.Writer) {
		c := exec.Command(path)
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill() })
		return c, in
	}
	// A record, three arguments in registers, and spans filter in programs of their own.
	for _, convention := range []string{"touch who", "touch who a=who:x64 b=who:u8", "touch who name=$comm", "span"} {
		inside, goInside := started()
		outside, goOutside := started()
		o := tracer.Options{PID: inside.Process.Pid, Descendants: true}
		var s *tracer.Session
		if convention == "span" {
			p, err := plan.NewSpan(t.Context(), img, mustParse(t, "touch who"), plan.Options{Target: r.Target()})
			if err != nil {
				t.Fatal(err)
			}
			s, err = tracer.OpenSpans(t.Context(), r, []*plan.Span{p}, o)
			if err != nil {
				t.Fatal(err)
			}
		} else {
			plans, err := plansOf(img, plan.Options{Target: r.Target()}, convention)
			if err != nil {
				t.Fatal(err)
			}
			if s, err = tracer.Open(t.Context(), r, plans, o); err != nil {
				t.Fatal(err)
			}
		}
		for _, in := range []io.Writer{goOutside, goInside} {
			if _, err := in.Write([]byte{1}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			for _, c := range []*exec.Cmd{outside, inside} {
				if err := c.Wait(); err != nil {
					t.Error(err)
				}
			}
			stop()
		}()
		hits := make(map[string]int)
		pids := make(map[int]bool)
		if err := s.Run(ctx, func(h *tracer.Hit) error {
			hits[h.Values[0].String()]++
			pids[h.PID] = true
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		// Itself, three children, six grandchildren, and the one whose parent has ended.
		if got, want := fmt.Sprint(hits), "map[1:10 2:30 3:60 4:10]"; got != want {
			t.Errorf("%s: hits %v, want %v", convention, got, want)
		}
		if len(pids) != 11 || pids[outside.Process.Pid] || !pids[inside.Process.Pid] {
			t.Errorf("%s: processes %v", convention, pids)
		}
	}
}

func mustParse(t *testing.T, text string) *probe.Definition {
	t.Helper()
	def, err := probe.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return def
}
