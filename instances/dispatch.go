package instances

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/choice"
	"github.com/bpfprologue/bpfprologue/internal/references"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Dispatch is a plan in few programs, instead of one for each instance: a program has the
// prologues of many instances, chooses one by the attach cookie of the probe that fired, and
// calls the user's program. One link then attaches all sites of a file, and the verifier looks at
// the user's program once. It needs attach cookies, which Linux has from 5.15 on.
//
// The user's program gets its arguments as in an instance. It becomes a function that is called,
// so that it has a stack frame of its own also with prologue.ConventionRegisters.
//
// The lowest 32 bits of bpf_get_attach_cookie are the site's index in Plan.Sites, or the lowest 48
// what AttachOptions.Cookie returned; bit 63 is set where a hit may be another turn of a run's loop.
type Dispatch struct {
	// Specs are the programs. They refer to a map: it must be in their collection, or associated
	// with their instructions. Load does that.
	Specs []*ebpf.ProgramSpec
	// Instances are the indices in Plan.Instances of those that each program has.
	Instances [][]int
	// Maps are the maps that the programs refer to, by name: they must be in their collection, or
	// associated with their instructions. Load does that.
	//
	// One is the switch, where programs look first: it makes probes silent at once. With plan.Options.CountMissing there is a counter of
	// conditions that could not be computed, and with plan.Plan.RecordBytes there is room for records.
	Maps map[string]*ebpf.MapSpec

	plan   *plan.Plan
	places []position // in each of Specs
	slots  *int       // of all plans whose programs these are

	switchName, counterName, recordsName string // in Maps; "" for one that is not needed
}

// position is where a program has the prologues of a plan.
type position struct {
	first uint64 // the number of the first of them
	slot  int    // in the switch
}

// mapSpec returns a map with one value of so many bytes.
func mapSpec(name string, size int) *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: name, Type: ebpf.Array, KeySize: 4, ValueSize: uint32(size), MaxEntries: 1}
}

// makeMaps makes Maps. The switch and the counter have 8 bytes for each program and each plan that has
// prologues in it, and are those of all plans.
func (d *Dispatch) makeMaps() {
	slots := 8 * max(1, *d.slots)
	d.Maps = map[string]*ebpf.MapSpec{d.switchName: mapSpec("probe_switch", slots)}
	if d.counterName != "" {
		d.Maps[d.counterName] = mapSpec("probe_missing", references.CounterSize*max(1, *d.slots))
	}
	if d.recordsName != "" {
		d.Maps[d.recordsName] = mapSpec("probe_records", references.RecordMapSize(d.plan.RecordBytes))
	}
}

// silent is what the switch says to a program that is to do nothing, and 0 to others.
const silent = 1

// ErrNotDispatched is wrapped by NewDispatch's error for a program that cannot be called as a
// function. ProgramSpecs takes it.
var ErrNotDispatched = errors.New("the program cannot be dispatched to")

