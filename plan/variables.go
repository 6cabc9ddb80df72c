package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/suggest"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// finder turns a definition's arguments into variables of sites.
type finder struct {
	def     *probe.Definition
	symbols map[string]uint64 // addresses of those that the definition names
}

// newFinder checks what can be checked without a site.
func newFinder(img *dwarfloc.Image, def *probe.Definition) (*finder, error) {
	f := &finder{def: def, symbols: make(map[string]uint64)}
	for i := range def.Args {
		e := &def.Args[i].Expr
		switch e.Kind {
		case probe.KindSymbol:
			all, err := img.SymbolAddresses(e.Name)
			if err != nil {
				return nil, err
			}
			addr, ok := all[e.Name]
			if !ok {
				return nil, probe.Errorf(def, e.Pos, "%s: no symbol %q", img.Path(), e.Name)
			}
			f.symbols[e.Name] = addr
		case probe.KindRetval:
			if !def.Point.Return {
				return nil, probe.Errorf(def, e.Pos, "$retval is there only where a function returns: FUNC%%return")
			}
		case probe.KindRegister:
			if img.Arch().RegisterByName(e.Name) == nil {
				return nil, probe.Errorf(def, e.Pos, "no register %q on %s%s", e.Name, img.Arch().Name, nearestRegister(img, e.Name))
			}
		}
	}
	return f, nil
}

func nearestRegister(img *dwarfloc.Image, name string) string {
	var names []string
	for _, r := range img.Arch().Registers() {
		names = append(names, r.Name)
		if k := img.Arch().KernelName(&r); k != "" {
			names = append(names, k)
		}
	}
	if near := suggest.Nearest(name, slices.Values(names), 3); len(near) > 0 {
		return "; nearest: " + strings.Join(near, ", ")
	}
	return ""
}

// arguments finds the definition's arguments at a site.
func (f *finder) arguments(s *dwarfloc.Site, o *Options) ([]Argument, error) {
	out := make([]Argument, 0, len(f.def.Args))
	for i := range f.def.Args {
		d := &f.def.Args[i]
		vars, err := f.variables(s, d)
		if err != nil {
			return nil, err
		}
		for _, v := range vars {
			if f.def.Point.Return && (v.Role == dwarfloc.Parameter || v.Role == dwarfloc.Local) && !mistaken(v.Reason.Code) {
				v = without(v, loc.Reason{Code: loc.ReasonNotAtSite, Detail: "the function has returned"})
			}
			name := d.Name
			if d.Expr.Kind == probe.KindParams || d.Expr.Kind == probe.KindVars {
				name = free(v.Name, out)
			}
			a := NewArgument(name, v, d.Type, *o)
			a.DefinitionArg, a.User = i, d.User
			if d.Expr.Kind == probe.KindComm {
				a.Kind = prologue.Comm
			}
			out = append(out, a)
		}
	}
	return out, nil
}

// free returns a name that no argument has: the name itself, or with a number after it.
func free(name string, args []Argument) string {
	if name == "" {
		name = "arg"
	}
	base := name
	for n := 2; slices.ContainsFunc(args, func(a Argument) bool { return a.Name == name }); n++ {
		name = base + "_" + strconv.Itoa(n)
	}
	return name
}

// variables finds what an argument stands for at a site: one variable, or, for $params
// and $vars, several.
func (f *finder) variables(s *dwarfloc.Site, d *probe.Arg) ([]*dwarfloc.Variable, error) {
	switch d.Expr.Kind {
	case probe.KindParams:
		return s.Params()
	case probe.KindVars:
		return f.all(s)
	}
	v, err := f.variable(s, &d.Expr)
	if err != nil || len(d.Expr.Path) == 0 || mistaken(v.Reason.Code) {
		return []*dwarfloc.Variable{v}, err
	}
	path := make([]dwarfloc.Step, len(d.Expr.Path))
	for i, p := range d.Expr.Path {
		path[i] = dwarfloc.Step{Member: p.Member, Index: p.Index}
		switch p.Kind {
		case probe.StepArrow:
			path[i].Kind = dwarfloc.StepArrow
		case probe.StepIndex:
			path[i].Kind = dwarfloc.StepIndex
		}
		if p.IndexBy == nil {
			continue
		}
		by, err := f.variable(s, p.IndexBy)
		if err != nil {
			return nil, err
		}
		if by.Reason.Code == loc.ReasonNoSuchVariable {
			by.Wrong = &dwarfloc.PathError{Step: i, Msg: "no variable " + strconv.Quote(p.IndexBy.Name) + " to index by"}
			by.Reason.Code, by.Reason.Detail = loc.ReasonTypeMismatch, by.Wrong.Msg
			return []*dwarfloc.Variable{by}, nil
		}
		path[i].By = by
	}
	v, err = s.Follow(v, path)
	return []*dwarfloc.Variable{v}, err
}

// variable finds what an expression begins with.
func (f *finder) variable(s *dwarfloc.Site, e *probe.Expr) (*dwarfloc.Variable, error) {
	switch e.Kind {
	case probe.KindRetval:
		return s.Result()
	case probe.KindRegister:
		v, _ := s.RegisterVariable(e.Name) // newFinder has looked
		return v, nil
	case probe.KindSymbol:
		return s.MemoryVariable("@"+e.Name, f.symbols[e.Name]+e.Number), nil
	case probe.KindAddress:
		return s.MemoryVariable(e.String(), e.Number), nil
	case probe.KindImmediate:
		return s.ConstantVariable(e.String(), e.Number), nil
	case probe.KindStack:
		return s.StackVariable(e.Number, false), nil
	case probe.KindStackAddr:
		return s.StackVariable(0, true), nil
	case probe.KindComm:
		return s.ConstantVariable("$comm", 0), nil // the kernel knows it, not the image
	}
	return s.Lookup(e.Name)
}

// all returns the parameters and locals in scope at a site.
func (f *finder) all(s *dwarfloc.Site) ([]*dwarfloc.Variable, error) {
	names, err := s.VariableNames()
	if err != nil {
		return nil, err
	}
	var out []*dwarfloc.Variable
	for _, n := range names {
		v, err := s.Lookup(n)
		if err != nil {
			return nil, err
		}
		if v.Role == dwarfloc.Parameter || v.Role == dwarfloc.Local {
			out = append(out, v)
		}
	}
	return out, nil
}
