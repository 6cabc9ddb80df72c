package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/argument"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/suggest"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// checkArgs checks a definition's expressions as far as that needs no site.
func checkArgs(img *dwarfloc.Image, def *probe.Definition) error {
	for i := range def.Args {
		if err := checkExpr(img, def, &def.Args[i].Expr, true); err != nil {
			return err
		}
	}
	return checkExpr(img, def, def.Options.If, false)
}

// checkExpr checks an expression. whole is set for an argument, which can stand for several.
func checkExpr(img *dwarfloc.Image, def *probe.Definition, e *syntax.Expr, whole bool) error {
	if e == nil {
		return nil
	}
	switch e.Kind {
	case syntax.KindSymbol:
		all, err := inside.File(img).SymbolAddresses(e.Name)
		if err != nil {
			return err
		}
		if _, ok := all[e.Name]; !ok {
			return probe.Errorf(def, e.Pos, "%s: no symbol %q", img.Path(), e.Name)
		}
	case syntax.KindRetval:
		if !def.Point.Return && !def.Point.Exit {
			return probe.Errorf(def, e.Pos, "$retval is there only where a function returns: FUNC%%return or FUNC%%exit")
		}
	case syntax.KindDuration:
		return probe.Errorf(def, e.Pos, "$duration is there only in the condition of a span, compared with a time: $duration > 1ms")
	case syntax.KindRegister:
		if img.Arch().RegisterByName(e.Name) == nil {
			return probe.Errorf(def, e.Pos, "no register %q on %s%s", e.Name, img.Arch().Name, nearestRegister(img, e.Name))
		}
	case syntax.KindParams, syntax.KindVars:
		if !whole {
			return probe.Errorf(def, e.Pos, "%s stands for several arguments, and cannot be an operand", e)
		}
	case syntax.KindString:
		if whole {
			return probe.Errorf(def, e.Pos, "a string can only be compared (==, !=, ~)")
		}
	case syntax.KindFloat:
		if whole {
			return probe.Errorf(def, e.Pos, "a number with a point can only be compared")
		}
	case syntax.KindWide:
		if whole {
			return probe.Errorf(def, e.Pos, "a number of more than 64 bits can only be compared")
		}
	}
	for _, s := range e.Path {
		if err := checkExpr(img, def, s.IndexBy, false); err != nil {
			return err
		}
	}
	if err := checkExpr(img, def, e.A, false); err != nil {
		return err
	}
	return checkExpr(img, def, e.B, false)
}

func nearestRegister(img *dwarfloc.Image, name string) string {
	var names []string
	for _, r := range img.Arch().Registers() {
		names = append(names, r.Name)
		if r.KernelName != "" {
			names = append(names, r.KernelName)
		}
	}
	if near := suggest.Nearest(name, slices.Values(names), 3); len(near) > 0 {
		return "; nearest: " + strings.Join(near, ", ")
	}
	return ""
}

// shape returns what decides which bytes of variables are fetched.
func (o *Options) shape() argument.Options {
	return argument.Options{Convention: o.Convention, StringBytes: o.stringBytes()}
}

// arguments resolves a definition's arguments at a site, into the memory that its Args have.
func arguments(s *Site, def *probe.Definition, o *Options) ([]Argument, error) {
	shape := o.shape()
	out := s.Args[:0]
	for i := range def.Args {
		d := &def.Args[i]
		vars, err := variables(s, d)
		if err != nil {
			return nil, err
		}
		if n := len(out) + len(vars); n > prologue.MaxRecordArgs {
			return nil, tooMany(def, d, s.Site)
		}
		out = slices.Grow(out, len(vars))
		for _, v := range vars {
			if r := o.atReturn(v); s.Return && r.Code != reasons.None {
				v = argument.Without(v, r)
			}
			name := d.Name
			if d.Expr.Kind.Several() {
				name = free(v.Name, out)
			}
			out = append(out, Argument{DefinitionArg: i, Type: d.Type})
			a := &out[len(out)-1] // not a variable that is copied, which would be allocated
			a.Variable = argument.Set(&a.Arg, name, v, d.Type, shape)
			a.User = d.User
			if doubt := a.Doubt(); doubt != reasons.None {
				a.Doubtful = true
				if o.Doubt == DoubtMissing || o.Doubt == DoubtMark && i < o.held {
					a.Loc, a.Length, a.Reason = loc.Location{}, loc.Location{}, loc.Reason{Code: doubt}
				}
			}
			if d.Expr.Kind == syntax.KindComm {
				a.Kind = prologue.KindComm
			}
		}
	}
	return out, nil
}

// atReturn returns the reason why a variable cannot be fetched where its function returns.
func (o *Options) atReturn(v *dwarfloc.Variable) loc.Reason {
	if reasons.Mistaken(v.Reason.Code) {
		return loc.Reason{}
	}
	if v.Role == dwarfloc.RoleParameter || v.Role == dwarfloc.RoleLocal || v.OfFunction {
		return loc.Reason{Code: reasons.NotAtSite, Detail: "the function has returned"}
	}
	inImage := false
	v.Loc.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) { inImage = inImage || n.Op == ops.Addr })
	})
	if inImage && o.moves {
		// The kernel sets the instruction pointer to the return address before it calls
		// programs (handle_trampoline in kernel/events/uprobes.c), and that is the caller's,
		// in whichever image.
		return loc.Reason{Code: reasons.LoadBias}
	}
	return loc.Reason{}
}

// free returns a name that no argument has: name itself, or name with a number after it.
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

// variables returns the variables that an argument stands for at a site: one, or, for
// $params and $vars, several.
func variables(s *Site, d *probe.Arg) ([]*dwarfloc.Variable, error) {
	switch d.Expr.Kind {
	case syntax.KindParams:
		return referents(s.Params())
	case syntax.KindVars:
		return referents(s.Variables())
	}
	e := &d.Expr
	if e.Kind == syntax.KindFrame && s.Return {
		// Where a function has returned, the stack pointer is what its frame address was.
		e = &syntax.Expr{Kind: syntax.KindStackAddr}
	}
	v, err := compute.Resolve(s.Site, e)
	return []*dwarfloc.Variable{v}, err
}

// maxReferent is the size in bytes of the largest structure behind a C++ reference that
// $params and $vars fetch. Of larger ones they give the address: a record has little room.
const maxReferent = 64

// referents replaces C++ references by what they refer to.
func referents(vars []*dwarfloc.Variable, err error) ([]*dwarfloc.Variable, error) {
	if err != nil {
		return nil, err
	}
	out, copied := vars, false
	for i, v := range vars {
		r, err := compute.Referent(v)
		if err != nil {
			return nil, err
		}
		if size, err := r.Type.ByteSize(); err == nil && size <= maxReferent && r != v {
			if !copied {
				out, copied = slices.Clone(vars), true
			}
			out[i] = r
		}
	}
	return out, nil
}
