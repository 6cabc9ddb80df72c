package witness

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/claim"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Param is what debug information alone says of a parameter where a body begins.
type Param struct {
	Name    string
	Type    *types.Type
	Loc     loc.Location
	Located bool // the whole value is at Loc
}

// Reader returns the parameters of the body at a spot, in order. They are valid until it is called again. Package resolve has it.
type Reader func(s *entries.Spot) ([]Param, error)

// observed is what debug information says of the parameters of an inlined body, and what its first instructions do.
type observed struct {
	params    []parameter
	letters   []byte // see claim.Kind
	volatile  bool   // a parameter points to something volatile
	facts     *Facts
	about     *groups // nil, or those that speak: witnesses of other kinds are left out
	constants []uint64
	handed    []handed // nothing in a function that loses nothing
	hands     bool     // handed is asked for
	mute      bool     // no witness speaks of parameters of such types
	onlyOnWay bool     // none does but instructions of the straight way
	chain     []link   // memory of handOn
	reader    func() Reader
	own       Reader // of the body's parameters; made by reader when it is needed
	inner     Reader // of those of a body that is inlined into it, likewise
	straight  body.Straight
	kinds     []claim.Kind // of the witnesses
	first     []int        // for each the first one, by its number in straight.Found
}

// parameter is one of them. Pointers are what witnesses speak of. Another one as wide may be what a witness is
// about.
type parameter struct {
	name     string
	pointer  bool
	volatile bool // what it points to
	function bool // it points to one
	wide     bool
	loc      loc.Location
	sure     bool // value is what debug information says where the body begins
	value    body.Value
	arg      argument
	compares bool // arg is known
	passes   bool // the function passes it on
}

// read reads the body at a spot. ok is false if there is no witness.
func (o *observed) read(s *entries.Spot) (ok bool, err error) {
	if o.own == nil {
		o.own = o.reader()
	}
	params, err := o.own(s)
	if err != nil {
		return false, err
	}
	o.params, o.letters, o.constants, o.volatile = o.params[:0], o.letters[:0], o.constants[:0], false
	o.kinds, o.first, o.handed = o.kinds[:0], o.first[:0], o.handed[:0]
	word := s.U.Img.Arch().WordSize
	functions, pointers := false, false
	function, hands := "", false
	if o.hands {
		function = s.U.Index.NameOf(s.U.NameRefOf(&s.U.Recs[s.Rec]))
		hands = claim.Passes(function)
	}
	for i := range params {
		x := &params[i]
		p := parameter{name: x.Name, sure: x.Located && x.Loc.Doubt == reasons.None, loc: x.Loc}
		t, err := x.Type.Resolve()
		p.pointer = err == nil && t.Kind == types.Pointer
		if p.pointer {
			p.volatile, p.function = o.facts.pointsTo(s.U, t)
		}
		p.wide = err != nil || t.Kind != types.Float && (t.Size <= 0 || t.Size >= int64(word))
		if hands {
			p.arg, p.passes = argumentOf(x, word), claim.PassesOn(function, x.Name)
		}
		pointers = pointers || p.pointer
		o.volatile, functions = o.volatile || p.volatile, functions || p.function
		letter, constant := byte(claim.IsLost), uint64(0)
		switch {
		case x.Located && x.Loc.Kind == loc.KindConstant:
			// Also where it is doubtful what was passed: it is what the body was compiled for.
			letter, constant = claim.IsConstant, x.Loc.Expr.K
		case x.Located:
			letter = claim.IsLocated
		}
		o.params, o.letters, o.constants = append(o.params, p), append(o.letters, letter), append(o.constants, constant)
	}
	o.onlyOnWay = false
	if o.mute = !pointers && !hands; o.mute {
		return false, nil
	}
	if ok, err = o.straight.Begin(s.U.Img.Code); !ok || err != nil {
		return false, err
	}
	o.onlyOnWay = !functions && !hands
	for i := range o.params {
		p := &o.params[i]
		if p.wide && p.sure {
			p.value, p.sure = symbolOf(o.straight.Trace, &p.loc)
		}
	}
	if hands {
		for i := range o.params {
			o.params[i].compares = o.params[i].arg.set(o.straight.Trace, &o.params[i].loc, word)
		}
		if err := o.handOn(s); err != nil {
			return false, err
		}
	}
	if !pointers {
		return len(o.handed) > 0, nil
	}
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil {
		return false, err
	}
	if err := o.straight.Follow(s.U.Img.Code, s.Addr, ranges, s.U.Img.Arch().Args); err != nil {
		return false, err
	}
	if functions {
		var parts []dw.Range
		every := func(*index.Rec) (bool, error) { return true, nil }
		whole, err := inner(s, false, &o.facts.spot, every, func(ranges []dw.Range) bool {
			parts = append(parts, ranges...)
			return true
		})
		if err != nil {
			return false, err
		}
		if whole { // else it is not known which calls are the body's own
			o.straight.Called(s.U.Img.Code, ranges, parts)
		}
	}
	for i := range o.straight.Found {
		w := &o.straight.Found[i]
		k := claim.Kind{Shape: w.Shape, Register: w.Register, Call: w.Call, Target: w.Target}
		if w.Loads {
			is, err := o.facts.statement(s, w)
			if err != nil {
				return false, err
			}
			// What is loaded for an argument is what a load of the same block has as its address: the body's own, wherever that is counted to.
			if k.Member = !is; k.Member && !o.straight.Ends {
				continue
			}
		}
		if o.about != nil && !o.about.acts[k] {
			continue
		}
		if k.Line, k.Column, err = o.facts.positionAt(s.U, w.Addr); err != nil {
			return false, err
		}
		if !slices.Contains(o.kinds, k) {
			o.kinds, o.first = append(o.kinds, k), append(o.first, i)
		}
	}
	return len(o.kinds)+len(o.handed) > 0, nil
}

