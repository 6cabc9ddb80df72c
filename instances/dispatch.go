package instances

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

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
	// first: it makes probes silent at once, and lets a link replace another without a hit lost or
	// seen twice.
	SwitchName string

	plan *plan.Plan
}

// SwitchSpec returns the map SwitchName. Its one value has 8 bytes for each program.
func (d *Dispatch) SwitchSpec() *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: "probe_switch", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(8 * len(d.Specs)), MaxEntries: 1}
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

// NewDispatch returns the programs for the instances of a plan with these indices, or for all, made
// from the user's program spec, which is not changed.
//
// The error wraps ErrNotDispatched if the user's program makes tail calls, and otherwise is one
// of ProgramSpecs. A *prologue.StackError can be for a program that ProgramSpecs takes.
func NewDispatch(p *plan.Plan, spec *ebpf.ProgramSpec, indices ...int) (*Dispatch, error) {
	if err := checkType(spec); err != nil {
		return nil, err
	}
	if err := checkHandler(p, spec.Instructions); err != nil {
		return nil, err
	}
	for i := range spec.Instructions {
		if ins := &spec.Instructions[i]; ins.IsBuiltinCall() && ins.Constant == int64(asm.FnTailCall) {
			return nil, fmt.Errorf("%w: %s makes tail calls", ErrNotDispatched, spec.Name)
		}
	}
	if len(indices) == 0 {
		for i := range p.Instances {
			indices = append(indices, i)
		}
	}
	stack := stackOf(spec.Instructions)
	d := &Dispatch{plan: p, SwitchName: "switch_" + spec.Name}
	// Programs are loaded for one kind of link.
	for _, multi := range []bool{true, false} {
		var now []int
		var prologues []asm.Instructions
		size := 0
		flush := func() error {
			if len(now) == 0 {
				return nil
			}
			out := spec.Copy()
			out.Name = instanceName(spec.Name, "d", len(d.Specs))
			out.Type = ebpf.Kprobe
			out.AttachType = attachType(p, &p.Instances[now[0]])
			mark := "_" + strconv.Itoa(len(d.Specs))
			before := d.choose(prologues)
			out.Instructions = enter(before, spec.Instructions, "_dispatch"+mark, "its arguments", func(fn *btf.Func) *btf.Func {
				own := *fn
				own.Name += mark
				return &own
			})
			d.Specs, d.Instances = append(d.Specs, out), append(d.Instances, now)
			now, prologues, size = nil, nil, 0
			return numberLines(out.Instructions[:len(before)+2])
		}
		for _, i := range indices {
			in := &p.Instances[i]
			if in.Multi != multi {
				continue
			}
			if err := in.Prologue.CheckStack(stack); err != nil {
				return nil, fmt.Errorf("instance %d: %w", i, err)
			}
			pro := in.Prologue.Slid(p.Target.Slide)
			n := rawSize(pro) + 2 // with a compare and a jump
			if size+n > maxDispatch || len(now) == maxPrologue {
				if err := flush(); err != nil {
					return nil, err
				}
			}
			now, prologues, size = append(now, i), append(prologues, pro), size+n
		}
		if err := flush(); err != nil {
			return nil, err
		}
	}
	return d, nil
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
func (d *Dispatch) choose(prologues []asm.Instructions) asm.Instructions {
	head := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1).WithSource(asm.Comment("choose a prologue by the attach cookie")),
		asm.FnGetAttachCookie.Call(),
		asm.LoadMapValue(asm.R2, 0, uint32(8*len(d.Specs))).WithReference(d.SwitchName),
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
		next = at
	}
	return append(head, out...)
}

// jump returns a jump over n instructions of 8 bytes.
func jump(ins asm.Instruction, n int) asm.Instruction {
	ins = ins.WithReference("")
	ins.Offset = int16(n)
	return ins
}
