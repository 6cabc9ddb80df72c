package tracer

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/containers"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// group makes a control group with one in it, and returns the inner one. The hierarchy of version 2 is mounted if it is not.
func group(t *testing.T) (outer, inner string) {
	t.Helper()
	host, err := containers.This()
	if err != nil {
		host.Groups = t.TempDir()
		if err := unix.Mount("none", host.Groups, "cgroup2", 0, ""); err != nil {
			testenv.Missing(t, "control groups of version 2: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(host.Groups, unix.MNT_DETACH) })
	}
	outer = filepath.Join(host.Groups, "bpfprologue-test-"+strconv.Itoa(os.Getpid()))
	inner = filepath.Join(outer, "inner")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		testenv.Missing(t, "a control group: %v", err)
	}
	t.Cleanup(func() {
		_ = os.Remove(inner)
		_ = os.Remove(outer)
	})
	return outer, inner
}

// TestWho: hits are reported of several processes, of those in control groups and below, and of those that are both.
func TestWho(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	outer, inner := group(t)
	path, img := testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
	for _, sleep := range []bool{false, true} {
		r, err := instances.Find(img, instances.FindOptions{Sleep: sleep})
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			name string
			o    func(pids [2]int) Options
			want [2]int
		}{
			{"two processes", func(p [2]int) Options { return Options{PID: p[0], PIDs: p[1:]} }, [2]int{2, 2}},
			{"one of two", func(p [2]int) Options { return Options{PIDs: []int{p[1], os.Getpid()}} }, [2]int{0, 2}},
			{"a group", func([2]int) Options { return Options{Groups: []string{inner}} }, [2]int{0, 2}},
			{"a group below", func([2]int) Options { return Options{Groups: []string{outer}} }, [2]int{0, 2}},
			{"the root", func([2]int) Options { return Options{Groups: []string{inner, filepath.Dir(outer)}} }, [2]int{2, 2}},
			{"a process that is in no group", func(p [2]int) Options { return Options{PID: p[0], Groups: []string{outer}} }, [2]int{}},
		} {
			pids, finish := runTwo(t, path, false)
			if err := os.WriteFile(filepath.Join(inner, "cgroup.procs"), []byte(strconv.Itoa(pids[1])), 0o600); err != nil {
				testenv.Missing(t, "moving a process into a control group: %v", err)
			}
			p := plantest.New(t, img, "mix key", plan.Options{Target: r.Target()})
			s, err := Open(t.Context(), r, []*plan.Plan{p}, tt.o(pids))
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			go func() {
				defer stop()
				finish()
			}()
			hits, want := make(map[int]int), make(map[int]int)
			for i, n := range tt.want {
				if n > 0 {
					want[pids[i]] = n
				}
			}
			err = s.Run(ctx, func(h *Hit) error {
				hits[h.PID]++
				return nil
			})
			if err := errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(hits, want) {
				t.Errorf("%s, sleeping %v: hits by process %v, want %v", tt.name, sleep, hits, want)
			}
		}
	}
	for dir, want := range map[string]string{
		t.TempDir():                          "no directory of control groups of version 2",
		filepath.Join(outer, "none"):         "no such file",
		filepath.Join(outer, "cgroup.procs"): "it is no directory",
	} {
		if _, err := findGroups([]string{dir}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
