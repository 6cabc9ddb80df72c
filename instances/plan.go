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
	Filter  glob.Matcher // keeps functions that it matches too; nil keeps all
	// Sources are where the texts are that a lazy pattern needs.
	Sources glob.Sources
}

// Argument is one argument of the definition at one site.
type Argument struct {
	Name string
	Arg  int            // index of the definition's argument; $params stands for several here
	Type probe.TypeSpec // that of the definition
	// Variable is what the argument's name stands for at the site, with its
	// location or the reason why there is none.
	Variable *dwarfloc.Variable
	Size     int  // bytes that are fetched, 0 when unknown
	Signed   bool // how they are extended to 64 bits
	// Unfetched says why a located argument is not fetched all the same: it does not
	// fit into a register. It is zero for an argument that is fetched, and the
	// variable's own reason for one that is not located.
	Unfetched dwarfloc.Reason
}

// Fetched reports whether the prologue delivers the argument.
func (a *Argument) Fetched() bool { return a.Unfetched.Code == dwarfloc.Located }

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
}

// Plan is the whole mapping from a definition to sites to instances.
type Plan struct {
	Definition *probe.Definition
	Image      *dwarfloc.Image
	Sites      []Site
	Instances  []Instance
}

// ErrMissingArgument is wrapped by NewPlan's error when a site lacks an argument
// and Options.Missing is Fail.
var ErrMissingArgument = errors.New("not every argument is fetched at every site")

// NewPlan expands a definition over an image and writes the prologue of each
// site. Errors about the definition are a *probe.Error and point into its text.
func NewPlan(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, o Options) (*Plan, error) {
	if len(def.Args) > prologue.MaxArgs {
		return nil, probe.Errorf(def, def.Args[prologue.MaxArgs].Pos, "at most %d arguments fit into registers, the definition has %d", prologue.MaxArgs, len(def.Args))
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
	var keys keySet
	var emitter prologue.Emitter
	var wanted []prologue.Arg
	po := prologueOptions(img, o)
	for i, s := range sites {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		ps := &p.Sites[i]
		ps.Site, ps.Instance = s, -1
		if ps.Args, err = find.arguments(s); err != nil {
			return nil, err
		}
		wanted = fetches(wanted[:0], ps.Args)
		code, err := emitter.Emit(wanted, &po)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", s, err)
		}
		noteUnfetched(ps.Args, code.Unfetched)
		if missing := slices.IndexFunc(ps.Args, func(a Argument) bool { return !a.Fetched() }); missing >= 0 {
			switch o.Missing {
			case Skip:
				continue
			case Fail:
				a := &ps.Args[missing]
				return nil, probe.Errorf(def, def.Args[a.Arg].Pos, "%w: %v: argument %q: %v", ErrMissingArgument, s, a.Name, a.Unfetched)
			}
		}
		n, first := keys.number(code.Key)
		if first {
			pro, err := Emit(s, ps.Args, o) // with comments
			if err != nil {
				return nil, err
			}
			p.Instances = append(p.Instances, Instance{Number: n, Prologue: pro})
		}
		ps.Instance = n
		p.Instances[n].Sites = append(p.Instances[n].Sites, i)
	}
	return p, p.checkNames()
}

// NewArgument is the argument that fetches a variable: as many bytes as the type
// of the debug information has, or fewer, when the definition's type is narrower. A
// definition's wider type changes nothing: the bytes behind the object are not its
// own.
func NewArgument(name string, v *dwarfloc.Variable, want probe.TypeSpec) Argument {
	a := Argument{Name: name, Variable: v}
	var err error
	if a.Size, a.Signed, err = extent(v, want); err != nil {
		v.Loc, v.Reason = dwarfloc.Location{}, damaged(err)
	}
	return a
}

// extent is how many bytes of a variable are fetched, 0 when that is unknown, and
// how they are extended.
func extent(v *dwarfloc.Variable, want probe.TypeSpec) (size int, signed bool, err error) {
	t, err := v.Type.Resolve()
	if err != nil {
		return 0, false, err
	}
	bytes, err := t.ByteSize()
	if err != nil {
		return 0, false, err
	}
	size, signed = int(max(bytes, 0)), t.Signed
	if bytes := want.Bits / 8; want.Kind != probe.NoType && (bytes < size || size == 0) {
		size, signed = bytes, want.Kind == probe.Signed
	}
	return size, signed, nil
}

func damaged(err error) dwarfloc.Reason {
	return dwarfloc.Reason{Code: dwarfloc.Damaged, Detail: err.Error()}
}

// Emit writes the prologue that fetches arguments at a site, and notes in them
// which are not fetched, and why.
func Emit(s *dwarfloc.Site, args []Argument, o Options) (*prologue.Prologue, error) {
	po := prologueOptions(s.Image(), o)
	po.Site = s.String()
	pro, err := prologue.Emit(fetches(nil, args), po)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", s, err)
	}
	noteUnfetched(args, pro.Unfetched)
	return pro, nil
}

func prologueOptions(img *dwarfloc.Image, o Options) prologue.Options {
	return prologue.Options{Arch: img.Arch(), BigEndian: img.BigEndian(), Reads: o.Reads}
}

// fetches appends arguments as package prologue has them.
func fetches(to []prologue.Arg, args []Argument) []prologue.Arg {
	for i := range args {
		a := &args[i]
		to = append(to, prologue.Arg{Name: a.Name, Loc: a.Variable.Loc, Reason: a.Variable.Reason, Size: a.Size, Signed: a.Signed})
	}
	return to
}

func noteUnfetched(args []Argument, unfetched []prologue.Unfetched) {
	for _, u := range unfetched {
		args[u.Arg].Unfetched = u.Reason
	}
}
