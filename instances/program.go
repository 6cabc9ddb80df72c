package instances

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/bpfprologue/bpfprologue/prologue"
)

// maxNameLen is how much of a program's name the kernel keeps: BPF_OBJ_NAME_LEN
// without the NUL byte (include/uapi/linux/bpf.h).
const maxNameLen = 15

// Preprocess puts an instance's prologue in front of a program: instance numbers
// count from 0. The original instructions are not changed, and line information stays
// where it is.
//
// In the registers convention the prologue becomes part of the program's function:
// what stood at its first instruction about the whole function, its symbol and its
// type, moves to the first instruction of the result, where the function now begins.
//
// In the record convention it becomes a function of its own, the entry, which calls
// the program's. That must be a static function then, whose arguments the verifier
// follows from the call; C makes programs global ones, so its type is marked anew.
//
// In both, the type is named for the instance, by FunctionName: the kernel calls what it
// has compiled bpf_prog_TAG_NAME, with the name of the function's type.
//
// When both functions together need more stack than a kernel gives, Preprocess returns
// a *prologue.StackError.
func (p *Plan) Preprocess(instance int, original asm.Instructions) (asm.Instructions, error) {
	return p.PreprocessAt(instance, original, 0)
}

// PreprocessAt is Preprocess for an image that runs at other addresses than it was
// linked for: slide is added to each address of the image (a kernel's KASLR slide,
// a library's load bias).
func (p *Plan) PreprocessAt(instance int, original asm.Instructions, slide uint64) (asm.Instructions, error) {
	if instance < 0 || instance >= len(p.Instances) {
		return nil, fmt.Errorf("instance %d: the plan has %d", instance, len(p.Instances))
	}
	if len(original) == 0 {
		return nil, fmt.Errorf("instance %d: the program has no instructions", instance)
	}
	if err := p.checkHandler(&original[0]); err != nil {
		return nil, fmt.Errorf("instance %d: %w", instance, err)
	}
	pro, join := p.Instances[instance].Prologue, prepend
	if p.Convention == prologue.Record {
		if err := pro.CheckStack(stackOf(original)); err != nil {
			return nil, fmt.Errorf("instance %d: %w", instance, err)
		}
		join = callFrom
	}
	out := join(instance, pro.Slid(slide), original)
	return out, numberLines(out[:len(out)-len(original)])
}

// ErrHandler is wrapped by the errors about a program that cannot handle a definition's
// hits.
var ErrHandler = errors.New("not a program for the definition")

// checkHandler compares the parameters of a program's function, if it has a type, with
// what it will be given.
func (p *Plan) checkHandler(first *asm.Instruction) error {
	fn := btf.FuncMetadata(first)
	if fn == nil {
		return nil
	}
	proto, ok := fn.Type.(*btf.FuncProto)
	if !ok {
		return nil
	}
	given, what := 3, "ctx, err and a record"
	if p.Convention == prologue.Registers {
		n := 0
		for i := range p.Sites {
			n = max(n, len(p.Sites[i].Args))
		}
		given, what = 2+n, "ctx, err and "+strconv.Itoa(n)+" arguments"
	}
	if n := len(proto.Params); n > given {
		return fmt.Errorf("%w: %s has %d parameters, and %q gives it %s (prolog-dump header prints the prototype)", ErrHandler, fn.Name, n, p.Definition, what)
	}
	return nil
}

// prepend makes a prologue part of the function that a program begins with.
func prepend(instance int, pro, original asm.Instructions) asm.Instructions {
	out := slices.Concat(pro, original)
	first, user := &out[0], &out[len(pro)]
	if name := user.Symbol(); name != "" {
		*first = first.WithSymbol(name)
		*user = user.WithSymbol("")
	}
	if fn := btf.FuncMetadata(user); fn != nil {
		*first = btf.WithFuncMetadata(*first, named(fn, instance))
		*user = btf.WithFuncMetadata(*user, nil)
	}
	return out
}

// FunctionName is what the type of a program's first function is called in an instance.
func FunctionName(function string, instance int) string {
	return function + "_" + strconv.Itoa(instance)
}

// named is a function's type with the name that it has in an instance.
func named(fn *btf.Func, instance int) *btf.Func {
	own := *fn
	own.Name = FunctionName(fn.Name, instance)
	return &own
}

// ProgramSpecs makes one program of each instance of the plan from a user's
// program, which stays as it is.
func (p *Plan) ProgramSpecs(spec *ebpf.ProgramSpec) ([]*ebpf.ProgramSpec, error) {
	return p.ProgramSpecsAt(spec, 0)
}

// ProgramSpecsAt is ProgramSpecs for an image that runs at other addresses than it
// was linked for, as PreprocessAt.
func (p *Plan) ProgramSpecsAt(spec *ebpf.ProgramSpec, slide uint64) ([]*ebpf.ProgramSpec, error) {
	switch spec.Type {
	case ebpf.UnspecifiedProgram, ebpf.Kprobe:
	default:
		return nil, fmt.Errorf("%w: it is of the type %v, and probes run programs of the type %v", ErrHandler, spec.Type, ebpf.Kprobe)
	}
	out := make([]*ebpf.ProgramSpec, len(p.Instances))
	for i := range p.Instances {
		insns, err := p.PreprocessAt(i, spec.Instructions, slide)
		if err != nil {
			return nil, err
		}
		out[i] = spec.Copy()
		out[i].Instructions = insns
		out[i].Name = p.InstanceName(spec.Name, i)
		// A section name that is a definition tells cilium/ebpf no type. The kernel runs
		// programs of this one at kprobes and at uprobes.
		out[i].Type = ebpf.Kprobe
		out[i].AttachType = p.Instances[i].Multi.AttachType()
	}
	return out, nil
}

// InstanceName is the name of an instance's program: a base shortened so that the
// number fits into the 15 characters that the kernel keeps.
func (p *Plan) InstanceName(base string, instance int) string {
	number := "_" + strconv.Itoa(instance)
	return base[:min(len(base), maxNameLen-len(number))] + number
}
