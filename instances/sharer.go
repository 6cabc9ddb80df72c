package instances

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Sharer writes the prologues of whole images and shares equal ones: all
// parameters of a site, as many in a prologue as the convention carries: registers
// unless Options ask for records. It keeps one key for each distinct prologue and nothing of a site. It
// is for one goroutine: give each its own and add them up with Merge.
type Sharer struct {
	emitter prologue.Emitter
	options prologue.Options
	o       Options
	keys    keySet
	plain   memo
	totals  Totals

	// Memory of the last answer.
	args   []prologue.Arg
	groups []Group
}

// Totals are what a Sharer has written.
type Totals struct {
	Prologues    int `json:"prologues"`    // of all sites
	Distinct     int `json:"distinct"`     // of these
	Instructions int `json:"instructions"` // of all prologues
	HelperCalls  int `json:"helper_calls"` // of all prologues
}

// Group is parameters of a site that one prologue fetches.
type Group struct {
	Params       []*dwarfloc.Variable
	Number       int  // equal for equal prologues; counts from 0
	First        bool // the Sharer has not seen the prologue before
	Instructions int
	HelperCalls  int // when no read faults
}

// NewSharer makes a Sharer for the sites of an image.
func NewSharer(img *dwarfloc.Image, o Options) *Sharer {
	if o.Convention == Auto {
		o.Convention = Registers
	}
	return &Sharer{options: prologueOptions(img, &o, o.convention()), o: o}
}

// fit is how many parameters, from the first one on, are fetched together. Those of
// a record leave half of the stack to the prologue and to the program.
func (s *Sharer) fit(params []*dwarfloc.Variable) int {
	most, room := prologue.MaxArgs, prologue.StackLimit/2
	if s.options.Convention == prologue.Record {
		most = prologue.MaxRecordArgs
	}
	s.args = s.args[:0]
	for i, v := range params[:min(len(params), most)] {
		a := Argument{Variable: v}
		var p prologue.Arg
		if err := a.shape(probe.TypeSpec{}, &s.o); err != nil {
			p.Reason = damaged(err)
		} else {
			p = prologue.Arg{Kind: a.Kind, Signed: a.Signed, Loc: v.Loc, Reason: v.Reason, Size: a.Size}
		}
		if s.options.Convention == prologue.Record {
			if room -= prologue.NewLayout([]prologue.Arg{p}).Size; room < 0 && i > 0 {
				break
			}
		}
		s.args = append(s.args, p)
	}
	return len(s.args)
}

// Parameters writes and shares the prologues for the parameters of one site. The
// answer is lent until the next call.
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
	if s.options.Convention == prologue.Registers {
		p = plainOf(args)
	}
	known := s.plain.entry(p)
	if p != 0 && known.plain == p {
		g.Number, g.Instructions = int(known.number), int(known.insns)
	} else {
		c, err := s.emitter.Emit(args, &s.options)
		if err != nil {
			return Group{}, fmt.Errorf("a prologue of %d parameters: %w", len(params), err)
		}
		g.Instructions, g.HelperCalls = c.Insns, c.Helpers
		g.Number, g.First = s.keys.number(c.Key)
		if p != 0 { // there are no helper calls to remember
			*known = remembered{p, uint32(g.Number), uint32(c.Insns)}
		}
	}
	s.totals.Prologues++
	s.totals.Instructions += g.Instructions
	s.totals.HelperCalls += g.HelperCalls
	return g, nil
}

// Totals returns what was written so far.
func (s *Sharer) Totals() Totals {
	t := s.totals
	t.Distinct = s.keys.len()
	return t
}

// Merge adds what another Sharer has written for the same image. Prologues that
// are new get numbers of this one.
func (s *Sharer) Merge(o *Sharer) {
	s.keys.merge(&o.keys)
	s.totals.Prologues += o.totals.Prologues
	s.totals.Instructions += o.totals.Instructions
	s.totals.HelperCalls += o.totals.HelperCalls
}
