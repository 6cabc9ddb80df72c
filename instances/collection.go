package instances

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/kernelerr"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Subject is the image of a definition, and how to make its plan.
type Subject struct {
	// Image contains the functions of the definition.
	Image *dwarfloc.Image
	// Options are the options of its plan.
	Options plan.Options
	// Running overrides Options.Target, except Target.Reads if that is not
	// prologue.ReadAuto. If nil, programs can be loaded, but not attached.
	Running *Running
	// Dispatch makes as few programs as possible: see Dispatch. A program that cannot be called as
	// a function, or has no room for another frame on its stack, gets its instances anyway, as all
	// do on kernels without attach cookies.
	Dispatch bool
	// Around, if not nil, returns the program for an instance in place of the user's, which is not
	// changed: see the function Around. It needs Dispatch. Instances with the same program, by its
	// address, share it.
	Around func(p *plan.Plan, user *ebpf.ProgramSpec, instance int) (*ebpf.ProgramSpec, error)
}

// CollectionSpec is an ebpf.CollectionSpec in which each program whose section name is a
// definition is replaced by its instances. Maps and other programs are unchanged. It may be
// modified before it is loaded.
type CollectionSpec struct {
	*ebpf.CollectionSpec
	// Definitions are the replaced programs by name.
	Definitions map[string]*Program
}

// Program is a program with a definition, and the instances that replace it.
type Program struct {
	Plan *plan.Plan
	// Specs are the programs of the instances, in the order of Plan.Instances, or those of
	// Dispatch. CollectionSpec.Programs has them by name.
	Specs []*ebpf.ProgramSpec
	// Instances are the loaded programs, in the order of Plan.Instances: Instances[n].FD() is
	// what libbpf's bpf_program__nth_fd returned. It is nil before the collection is loaded.
	// With Dispatch several instances have one program.
	Instances []*ebpf.Program
	// Dispatch is not nil if instances share programs.
	Dispatch *Dispatch

	running *Running
	names   []kernelNames // of Specs
	loaded  *Dispatched
}

// kernelNames are an instance's names in the kernel.
type kernelNames struct {
	functions []string // of its functions, as in the kernel's symbols
	id        ebpf.ProgramID
	tag       string
}

// Expand replaces the programs of a collection whose section names are definitions, such as
// "func=get_page page", by their instances. find returns the subject of a definition. spec is
// not changed.
//
// The error names the program. It wraps an error of probe.ParseSection (*probe.Error), of
// find, of plan.New or of ProgramSpecs.
func Expand(ctx context.Context, spec *ebpf.CollectionSpec, find func(*probe.Definition) (Subject, error)) (*CollectionSpec, error) {
	c := &CollectionSpec{CollectionSpec: spec.Copy(), Definitions: make(map[string]*Program)}
	taken := make(map[string]bool) // names as the kernel keeps them
	var defined []string
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		if probe.LooksLikeDefinition(spec.Programs[name].SectionName) {
			defined = append(defined, name)
		} else {
			taken[name[:min(len(name), maxNameLen)]] = true
		}
	}
	for _, name := range defined {
		user := c.Programs[name]
		delete(c.Programs, name)
		p, err := expand(ctx, user, find)
		if err != nil {
			return nil, fmt.Errorf("program %s: %w", name, err)
		}
		c.Definitions[name] = p
		if p.Dispatch != nil {
			maps.Copy(c.Maps, p.Dispatch.Maps)
		}
		for i, s := range p.Specs {
			s.Name = instanceName(name, "", i)
			// Programs whose names begin alike would have instances of one name.
			for n := 2; taken[s.Name]; n++ {
				s.Name = instanceName(name, strconv.Itoa(n), i)
			}
			taken[s.Name] = true
			c.Programs[s.Name] = s
		}
	}
	return c, nil
}

// expand makes the plan and the instances of one program.
func expand(ctx context.Context, user *ebpf.ProgramSpec, find func(*probe.Definition) (Subject, error)) (*Program, error) {
	def, err := probe.ParseSection(user.SectionName)
	if err != nil {
		return nil, err
	}
	x, err := find(def)
	if err != nil {
		return nil, err
	}
	if x.Image == nil {
		return nil, fmt.Errorf("no image for the definition %q", def)
	}
	if x.Running != nil {
		x.Options.Target = x.Running.targetOf(x.Options.Target)
	}
	p := &Program{running: x.Running}
	if p.Plan, err = plan.New(ctx, x.Image, def, x.Options); err != nil {
		return nil, err
	}
	if err := p.specs(user, &x); err != nil {
		return nil, err
	}
	for i, s := range p.Specs {
		p.names = append(p.names, kernelNames{functions: functionNames(s, user, i)})
	}
	return p, nil
}

// specs makes the programs.
func (p *Program) specs(user *ebpf.ProgramSpec, x *Subject) (err error) {
	if x.Dispatch && haveCookies() {
		programs := make([]*ebpf.ProgramSpec, len(p.Plan.Instances))
		for i := range programs {
			programs[i] = user
			if x.Around != nil {
				if programs[i], err = x.Around(p.Plan, user, i); err != nil {
					return err
				}
			}
		}
		var stack *prologue.StackError
		switch d, err := NewDispatch(p.Plan, func(i int) *ebpf.ProgramSpec { return programs[i] }); {
		case err == nil:
			p.Dispatch, p.Specs = d, d.Specs
			return nil
		case x.Around != nil:
			return err
		case !errors.Is(err, ErrNotDispatched) && !errors.As(err, &stack):
			return err
		}
	}
	if x.Around != nil {
		return fmt.Errorf("%w: what runs around a program needs attach cookies (Linux 5.15)", ErrNotSupported)
	}
	p.Specs, err = ProgramSpecs(p.Plan, user)
	return err
}

