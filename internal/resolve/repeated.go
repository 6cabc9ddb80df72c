package resolve

import (
	"bytes"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/caller"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
)

// What a call passes for a parameter that the function does not get any more is in no register: GCC gives a variable of its own that value before each call of the function. It loses that
// where the value is a choice between two, and goes on that the variable has what the call before it passed.

// notedCall is a call whose value for such a parameter is noted.
type notedCall struct {
	call  *caller.Call
	expr  []byte
	fixed bool // it is a number, or an address in the image
}

// leaveRepeated takes out what calls pass to which execution comes only behind other calls, of which the last notes the same number.
func (d *described) leaveRepeated(u *entries.Unit, noted []notedCall) error {
	var repeated []uint64
	var c *body.Code
	var of *notedCall                   // the code is that of its caller
	calls := make(map[int32]*notedCall) // there, by the instructions that call
	for i := range noted {
		x := &noted[i]
		if !x.fixed || !slices.ContainsFunc(noted, func(y notedCall) bool { return y.call != x.call && x.same(&y) }) {
			continue
		}
		if of == nil || !of.beside(x) {
			var err error
			if c, err = u.Img.Of(x.call.Unit).Body.InstructionsIn(new(body.Code), x.call.Caller); err != nil {
				return err
			}
			of = x
			clear(calls)
			for k := range noted {
				if n, ok := callBefore(c, noted[k].call.Return); ok && noted[k].beside(x) {
					calls[n] = &noted[k]
				}
			}
		}
		n, ok := callBefore(c, x.call.Return)
		if ok && c.Why == "" && c.Graph.AlwaysBehind(n, func(n int32) (said, such bool) { y := calls[n]; return y != nil, y != nil && x.same(y) }) {
			repeated = append(repeated, x.call.Return)
		}
	}
	d.passed = slices.DeleteFunc(d.passed, func(p eval.Passed) bool { return slices.Contains(repeated, p.Return) })
	return nil
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

// same reports whether they note the same number.
func (x *notedCall) same(y *notedCall) bool {
	return x.beside(y) && y.fixed && bytes.Equal(x.expr, y.expr)
}
