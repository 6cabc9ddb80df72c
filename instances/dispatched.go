package instances

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/kernelerr"
	"github.com/bpfprologue/bpfprologue/internal/references"
)

// Dispatched is a Dispatch whose programs are loaded.
type Dispatched struct {
	*Dispatch
	Programs []*ebpf.Program // in the order of Specs
	Maps     map[string]*ebpf.Map

	turns *turns
}

// Load loads the programs, with maps of their own. The caller must close the result.
//
// The error is that of ebpf.NewProgram, for example an *ebpf.VerifierError.
func (d *Dispatch) Load() (*Dispatched, error) {
	all, err := LoadDispatches([]*Dispatch{d})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// LoadDispatches is Load for all plans of NewDispatches: programs that they share are loaded once,
// with the same maps. The caller must close each result; a program is freed with the last one that has it.
func LoadDispatches(list []*Dispatch) (out []*Dispatched, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	defer func() {
		if err != nil {
			for _, d := range out {
				err = errors.Join(err, d.Close())
			}
			out = nil
		}
	}()
	maps := make(map[string]*ebpf.Map) // of all plans
	defer func() {
		for _, m := range maps {
			err = errors.Join(err, m.Close())
		}
	}()
	for _, d := range list {
		for name, spec := range d.Maps {
			if maps[name] != nil {
				continue
			}
			m, err := ebpf.NewMap(spec)
			if err != nil {
				return out, fmt.Errorf("make the map %s: %w", spec.Name, kernelerr.Explain(err))
			}
			maps[name] = m
		}
	}
	loaded := make(map[*ebpf.ProgramSpec]*ebpf.Program)
	defer func() {
		for _, prog := range loaded {
			err = errors.Join(err, prog.Close())
		}
	}()
	turns := newTurns(*list[0].slots)
	for _, d := range list {
		own := &Dispatched{Dispatch: d, Maps: make(map[string]*ebpf.Map), turns: turns}
		out = append(out, own)
		for name := range d.Maps {
			if own.Maps[name], err = maps[name].Clone(); err != nil {
				return out, fmt.Errorf("share the map %s: %w", name, err)
			}
		}
		for i, s := range d.Specs {
			if loaded[s] == nil {
				if loaded[s], err = load(s, maps); err != nil {
					return out, fmt.Errorf("program %d, for %d instances: %w", i, len(d.Instances[i]), kernelerr.Explain(err))
				}
			}
			prog, err := loaded[s].Clone()
			if err != nil {
				return out, fmt.Errorf("share program %d: %w", i, err)
			}
			own.Programs = append(own.Programs, prog)
		}
	}
	return out, nil
}

// load loads one program.
func load(s *ebpf.ProgramSpec, maps map[string]*ebpf.Map) (*ebpf.Program, error) {
	own := s.Copy()
	for name, m := range maps {
		// Not all programs refer to all maps.
		if err := own.Instructions.AssociateMap(name, m); err != nil && !errors.Is(err, asm.ErrUnreferencedSymbol) {
			return nil, err
		}
	}
	return ebpf.NewProgram(own)
}

// Attach is the function Attach for a plan that is dispatched. The cookies that o.Cookie returns
// have 48 bits at most. All programs must be attached once only at a time.
func (d *Dispatched) Attach(ctx context.Context, r *Running, o AttachOptions) (*Attachment, error) {
	var batches []*batch
	for i, of := range d.Instances {
		x := &batch{prog: d.Programs[i], multi: d.plan.Instances[of[0]].Multi, numbers: make(map[int]uint64)}
		for n, instance := range of {
			for _, site := range d.plan.Instances[instance].Sites {
				x.sites = append(x.sites, site)
				x.numbers[site] = d.places[i].first + uint64(n)
			}
		}
		slices.Sort(x.sites)
		batches = append(batches, x)
	}
	power := &power{m: d.Maps[d.switchName], turns: d.turns, off: o.Silent}
	for _, x := range d.places {
		power.slots = append(power.slots, x.slot)
	}
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

// Unseen returns how many hits the programs did not see: crowded because all records were in use, if plan.Plan.RecordBytes is set,
// and, if plan.Options.CountMissing is set, missing because a condition could not be computed, and excluded because it was false: a thousand
// or some more are all that are counted of these.
func (d *Dispatched) Unseen() (crowded, missing, excluded uint64, err error) {
	missing, excluded, conditionsErr := d.conditions()
	crowded, err = d.crowded()
	return crowded, missing, excluded, errors.Join(err, conditionsErr)
}

// conditions returns how often conditions could not be computed, and how often they were false.
func (d *Dispatched) conditions() (missing, excluded uint64, err error) {
	counter := d.Maps[d.counterName]
	if counter == nil {
		return 0, 0, nil
	}
	const words = references.CounterSize / 8
	values := make([]uint64, words*max(1, *d.slots))
	if err := counter.Lookup(uint32(0), &values); err != nil {
		return 0, 0, fmt.Errorf("read the counter of conditions: %w", kernelerr.Explain(err))
	}
	for _, x := range d.places {
		missing += values[words*x.slot]
		excluded += values[words*x.slot+references.FalseCounter/8]
	}
	return missing, excluded, nil
}

func (d *Dispatched) crowded() (n uint64, err error) {
	records := d.Maps[d.recordsName]
	if records == nil {
		return 0, nil
	}
	value := make([]byte, records.ValueSize())
	if err := records.Lookup(uint32(0), &value); err != nil {
		return 0, fmt.Errorf("read the records: %w", kernelerr.Explain(err))
	}
	return binary.NativeEndian.Uint64(value), nil
}

// Close frees the programs and the maps. Probes keep what they need.
func (d *Dispatched) Close() error {
	var errs []error
	for _, p := range d.Programs {
		errs = append(errs, p.Close())
	}
	for _, m := range d.Maps {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// turns is what a switch says at each of its slots: 0, or silent.
type turns struct {
	mu     sync.Mutex
	values []uint64 // as the kernel has them
}

func newTurns(slots int) *turns { return &turns{values: make([]uint64, max(1, slots))} }

// power is the slots of one plan in a switch.
type power struct {
	m     *ebpf.Map
	turns *turns
	slots []int
	off   bool
}

// set tells the programs.
func (p *power) set() error {
	p.turns.mu.Lock()
	defer p.turns.mu.Unlock()
	values := slices.Clone(p.turns.values)
	for _, slot := range p.slots {
		values[slot] = 0
		if p.off {
			values[slot] = silent
		}
	}
	if err := p.m.Update(uint32(0), values, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("turn the switch: %w", kernelerr.Explain(err))
	}
	p.turns.values = values
	return nil
}
