package witness

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/claim"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// groups are those of one function.
type groups struct {
	once sync.Once
	err  error
	mu   sync.Mutex
	by   map[groupKey]*claim.Group
	// acts are the kinds without place and parameters, once all are learned.
	acts     map[claim.Kind]bool
	anyInner bool // there is one of what is handed on
}

// act is a kind without place and parameters.
func act(k claim.Kind) claim.Kind {
	if k.Line, k.Column, k.Params = 0, 0, ""; k.Inner {
		k.Register = 0
	}
	return k
}

// setActs sets acts.
func (g *groups) setActs() {
	g.acts = make(map[claim.Kind]bool)
	for k := range g.by {
		g.acts[act(k.Kind)] = true
		g.anyInner = g.anyInner || k.Inner
	}
}

type groupKey struct {
	parameter int
	claim.Kind
}

// newGroups returns groups of which none speaks yet.
func newGroups() *groups { return &groups{by: make(map[groupKey]*claim.Group)} }

// add adds the controls of a body.
func (g *groups) add(o *observed) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.addHanded(o)
	for i := range o.params {
		p := &o.params[i]
		if !p.pointer || !p.sure {
			continue
		}
		params := o.asked(i)
		for n, k := range o.kinds {
			if !o.canBeOf(p, &o.straight.Found[o.first[n]]) {
				continue
			}
			k.Params = params
			x := g.group(i, k)
			if d := o.straight.Trace.Plus(o.straight.Found[o.first[n]].Value, p.value, ^uint64(0)); d.IsConstant() {
				x.Add(params, d.Const, p.value.Const, p.value.IsConstant(), o.constants)
			} else {
				x.Undecided++
			}
		}
	}
}

// group returns the group of a parameter and a kind.
func (g *groups) group(parameter int, k claim.Kind) *claim.Group {
	x := g.by[groupKey{parameter, k}]
	if x == nil {
		x = new(claim.Group)
		g.by[groupKey{parameter, k}] = x
	}
	return x
}

// hands reports whether something is said of what is handed on in a way.
func (g *groups) hands(shape uint64) bool {
	return g.acts[claim.Kind{Shape: shape, Call: true, Inner: true}]
}

// says returns the kind of the witness of a body that says a parameter, by its number, or -1, and how many controls do. known is asked whether a witness's value less a distance can be fetched.
func (g *groups) says(o *observed, parameter int, known func(w *body.Witness, distance uint64) bool) (kind, controls int, distance int64) {
	params := o.asked(parameter)
	for _, members := range [...]bool{false, true} {
		for n, k := range o.kinds {
			w := &o.straight.Found[o.first[n]]
			if k.Member != members || !o.canBeOf(&o.params[parameter], w) || o.aboutAnother(parameter, w) {
				continue
			}
			k.Params = params
			x := g.by[groupKey{parameter, k}]
			if x == nil {
				continue
			}
			if d, ok := x.Distance(&k, o.constants); ok && known(w, d) {
				equal, _ := x.Counts()
				return n, equal, int64(d)
			}
		}
	}
	return -1, 0, 0
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
		if d, ok := x.Distance(&h.kind, nil); !ok || d != 0 || x.Undecided*undecided > equal {
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

// pack appends the groups to b.
func (g *groups) pack(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(g.by)))
	keys := radix.By(slices.Collect(maps.Keys(g.by)), func(a, b *groupKey) int { return cmp.Or(cmp.Compare(a.parameter, b.parameter), a.Compare(&b.Kind)) })
	for _, k := range keys {
		b = binary.AppendUvarint(b, uint64(k.parameter))
		b = g.by[k].Pack(k.Pack(b))
	}
	return b
}

// unpackGroups reads what pack has written. It returns nil if that is damaged.
func unpackGroups(b *bin.Reader) *groups {
	g := newGroups()
	for left := b.ULEB(); left > 0 && !b.Bad; left-- {
		k := groupKey{parameter: int(b.ULEB())}
		k.Unpack(b)
		x := new(claim.Group)
		x.Unpack(b, &k.Kind)
		g.by[k] = x
	}
	if b.Bad {
		return nil
	}
	g.setActs()
	return g
}
