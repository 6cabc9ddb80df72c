package tracer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/kernelerr"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// A return probe in a program does not see all returns: the kernel keeps 64 return addresses of a task at most
// (MAX_URETPROBE_DEPTH in include/linux/uprobes.h), and leaves the calls that are nested deeper as they are, without a word to
// whoever probes. So two more programs count the calls, and the returns.

// calls counts calls and returns of functions with return probes.
type calls struct {
	counts   *ebpf.Map
	programs []*instances.Dispatched
	attached []*instances.Attachment
}

// The layout of calls.counts.
const (
	countReturned = 0
	countCalled   = 8
	callsSize     = 16
)

// manyCalls is how many probes are made only to count, where each has a link of its own.
const manyCalls = 64

// callPlans returns plans with the sites of return probes of a plan: first for the returns, then for the calls. There are none if
// it has no such sites in a program, or too many.
func callPlans(p *plan.Plan) ([]*plan.Plan, error) {
	if !p.Target.UserSpace() {
		return nil, nil
	}
	byLink := make(map[bool][]int) // sites, by Instance.Multi
	for i := range p.Sites {
		if s := &p.Sites[i]; s.Return && s.Instance >= 0 {
			multi := p.Instances[s.Instance].Multi
			byLink[multi] = append(byLink[multi], i)
		}
	}
	if len(byLink) == 0 || len(byLink[false]) > manyCalls {
		return nil, nil
	}
	pro, err := prologue.Emit(nil, prologue.Options{Arch: p.Image.Arch(), Convention: prologue.ConventionRegisters})
	if err != nil {
		return nil, err
	}
	var out []*plan.Plan
	for _, returns := range []bool{true, false} {
		q := &plan.Plan{Definition: p.Definition, Image: p.Image, Target: p.Target, Convention: prologue.ConventionRegisters}
		for _, multi := range []bool{true, false} {
			if len(byLink[multi]) == 0 {
				continue
			}
			in := plan.Instance{Number: len(q.Instances), Prologue: pro, Multi: multi}
			for _, i := range byLink[multi] {
				in.Sites = append(in.Sites, len(q.Sites))
				q.Sites = append(q.Sites, plan.Site{Site: p.Sites[i].Site, Return: returns, Instance: in.Number})
			}
			q.Instances = append(q.Instances, in)
		}
		out = append(out, q)
	}
	return out, nil
}

// countCalls attaches what counts calls and returns of a session's plans. A call is counted only while its return is too: what
// counts returns is there first.
func (s *Session) countCalls(ctx context.Context, r *instances.Running, o *Options, who processes) error {
	var plans []*plan.Plan
	for _, p := range s.plans {
		of, err := callPlans(p)
		if err != nil {
			return fmt.Errorf("%v: %w", p.Definition, err)
		}
		plans = append(plans, of...)
	}
	if len(plans) == 0 {
		return nil
	}
	slices.SortStableFunc(plans, func(a, b *plan.Plan) int {
		switch returns := a.Sites[0].Return; {
		case returns == b.Sites[0].Return:
			return 0
		case returns:
			return -1
		}
		return 1
	})
	c := &s.calls
	var err error
	if c.counts, err = ebpf.NewMap(&ebpf.MapSpec{Name: "calls", Type: ebpf.Array, KeySize: 4, ValueSize: callsSize, MaxEntries: 1}); err != nil {
		return fmt.Errorf("make the counter of calls: %w", kernelerr.Explain(err))
	}
	who.limits = &limits{}
	specs := make(map[bool]*ebpf.ProgramSpec)
	for returns, at := range map[bool]uint32{true: countReturned, false: countCalled} {
		insns := append(who.filter(0, labelExit),
			asm.LoadMapValue(asm.R1, c.counts.FD(), at),
			asm.Mov.Imm(asm.R2, 1),
			asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(labelExit),
			asm.Return(),
		)
		specs[returns] = &ebpf.ProgramSpec{Name: "calls", License: "GPL", Instructions: insns}
	}
	all, err := instances.NewDispatches(plans, func(n, _ int) *ebpf.ProgramSpec { return specs[plans[n].Sites[0].Return] })
	if err != nil {
		return err
	}
	if c.programs, err = instances.LoadDispatches(all); err != nil {
		return err
	}
	for i, d := range c.programs {
		a, err := d.Attach(ctx, r, instances.AttachOptions{PID: o.PID, None: true})
		if err != nil {
			return fmt.Errorf("%v: %w", plans[i].Definition, err)
		}
		c.attached = append(c.attached, a)
	}
	return nil
}

// silence makes the probes do nothing, at once, or work again: first those that count calls.
func (c *calls) silence(on bool) error {
	var errs []error
	for _, a := range slices.Backward(c.attached) {
		errs = append(errs, a.Silence(on))
	}
	return errors.Join(errs...)
}

// open returns how many calls have no return that was seen.
func (c *calls) open() (uint64, error) {
	if c.counts == nil {
		return 0, nil
	}
	d := make([]byte, callsSize)
	if err := c.counts.Lookup(uint32(0), &d); err != nil {
		return 0, err
	}
	returned, called := binary.NativeEndian.Uint64(d[countReturned:]), binary.NativeEndian.Uint64(d[countCalled:])
	return called - min(called, returned), nil
}

func (c *calls) close() error {
	var errs []error
	for _, a := range slices.Backward(c.attached) {
		errs = append(errs, a.Close())
	}
	for _, p := range c.programs {
		errs = append(errs, p.Close())
	}
	if c.counts != nil {
		errs = append(errs, c.counts.Close())
	}
	return errors.Join(errs...)
}