// functionNames returns the names of the types of an instance's own functions: the entry, and
// the function that the user's program begins with.
func functionNames(s, user *ebpf.ProgramSpec, number int) (names []string) {
	if fn := btf.FuncMetadata(&s.Instructions[0]); fn != nil {
		names = append(names, fn.Name)
	}
	if fn := btf.FuncMetadata(&user.Instructions[0]); fn != nil {
		names = append(names, functionName(fn.Name, number))
	}
	return names
}

// NewCollection loads all maps and programs into the kernel. The caller must close the
// collection.
//
// The error wraps that of ebpf.NewCollectionWithOptions, for example an *ebpf.VerifierError.
func NewCollection(spec *CollectionSpec, o ebpf.CollectionOptions) (*Collection, error) {
	c, err := ebpf.NewCollectionWithOptions(spec.CollectionSpec, o)
	if err != nil {
		return nil, kernelerr.Explain(err)
	}
	out := &Collection{Collection: c, Definitions: make(map[string]*Program)}
	for name, p := range spec.Definitions {
		p, err := p.in(c)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("program %s: %w", name, err)
		}
		out.Definitions[name] = p
	}
	return out, nil
}

// in returns the program with its instances in a collection.
func (p *Program) in(c *ebpf.Collection) (*Program, error) {
	own := *p
	own.Instances, own.names = make([]*ebpf.Program, len(p.Plan.Instances)), slices.Clone(p.names)
	if p.Dispatch != nil {
		own.loaded = &Dispatched{
			Dispatch: p.Dispatch, Programs: make([]*ebpf.Program, len(p.Specs)), Maps: make(map[string]*ebpf.Map), turns: newTurns(*p.Dispatch.slots),
		}
		for name := range p.Dispatch.Maps {
			if own.loaded.Maps[name] = c.Maps[name]; c.Maps[name] == nil {
				return nil, fmt.Errorf("the specification has no map %s any more", name)
			}
		}
	}
	for i, s := range p.Specs {
		prog := c.Programs[s.Name]
		if prog == nil {
			return nil, fmt.Errorf("the specification has no %s any more", s.Name)
		}
		info, err := prog.Info()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		if p.Dispatch == nil {
			own.Instances[i] = prog
		} else {
			own.loaded.Programs[i] = prog
			for _, instance := range p.Dispatch.Instances[i] {
				own.Instances[instance] = prog
			}
		}
		own.names[i].id, _ = info.ID()
		own.names[i].tag = info.Tag
	}
	return &own, nil
}

// Collection is a loaded collection. All instances of all programs share its maps.
type Collection struct {
	*ebpf.Collection
	// Definitions are the programs that were replaced by their instances, by name.
	Definitions map[string]*Program
}

// InstanceByName returns the program and the instance that a name in the kernel belongs to: a
// program's name, its tag, the name of a function's type, or a symbol bpf_prog_TAG_NAME of
// /proc/kallsyms and of perf's KSYMBOL records. ok is false if there is none. In a program
// without BTF only the symbol of the first function is found.
func (c *Collection) InstanceByName(name string) (program string, instance int, ok bool) {
	if rest, is := strings.CutPrefix(name, "bpf_prog_"); is {
		tag, function, _ := strings.Cut(rest, "_")
		program, instance, ok = c.find(func(_ *ebpf.ProgramSpec, n *kernelNames) bool { return slices.Contains(n.functions, function) })
		if ok {
			return program, instance, ok
		}
		name = tag
	}
	return c.find(func(s *ebpf.ProgramSpec, n *kernelNames) bool {
		return n.tag == name || s.Name[:min(len(s.Name), maxNameLen)] == name || slices.Contains(n.functions, name)
	})
}

func (c *Collection) find(is func(*ebpf.ProgramSpec, *kernelNames) bool) (program string, instance int, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(c.Definitions)) {
		p := c.Definitions[name]
		for i := range p.names {
			switch {
			case !is(p.Specs[i], &p.names[i]):
			case p.Dispatch != nil && len(p.Dispatch.Instances[i]) > 1:
				return name, -1, true
			case p.Dispatch != nil:
				return name, p.Dispatch.Instances[i][0], true
			default:
				return name, i, true
			}
		}
	}
	return "", 0, false
}

// Attach attaches the named programs, or all programs with definitions if none is named, at
// all their sites. If one cannot be attached, nothing stays attached.
//
// The error names the program. It wraps an error of the function
// Attach.
func (c *Collection) Attach(ctx context.Context, o AttachOptions, programs ...string) (map[string]*Attachment, error) {
	if len(programs) == 0 {
		programs = slices.Sorted(maps.Keys(c.Definitions))
	}
	out := make(map[string]*Attachment)
	for _, name := range programs {
		a, err := c.attach(ctx, name, o)
		if err != nil {
			errs := []error{fmt.Errorf("program %s: %w", name, err)}
			for _, a := range out {
				errs = append(errs, a.Close())
			}
			return nil, errors.Join(errs...)
		}
		out[name] = a
	}
	return out, nil
}

func (c *Collection) attach(ctx context.Context, name string, o AttachOptions) (*Attachment, error) {
	p := c.Definitions[name]
	if p == nil {
		return nil, fmt.Errorf("no program with a definition: %q; there are %q", name, slices.Sorted(maps.Keys(c.Definitions)))
	}
	if p.loaded != nil {
		return p.loaded.Attach(ctx, p.running, o)
	}
	return Attach(ctx, p.Plan, p.Instances, p.running, o)
}
