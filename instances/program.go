package instances

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/kernelhas"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// maxNameLen is how many bytes of a program's name the kernel keeps: BPF_OBJ_NAME_LEN without
// the NUL (include/uapi/linux/bpf.h).
const maxNameLen = 15

// Preprocess returns the instructions of an instance, an index in Plan.Instances: its
// prologue, with Plan.Target.Slide added to the addresses of the image, and the original
// program after it. The original instructions are not changed, and keep their line
// information.
//
// With prologue.ConventionRegisters the prologue becomes part of the program's function: the
// function's symbol and type move to the first instruction of the result.
//
// With prologue.ConventionRecord the prologue becomes a function of its own, the entry, which
// calls the program's function. That must be a static function, for which the verifier
// follows the arguments from the call. C makes programs global functions, so the function's
// type is changed.
//
// With both conventions the function's type is renamed to NAME_INSTANCE: the kernel's symbol
// for a compiled function is bpf_prog_TAG_NAME, with the name of the function's type.
//
// With prologue.ReadCast the calls of references.CastFunction are for the running kernel.
//
// The error wraps a *prologue.StackError if both functions together need more stack than a
// kernel gives, ErrNotSupported if the running kernel lacks references.CastFunction, and
// ErrProgramMismatch if the function has more parameters than the plan fills.
func Preprocess(p *plan.Plan, instance int, original asm.Instructions) (asm.Instructions, error) {
	if instance < 0 || instance >= len(p.Instances) {
		return nil, fmt.Errorf("instance %d: the plan has %d", instance, len(p.Instances))
	}
	if err := checkHandler(p, original); err != nil {
		return nil, fmt.Errorf("instance %d: %w", instance, err)
	}
	pro, join := p.Instances[instance].Prologue, prepend
	if p.Convention == prologue.ConventionRecord {
		if err := pro.CheckStack(stackOf(original)); err != nil {
			return nil, fmt.Errorf("instance %d: %w", instance, err)
		}
		join = func(instance int, pro, original asm.Instructions) asm.Instructions {
			return callFrom(instance, pro, original, p.Instances[instance].Prologue.Outside)
		}
	}
	before, err := placed(p, pro)
	if err != nil {
		return nil, fmt.Errorf("instance %d: %w", instance, err)
	}
	out := join(instance, before, original)
	return out, numberLines(out[:len(out)-len(original)])
}

// placed returns the instructions of a prologue for where a plan runs.
func placed(p *plan.Plan, pro *prologue.Prologue) (asm.Instructions, error) {
	insns := pro.Slid(p.Target.Slide)
	if err := kernelhas.Resolve(insns); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSupported, err)
	}
	return insns, nil
}

// ErrProgramMismatch is wrapped by errors about a program that does not fit its definition: it
// is not of the type ebpf.Kprobe, or has more parameters than the definition has arguments.
// Plan.Header declares the right prototype.
var ErrProgramMismatch = errors.New("not a program for the definition")

// checkHandler compares the parameters of a program's function, if it has a type, with the
// arguments that it will get.
func checkHandler(p *plan.Plan, original asm.Instructions) error {
	if len(original) == 0 {
		return errors.New("the program has no instructions")
	}
	fn := btf.FuncMetadata(&original[0])
	if fn == nil {
		return nil
	}
	proto, ok := fn.Type.(*btf.FuncProto)
	if !ok {
		return nil
	}
	given, what := 3, "ctx, err and a record"
	if p.Convention == prologue.ConventionRegisters {
		n := 0
		for i := range p.Sites {
			n = max(n, len(p.Sites[i].Args))
		}
		given, what = 2+n, "ctx, err and "+strconv.Itoa(n)+" arguments"
	}
	if n := len(proto.Params); n > given {
		return fmt.Errorf("%w: %s has %d parameters, and %q gives it %s", ErrProgramMismatch, fn.Name, n, p.Definition, what)
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

// functionName returns the name of the type of a program's first function in an instance.
func functionName(function string, instance int) string {
	return function + "_" + strconv.Itoa(instance)
}

// named returns a function's type with its name in an instance.
func named(fn *btf.Func, instance int) *btf.Func {
	own := *fn
	own.Name = functionName(fn.Name, instance)
	return &own
}

// ProgramSpecs returns a program for each instance of a plan, made from the user's program
// spec, which is not changed. The programs are of the type ebpf.Kprobe, which the kernel runs
// at kprobes and uprobes, and are loaded for the kind of link that the plan chose.
//
// The error wraps ErrProgramMismatch if spec has another type, or is one of Preprocess.
func ProgramSpecs(p *plan.Plan, spec *ebpf.ProgramSpec) ([]*ebpf.ProgramSpec, error) {
	if err := checkType(spec); err != nil {
		return nil, err
	}
	out := make([]*ebpf.ProgramSpec, len(p.Instances))
	for i := range p.Instances {
		insns, err := Preprocess(p, i, spec.Instructions)
		if err != nil {
			return nil, err
		}
		out[i] = programSpec(spec, attachType(p, &p.Instances[i]), p.Target.Reads, i, insns)
	}
	return out, nil
}

// programSpec returns the user's program spec with other instructions and a number in its name, for
// a kind of link.
func programSpec(user *ebpf.ProgramSpec, attach ebpf.AttachType, reads prologue.Reads, number int, insns asm.Instructions) *ebpf.ProgramSpec {
	out := user.Copy()
	out.Instructions = insns
	out.Name = instanceName(user.Name, "", number)
	out.Type = ebpf.Kprobe
	out.AttachType = attach
	if reads == prologue.ReadSleep {
		out.Flags |= unix.BPF_F_SLEEPABLE
	}
	return out
}

// checkType checks the type of a user's program. A section name that is a definition says none.
func checkType(spec *ebpf.ProgramSpec) error {
	if spec.Type == ebpf.UnspecifiedProgram || spec.Type == ebpf.Kprobe {
		return nil
	}
	return fmt.Errorf("%w: it is of the type %v, and probes run programs of the type %v", ErrProgramMismatch, spec.Type, ebpf.Kprobe)
}

// instanceName returns the name of an instance's program: base, shortened so that mark and
// the number fit into the 15 bytes that the kernel keeps.
func instanceName(base, mark string, instance int) string {
	tail := mark + "_" + strconv.Itoa(instance)
	return base[:min(len(base), maxNameLen-len(tail))] + tail
}
