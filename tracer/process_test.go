package tracer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// TestBuffer: the error for a size that no ring buffer can have names the nearest one.
func TestBuffer(t *testing.T) {
	page := os.Getpagesize()
	for _, c := range []struct {
		size int
		want uint32 // 0: an error
		near int
	}{
		{0, 1 << 20, 0},
		{page, uint32(page), 0},
		{1 << 31, 1 << 31, 0},
		{1000, 0, page},
		{-1, 0, page},
		{page + 1, 0, page},
		{3*page - 1, 0, 2 * page},
		{1<<20 + 1, 0, 1 << 20},
		{1<<32 + 1<<20, 0, 1 << 31},
		{1 << 32, 0, 1 << 31},
	} {
		got, err := (&Options{Buffer: c.size}).buffer()
		if (err == nil) != (c.want != 0) || got != c.want {
			t.Errorf("%d: %d, %v", c.size, got, err)
		}
		if err != nil && !strings.HasSuffix(err.Error(), fmt.Sprintf("the nearest is %d", c.near)) {
			t.Errorf("%d: %v, want the nearest to be %d", c.size, err, c.near)
		}
	}
}

// runTwo starts two processes of the fixture, which wait until finish lets them go on.
func runTwo(t *testing.T, path string, namespace bool) (pids [2]int, finish func()) {
	t.Helper()
	var cmds [2]*exec.Cmd
	var ins [2]io.Writer
	for i := range cmds {
		c := exec.Command(path)
		if namespace {
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
		}
		in, out := start(t, c, "start a process")
		t.Cleanup(func() { _ = c.Process.Kill() })
		if _, err := out.Read(make([]byte, 1)); err != nil { // it is ready
			t.Fatal(err)
		}
		cmds[i], ins[i], pids[i] = c, in, c.Process.Pid
	}
	return pids, func() {
		for i, c := range cmds {
			_, _ = ins[i].Write([]byte{1})
			_ = c.Wait()
		}
	}
}

// start starts a command with pipes to its standard input and output. what is what the
// machine lacks if that is impossible.
func start(t *testing.T, c *exec.Cmd, what string) (io.WriteCloser, io.ReadCloser) {
	t.Helper()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		testenv.Missing(t, "%s: %v", what, err)
	}
	return in, out
}

// TestProcess: a program distinguishes the hits of one process from others', in its own PID
// namespace or in another one.
func TestProcess(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
	r, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []prologue.Convention{prologue.ConventionRegisters, prologue.ConventionRecord} {
		for _, namespace := range []bool{false, true} {
			for _, only := range []int{-1, 0, 1} {
				pids, finish := runTwo(t, path, namespace)
				o, want := Options{inProgram: true}, map[int]int{pids[0]: 2, pids[1]: 2}
				if only >= 0 {
					o.PID, want = pids[only], map[int]int{pids[only]: 2}
				}
				p := plantest.New(t, img, "mix key", plan.Options{Convention: c, Target: r.Target()})
				s, err := Open(t.Context(), r, []*plan.Plan{p}, o)
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				go func() {
					defer stop()
					finish()
				}()
				hits := make(map[int]int)
				err = s.Run(ctx, func(h *Hit) error {
					hits[h.PID]++
					return nil
				})
				if err := errors.Join(err, s.Close()); err != nil {
					t.Fatal(err)
				}
				if !maps.Equal(hits, want) {
					t.Errorf("%v, namespaces %v, process %d: hits by process %v, want %v", c, namespace, only, hits, want)
				}
			}
		}
	}
	if _, err := findProcess(1 << 22); err == nil {
		t.Error("process 4194304 was found")
	}
}

// whoEnv makes the test's own program print which process it is.
const whoEnv = "TRACER_TEST_WHO"

// TestThisProcess: a process in a PID namespace knows itself as others find it.
func TestThisProcess(t *testing.T) {
	if os.Getenv(whoEnv) != "" {
		p, err := thisProcess()
		fmt.Printf("%+v %v\n", p, err)
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	for _, flags := range []uintptr{0, unix.CLONE_NEWPID} {
		c := exec.Command("/proc/self/exe", "-test.run=^TestThisProcess$")
		c.Env = append(os.Environ(), whoEnv+"=1")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		in, out := start(t, c, "a PID namespace")
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		p, err := findProcess(c.Process.Pid)
		if want := fmt.Sprintf("%+v %v\n", p, err); line != want || err != nil {
			t.Errorf("a process with flags %#x takes itself for %s, and others for %s", flags, line, want)
		}
		if flags != 0 && p.tgid != 1 {
			t.Errorf("the first process of a namespace has the number %d there", p.tgid)
		}
		if err := errors.Join(in.Close(), c.Wait()); err != nil {
			t.Error(err)
		}
	}
}
