package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
}

// Argument is one argument of the definition at one site.
type Argument struct {
	Name string
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
	sites, err := expand(ctx, img, def, o.Filter)
	if err != nil {
		return nil, err
	}
	p := &Plan{Definition: def, Image: img, Sites: make([]Site, len(sites))}
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
		if err := ps.resolve(def); err != nil {
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
				return nil, probe.Errorf(def, def.Args[missing].Pos, "%w: %v: argument %q: %v", ErrMissingArgument, s, a.Name, a.Unfetched)
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

// expand finds the sites of a definition.
func expand(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, filter glob.Matcher) ([]*dwarfloc.Site, error) {
	pattern, err := glob.Compile(def.Point.Function)
	if err != nil {
		return nil, pointError(def, err)
	}
	// An offset into a function and its return mean nothing inside an inlined
	// instance, whose code is scattered.
	entries := !def.Options.Inlines || def.Point.Offset != 0 || def.Point.Return
	sites, err := glob.Expand(ctx, img, glob.Selection{Functions: pattern, Filter: filter, Source: def.Point.Source, EntriesOnly: entries})
	if err != nil {
		var missing *glob.NotFoundError
		if errors.As(err, &missing) {
			return nil, probe.Errorf(def, def.Point.Pos, "%w", err)
		}
		return nil, pointError(def, err)
	}
	if def.Point.Offset == 0 {
		return sites, nil
	}
	var at []*dwarfloc.Site
	for _, s := range sites {
		t, ok, err := s.At(def.Point.Offset)
		if err != nil {
			return nil, err
		}
		if ok {
			at = append(at, t)
		}
	}
	if len(at) == 0 {
		return nil, probe.Errorf(def, def.Point.Pos, "offset %#x is outside the code of every matching function", def.Point.Offset)
	}
	return at, nil
}

// pointError puts an error of a pattern into the definition's text.
func pointError(def *probe.Definition, err error) error {
	var ge *glob.Error
	if errors.As(err, &ge) {
		return probe.Errorf(def, def.Point.Pos+ge.Column-1, "%s", ge.Msg)
	}
	return err
}

// resolve finds the definition's arguments at a site.
func (s *Site) resolve(def *probe.Definition) error {
	s.Args = make([]Argument, len(def.Args))
	for i := range def.Args {
		d := &def.Args[i]
		v, err := s.Lookup(d.Expr.Name)
		if err != nil {
			return err
		}
		if def.Point.Return && v.Role != dwarfloc.Global && v.Reason.Code != dwarfloc.NoSuchVariable {
			v.Loc, v.Reason = dwarfloc.Location{}, dwarfloc.Reason{Code: dwarfloc.NotAtSite, Detail: "the function has returned"}
		}
		s.Args[i] = NewArgument(d.Name, v, d.Type)
	}
	return nil
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

// checkNames makes a name that no site knows an error: the user has mistyped it.
func (p *Plan) checkNames() error {
	for i := range p.Definition.Args {
		known := slices.ContainsFunc(p.Sites, func(s Site) bool {
			return s.Args[i].Variable.Reason.Code != dwarfloc.NoSuchVariable
		})
		if known {
			continue
		}
		arg := &p.Definition.Args[i]
		names := make(map[string]struct{})
		for j := range p.Sites[:min(len(p.Sites), 64)] {
			at, err := p.Sites[j].VariableNames()
			if err != nil {
				return err
			}
			for _, n := range at {
				names[n] = struct{}{}
			}
		}
		all := make([]string, 0, len(names))
		for n := range names {
			all = append(all, n)
		}
		slices.Sort(all)
		hint := glob.Nearest(arg.Expr.Name, slices.Values(all), 3)
		text := "nearest: "
		if len(hint) == 0 {
			hint, text = all[:min(len(all), 12)], "there are: "
		}
		if len(hint) == 0 {
			return probe.Errorf(p.Definition, arg.Expr.Pos, "no variable %q in %s, which has no parameters or locals", arg.Expr.Name, p.functions())
		}
		return probe.Errorf(p.Definition, arg.Expr.Pos, "no variable %q in %s; %s%s", arg.Expr.Name, p.functions(), text, strings.Join(hint, ", "))
	}
	return nil
}

// functions names the plan's functions in an error.
func (p *Plan) functions() string {
	first := p.Sites[0].Function
	for i := range p.Sites {
		if p.Sites[i].Function != first {
			return fmt.Sprintf("any function that %q matches", p.Definition.Point.Function)
		}
	}
	return first
}
