package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/loc"
)

// GCC writes the only note of a parameter, if it is a number, as that of the whole body, wherever it begins (GCC: gcc/dwarf2out.cc, add_location_or_const_value_attribute). So of
// "f(2)", where the 2 is lost and the body makes 72 of it, there is a 72 for the whole body. Where the function that has the call is there several times, as one that is
// inlined is, other copies of the call can have more than one note, in a list that says where the first begins. And of "f(a == b)" with "n >>= 1" for a bool GCC can lose all but the 0:
// in any copy of f whose list begins with it behind the statement, it is known of whatever was passed.

// madeBehind is a number that some copy of a call has for a parameter from behind the body's beginning on alone; of any call, with no caller, if only statements that begin where the
// body does are in between, which every run begins with.
type madeBehind struct {
	param  uint64 // the entry that declares it
	caller int32  // the record of the function that has the call
	at     body.CallPlace
	number uint64
}

// behindOf is the key of what a unit's bodies of a function have so, by the function's record.
type behindOf int32

// MadeBehind asks the other copies of the call.
func (e *evidence) MadeBehind() (bool, error) {
	s, u := e.s, e.s.U
	function := u.Recs[s.Rec].Root
	if s.Kind != entries.Inline || function < 0 || e.v.Loc.Kind != loc.KindConstant || e.x.U != u {
		return false, nil
	}
	made, err := entries.Remembered(&u.Derived, behindOf(function), func() (map[madeBehind][]lateNote, error) { return numbersBehind(u, function) })
	if len(made) == 0 || err != nil {
		return false, err
	}
	is := madeBehind{number: e.v.Loc.Expr.K}
	if is.param, err = e.x.Ultimate(nil); err != nil {
		return false, err
	}
	entry, err := s.Entry()
	if err != nil {
		return false, err
	}
	size, unsized := e.v.Type.ByteSize()
	if is.caller, is.at, err = callOf(u, s.Rec, entry); err != nil || unsized != nil || size < 1 || size > 8 {
		return false, err
	}
	// It is noted with any bits above those of its type.
	above := 64 - 8*uint(size)
	for _, n := range [...]uint64{is.number << above >> above, uint64(int64(is.number<<above) >> above)} {
		is.number = n
		if _, ok := made[is]; ok {
			return true, nil
		}
		for _, note := range made[madeBehind{param: is.param, caller: -1, number: n}] {
			if is, err := behindStatement(u, &note); is || err != nil {
				return is, err
			}
		}
	}
	return false, nil
}

// lateNote is an entry of a list that begins at a later view than the inlined body does.
type lateNote struct {
	rec int32
	v   dw.LocEntry
}

// numbersBehind looks at the bodies of a function that are inlined. Of those of any call it returns the notes, which have yet to be looked at.
func numbersBehind(u *entries.Unit, function int32) (map[madeBehind][]lateNote, error) {
	var out map[madeBehind][]lateNote
	for i := range u.Recs {
		r := &u.Recs[i]
		if r.Root != function || r.Flags != index.Inlined|index.HasPC {
			continue
		}
		entry, err := u.Entry(u.Off + uint64(r.Off))
		if err != nil {
			return nil, err
		}
		var pcs dw.PCs
		if err := entry.Attrs(pcs.Take); err != nil {
			return nil, err
		}
		start, known, err := u.Start(&pcs)
		if err != nil {
			return nil, err
		}
		if !known {
			continue
		}
		err = u.Img.EachParam(entry, func(x *entries.Var) (bool, error) {
			if x.Location.Form == 0 || x.Location.IsBlock() {
				return true, nil
			}
			l := u.Locations(x.Location, x.Views)
			var v dw.LocEntry
			if !l.Next(&v) || v.Lo < start || v.Lo == start && (!v.Viewed || !pcs.Viewed || v.VLo <= pcs.EntryView) {
				return true, nil
			}
			m, late := madeBehind{caller: -1}, []lateNote(nil)
			var is bool
			if m.number, is = eval.Number(v.Expr, u.Encoding()); !is {
				return true, nil
			}
			var err error
			if v.Lo > start {
				m.caller, m.at, err = callOf(u, int32(i), entry)
			} else {
				late = []lateNote{{int32(i), v}}
			}
			if err != nil {
				return false, err
			}
			if m.param, err = x.Ultimate(nil); err != nil {
				return false, err
			}
			if out == nil {
				out = make(map[madeBehind][]lateNote)
			}
			out[m] = append(out[m], late...)
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// behindStatement reports whether an entry of a list begins behind a statement of an inlined body, and with the next one at the latest, and another parameter's before all statements:
// where GCC has lost the body's beginning, all are late.
func behindStatement(u *entries.Unit, n *lateNote) (is bool, err error) {
	entry, err := u.Entry(u.Off + uint64(u.Recs[n.rec].Off))
	if err != nil {
		return false, err
	}
	at, err := statementsOf(u, n.rec, entry, nil)
	for k := 1; k < len(at); k++ {
		is = is || begins(&n.v, &at[k-1], &at[k])
	}
	if !is || err != nil {
		return false, err
	}
	first := false
	err = u.Img.EachParam(entry, func(x *entries.Var) (bool, error) {
		if x.Location.Form != 0 && !x.Location.IsBlock() {
			var its dw.LocEntry
			l := u.Locations(x.Location, x.Views)
			first = first || l.Next(&its) && its.Viewed && (its.Lo < at[0].addr || its.Lo == at[0].addr && its.VLo <= at[0].view)
		}
		return !first, nil
	})
	return first, err
}

// callOf returns where the call of an inlined body is in the source.
func callOf(u *entries.Unit, rec int32, entry dw.Entry) (caller int32, at body.CallPlace, err error) {
	caller = u.Recs[rec].Parent
	if caller >= 0 && u.Recs[caller].Root >= 0 {
		caller = u.Recs[caller].Root
	}
	return caller, at, entry.Attrs(at.Take)
}
