package instances

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/cilium/ebpf"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Target is what a definition is about.
type Target struct {
	Image   *dwarfloc.Image
	Options Options
	// Slide is how far the running code is from the image's link-time addresses, in
	// bytes: KernelSlide for the running kernel, 0 where addresses do not move.
	Slide uint64
}

// Loader is a collection whose definitions were expanded, before it is loaded. Its
// specification may still be changed: maps, programs, their instructions.
type Loader struct {
	// Spec has, in place of each program whose section name is a definition, one for
	// each instance. Maps and other programs are as they were.
	Spec *ebpf.CollectionSpec
	// Plans are the plans of these programs, by the program's name.
	Plans map[string]*Plan

	names map[string][]string // of the instances of each program, in Spec
}

// Open expands the definitions that are section names of a collection's programs. find
// says what each is about; for one whose image is nil the error names the program. The
// specification given is not changed.
func Open(ctx context.Context, spec *ebpf.CollectionSpec, find func(*probe.Definition) (Target, error)) (*Loader, error) {
	l := &Loader{Spec: spec.Copy(), Plans: make(map[string]*Plan), names: make(map[string][]string)}
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
	plan, err := NewPlan(ctx, t.Image, def, t.Options)
	if err != nil {
		return err
	}
	specs, err := plan.ProgramSpecsAt(user, t.Slide)
	if err != nil {
		return err
	}
	l.Plans[name] = plan
	for i, s := range specs {
		// Programs whose names begin alike would have instances of one name.
		for n := 2; taken[s.Name]; n++ {
			tail := strconv.Itoa(n) + "_" + strconv.Itoa(i)
			s.Name = name[:min(len(name), maxNameLen-len(tail))] + tail
		}
		taken[s.Name] = true
		l.Spec.Programs[s.Name] = s
		l.names[name] = append(l.names[name], s.Name)
	}
	return nil
}

// Load loads maps once and all programs.
func (l *Loader) Load(o ebpf.CollectionOptions) (*Collection, error) {
	c, err := ebpf.NewCollectionWithOptions(l.Spec, o)
	if err != nil {
		return nil, err
	}
	out := &Collection{Collection: c, Plans: l.Plans, instances: make(map[string][]*ebpf.Program)}
	for name, instances := range l.names {
		for _, n := range instances {
			out.instances[name] = append(out.instances[name], c.Programs[n])
		}
	}
	return out, nil
}

// Collection is a loaded collection. All instances of all programs share its maps.
type Collection struct {
	*ebpf.Collection
	Plans     map[string]*Plan // by the name that the program had
	instances map[string][]*ebpf.Program
}

// ErrNoDefinition: a program's section name is no definition, or there is no such
// program.
var ErrNoDefinition = errors.New("no program with a definition")

// Instances returns the programs that stand for one of the specification, by instance
// number: what bpf_program__nth_fd gave the descriptors of.
func (c *Collection) Instances(program string) []*ebpf.Program { return c.instances[program] }

// InstanceOf tells which program, and which instance of it, has an ID in the kernel.
func (c *Collection) InstanceOf(id ebpf.ProgramID) (program string, instance int, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(c.instances)) {
		for i, p := range c.instances[name] {
			info, err := p.Info()
			if err != nil {
				continue
			}
			if have, known := info.ID(); known && have == id {
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
	return plan.Attach(ctx, c.instances[program], o)
}