// NewDispatch returns programs for all instances of a plan. spec returns the user's program for an
// instance, which is not changed: instances with the same one, by its address, share a program.
//
// The error wraps ErrNotDispatched if a user's program makes tail calls, and otherwise is one of
// ProgramSpecs. A *prologue.StackError can be for a program that ProgramSpecs takes.
func NewDispatch(p *plan.Plan, spec func(instance int) *ebpf.ProgramSpec) (*Dispatch, error) {
	all, err := NewDispatches([]*plan.Plan{p}, func(_, instance int) *ebpf.ProgramSpec { return spec(instance) })
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// NewDispatches is NewDispatch for several plans: instances of different ones with the same user's
// program share a program too. So Specs of different plans can be the same, and are loaded once by
// LoadDispatches. Each plan is attached, and made silent, by itself. The error names the plan if
// there are several.
func NewDispatches(plans []*plan.Plan, spec func(plan, instance int) *ebpf.ProgramSpec) ([]*Dispatch, error) {
	var parts []*part
	open := make(map[partKind]*part) // the last ones of each kind
	name := ""
	for n, p := range plans {
		if name == "" && len(p.Instances) > 0 {
			name = spec(n, 0).Name
		}
		if err := split(p, n, spec, func(kind partKind, size int) *part {
			x := open[kind]
			if x == nil || x.size+size > choice.MaxSize || len(x.prologues) == choice.MaxPrologues {
				x = &part{partKind: kind}
				open[kind], parts = x, append(parts, x)
			}
			return x
		}); err != nil {
			if len(plans) > 1 {
				err = fmt.Errorf("%v: %w", p.Definition, err)
			}
			return nil, err
		}
	}
	slots := new(int)
	out := make([]*Dispatch, len(plans))
	for n, p := range plans {
		out[n] = &Dispatch{switchName: "switch_" + name, plan: p, slots: slots}
	}
	for i, x := range parts {
		first := *slots
		*slots += len(x.groups)
		counts := x.count("missing_"+name, first)
		for k := range x.groups {
			g := &x.groups[k]
			d := out[g.plan]
			if counts {
				d.counterName = "missing_" + name
			}
			if x.outside {
				d.recordsName = fmt.Sprintf("records_%s_%d", name, g.plan)
				x.rename(g, references.RecordMap, d.recordsName)
			}
		}
		before := choose(x, "switch_"+name, first)
		insns := enter(i, before, x.user.Instructions, "_dispatch_", "its arguments", x.outside)
		if err := numberLines(insns[:len(before)+2]); err != nil {
			return nil, err
		}
		spec := programSpec(x.user, x.attach, x.reads, i, insns)
		for k, g := range x.groups {
			d := out[g.plan]
			d.Specs, d.Instances = append(d.Specs, spec), append(d.Instances, g.instances)
			d.places = append(d.places, position{uint64(g.first), first + k})
		}
	}
	for _, d := range out {
		d.makeMaps()
	}
	return out, nil
}

// split puts the prologues of a plan into parts, which find returns for a kind of program and the
// number of instructions that it gets more.
func split(p *plan.Plan, number int, spec func(plan, instance int) *ebpf.ProgramSpec, find func(partKind, int) *part) error {
	stacks := make(map[*ebpf.ProgramSpec]int)
	for i := range p.Instances {
		in, user := &p.Instances[i], spec(number, i)
		stack, known := stacks[user]
		if !known {
			if err := callable(p, user); err != nil {
				return err
			}
			stack = stackOf(user.Instructions)
			stacks[user] = stack
		}
		if err := in.Prologue.CheckStack(stack); err != nil {
			return fmt.Errorf("instance %d: %w", i, err)
		}
		pro, err := placed(p, in.Prologue)
		if err != nil {
			return fmt.Errorf("instance %d: %w", i, err)
		}
		n := choice.Size(pro) + 2 // with a compare and a jump
		x := find(partKind{user, attachType(p, in), p.Target.Reads, in.Prologue.Outside}, n)
		if k := len(x.groups); k == 0 || x.groups[k-1].plan != number {
			x.groups = append(x.groups, group{plan: number, first: len(x.prologues)})
			x.size += groupSize
		}
		g := &x.groups[len(x.groups)-1]
		g.instances = append(g.instances, i)
		x.prologues, x.size = append(x.prologues, pro), x.size+n
	}
	return nil
}

// part is one program of one or more Dispatches, while it is made.
type part struct {
	partKind
	groups    []group
	prologues []asm.Instructions
	size      int // of the prologues, in instructions of 8 bytes
}

// count makes the prologues count in a map, each at the slot of its plan. It reports whether any
// does.
func (x *part) count(name string, slot int) (counts bool) {
	for k, g := range x.groups {
		for _, pro := range x.prologues[g.first:][:len(g.instances)] {
			for i := range pro {
				if pro[i].Reference() == references.MissingCounter {
					pro[i] = asm.LoadMapValue(pro[i].Dst, 0, uint32(references.CounterSize*(slot+k))+uint32(pro[i].Constant>>32)).WithMetadata(pro[i].Metadata).WithReference(name)
					counts = true
				}
			}
		}
	}
	return counts
}

// rename gives references of a group's prologues another name.
func (x *part) rename(g *group, from, to string) {
	for _, pro := range x.prologues[g.first:][:len(g.instances)] {
		for i := range pro {
			if pro[i].Reference() == from {
				pro[i] = pro[i].WithReference(to)
			}
		}
	}
}

// group is the prologues of one plan in a program.
type group struct {
	plan      int
	first     int   // of the part's prologues
	instances []int // in Plan.Instances
}

// groupSize is how many instructions of 8 bytes a group adds.
const groupSize = 8

// partKind is what all instances of a program have in common: it is loaded for one kind of link.
type partKind struct {
	user   *ebpf.ProgramSpec
	attach ebpf.AttachType
	reads  prologue.Reads

	outside bool // records are in a map
}

// callable reports whether a user's program can be called as a function.
func callable(p *plan.Plan, spec *ebpf.ProgramSpec) error {
	if err := checkType(spec); err != nil {
		return err
	}
	if err := checkHandler(p, spec.Instructions); err != nil {
		return err
	}
	for i := range spec.Instructions {
		if ins := &spec.Instructions[i]; ins.IsBuiltinCall() && ins.Constant == int64(asm.FnTailCall) {
			return fmt.Errorf("%w: %s makes tail calls", ErrNotDispatched, spec.Name)
		}
	}
	return nil
}

// choose returns instructions that run one of a part's prologues, by the number in the cookie, and
// end after them. If the switch says so at the slot of the plan, they return instead.
func choose(x *part, switchName string, slot int) asm.Instructions {
	groups := make([]choice.Group, len(x.groups))
	for k := range groups {
		g := &x.groups[k]
		groups[k] = choice.Group{Prologues: x.prologues[g.first:][:len(g.instances)], Before: asm.Instructions{
			asm.LoadMapValue(asm.R2, 0, uint32(8*(slot+k))).WithReference(switchName),
			asm.LoadMem(asm.R2, asm.R2, 0, asm.DWord),
			choice.Jump(asm.JEq.Imm(asm.R2, 0, ""), 2),
			asm.Mov.Imm(asm.R0, 0),
			asm.Return(),
		}}
	}
	return choice.Instructions(groups)
}
