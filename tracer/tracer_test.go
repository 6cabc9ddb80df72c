package tracer_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// program is the fixture that runs.
func program(t *testing.T) (path string, img *dwarfloc.Image) {
	t.Helper()
	return testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
}

func plans(t *testing.T, img *dwarfloc.Image, texts ...string) []*instances.Plan {
	t.Helper()
	out, err := plansOf(img, texts...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func plansOf(img *dwarfloc.Image, texts ...string) ([]*instances.Plan, error) {
	var out []*instances.Plan
	for _, text := range texts {
		def, err := probe.Parse(text)
		if err != nil {
			return nil, err
		}
		p, err := instances.NewPlan(context.Background(), img, def, instances.Options{Convention: instances.Record, Reads: prologue.ReadUser})
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// run runs a command under some plans, and calls f for each hit with the command's
// process. No hit may be lost.
func run(t *testing.T, p []*instances.Plan, stdin string, command []string, f func(pid int, h *tracer.Hit)) {
	t.Helper()
	s, err := tracer.Open(context.Background(), p, tracer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- cmd.Wait()
		stop()
	}()
	err = s.Run(ctx, func(h *tracer.Hit) error {
		f(cmd.Process.Pid, h)
		return nil
	})
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	if lost, err := s.Lost(); lost != 0 || err != nil {
		t.Errorf("%d lost, %v", lost, err)
	}
}

// TestTrace: the hits of a program that passes known values.
func TestTrace(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := program(t)
	var got []string
	run(t, plans(t, img, "mix key k p->port", "walk n->name:string n->next->inp->s i", "label%return $retval:string", "nothing"), "x", []string{path},
		func(pid int, h *tracer.Hit) {
			line := h.Plan.Sites[h.Site].String()
			for i := range h.Values {
				line += " " + h.Values[i].Name + "=" + h.Values[i].String()
			}
			if h.PID != pid || h.TID != h.PID || !strings.HasPrefix(h.Comm, "run-gcc12") || h.Time <= 0 {
				t.Errorf("%s: task %d/%d %q at %v", line, h.PID, h.TID, h.Comm, h.Time)
			}
			got = append(got, line)
		})
	// The probe of a result is delivered on return, the others in the order of calls.
	slices.Sort(got)
	want := []string{
		"label retval=\"yes\"",
		"mix inlined in first key=41 k=7 port=8001",
		"mix inlined in second key=80 k=49 port=8002",
		"nothing",
		"walk name=\"root-node\" s=? i=2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
}

// TestOpenErrors: what cannot be traced says why, and nothing stays attached.
func TestOpenErrors(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := program(t)
	registers := plans(t, img, "mix key")
	registers[0].Convention = prologue.Registers
	for _, tt := range []struct {
		what  string
		plans []*instances.Plan
		o     tracer.Options
		want  string
	}{
		{"the other convention", registers, tracer.Options{}, "mix key: " + tracer.ErrConvention.Error()},
		{"another kernel", plans(t, img, "mix key"), tracer.Options{Kernel: true}, "mix key: " + instances.ErrOtherImage.Error()},
		{"another file", plans(t, img, "mix key"), tracer.Options{Exec: "/proc/self/exe"}, "mix key: " + instances.ErrOtherImage.Error()},
		{"no file", plans(t, img, "mix key"), tracer.Options{Exec: path + ".none"}, "mix key: " + path + ".none"},
	} {
		s, err := tracer.Open(context.Background(), tt.plans, tt.o)
		if err == nil || s != nil || !strings.HasPrefix(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: %v, want %s...", tt.what, err, tt.want)
		}
	}
}
