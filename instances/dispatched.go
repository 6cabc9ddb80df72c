package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/bpfprologue/bpfprologue/internal/kernelerr"
)

// Dispatched is a Dispatch whose programs are loaded.
type Dispatched struct {
	*Dispatch
	Programs []*ebpf.Program // in the order of Specs
	Switch   *ebpf.Map       // the map SwitchName
}

// Load loads the programs, with a switch of their own. The caller must close the result.
//
// The error is that of ebpf.NewProgram, for example an *ebpf.VerifierError.
func (d *Dispatch) Load() (out *Dispatched, err error) {
	out = &Dispatched{Dispatch: d}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Close())
			out = nil
		}
	}()
	if out.Switch, err = ebpf.NewMap(d.SwitchSpec()); err != nil {
		return out, fmt.Errorf("make the switch: %w", kernelerr.Explain(err))
	}
	for i, s := range d.Specs {
		own := s.Copy()
		if err := own.Instructions.AssociateMap(d.SwitchName, out.Switch); err != nil {
			return out, err
		}
		prog, err := ebpf.NewProgram(own)
		if err != nil {
			return out, fmt.Errorf("program %d, for %d instances: %w", i, len(d.Instances[i]), kernelerr.Explain(err))
		}
		out.Programs = append(out.Programs, prog)
	}
	return out, nil
}

// Attach is the function Attach for a plan that is dispatched. The cookies that o.Cookie returns
// have 48 bits at most. All programs must be attached once only at a time.
func (d *Dispatched) Attach(ctx context.Context, r *Running, o AttachOptions) (*Attachment, error) {
	var batches []*batch
	for i, of := range d.Instances {
		x := &batch{prog: d.Programs[i], multi: d.plan.Instances[of[0]].Multi, numbers: make(map[int]uint64), slot: i}
		for n, instance := range of {
			for _, site := range d.plan.Instances[instance].Sites {
				x.sites = append(x.sites, site)
				x.numbers[site] = uint64(n)
			}
		}
		slices.Sort(x.sites)
		batches = append(batches, x)
	}
	power := &power{m: d.Switch, turns: make([]uint64, max(1, len(d.Programs))), off: o.Silent}
	if err := power.set(); err != nil {
		return nil, err
	}
	a, err := attach(ctx, d.plan, batches, r, o)
	if err != nil {
		return nil, err
	}
	a.power = power
	return a, nil
}

// Close frees the programs and the switch. Probes keep what they need.
func (d *Dispatched) Close() error {
	var errs []error
	for _, p := range d.Programs {
		errs = append(errs, p.Close())
	}
	if d.Switch != nil {
		errs = append(errs, d.Switch.Close())
	}
	return errors.Join(errs...)
}

// power is the switch of a Dispatched, and what its values are.
type power struct {
	m     *ebpf.Map
	turns []uint64 // of each program: the value of turnBit in its hits' cookies
	off   bool
}

// set tells the programs.
func (p *power) set() error {
	values := slices.Clone(p.turns)
	for i := range values {
		if p.off {
			values[i] = silent
		}
	}
	if err := p.m.Update(uint32(0), values, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("turn the switch: %w", kernelerr.Explain(err))
	}
	return nil
}
