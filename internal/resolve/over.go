package resolve

import (
	"bytes"
	"cmp"
	"math"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Where no code is between two statements, no instruction makes what the first assigns: with views, GCC's list of the variable has another place from the
// second on. A list of another body that has one place before and behind both is wrong about one of the two values.

// overStatement reports whether a note also holds behind a statement of the body at the probe's address that, as other bodies of the function show, assigns the parameter.
func overStatement(s *entries.Spot, x *entries.Var, c *entries.Chosen) (bool, error) {
	if c.Hi <= s.At.Addr || s.At.View == math.MaxUint64 {
		return false, nil
	}
	u, function := s.U, s.U.Recs[s.Rec].Root
	// Lists are read in a tenth of the time that line tables take, and few change so.
	some, err := entries.Remembered(&u.Derived, changingOf(function), func() (map[uint64]bool, error) { return parametersChanging(u, function) })
	if len(some) == 0 || err != nil {
		return false, err
	}
	root, err := x.Ultimate(nil)
	if !some[root] || err != nil {
		return false, err
	}
	var few [8]body.Place
	here := few[:0]
	err = u.Body.EachStatement(s.Rec, s.At.Addr, s.At.Addr+1, func(p body.Place, _, view uint64) {
		if view > s.At.View {
			here = append(here, p)
		}
	})
	if len(here) < 2 || err != nil { // a statement, and one behind it
		return false, err
	}
	made, err := entries.Remembered(&u.Derived, madeOf(function), func() (map[uint64][]assignment, error) { return assignments(u, function) })
	for _, a := range made[root] {
		for k := range here[1:] {
			if (assignment{here[k], here[k+1]}) == a {
				return true, err
			}
		}
	}
	return false, err
}

// changingOf is a key of which parameters' lists change between two views of an address, in a unit's bodies of a function, by the function's record.
type changingOf int32

// parametersChanging returns the entries that declare these parameters.
func parametersChanging(u *entries.Unit, function int32) (map[uint64]bool, error) {
	var out map[uint64]bool
	err := eachList(u, function, func(_ int32, _ dw.Entry, x *entries.Var, last, v *dw.LocEntry) error {
		if !goesOn(last, v) {
			return nil
		}
		root, err := x.Ultimate(nil)
		if out == nil {
			out = make(map[uint64]bool)
		}
		out[root] = true
		return err
	})
	return out, err
}

// assignment is a statement that assigns a parameter, and the next one.
type assignment [2]body.Place

// madeOf is a key of what a unit's bodies of a function show, by the function's record.
type madeOf int32

// assignments returns the statements of a function that assign a parameter, by the entry that declares that: in most of the bodies where both statements are at one address, the
// list goes on with another place between the two. Where it does so in few, the statement assigns under a condition, or another one does that has left no marker.
func assignments(u *entries.Unit, function int32) (map[uint64][]assignment, error) {
	type change struct {
		root uint64
		assignment
	}
	changes, roots := make(map[change]int), make(map[uint64]uint64) // in how many bodies there is one more than there is none
	var at []statementAt
	of := int32(-1)
	err := eachList(u, function, func(rec int32, entry dw.Entry, x *entries.Var, last, v *dw.LocEntry) (err error) {
		if of != rec {
			of = rec
			if at, err = statementsOf(u, rec, entry, at[:0]); err != nil {
				return err
			}
		}
		root, err := x.Ultimate(roots)
		for k := 1; k < len(at); k++ {
			s, next := &at[k-1], &at[k]
			c := change{root, assignment{s.Place, next.Place}}
			switch {
			case s.addr != next.addr || s.view == next.view:
			case v.Lo == s.addr && s.view < v.VLo && v.VLo <= next.view && goesOn(last, v):
				changes[c]++
			case (v.Lo < s.addr || v.Lo == s.addr && v.VLo <= s.view) && (next.addr < v.Hi || next.addr == v.Hi && next.view < v.VHi):
				changes[c]--
			}
		}
		return err
	})
	out := make(map[uint64][]assignment)
	for c, n := range changes {
		if n > 0 {
			out[c.root] = append(out[c.root], c.assignment)
		}
	}
	return out, err
}

// goesOn reports whether an entry of a list goes on with another place where the one before it ends, between views of one address.
func goesOn(last, v *dw.LocEntry) bool {
	return v.VLo > 0 && last.Hi == v.Lo && last.VHi == v.VLo && !bytes.Equal(last.Expr, v.Expr)
}

// eachList calls f with the entries of all lists with views that parameters of a function's bodies have, and with the entry before each.
func eachList(u *entries.Unit, function int32, f func(rec int32, entry dw.Entry, x *entries.Var, last, v *dw.LocEntry) error) error {
	for i := range u.Recs {
		r := &u.Recs[i]
		if r.Root != function || r.Flags&index.HasPC == 0 {
			continue
		}
		entry, err := u.Entry(u.Off + uint64(r.Off))
		if err != nil {
			return err
		}
		err = u.Img.EachParam(entry, func(x *entries.Var) (bool, error) {
			if x.Location.Form == 0 || x.Location.IsBlock() {
				return true, nil
			}
			var last dw.LocEntry
			l := u.Locations(x.Location, x.Views)
			for v := (dw.LocEntry{}); l.Next(&v) && v.Viewed; last = v {
				if err := f(int32(i), entry, x, &last, &v); err != nil {
					return false, err
				}
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// statementAt is a statement of a body, and where it begins.
type statementAt struct {
	body.Place
	addr, view uint64
}

// statementsOf appends the statements of a record's body, by address and view.
func statementsOf(u *entries.Unit, rec int32, entry dw.Entry, to []statementAt) ([]statementAt, error) {
	var pcs dw.PCs
	if err := entry.Attrs(pcs.Take); err != nil {
		return to, err
	}
	ranges, err := u.Extent(&pcs)
	for _, r := range ranges {
		err = cmp.Or(err, u.Body.EachStatement(rec, r.Lo, max(r.Hi, r.Lo+1), func(p body.Place, addr, view uint64) {
			to = append(to, statementAt{p, addr, view})
		}))
	}
	return to, err
}
