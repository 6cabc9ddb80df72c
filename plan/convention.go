package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// defaultStringBytes is what Options.StringBytes is by default.
const defaultStringBytes = 64

func (o *Options) stringBytes() int {
	if o.StringBytes > 0 {
		return o.StringBytes
	}
	return defaultStringBytes
}

// ErrNeedsRecord is wrapped by New's error if Options.Convention is
// prologue.ConventionRegisters and an argument needs a record.
var ErrNeedsRecord = errors.New("a record is needed")

// choose decides the plan's convention.
func (p *Plan) choose(o *Options) {
	p.Convention = o.Convention
	if p.Convention == prologue.ConventionAuto {
		p.Convention = prologue.ConventionRegisters
		if slices.ContainsFunc(p.Sites, func(s Site) bool { return needsRecord(s.Args) }) {
			p.Convention = prologue.ConventionRecord
		}
	}
}

// fits returns an error for arguments that the convention cannot carry.
func (p *Plan) fits() error {
	def := p.Definition
	for i := range p.Sites {
		args := p.Sites[i].Args
		if p.Convention == prologue.ConventionRecord {
			continue
		}
		if len(args) > prologue.MaxArgs {
			a := &args[prologue.MaxArgs]
			return probe.Errorf(def, def.Args[a.DefinitionArg].Pos, "at most %d arguments fit into registers, and %d are fetched: %w", prologue.MaxArgs, len(args), ErrNeedsRecord)
		}
		for j := range args {
			if a := &args[j]; a.Kind != prologue.KindScalar {
				return probe.Errorf(def, def.Args[a.DefinitionArg].Pos, "%s does not fit into a register: %w", kindText(a), ErrNeedsRecord)
			}
		}
	}
	return nil
}

// tooMany is the error for a site where more arguments than a record can have are asked for.
func tooMany(def *probe.Definition, first *probe.Arg, s *dwarfloc.Site) error {
	return probe.Errorf(def, first.Pos, "%v: at most %d arguments fit into a record, and this one is beyond them", s, prologue.MaxRecordArgs)
}

// needsRecord reports whether a site has too many arguments for registers, or one that is not
// a scalar.
func needsRecord(args []Argument) bool {
	return len(args) > prologue.MaxArgs || slices.ContainsFunc(args, func(a Argument) bool { return a.Kind != prologue.KindScalar })
}

func kindText(a *Argument) string {
	switch a.Kind {
	case prologue.KindString, prologue.KindUserString:
		return "a string"
	case prologue.KindSlice:
		return fmt.Sprintf("a slice with elements of %d bytes", a.Size)
	case prologue.KindComm:
		return "a task's name"
	}
	return fmt.Sprintf("an object of %d bytes", a.Size)
}

// shape is what agree needs to know of an argument at all sites.
type shape struct {
	known  bool
	site   int // the first one where it is known
	kind   prologue.ArgKind
	size   int
	signed bool
	room   int // the largest that a string has
}

// shapes returns the shapes of the definition's arguments, or nil if they need not agree:
// $params and $vars stand for different arguments at each site.
func (p *Plan) shapes() []shape {
	if slices.ContainsFunc(p.Definition.Args, func(a probe.Arg) bool { return a.Expr.Kind.Several() }) {
		return nil
	}
	out := make([]shape, len(p.Definition.Args))
	for i := range out {
		for j := range p.Sites {
			a := &p.Sites[j].Args[i]
			x := shape{known: !shapeless(a), site: j, kind: a.Kind, size: a.Size, signed: a.Signed, room: a.MaxBytes}
			out[i].merge(&x)
		}
	}
	return out
}

// merge adds what is known of other sites.
func (s *shape) merge(o *shape) {
	room := max(s.room, o.room)
	if o.known && (!s.known || o.site < s.site) {
		*s = *o
	}
	s.room = room
}

// agree gives an argument of unknown shape, such as one that a function does not have, the
// shape that it has at other sites, and a string the largest room that it has at any site,
// so that as many sites as possible have the same layout.
func (p *Plan) agree(shapes []shape) {
	for i := range shapes {
		model := &shapes[i]
		for j := range p.Sites {
			a := &p.Sites[j].Args[i]
			if shapeless(a) && model.known {
				a.Kind, a.Size, a.Signed = model.kind, model.size, model.signed
			}
			if a.Kind == prologue.KindString || a.Kind == prologue.KindUserString {
				a.MaxBytes = model.room
			}
		}
	}
}

// shapeless reports whether nothing is known about an argument's type.
func shapeless(a *Argument) bool {
	return a.Kind == prologue.KindScalar && (a.Size == 0 || reasons.Mistaken(a.Variable.Reason.Code)) && a.Variable.Reason.Code != reasons.None
}
