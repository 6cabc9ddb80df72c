package witness

import (
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/claim"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// What a body passes on to a body that is inlined into it is known where debug information says what that one's parameter is. Equal values alone do not
// show that a function passes its parameter on: it may pass on another one under a condition, or a part of it, that bodies which know both do not
// have. So it is said of functions of kernels alone whose sources say it (claim.PassesOn), where the inner body begins at the same address, for
// the same parameter of the same functions, called at the same line and column; and if the bodies that know both say so too.

// handed is a parameter of an inner body.
type handed struct {
	kind claim.Kind
	of   argument
	rec  int32  // of the inner body
	name string // of its parameter
}

// argument is what can be compared of a parameter.
type argument struct {
	form  form
	size  int64
	sure  bool
	value body.Value // where the outer body begins
}

// form tells apart what is not passed on as one another.
type form uint8

const (
	noForm  form = iota // is not compared
	pointer             //
	integer             // and enumerations
	whole               // a structure or union as wide as a register
)

// formOf returns the form of a type.
func formOf(t *types.Type, word int) (form, int64) {
	t, err := t.Resolve()
	if err != nil || t.Size <= 0 || t.Size > int64(word) {
		return noForm, 0
	}
	switch t.Kind {
	case types.Pointer:
		return pointer, t.Size
	case types.Int, types.Bool, types.Char, types.Enum:
		return integer, t.Size
	case types.Struct, types.Union:
		if t.Size == int64(word) {
			return whole, t.Size
		}
	}
	return noForm, 0
}

// argumentOf returns it without its value.
func argumentOf(p *Param, word int) (x argument) {
	x.form, x.size = formOf(p.Type, word)
	x.sure = x.form != noForm && p.Located && p.Loc.Doubt == reasons.None
	return x
}

// set sets the value. ok is false if it cannot be compared: what is as wide as a register can be, and small numbers, which are the same whatever
// their width.
func (x *argument) set(t *body.Trace, l *loc.Location, word int) (ok bool) {
	if !x.sure {
		return false
	}
	if x.value, ok = symbolOf(t, l); !ok {
		return false
	}
	if x.form == integer && x.value.IsConstant() {
		return isSmall(x.value.Const, x.size)
	}
	return x.size == int64(word) && (x.form != whole || l.Kind != loc.KindConstant)
}

// isSmall reports whether a number is the same in an integer of some bytes, signed or not, and in a wider one.
func isSmall(n uint64, bytes int64) bool { return n>>(8*min(bytes, 4)-1) == 0 }

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

// link is a body that is inlined into that of the link before it, and the hash of the way there.
type link struct {
	rec   int32
	shape uint64
}

// mix returns a hash of numbers.
func mix(of ...uint64) uint64 {
	h := fnv.New64a()
	var b [8]byte
	for _, n := range of {
		binary.LittleEndian.PutUint64(b[:], n)
		_, _ = h.Write(b[:])
	}
	return h.Sum64()
}

// takes reports whether a parameter may be what is handed on: the value is one of the parameter's type.
func (p *argument) takes(h *handed) bool {
	if p.form != h.of.form {
		return false
	}
	if p.form == integer && h.of.value.IsConstant() {
		return h.of.size >= p.size && isSmall(h.of.value.Const, p.size)
	}
	return p.size == h.of.size
}

// addHanded adds the controls of what a body hands on.
func (g *groups) addHanded(o *observed) {
	for i := range o.params {
		p := &o.params[i]
		if !p.passes || !p.arg.sure {
			continue
		}
		for n := range o.handed {
			h := &o.handed[n]
			if !p.arg.takes(h) {
				continue
			}
			x := g.group(i, h.kind)
			if !p.compares {
				if h.of.value.IsConstant() {
					x.Contradict()
				}
				continue
			}
			switch d := o.straight.Trace.Plus(h.of.value, p.arg.value, ^uint64(0)); {
			case d.IsConstant():
				x.Add("", d.Const, p.arg.value.Const, p.arg.value.IsConstant(), nil)
			case h.of.value.IsConstant():
				// A number that is known in the inner body alone may be what a condition has made of it.
				x.Contradict()
			default:
				x.Undecided++
			}
		}
	}
}

// undecided is how many controls are equal for each whose values could not be compared: one may be in two registers.
const undecided = 10

// handsOn returns which parameter of an inner body is a parameter of the body, by its number in o.handed, or -1, and how many controls say so. All that
// may say it have to agree.
func (g *groups) handsOn(o *observed, parameter int) (n, controls int) {
	p := &o.params[parameter]
	n = -1
	if !p.passes {
		return n, 0
	}
	for i := range o.handed {
		h := &o.handed[i]
		if !p.arg.takes(h) || o.mayHand(parameter, h) {
			continue
		}
		x := g.by[groupKey{parameter, h.kind}]
		if x == nil {
			continue
		}
		equal, _ := x.Counts()
		if d, ok := x.Distance("", nil); !ok || d != 0 || x.Undecided*undecided > equal {
			continue
		}
		if n < 0 {
			n, controls = i, equal
			continue
		}
		if d := o.straight.Trace.Plus(h.of.value, o.handed[n].of.value, ^uint64(0)); !d.IsConstant() || d.Const != 0 {
			return -1, 0
		}
	}
	return n, controls
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

// withHanded returns o with what is handed on of the parameters that are lost: the witness of another one may be in bodies alone where they are known. It
// returns nil if there is none.
func (o *observed) withHanded(g *groups) *observed {
	var all *observed
	for i := range o.params {
		if len(o.handed) == 0 || o.letters[i] != claim.IsLost {
			continue
		}
		n, _ := g.handsOn(o, i)
		if n < 0 {
			continue
		}
		if all == nil {
			with := *o
			all = &with
			all.params, all.letters, all.constants = slices.Clone(o.params), slices.Clone(o.letters), slices.Clone(o.constants)
		}
		v := o.handed[n].of.value
		all.params[i].value, all.params[i].sure = v, true
		if all.letters[i] = claim.IsLocated; v.IsConstant() {
			all.letters[i], all.constants[i] = claim.IsConstant, v.Const
		}
	}
	return all
}
