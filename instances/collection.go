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
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Target is what a definition is about.
type Target struct {
	Image   *dwarfloc.Image
	Options Options
	// Running is where the image runs, and says Options.Multi, and Options.Reads unless
	// they are legacy. Without, programs can be loaded and not attached.
	Running *Running
}

// Loader is a collection whose definitions were expanded, before it is loaded. Its
// specification may still be changed: maps, programs, their instructions.
type Loader struct {
	// Spec has, in place of each program whose section name is a definition, one for
	// each instance. Maps and other programs are as they were.
	Spec *ebpf.CollectionSpec
	// Plans are the plans of these programs, by the program's name.
	Plans map[string]*Plan

	instances map[string][]instance // of each program; what is known before it is loaded
	running   map[string]*Running   // by the program's name
}

// instance is one program that stands for one of the specification.
type instance struct {
	spec  string   // its name in the specification
	names []string // of its functions, as the kernel's symbols have them
	prog  *ebpf.Program
	id    ebpf.ProgramID
	tag   string
}

// Open expands the definitions that are section names of a collection's programs. find
// says what each is about; for one whose image is nil the error names the program. The
// specification given is not changed.
func Open(ctx context.Context, spec *ebpf.CollectionSpec, find func(*probe.Definition) (Target, error)) (*Loader, error) {
	l := &Loader{Spec: spec.Copy(), Plans: make(map[string]*Plan), instances: make(map[string][]instance), running: make(map[string]*Running)}
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
		user := l.Spec.Programs[name]
		delete(l.Spec.Programs, name)
		if err := l.expand(ctx, name, user, find, taken); err != nil {
			return nil, fmt.Errorf("program %s: %w", name, err)
		}
	}
	return l, nil
}

func (l *Loader) expand(ctx context.Context, name string, user *ebpf.ProgramSpec, find func(*probe.Definition) (Target, error), taken map[string]bool) error {
	def, err := probe.ParseSection(user.SectionName)
	if err != nil {
		return err
	}
	t, err := find(def)
	if err != nil {
		return err
	}
	if t.Image == nil {
		return fmt.Errorf("no image for the definition %q", def)
	}
	slide := uint64(0)
	if t.Running != nil {
		slide, t.Options.Multi = t.Running.Slide(), t.Running.Multi()
		if t.Options.Reads == prologue.ReadKernel {
			t.Options.Reads = t.Running.Reads()
		}
	}
	plan, err := NewPlan(ctx, t.Image, def, t.Options)
	if err != nil {
		return err
	}
	specs, err := plan.ProgramSpecsAt(user, slide)
	if err != nil {
		return err
	}
	l.Plans[name], l.running[name] = plan, t.Running
	for i, s := range specs {
		// Programs whose names begin alike would have instances of one name.
		for n := 2; taken[s.Name]; n++ {
			tail := strconv.Itoa(n) + "_" + strconv.Itoa(i)
			s.Name = name[:min(len(name), maxNameLen-len(tail))] + tail
		}
		taken[s.Name] = true
		l.Spec.Programs[s.Name] = s
		l.instances[name] = append(l.instances[name], instance{spec: s.Name, names: functionNames(s, user, i)})
	}
	return nil
}

// functionNames are the names of the types of an instance's own functions: of the entry,
// and of what the user's program begins with.
func functionNames(s, user *ebpf.ProgramSpec, number int) (names []string) {
	if fn := btf.FuncMetadata(&s.Instructions[0]); fn != nil {
		names = append(names, fn.Name)
	}
	if fn := btf.FuncMetadata(&user.Instructions[0]); fn != nil {
		names = append(names, FunctionName(fn.Name, number))
	}
	return names
}

// Load loads maps once and all programs.
func (l *Loader) Load(o ebpf.CollectionOptions) (*Collection, error) {
	c, err := ebpf.NewCollectionWithOptions(l.Spec, o)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, Hint(err))
	}
	out := &Collection{Collection: c, Plans: l.Plans, running: l.running, instances: make(map[string][]instance)}
	for name, all := range l.instances {
		for _, in := range all {
			if in.prog = c.Programs[in.spec]; in.prog == nil {
				c.Close()
				return nil, fmt.Errorf("program %s: the specification has no %s any more", name, in.spec)
			}
			info, err := in.prog.Info()
			if err != nil {
				c.Close()
				return nil, fmt.Errorf("program %s: %w", in.spec, err)
			}
			in.id, _ = info.ID()
			in.tag = info.Tag
			out.instances[name] = append(out.instances[name], in)
		}
	}
	return out, nil
}

// Collection is a loaded collection. All instances of all programs share its maps.
type Collection struct {
	*ebpf.Collection
	Plans map[string]*Plan // by the name that the program had

	instances map[string][]instance
	running   map[string]*Running
}

// ErrNoDefinition: a program's section name is no definition, or there is no such
// program.
var ErrNoDefinition = errors.New("no program with a definition")

// Instances returns the programs that stand for one of the specification, by instance
// number. Instances(program)[n].FD() is what bpf_program__nth_fd gave.
func (c *Collection) Instances(program string) []*ebpf.Program {
	var out []*ebpf.Program
	for _, in := range c.instances[program] {
		out = append(out, in.prog)
	}
	return out
}

// InstanceOf tells which program, and which instance of it, has an ID in the kernel.
func (c *Collection) InstanceOf(id ebpf.ProgramID) (program string, number int, ok bool) {
	return c.find(func(in *instance) bool { return in.id == id })
}

// InstanceNamed tells which program, and which instance of it, something in the kernel
// has its name from: a program's name, a function's symbol, bpf_prog_TAG_NAME as
// /proc/kallsyms and perf's KSYMBOL records have it, or a program's tag. A function of a
// program without BTF has no name of its own: the symbol of one behind the first is
// found in no instance.
func (c *Collection) InstanceNamed(name string) (program string, number int, ok bool) {
	if rest, is := strings.CutPrefix(name, "bpf_prog_"); is {
		tag, function, _ := strings.Cut(rest, "_")
		program, number, ok = c.find(func(in *instance) bool { return slices.Contains(in.names, function) })
		if ok {
			return program, number, ok
		}
		name = tag
	}
	return c.find(func(in *instance) bool {
		return in.tag == name || in.spec[:min(len(in.spec), maxNameLen)] == name || slices.Contains(in.names, name)
	})
}

func (c *Collection) find(is func(*instance) bool) (program string, number int, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(c.instances)) {
		for i := range c.instances[name] {
			if is(&c.instances[name][i]) {
				return name, i, true
			}
		}
	}
	return "", 0, false
}

// Attach attaches a program's instances at all sites of its plan.
func (c *Collection) Attach(ctx context.Context, program string, o AttachOptions) (*Attachment, error) {
	plan := c.Plans[program]
	if plan == nil {
		return nil, fmt.Errorf("%w: %q; there are %q", ErrNoDefinition, program, slices.Sorted(maps.Keys(c.Plans)))
	}
	return plan.Attach(ctx, c.Instances(program), c.running[program], o)
}

// AttachAll attaches all programs that have definitions. When one cannot be, nothing
// stays attached, and the error names it.
func (c *Collection) AttachAll(ctx context.Context, o AttachOptions) (map[string]*Attachment, error) {
	out := make(map[string]*Attachment)
	for _, name := range slices.Sorted(maps.Keys(c.Plans)) {
		a, err := c.Attach(ctx, name, o)
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
