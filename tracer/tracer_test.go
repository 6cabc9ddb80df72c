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
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// program is the fixture that runs.
func program(t *testing.T) (path string, img *dwarfloc.Image) {
	t.Helper()
	return testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
}

func plans(t *testing.T, img *dwarfloc.Image, texts ...string) []*plan.Plan {
	t.Helper()
	var out []*plan.Plan
	for _, text := range texts {
		out = append(out, plantest.New(t, img, text, plan.Options{}))
	}
	return out
}

func plansOf(img *dwarfloc.Image, o plan.Options, texts ...string) ([]*plan.Plan, error) {
	var out []*plan.Plan
	for _, text := range texts {
		def, err := probe.Parse(text)
		if err != nil {
			return nil, err
		}
		p, err := plan.New(context.Background(), img, def, o)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// run runs a command under some plans, and calls f for each hit with the command's
// process. No hit may be lost.
func run(t *testing.T, p []*plan.Plan, stdin string, command []string, f func(pid int, h *tracer.Hit)) {
	t.Helper()
	s, err := tracer.Open(context.Background(), inFile(t, p[0].Image), p, tracer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	hits(t, s, stdin, command, f)
}

// hits is run in a session.
func hits(t *testing.T, s *tracer.Session, stdin string, command []string, f func(pid int, h *tracer.Hit)) {
	t.Helper()
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
	err := s.Run(ctx, func(h *tracer.Hit) error {
		f(cmd.Process.Pid, h)
		return nil
	})
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	if not, err := s.Unreported(); not.Lost != 0 || err != nil {
		t.Errorf("%d lost, %v", not.Lost, err)
	}
}

func inFile(t *testing.T, img *dwarfloc.Image) *instances.Running {
	t.Helper()
	r, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTrace: the hits of a program that passes known values, in both conventions, with
// many probes at once and with single ones.
func TestTrace(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := program(t)
	if !inFile(t, img).Target().UprobeMulti {
		testenv.Missing(t, "this kernel has no uprobe.multi (Linux 6.10)")
	}
	for _, o := range []plan.Options{
		{Target: plan.Target{UprobeMulti: true}},
		{Target: plan.Target{}},
		{Target: plan.Target{UprobeMulti: true}, Convention: prologue.ConventionRecord},
		{Target: plan.Target{}, Convention: prologue.ConventionRecord},
	} {
		traceWith(t, path, img, o)
	}
}

func traceWith(t *testing.T, path string, img *dwarfloc.Image, o plan.Options) {
	t.Helper()
	p, err := plansOf(img, o, "mix key k p->port", "walk n->name:string n->next->inp->s i", "label%return $retval:string", "nothing")
	if err != nil {
		t.Fatal(err)
	}
	if want := o.Convention == prologue.ConventionRecord; (p[0].Convention == prologue.ConventionRecord) != want {
		t.Errorf("%+v: the convention is %v", o, p[0].Convention)
	}
	if p[0].Instances[0].Multi != o.Target.UprobeMulti {
		t.Errorf("%+v: an instance with Multi %v", o, p[0].Instances[0].Multi)
	}
	var got []string
	run(t, p, "x", []string{path}, func(pid int, h *tracer.Hit) {
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
		"label at label+0x10 retval=\"yes\"", // the probe is at the return instruction
		"mix inlined in first key=41 k=7 port=8001",
		"mix inlined in second key=80 k=49 port=8002",
		"nothing",
		"walk name=\"root-node\" s=? i=2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%+v: hits (-want +got):\n%s", o, diff)
	}
}

// TestOpenErrors: what cannot be traced says why, and nothing stays attached.
func TestOpenErrors(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := program(t)
	kernel := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	other, _ := testenv.Program(t, "run-clang14-O2-dwarf5.exe")
	for _, tt := range []struct {
		what string
		err  func() error
		want string
	}{
		{"another kernel", func() error { _, err := instances.Find(kernel, instances.FindOptions{}); return err }, instances.ErrImageMismatch.Error() + ": the running kernel has build ID "},
		{"another file", func() error { _, err := instances.Find(img, instances.FindOptions{Path: other}); return err }, instances.ErrImageMismatch.Error() + ": " + other + " has build ID "},
		{"no file", func() error { _, err := instances.Find(img, instances.FindOptions{Path: path + ".none"}); return err }, "open " + path + ".none: "},
		{"nowhere", func() error {
			s, err := tracer.Open(context.Background(), nil, plans(t, img, "mix key"), tracer.Options{})
			if s != nil {
				t.Error("there is a session")
			}
			return err
		}, "mix key: " + instances.ErrTargetMismatch.Error()},
	} {
		if err := tt.err(); !strings.HasPrefix(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: %v, want %s...", tt.what, err, tt.want)
		}
	}
	// What was refused in one place, force allows; and then nothing is where it was.
	if _, err := instances.Find(img, instances.FindOptions{Path: other, Force: true}); err != nil {
		t.Error(err)
	}
}
