package resolve

import (
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/judge"
	"github.com/bpfprologue/bpfprologue/internal/madeof"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// A function out of line that assigns its parameter has two values of it, and its return is behind both. So where its debug information says that the
// parameter is, in all of the function, in registers that have on all paths what it was called with, or in the end what it was at the
// entry, no statement assigns it. A body that was inlined does not show that: what a statement assigns can be computed by its last instruction, and be noted
// nowhere.

// Kept asks the bodies of the function in the unit, and those in others if the function is in a header, or in all of them with link-time optimization.
func (e *evidence) Kept() (bool, error) {
	if a, err := e.Assigned(); a == judge.Inside || err != nil {
		return false, err
	}
	u, function := e.s.U, e.s.U.Recs[e.s.Rec].Root
	name, err := e.x.Text()
	if err != nil || name == "" {
		return false, err
	}
	if function >= 0 {
		kept, err := entries.Remembered(&u.Derived, keptOf(function), func() (map[string]bool, error) { return e.ev.keptBy(bodiesIn(u, function)) })
		if err != nil || kept[name] {
			return kept[name], err
		}
	}
	marked, err := e.marked()
	if err != nil || !u.Body.GNU() || function >= 0 && marked && u.Body.Views() {
		return false, err
	}
	k, err := e.ev.memory().facts.Function(u, e.s.Rec)
	if err != nil {
		return false, err
	}
	known, ok := u.Img.Derived.Load(keptIn(k))
	if !ok {
		bodies, err := u.Img.OutOfLine(&k)
		if err != nil {
			return false, err
		}
		kept, err := e.ev.keptBy(bodies)
		if err != nil {
			return false, err
		}
		known, _ = u.Img.Derived.LoadOrStore(keptIn(k), kept)
	}
	return known.(map[string]bool)[name], nil
}

// keptIn is the key of what the bodies of a function in the image show.
type keptIn entries.FunctionKey

// bodiesIn returns the bodies out of line of a function in a unit.
func bodiesIn(u *entries.Unit, function int32) (out []entries.Body) {
	for i := range u.Recs {
		if r := &u.Recs[i]; r.Root == function && r.Flags&index.HasPC != 0 && !entries.Inlined(r) {
			out = append(out, entries.Body{U: u, Rec: int32(i)})
		}
	}
	return out
}

// keptBy returns the names of the parameters that one of some bodies has to its end as they were passed.
func (ev *Evaluator) keptBy(bodies []entries.Body) (map[string]bool, error) {
	out := make(map[string]bool)
	for _, b := range bodies {
		var s entries.Spot
		if ok, err := b.U.Read(b.Rec, &s); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		f := changes{u: b.U, ev: ev, rec: b.Rec, spot: &s}
		if err := f.keeps(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keeps adds the parameters that the body at a spot has to its end as they were passed.
func (f *changes) keeps(out map[string]bool) error {
	u, s := f.u, f.spot
	ranges, err := u.Extent(&s.PCs)
	if err != nil || len(ranges) != 1 || len(s.CloneMarks()) > 0 {
		return err
	}
	e, err := s.Entry()
	if err != nil {
		return err
	}
	var passed [32]int // how many parameters are noted in a register at the entry: of two, a statement may have made one the other
	var kept [32]string
	err = u.Img.EachParam(e, func(x *entries.Var) (bool, error) {
		name, err := x.Text()
		if err != nil || x.Location.Form == 0 {
			return true, nil //nolint:nilerr // damage is reported where the parameter is asked for
		}
		n, ok := f.entersIn(x)
		if ok {
			passed[n]++
		}
		switch {
		case out[name] || !f.entered(x, ranges[0]):
		case ok:
			kept[n] = name
		default:
			out[name] = true // in what the caller has stored for it
		}
		return true, nil
	})
	for n, name := range kept {
		if name != "" && passed[n] == 1 {
			out[name] = true
		}
	}
	return err
}

// entersIn returns the register in which a parameter is at the entry.
func (f *changes) entersIn(x *entries.Var) (n uint64, ok bool) {
	expr, err := f.spot.Note(x)
	if err != nil {
		return 0, false
	}
	return eval.RegisterOf(expr)
}

// stay is where debug information says that a parameter is in a range.
type stay struct {
	dw.Range
	is       dw.LocEntry
	register uint64
	held     bool // it is in the register
}

// entered reports whether debug information says of a parameter of a function out of line that it is in registers, which have on all paths what it was called
// with, or in memory of the frame to which nothing else is stored, or what it was at the entry.
func (f *changes) entered(x *entries.Var, r dw.Range) bool {
	size, err := bitsOf(x)
	if err != nil || size == 0 {
		return false
	}
	var all []stay
	var unknown []dw.Range
	add := func(v *dw.LocEntry, r dw.Range) {
		n, ok := eval.RegisterOf(v.Expr)
		if ok || len(all) == 0 || !all[0].held || !isEntryOf(v.Expr, all[0].register) {
			all = append(all, stay{r, *v, n, ok})
		}
	}
	if x.Location.IsBlock() {
		add(&dw.LocEntry{Lo: r.Lo, Hi: r.Hi, Expr: x.Location.Bytes()}, r)
	} else {
		at, view := r.Lo, uint64(0)
		l := f.u.Locations(x.Location, x.Views)
		for v := (dw.LocEntry{}); l.Next(&v); at, view = v.Hi, v.VHi {
			if v.Default || v.Lo < at || v.Lo == at && v.Viewed && v.VLo != view {
				return false
			}
			if v.Lo > at {
				unknown = append(unknown, dw.Range{Lo: at, Hi: v.Lo})
			}
			add(&v, dw.Range{Lo: v.Lo, Hi: max(v.Hi, v.Lo+1)})
		}
		if l.Err != nil || at > r.Hi || len(all) == 0 || all[0].Lo != r.Lo {
			return false
		}
		unknown = append(unknown, dw.Range{Lo: at, Hi: r.Hi})
	}
	code, err := f.ev.instructionsOf(f.spot)
	if err != nil || code.Why != "" {
		return false
	}
	for i := range all {
		p, was := &all[i], &all[max(i-1, 0)]
		switch {
		case p.held && all[0].held:
			if !code.Held().Keeps(p.register, all[0].register, size, p.Lo, p.Hi) {
				return false
			}
		case i > 0 && was.held && f.restored(code, was, p.Range):
		case !f.inFrame(code, p, &all[0], int64(size/8)):
			return false
		}
	}
	return !slices.ContainsFunc(unknown, func(r dw.Range) bool { return !code.Restores(r) })
}

// restored reports whether a register that a parameter was in is put back where a part begins that is of what the function does for its callers alone: debug information says from there where else
// the same value is.
func (f *changes) restored(code *body.Code, was *stay, r dw.Range) bool {
	n, _ := code.Graph.At(r.Lo)
	return n > 0 && f.u.Body.Image.Sets(code.Graph.Insns[n-1].Addr, was.register) && code.Restores(r)
}

// inFrame reports whether a part is memory of the frame to which nothing is stored but what the function was called with.
func (f *changes) inFrame(code *body.Code, p, entry *stay, size int64) bool {
	n, _ := code.Graph.At(p.Lo)
	if n == len(code.Graph.Insns) || code.Graph.Insns[n].Addr >= p.Hi {
		return true // it holds for no instruction
	}
	at := *f.spot
	at.Addr, at.At = code.Graph.Insns[n].Addr, entries.Place{Addr: code.Graph.Insns[n].Addr}
	var l loc.Location
	if r, err := At(&at).Locate(p.is.Expr, "", p.is.Off, &l); err != nil || r.Code != reasons.None || l.Kind != loc.KindMemory {
		return false
	}
	var few [1]body.Slot
	slot := madeof.SlotAt(few[:0], l.Expr, size)
	if len(slot) != 1 {
		return false
	}
	off, ok := code.Slot(at.Addr, slot[0])
	if !ok {
		return false
	}
	if entry.held {
		return code.HasOnly(off, size, &entry.register)
	}
	return off >= 0 && code.HasOnly(off, size, nil)
}

// isEntryOf reports whether an expression is the value that a register had at the function's entry.
func isEntryOf(expr []byte, n uint64) bool {
	place, is := eval.EntryValueOf(expr)
	if !is || op.Opcode(expr[len(expr)-1]) != op.DW_OP_stack_value {
		return false // or it is what memory has there
	}
	of, _ := eval.RegisterOf(place)
	return of == n
}
