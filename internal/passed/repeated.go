package passed

import (
	"bytes"
	"errors"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/caller"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/madeof"
)

// What a call passes for a parameter that the function does not get any more is in no register: GCC gives a variable of its own that value before each call of the function. It loses that
// where the value is a choice between two, and goes on that the variable has what the call before it passed.

// notedCall is a call whose value for such a parameter is noted.
type notedCall struct {
	call  *caller.Call
	expr  []byte
	fixed bool          // it is a number, or an address in the image
	reads madeof.Places // else it is made of what is there, if that is known
}

// leaveRepeated takes out what calls of the function that a record is pass to which execution comes only behind other calls, of which the last may have passed the same.
func (d *Values) leaveRepeated(u *entries.Unit, rec int32, noted []notedCall) error {
	var repeated []uint64
	k := keptCalls{u: u, rec: rec}
	for i := range noted {
		x := &noted[i]
		like := func(y notedCall) bool {
			return y.call != x.call && x.beside(&y) && y.fixed == x.fixed && (!x.fixed || bytes.Equal(x.expr, y.expr))
		}
		if !x.fixed && !x.reads.Known || !slices.ContainsFunc(noted, like) {
			continue
		}
		if err := k.enter(x, noted); err != nil {
			return err
		}
		if again, err := k.repeats(x); err != nil {
			return err
		} else if again {
			repeated = append(repeated, x.call.Return)
		}
	}
	d.Passed = slices.DeleteFunc(d.Passed, func(p eval.Passed) bool { return slices.Contains(repeated, p.Return) })
	return nil
}

// keptCalls are the calls of a function that one function has.
type keptCalls struct {
	u     *entries.Unit
	rec   int32                // of the function that is called
	of    *notedCall           // one of the calls
	code  *body.Code           // of the function that has them
	calls map[int32]*notedCall // by the instructions that call
	own   *body.Code           // of the function that is called
}

// enter reads the function that has a call.
func (k *keptCalls) enter(x *notedCall, noted []notedCall) (err error) {
	if k.of != nil && k.of.beside(x) {
		return nil
	}
	if k.code, err = k.u.Img.Of(x.call.Unit).Body.InstructionsIn(new(body.Code), x.call.Caller); err != nil {
		return err
	}
	k.of, k.calls = x, make(map[int32]*notedCall)
	for i := range noted {
		if n, ok := callBefore(k.code, noted[i].call.Return); ok && noted[i].beside(x) {
			k.calls[n] = &noted[i]
		}
	}
	return nil
}

// repeats reports whether what a call notes may be what the call before it passed: it is the same number, or what it is made of has been there since then, and the note of that
// call is of what has been written since, or is the same and computes: a variable in a register is passed to several calls in a row far more often than GCC loses one.
func (k *keptCalls) repeats(x *notedCall) (repeats bool, err error) {
	n, ok := callBefore(k.code, x.call.Return)
	if !ok || k.code.Why != "" {
		return false, nil
	}
	same := func(y *notedCall) bool { return y.fixed && bytes.Equal(x.expr, y.expr) }
	if !x.fixed {
		same = func(y *notedCall) bool {
			if y.fixed || !y.reads.Known {
				return false
			}
			kept, e := k.keeps(&x.reads)
			if err = errors.Join(err, e); !kept || err != nil {
				return false
			}
			if bytes.Equal(x.expr, y.expr) {
				return x.reads.Computed
			}
			return k.written(n, y)
		}
	}
	repeats = k.code.Graph.AlwaysBehind(n, func(at int32) (said, such bool) {
		if y := k.calls[at]; y != nil {
			return true, same(y)
		}
		return !x.fixed && k.makes(at, x), false
	})
	return repeats, err
}

// keeps reports whether a call of the function leaves registers as they are.
func (k *keptCalls) keeps(p *madeof.Places) (kept bool, err error) {
	if k.own == nil {
		if k.own, err = k.u.Body.InstructionsIn(new(body.Code), k.rec); err != nil {
			return false, err
		}
	}
	calls, err := k.u.Calls()
	if err != nil {
		return false, err
	}
	kept = true
	for r := range uint64(body.Followed) {
		if kept && err == nil && p.Registers.Has(r) && !k.code.Preserved().Has(r) {
			kept, err = calls.Keeps(k.own, r)
		}
	}
	return kept, err
}

// makes reports whether an instruction makes what a call passes of something else than what the calls before it passed, or does what is not known.
func (k *keptCalls) makes(at int32, x *notedCall) bool {
	if in, ok := k.code.Arch.Next(k.code.Graph.Bytes(at)); ok && in.Call {
		return x.reads.Registers&^k.code.Preserved() != 0
	}
	wrote, known := x.reads.Written(k.code, at)
	if !known || !wrote {
		return !known
	}
	from, ok := madeof.Copied(k.code, at)
	if !ok {
		return true
	}
	for _, y := range k.calls {
		if y.reads.Known && y.reads.Has(from) {
			return false
		}
	}
	return true
}

// written reports whether an instruction between the call before and the one at n writes what that is made of.
func (k *keptCalls) written(n int32, y *notedCall) bool {
	return !k.code.Graph.AlwaysBehind(n, func(at int32) (said, such bool) {
		if k.calls[at] != nil {
			return true, true
		}
		wrote, known := y.reads.Written(k.code, at)
		return wrote && known, false
	})
}

// callBefore returns the instruction that ends at a return address.
func callBefore(c *body.Code, back uint64) (n int32, ok bool) {
	if c.Graph == nil {
		return 0, false
	}
	n, _ = c.Graph.From(back)
	return n - 1, n > 0 && c.Graph.Insns[n-1].Addr+uint64(c.Graph.Insns[n-1].Size) == back
}

// beside reports whether two calls are in one function.
func (x *notedCall) beside(y *notedCall) bool {
	return x.call.Unit == y.call.Unit && x.call.Caller == y.call.Caller
}
