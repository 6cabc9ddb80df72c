package guality

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// Verdict is how an answer compares with what the developers say.
type Verdict uint8

// The verdicts.
const (
	NoHit    Verdict = iota // the line has no code, or is not reached
	Lost                    // there is no value
	Doubtful                // there is one, and it is not called sure
	Right
	Wrong
)

// Answer is what came of a check.
type Answer struct {
	Check
	Want      string
	Ours, GDB Verdict
	Got       string // what is not right, or why there is no value
}

// Build is a compiler and its options.
type Build struct {
	Compiler string
	Option   string
}

// Run compiles a program into a folder, traces it, and asks GDB. It returns nothing for a program that the compiler does not take.
func Run(ctx context.Context, dir string, b Build, c *Case) ([]Answer, error) {
	path := filepath.Join(dir, "program")
	// All programs include it, from the folder above theirs.
	if err := os.WriteFile(filepath.Join(dir, "nop.h"), []byte("#define NOP \"nop\"\n"), 0o600); err != nil {
		return nil, err
	}
	below := filepath.Join(dir, "below")
	if err := os.MkdirAll(below, 0o700); err != nil {
		return nil, err
	}
	args := append([]string{b.Option, "-w", "-I" + below}, c.Flags...)
	args = append(args, "-g")
	if b.Option != "-O0" {
		args = append(args, "-DPREVENT_OPTIMIZATION")
	}
	args = append(append(args, "-o", path, c.Path), append(c.Sources, "-lm")...)
	if err := exec.CommandContext(ctx, b.Compiler, args...).Run(); err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			return nil, nil
		}
		return nil, err
	}
	gdb, err := debug(ctx, path, c.Checks)
	if err != nil {
		return nil, err
	}
	ours, err := traced(ctx, path, c.Checks)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	var out []Answer
	for i, x := range c.Checks {
		g, reached := gdb[i]
		if !reached || g.want == "" || strings.HasPrefix(x.Value, "&") || strings.HasPrefix(x.Value, `\&`) {
			continue // GDB knows what the expression of the expected value means; addresses are others in each process
		}
		a := Answer{Check: x, Want: g.want, GDB: judged(g.got, g.want, Lost), Ours: ours[i].verdict, Got: ours[i].text}
		if a.Ours == Right {
			a.Ours = judged(ours[i].text, g.want, Lost)
		}
		out = append(out, a)
	}
	return out, nil
}

// judged compares a value with the expected one, modulo the value's width.
func judged(got, want string, none Verdict) Verdict {
	switch got {
	case "":
		return none
	case want:
		return Right
	}
	g, err1 := strconv.ParseUint(got, 10, 64)
	if n, err := strconv.ParseFloat(want, 64); err1 == nil && err == nil && g != 0 && math.Float64frombits(g) == n {
		return Right // the bits of a number that is none of integers
	}
	w, err2 := strconv.ParseUint(want, 10, 64)
	extended := func(v uint64) bool { return v>>32 == 0 || v>>31 == 1<<33-1 }
	if err1 == nil && err2 == nil && uint32(g) == uint32(w) && extended(g) && extended(w) {
		return Right // GDB computes with other widths than the program has
	}
	return Wrong
}

// answer is what tracing gave for a check.
type answer struct {
	verdict Verdict // Right for any value
	text    string
}

// mostEmpty is how many lines after a check's own one may be the first that has code.
const mostEmpty = 3

// planned makes a plan for a check. Where its line has no code, it stops at the next one that has, as GDB does.
func planned(ctx context.Context, img *dwarfloc.Image, c *Check, o plan.Options) (*plan.Plan, error) {
	var first error
	for line := c.Line; line <= c.Line+mostEmpty; line++ {
		def, err := probe.Parse(fmt.Sprintf("%s:%d %s", c.File, line, c.Var))
		if err != nil {
			return nil, err
		}
		p, err := plan.New(ctx, img, def, o)
		if err == nil || !strings.Contains(err.Error(), "no code at line") {
			return p, err
		}
		first = cmp.Or(first, err)
	}
	return nil, first
}

// traced traces a program with one definition for each check.
func traced(ctx context.Context, path string, checks []Check) ([]answer, error) {
	out := make([]answer, len(checks))
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		return nil, err
	}
	defer img.Close()
	running, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		return nil, err
	}
	var plans []*plan.Plan
	index := make(map[*plan.Plan]int)
	for i, c := range checks {
		p, err := planned(ctx, img, &c, plan.Options{Target: running.Target(), Doubt: plan.DoubtKeep})
		if err != nil {
			out[i].text = err.Error()
			continue
		}
		plans = append(plans, p)
		index[p] = i
	}
	if len(plans) == 0 {
		return out, nil
	}
	session, err := tracer.Open(ctx, running, plans, tracer.Options{})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, path)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // some of the programs end with an error
		stop()
		close(done)
	}()
	err = session.Run(ctx, func(h *tracer.Hit) error {
		a := &out[index[h.Plan]]
		if a.verdict != NoHit {
			return nil // the first one counts
		}
		v := &h.Values[0]
		switch {
		case v.Lost:
			a.verdict, a.text = Lost, h.Plan.Sites[h.Site].Args[0].Reason.String()
			if a.text == "" {
				a.text = "not there at the hit"
			}
		case v.Doubt() != reasons.None:
			a.verdict, a.text = Doubtful, v.Doubt().String()
		case len(v.Data) == 8:
			a.verdict, a.text = Right, strconv.FormatUint(binary.NativeEndian.Uint64(v.Data), 10)
		default:
			a.verdict, a.text = Lost, "no number"
		}
		return nil
	})
	<-done
	return out, err
}