// mayHave reports whether the body at a spot may have a witness that is an instruction of the straight way.
func (o *observed) mayHave(s *entries.Spot) (bool, error) {
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil {
		return false, err
	}
	return o.straight.MayFind(s.U.Img.Code, s.Addr, ranges)
}

// canBeOf reports whether a witness can be about a parameter: a load in a function that has parameters which point to something volatile is of one
// of them.
func (o *observed) canBeOf(p *parameter, w *body.Witness) bool {
	return (!w.Loads || p.volatile || !o.volatile) && (!w.Target || p.function)
}

// aboutAnother reports whether a witness may be about another parameter than one: about a pointer that is lost too, or about what it has a
// fixed distance from. Where both were known they may have had one, as those of note(p, &p->member).
func (o *observed) aboutAnother(one int, w *body.Witness) bool {
	for i := range o.params {
		p := &o.params[i]
		if i == one || !p.wide || o.letters[i] == claim.IsConstant {
			continue
		}
		if !p.sure && p.pointer || p.sure && o.straight.Trace.Plus(w.Value, p.value, ^uint64(0)).IsConstant() {
			return true
		}
	}
	return false
}

// asked returns what debug information says of the parameters, with one that is asked about.
func (o *observed) asked(i int) string {
	letters := slices.Clone(o.letters)
	letters[i] = claim.IsAsked
	return string(letters)
}

// argumentOf returns it without its value.
func argumentOf(p *Param, word int) (x argument) {
	x.form, x.size = formOf(p.Type, word)
	x.sure = x.form != noForm && p.Located && p.Loc.Doubt == reasons.None
	return x
}

// handOn sets what the body at a spot hands on to those that begin where it does.
func (o *observed) handOn(s *entries.Spot) error {
	u, recs, word := s.U, s.U.Recs, s.U.Img.Arch().WordSize
	o.chain = append(o.chain[:0], link{s.Rec, 0})
	for i := s.Rec + 1; int(i) < len(recs) && recs[i].Parent >= s.Rec; i++ {
		if !entries.Inlined(&recs[i]) {
			continue
		}
		for o.chain[len(o.chain)-1].rec > recs[i].Parent { // the first one is not
			o.chain = o.chain[:len(o.chain)-1]
		}
		if o.chain[len(o.chain)-1].rec != recs[i].Parent {
			continue // what has it begins elsewhere
		}
		inner := &o.facts.spot
		if ok, err := u.Read(i, inner); err != nil {
			return err
		} else if !ok || inner.Addr != s.Addr || inner.CallColumn == 0 {
			continue
		}
		hash, err := o.facts.hashOf(u, i)
		if err != nil {
			return err
		}
		shape := mix(o.chain[len(o.chain)-1].shape, hash, uint64(inner.CallLine), uint64(inner.CallColumn))
		o.chain = append(o.chain, link{i, shape})
		if o.about != nil && !o.about.hands(shape) {
			continue
		}
		if o.inner == nil {
			o.inner = o.reader()
		}
		params, err := o.inner(inner)
		if err != nil {
			return err
		}
		for n := range params {
			p := &params[n]
			if x := argumentOf(p, word); x.set(o.straight.Trace, &p.Loc, word) {
				o.handed = append(o.handed, handed{claim.Kind{Shape: shape, Register: uint16(n), Call: true, Inner: true}, x, i, p.Name})
			}
		}
	}
	return nil
}

// mayHand reports whether another parameter than one may be what is handed on: it is lost too, or equal.
func (o *observed) mayHand(one int, h *handed) bool {
	for i := range o.params {
		p := &o.params[i]
		if i == one || !p.arg.takes(h) {
			continue
		}
		if d := o.straight.Trace.Plus(h.of.value, p.arg.value, ^uint64(0)); !p.compares || d.IsConstant() && d.Const == 0 {
			return true
		}
	}
	return false
}
