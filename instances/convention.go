package instances

import (
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Convention says how a program is to get its arguments.
type Convention uint8

const (
	// Auto is registers when all sites have at most three scalars, else a record.
	Auto Convention = iota
	// Registers is up to three scalars in registers.
	Registers
	// Record is a record, whatever the arguments.
	Record
)

// DefaultStringBytes is how many bytes a string has in a record, its NUL included.
const DefaultStringBytes = 64

func (o *Options) stringBytes() int {
	if o.StringBytes > 0 {
		return o.StringBytes
	}
	return DefaultStringBytes
}

// convention is the one for arguments of some sites.
func (o *Options) convention(sites ...[]Argument) prologue.Convention {
	switch o.Convention {
	case Registers:
		return prologue.Registers
	case Record:
		return prologue.Record
	}
	for _, args := range sites {
		if len(args) > prologue.MaxArgs || slices.ContainsFunc(args, func(a Argument) bool { return a.Kind != prologue.Scalar }) {
			return prologue.Record
		}
	}
	return prologue.Registers
}

// choose decides about the plan's convention, and makes errors of what it does not
// carry.
func (p *Plan) choose(o *Options) error {
	sites := make([][]Argument, len(p.Sites))
	for i := range p.Sites {
		sites[i] = p.Sites[i].Args
	}
	p.Convention = o.convention(sites...)
	def := p.Definition
	for i, args := range sites {
		if p.Convention == prologue.Record {
			if len(args) > prologue.MaxRecordArgs {
				a := &args[prologue.MaxRecordArgs]
				return probe.Errorf(def, def.Args[a.Arg].Pos, "%v: at most %d arguments fit into a record, and this one is beyond them", p.Sites[i].Site, prologue.MaxRecordArgs)
			}
			continue
		}
		if len(args) > prologue.MaxArgs {
			a := &args[prologue.MaxArgs]
			return probe.Errorf(def, def.Args[a.Arg].Pos, "at most %d arguments fit into registers, and %d are fetched; a record holds more (--convention record)", prologue.MaxArgs, len(args))
		}
		for j := range args {
			if a := &args[j]; a.Kind != prologue.Scalar {
				return probe.Errorf(def, def.Args[a.Arg].Pos, "%s does not fit into a register; a record holds it (--convention record)", kindText(a))
			}
		}
	}
	return nil
}

func kindText(a *Argument) string {
	switch a.Kind {
	case prologue.String, prologue.UserString:
		return "a string"
	case prologue.Comm:
		return "a task's name"
	}
	return fmt.Sprintf("an object of %d bytes", a.Size)
}

// Layout says where the site's arguments are in a record.
func (s *Site) Layout() prologue.Layout { return prologue.NewLayout(fetches(nil, s.Args)) }

// agree gives arguments of unknown shape, such as one that a function does not have,
// that of the other sites, and strings the longest bound of all, so that as many sites
// as can be have one layout. $params and $vars stand for other arguments at each site.
func (p *Plan) agree() {
	for i := range p.Definition.Args {
		if k := p.Definition.Args[i].Expr.Kind; k == probe.Params || k == probe.Vars {
			return
		}
	}
	for i := range p.Definition.Args {
		var model *Argument
		bound := 0
		for j := range p.Sites {
			a := &p.Sites[j].Args[i]
			bound = max(bound, a.Bound)
			if model == nil && !shapeless(a) {
				model = a
			}
		}
		for j := range p.Sites {
			a := &p.Sites[j].Args[i]
			if shapeless(a) && model != nil {
				a.Kind, a.Size, a.Signed = model.Kind, model.Size, model.Signed
			}
			if a.Kind == prologue.String || a.Kind == prologue.UserString {
				a.Bound = bound
			}
		}
	}
}

// shapeless reports whether nothing is known of an argument's type.
func shapeless(a *Argument) bool {
	return a.Kind == prologue.Scalar && (a.Size == 0 || mistaken(a.Variable.Reason.Code)) && a.Variable.Reason.Code != dwarfloc.Located
}
