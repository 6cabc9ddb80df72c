// Package share generates the prologues of all parameters of all sites of an image, and
// finds which are equal. Packages that process whole images use it: coverage counts the
// prologues, and internal/proof/prove runs and verifies each distinct one. A plan does not need
// it: it is for one definition and has some dozens of prologues.
//
// Linux 6.1 has 348,850 prologues of up to three parameters, of which 47,566 are distinct.
// So they are compared as code, before instructions are made of it (prologue.Emitter), keys
// are kept in a few large blocks of memory (keySet), and prologues of plain arguments, which
// are most of them, are not generated again (memo).
package share

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/argument"
	"github.com/bpfprologue/bpfprologue/internal/bpfstack"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Sharer generates the prologues for all parameters of sites, with as many parameters in
// each prologue as the convention carries, and numbers the distinct ones. It keeps a key for
// each distinct prologue, and nothing about sites. It is for one goroutine; use one Sharer
// for each and combine them with Merge.
type Sharer struct {
	emitter prologue.Emitter
	options prologue.Options
	shape   argument.Options
	keys    keySet
	plain   memo
	totals  Totals

	// Memory of the last answer.
	args   []prologue.Arg
	groups []Group
}

// Totals are counts of what a Sharer has generated.
type Totals struct {
	Prologues    int `json:"prologues"`    // of all sites
	Distinct     int `json:"distinct"`     // of these
	Instructions int `json:"instructions"` // of all prologues
	HelperCalls  int `json:"helper_calls"` // of all prologues
}

// Group is the parameters of a site that one prologue fetches.
type Group struct {
	Params       []*dwarfloc.Variable
	Number       int  // equal for equal prologues; counts from 0
	First        bool // the Sharer has not seen the prologue before
	Instructions int
	Rare         int // of these, that run only if a read faults or a load gives 0
	HelperCalls  int // when no read faults
}

// Options are how the prologues are made.
type Options struct {
	Reads       prologue.Reads
	Convention  prologue.Convention // ConventionAuto is ConventionRegisters
	SignExtends bool
	Stays       func(addr, size uint64) bool // of prologue.Options
}

// convention returns the convention with ConventionAuto decided.
func (o Options) convention() prologue.Convention {
	if o.Convention == prologue.ConventionAuto {
		return prologue.ConventionRegisters
	}
	return o.Convention
}

// prologue returns the options of prologues for an image.
func (o Options) prologue(img *dwarfloc.Image) prologue.Options {
	return prologue.Options{
		Arch: img.Arch(), BigEndian: inside.File(img).BigEndian(), Reads: o.Reads, Convention: o.convention(), SignExtends: o.SignExtends, Stays: o.Stays,
	}
}

// NewSharer makes a Sharer for the sites of an image.
func NewSharer(img *dwarfloc.Image, o Options) *Sharer {
	s := &Sharer{options: o.prologue(img)}
	s.shape.Convention = s.options.Convention
	return s
}

// Arguments returns the arguments that fetch the parameters of a site.
func (o Options) Arguments(params []*dwarfloc.Variable) []plan.Argument {
	shape := argument.Options{Convention: o.convention()}
	out := make([]plan.Argument, len(params))
	for i, v := range params {
		out[i].Variable = argument.Set(&out[i].Arg, v.Name, v, syntax.TypeSpec{}, shape)
	}
	return out
}

// Emit generates the prologue that fetches arguments at a site, and records in each argument
// that is not fetched why.
func Emit(s *dwarfloc.Site, args []plan.Argument, o Options) (*prologue.Prologue, error) {
	po := o.prologue(s.Image)
	po.Site = s.String()
	wanted := make([]prologue.Arg, len(args))
	for i := range args {
		wanted[i] = args[i].Arg
	}
	pro, err := prologue.Emit(wanted, po)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", s, err)
	}
	for i, r := range pro.Reasons {
		args[i].Unfetched = r
	}
	return pro, nil
}

// fit returns how many parameters, counted from the first, one prologue fetches. A record
// leaves half of the stack to the prologue and the program.
func (s *Sharer) fit(params []*dwarfloc.Variable) int {
	most, room := prologue.MaxArgs, bpfstack.Limit/2
	if s.options.Convention == prologue.ConventionRecord {
		most = prologue.MaxRecordArgs
	}
	s.args = s.args[:0]
	for i, v := range params[:min(len(params), most)] {
		s.args = append(s.args, prologue.Arg{})
		argument.Set(&s.args[i], "", v, syntax.TypeSpec{}, s.shape)
		if s.options.Convention == prologue.ConventionRecord {
			taken := 8
			if a := &s.args[i]; a.Kind == prologue.KindObject {
				taken = bpfstack.Room(a.Size)
			}
			if room -= taken; room < 0 && i > 0 {
				s.args = s.args[:i]
				break
			}
		}
	}
	return len(s.args)
}

// Parameters generates the prologues for the parameters of one site. The result is valid
// until the next call.
func (s *Sharer) Parameters(params []*dwarfloc.Variable) ([]Group, error) {
	s.groups = s.groups[:0]
	for len(params) > 0 {
		n := s.fit(params)
		g, err := s.share(params[:n])
		if err != nil {
			return nil, err
		}
		s.groups = append(s.groups, g)
		params = params[n:]
	}
	return s.groups, nil
}

func (s *Sharer) share(params []*dwarfloc.Variable) (Group, error) {
	args := s.args
	g := Group{Params: params}
	p := plain(0)
	if s.options.Convention == prologue.ConventionRegisters {
		p = plainOf(args)
	}
	known := s.plain.entry(p)
	if p != 0 && known.plain == p {
		g.Number, g.Instructions = int(known.number), int(known.insns)
	} else {
		e := &s.emitter
		if err := e.Emit(args, &s.options); err != nil {
			return Group{}, fmt.Errorf("a prologue of %d parameters: %w", len(params), err)
		}
		g.Instructions, g.Rare, g.HelperCalls = e.Insns, e.Rare, e.Helpers
		g.Number, g.First = s.keys.number(e.Key)
		if p != 0 { // there are no helper calls and nothing rare to remember
			*known = remembered{p, uint32(g.Number), uint32(e.Insns)}
		}
	}
	s.totals.Prologues++
	s.totals.Instructions += g.Instructions
	s.totals.HelperCalls += g.HelperCalls
	return g, nil
}

// Totals returns the counts so far.
func (s *Sharer) Totals() Totals {
	t := s.totals
	t.Distinct = s.keys.len()
	return t
}

// Merge adds the prologues and counts of another Sharer for the same image. New prologues
// are numbered by this Sharer.
func (s *Sharer) Merge(o *Sharer) {
	s.keys.merge(&o.keys)
	s.totals.Prologues += o.totals.Prologues
	s.totals.Instructions += o.totals.Instructions
	s.totals.HelperCalls += o.totals.HelperCalls
}
