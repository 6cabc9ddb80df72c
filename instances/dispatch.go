package instances

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/plan"
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
// what AttachOptions.Cookie returned; bit 63 is CookieAgain.
type Dispatch struct {
	// Specs are the programs. They refer to a map: it must be in their collection, or associated
	// with their instructions. Load does that.
	Specs []*ebpf.ProgramSpec
	// Instances are the indices in Plan.Instances of those that each program has.
	Instances [][]int
	// SwitchName is the name by which the programs refer to the map of SwitchSpec. They look there
	// first: it makes probes silent at once, and lets a link replace another without hits seen twice.
	SwitchName string

	plan *plan.Plan
}

// SwitchSpec returns the map SwitchName. Its one value has 8 bytes for each program.
func (d *Dispatch) SwitchSpec() *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: "probe_switch", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(8 * max(1, len(d.Specs))), MaxEntries: 1}
}

// The cookie of a site that is dispatched: who attaches gives the lowest 48 bits.
const (
	cookieBits  = 48
	numberBits  = 14 // of the prologue in its program
	turnBit     = cookieBits + numberBits
	maxPrologue = 1 << numberBits
)

// A program runs for hits whose cookies have the switch's value for it at turnBit: 0 or 1. For
// others it returns.
const silent = 2

// maxDispatch is how many instructions, of 8 bytes, programs have before the call of the user's at
// most: jumps reach 32,767 (Documentation/bpf/standardization/instruction-set.rst).
const maxDispatch = 32000

// ErrNotDispatched is wrapped by NewDispatch's error for a program that cannot be called as a
// function. ProgramSpecs takes it.
var ErrNotDispatched = errors.New("the program cannot be dispatched to")

// NewDispatch returns programs for all instances of a plan. spec returns the user's program for an
// instance, which is not changed: instances with the same one, by its address, share a program.
//
// The error wraps ErrNotDispatched if a user's program makes tail calls, and otherwise is one of
// ProgramSpecs. A *prologue.StackError can be for a program that ProgramSpecs takes.
func NewDispatch(p *plan.Plan, spec func(instance int) *ebpf.ProgramSpec) (*Dispatch, error) {
	d := &Dispatch{plan: p}
	var parts []*part
	open := make(map[partKind]*part) // the last ones of each kind
	stacks := make(map[*ebpf.ProgramSpec]int)
	for i := range p.Instances {
		in, user := &p.Instances[i], spec(i)
		if d.SwitchName == "" {
			d.SwitchName = "switch_" + user.Name
		}
		stack, known := stacks[user]
		if !known {
			if err := callable(p, user); err != nil {
				return nil, err
			}
			stack = stackOf(user.Instructions)
			stacks[user] = stack
		}
		if err := in.Prologue.CheckStack(stack); err != nil {
			return nil, fmt.Errorf("instance %d: %w", i, err)
		}
		pro, err := placed(p, in.Prologue)
		if err != nil {
			return nil, fmt.Errorf("instance %d: %w", i, err)
		}
		n := rawSize(pro) + 2 // with a compare and a jump
		kind := partKind{user, in.Multi}
		x := open[kind]
		if x == nil || x.size+n > maxDispatch || len(x.prologues) == maxPrologue {
			x = &part{partKind: kind}
			open[kind], parts = x, append(parts, x)
		}
		x.instances, x.prologues, x.size = append(x.instances, i), append(x.prologues, pro), x.size+n
	}
	for i, x := range parts {
		before := choose(x.prologues, d.SwitchName, i)
		insns := enter(i, before, x.user.Instructions, "_dispatch_", "its arguments")
		if err := numberLines(insns[:len(before)+2]); err != nil {
			return nil, err
		}
		d.Specs = append(d.Specs, programSpec(p, &p.Instances[x.instances[0]], x.user, i, insns))
		d.Instances = append(d.Instances, x.instances)
	}
	return d, nil
}

// part is one program of a Dispatch, while it is made.
type part struct {
	partKind
	instances []int // in Plan.Instances
	prologues []asm.Instructions
	size      int // of the prologues, in instructions of 8 bytes
}

// partKind is what all instances of a program have in common: it is loaded for one kind of link.
type partKind struct {
	user  *ebpf.ProgramSpec
	multi bool
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

// rawSize returns how many instructions of 8 bytes there are.
func rawSize(insns asm.Instructions) int {
	n := 0
	for i := range insns {
		n += int(insns[i].Size() / asm.InstructionSize)
	}
	return n
}

// choose returns instructions that run one of the prologues, by the number in the cookie, and end
// after them. If the switch says so, they return instead.
func choose(prologues []asm.Instructions, switchName string, slot int) asm.Instructions {
	head := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1).WithSource(asm.Comment("choose a prologue by the attach cookie")),
		asm.FnGetAttachCookie.Call(),
		asm.LoadMapValue(asm.R2, 0, uint32(8*slot)).WithReference(switchName),
		asm.LoadMem(asm.R2, asm.R2, 0, asm.DWord),
		asm.Mov.Reg(asm.R3, asm.R0),
		asm.RSh.Imm(asm.R3, turnBit),
		asm.And.Imm(asm.R3, 1),
		jump(asm.JEq.Reg(asm.R2, asm.R3, ""), 2),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
		asm.LSh.Imm(asm.R0, 64-turnBit),
		asm.RSh.Imm(asm.R0, 64-numberBits),
		asm.Mov.Reg(asm.R1, asm.R6),
	}
	var ends []int // instructions that jump to the end
	var tree func(out asm.Instructions, lo, hi int) asm.Instructions
	tree = func(out asm.Instructions, lo, hi int) asm.Instructions {
		if hi-lo == 1 {
			out = append(out, prologues[lo]...)
			if hi < len(prologues) {
				ends = append(ends, len(out))
				out = append(out, asm.Ja.Label(""))
			}
			return out
		}
		mid, at := (lo+hi)/2, len(out)
		out = tree(append(out, asm.JGE.Imm(asm.R0, int32(mid), "")), lo, mid)
		out[at] = jump(out[at], rawSize(out[at+1:]))
		return tree(out, mid, hi)
	}
	out := tree(nil, 0, len(prologues))
	// From the last to the first, so that each size is found once.
	size, next := 0, len(out)
	for _, at := range slices.Backward(ends) {
		size += rawSize(out[at+1 : next])
		out[at] = jump(out[at], size)
		next = at + 1
	}
	return append(head, out...)
}

// jump returns a jump over n instructions of 8 bytes.
func jump(ins asm.Instruction, n int) asm.Instruction {
	ins = ins.WithReference("")
	ins.Offset = int16(n)
	return ins
}
