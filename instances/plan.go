package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/sites"
)

// Missing says what becomes of a site that lacks an argument.
type Missing uint8

const (
	// Flag keeps the site: the program is told by its err argument.
	Flag Missing = iota
	// Skip leaves the site out of all instances.
	Skip
	// Fail makes the plan an error.
	Fail
)

// Options say how a plan is made. The zero Options are the usual ones.
type Options struct {
	Missing Missing
	Reads   prologue.Reads
	// Multi is at which sites the kernel can be asked for many probes at once, as
	// Running.Multi says. Instances are then of sites that are probed alike.
	Multi       Multi
	Filter      glob.Matcher // keeps functions that it matches too; nil keeps all
	Convention  Convention
	StringBytes int // of a string in a record, its NUL included; 0: DefaultStringBytes
	// Sources are where the texts are that a lazy pattern needs.
	Sources sites.Sources
}

// Site is one site of a plan.
type Site struct {
	*dwarfloc.Site
	Args []Argument
	// Instance is the number of the program that serves the site, or -1 for a site
	// that was left out.
	Instance int
}

// Instance is one program to load.
type Instance struct {
	Number   int
	Prologue *prologue.Prologue
	Sites    []int // indices of Plan.Sites
	// Multi says how the sites are probed: the program is loaded with its AttachType.
	Multi Multi
}

// Plan is the whole mapping from a definition to sites to instances.
type Plan struct {
	Definition *probe.Definition
	Image      *dwarfloc.Image
	Convention prologue.Convention // of all instances
	Sites      []Site
	Instances  []Instance
}

// Served is how many sites have an instance.
func (p *Plan) Served() int {
	n := 0
	for i := range p.Instances {
		n += len(p.Instances[i].Sites)
	}
	return n
}

// ErrMissingArgument is wrapped by NewPlan's error when a site lacks an argument
// and Options.Missing is Fail.
var ErrMissingArgument = errors.New("not every argument is fetched at every site")

// NewPlan expands a definition over an image and writes the prologue of each
// site. Errors about the definition are a *probe.Error and point into its text.
func NewPlan(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, o Options) (*Plan, error) {
	if n := o.stringBytes(); n > prologue.MaxObject {
		return nil, fmt.Errorf("strings of %d bytes: a record holds at most %d", n, prologue.MaxObject)
	}
	sites, err := expand(ctx, img, def, &o)
	if err != nil {
		return nil, err
	}
	p := &Plan{Definition: def, Image: img, Sites: make([]Site, len(sites))}
	find, err := newFinder(img, def)
	if err != nil {
		return nil, err
	}
	for i, s := range sites {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		ps := &p.Sites[i]
		ps.Site, ps.Instance = s, -1
		if ps.Args, err = find.arguments(s, &o); err != nil {
			return nil, err
		}
	}
	if err := p.choose(&o); err != nil {
		return nil, err
	}
	p.agree()
	if err := p.write(ctx, &o); err != nil {
		return nil, err
	}
	return p, p.checkNames()
}

// write writes the sites' prologues, and makes instances of the distinct ones.
func (p *Plan) write(ctx context.Context, o *Options) error {
	// Instances by their prologues' keys, for each way of probing.
	var keys [UprobeMulti + 1]keySet
	var numbers [UprobeMulti + 1][]int
	var emitter prologue.Emitter
	var wanted []prologue.Arg
	def := p.Definition
	po := prologueOptions(p.Image, o, p.Convention)
	for i := range p.Sites {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		ps := &p.Sites[i]
		s := ps.Site
		wanted = fetches(wanted[:0], ps.Args)
		code, err := emitter.Emit(wanted, &po)
		if err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
		noteUnfetched(ps.Args, code.Unfetched)
		if missing := slices.IndexFunc(ps.Args, func(a Argument) bool { return !a.Fetched() }); missing >= 0 {
			switch o.Missing {
			case Skip:
				continue
			case Fail:
				a := &ps.Args[missing]
				return probe.Errorf(def, def.Args[a.Arg].Pos, "%w: %v: argument %q: %v", ErrMissingArgument, s, a.Name, a.Unfetched)
			}
		}
		multi := o.Multi.at(ps, def.Point.Return)
		n, first := keys[multi].number(code.Key)
		if first {
			pro, err := emit(s, ps.Args, po) // with comments
			if err != nil {
				return err
			}
			numbers[multi] = append(numbers[multi], len(p.Instances))
			p.Instances = append(p.Instances, Instance{Number: len(p.Instances), Prologue: pro, Multi: multi})
		}
		ps.Instance = numbers[multi][n]
		in := &p.Instances[ps.Instance]
		in.Sites = append(in.Sites, i)
	}
	return nil
}

// Emit writes the prologue that fetches arguments at a site, and notes in them
// which are not fetched, and why.
func Emit(s *dwarfloc.Site, args []Argument, o Options) (*prologue.Prologue, error) {
	return emit(s, args, prologueOptions(s.Image(), &o, o.convention(args)))
}

func emit(s *dwarfloc.Site, args []Argument, po prologue.Options) (*prologue.Prologue, error) {
	po.Site = s.String()
	pro, err := prologue.Emit(fetches(nil, args), po)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", s, err)
	}
	noteUnfetched(args, pro.Unfetched)
	return pro, nil
}

func prologueOptions(img *dwarfloc.Image, o *Options, c prologue.Convention) prologue.Options {
	return prologue.Options{Arch: img.Arch(), BigEndian: img.BigEndian(), Reads: o.Reads, Convention: c}
}

// fetches appends arguments as package prologue has them.
func fetches(to []prologue.Arg, args []Argument) []prologue.Arg {
	for i := range args {
		a := &args[i]
		to = append(to, prologue.Arg{
			Name: a.Name, Kind: a.Kind, User: a.User, Signed: a.Signed,
			Loc: *a.Location(), Reason: a.Variable.Reason, Size: a.Size, Bound: a.Bound,
		})
	}
	return to
}

func noteUnfetched(args []Argument, unfetched []prologue.Unfetched) {
	for _, u := range unfetched {
		args[u.Arg].Unfetched = u.Reason
	}
}
