// Package passed says what the calls of a function pass: in a register, in memory at the address in one, or for a parameter that a clone has lost.
//
//	values, err := passed.Of(u, passed.Wanted{Rec: rec, Place: string(place)}, evaluate)
//
// Each value is one over the registers of the function that calls, and is known by the call's return address.
package passed

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/caller"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/madeof"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Evaluate evaluates an expression in the frame of the function that a record is, at an address, so many frames above the one that is asked about. It returns nil where that is not known.
type Evaluate func(u *entries.Unit, rec int32, addr uint64, v caller.Value, nested int) (*loc.Expr, error)

// at evaluates what a call passes, in the frame of the function that calls.
func (in Evaluate) at(u *entries.Unit, c *caller.Call, v caller.Value, nested int) (*loc.Expr, error) {
	// The call itself: where the function goes on may be another one's code.
	return in(u, c.Caller, c.Return-1, v, nested)
}

// Values are what is known of one value that a function is called with: what each call passed, over the caller's registers. It is the same
// for all spots of the function.
type Values struct {
	Passed []eval.Passed
	Why    string // there is nothing
}

// Wanted says which value it is.
type Wanted struct {
	Rec       int32  // of the function
	Place     string // an expression that names a register
	Data      bool   // what memory has at the address in it
	Parameter uint64 // or the offset of a parameter's entry
	Nested    int    // how many frames up that is
}

// Of returns what calls of a function of the unit pass, which is found once for all its spots.
func Of(u *entries.Unit, w Wanted, in Evaluate) (*Values, error) {
	if d, ok := u.Derived.Load(w); ok {
		return d.(*Values), nil
	}
	d, err := find(u, w, in)
	if err == nil {
		u.Derived.Store(w, d)
	}
	return d, err
}

func find(u *entries.Unit, w Wanted, in Evaluate) (*Values, error) {
	x, err := u.Calls()
	if err != nil {
		return nil, err
	}
	calls, why, err := x.Of(w.Rec)
	d := new(Values)
	if err != nil {
		return d, err
	}
	var noted []notedCall
	for i := range calls {
		c := &calls[i]
		var v caller.Value
		var ok bool
		if w.Place != "" {
			v, ok, err = c.At([]byte(w.Place), w.Data)
		} else {
			v, ok, err = c.Parameter(w.Parameter)
		}
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		value, err := in.at(u.Img.Of(c.Unit), c, v, w.Nested+1)
		if err == nil && value != nil && !w.Data {
			value, err = unchanged(c, w.Place, value)
		}
		if err != nil {
			return nil, err
		}
		if value != nil && c.Entry != 0 {
			if value, err = in.ifCalled(u.Img.Of(c.Unit), c, value, w.Nested+1); err != nil {
				return nil, err
			}
		}
		if value != nil {
			d.Passed = append(d.Passed, eval.Passed{Return: c.Return, Value: value})
		}
		if w.Place == "" {
			fixed := value != nil && (value.Op == ops.Const || value.Op == ops.Addr)
			noted = append(noted, notedCall{c, v.Expr, fixed, madeof.Of(value, uint64(u.Img.Arch().SP))})
		}
	}
	if err := d.leaveRepeated(u, w.Rec, noted); err != nil {
		return d, err
	}
	if err := d.jumped(u, x, w, in); err != nil {
		return nil, err
	}
	switch {
	case len(d.Passed) > 0:
	case why != "":
		d.Why = why
		return d, nil
	default:
		d.Why = "no call says it"
		return d, nil
	}
	d.Why, err = x.Again(w.Rec)
	return d, err
}

// unchanged returns a value that a call passes in a register, or nil if the code in front of the call changes another one after which that would be.
func unchanged(c *caller.Call, place string, value *loc.Expr) (*loc.Expr, error) {
	base, more := value, int64(0)
	if value.Op == ops.Add && value.B.Op == ops.Const {
		base, more = value.A, int64(value.B.K)
	}
	n, ok := eval.RegisterOf([]byte(place))
	if !ok || base.Op != ops.Reg || base.K == n {
		return value, nil
	}
	if still, err := c.Unchanged(n, base.K, more); !still || err != nil {
		return nil, err
	}
	return value, nil
}

// ifCalled returns what an indirect call passes as the value that exists only where the call is one of the function: what it calls is compared
// with the function's address, in the caller's frame. It returns nil where the call does not say what that is.
func (in Evaluate) ifCalled(u *entries.Unit, c *caller.Call, value *loc.Expr, nested int) (*loc.Expr, error) {
	v, ok, err := c.Target()
	if !ok || err != nil {
		return nil, err
	}
	target, err := in.at(u, c, v, nested)
	if target == nil || err != nil {
		return nil, err
	}
	// Memory, and registers that functions need not preserve, may have another function's address by now: the one to which the function that was
	// called has gone on.
	steady := true
	target.Walk(func(e *loc.Expr) {
		steady = steady && e.Op != ops.Deref && (e.Op != ops.Reg || slices.Contains(u.Img.Arch().Preserved, uint16(e.K)))
	})
	if !steady {
		return nil, nil
	}
	var b eval.Builder
	return b.Caller(target, u.Img.Arch().WordSize, []eval.Passed{{Return: c.Entry, Value: value}}), nil
}
