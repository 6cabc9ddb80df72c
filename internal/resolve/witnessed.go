package resolve

import (
	"fmt"
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
)

// witnessing is memory of witnessed.
type witnessing struct {
	params Params
	seen   observed
}

// witnessed returns the value of a pointer that the debug information has lost and an instruction of the body says: it accesses what the
// pointer points to, or passes the pointer on. The controls say which instruction does, and at which distance. witness is "" if none does.
func (ev *Evaluator) witnessed(x *Var) (l loc.Location, witness string, err error) {
	s := ev.spot
	if ev.Arch.WordSize != 8 {
		return l, "", nil
	}
	if ev.witnessing == nil {
		ev.witnessing = new(witnessing)
	}
	o := &ev.witnessing.seen
	if ok, err := ev.witnessing.params.observe(s, o); !ok || err != nil {
		return l, "", err
	}
	name, err := x.Text()
	if err != nil {
		return l, "", err
	}
	i := slices.IndexFunc(o.params, func(p parameter) bool { return p.name == name })
	if i < 0 || !o.params[i].pointer {
		return l, "", nil
	}
	var e *loc.Expr
	known := func(v body.Value) (ok bool) {
		e, ok = ev.expression(o.straight.Trace, v)
		return ok
	}
	if !slices.ContainsFunc(o.first, func(n int) bool { return known(o.straight.Found[n].Value) }) {
		return l, "", nil
	}
	function, err := s.U.functionOf(s.Rec)
	if err != nil {
		return l, "", err
	}
	g, err := s.U.Img.groupsOf(function)
	if g == nil || err != nil {
		return l, "", err
	}
	n, controls, distance := g.says(o, i, known)
	if n < 0 {
		return l, "", nil
	}
	w := &o.straight.Found[n]
	if w.Call {
		if passes, err := s.U.passes(w); !passes || err != nil {
			return l, "", err
		}
	}
	l = ev.Value(e)
	if l.Rule = rule.Operand; w.Call {
		l.Rule = rule.Call
	}
	code, err := s.U.Img.Code.Bytes(w.Addr, uint64(w.Size))
	what := "it accesses what is here"
	if w.Call {
		what = "it passes it in " + ev.Arch.RegisterName(uint64(w.Register))
	}
	if distance != 0 {
		what += fmt.Sprintf(", %+d bytes", distance)
	}
	return l, fmt.Sprintf("%#x: % x: %s, as in %d bodies where it is known", w.Addr, code, what, controls), err
}

// passes reports whether the debug information says that a call passes something in the register of a witness: others have what was left there.
func (u *Unit) passes(w *body.Witness) (bool, error) {
	calls, err := u.readCalls()
	if err != nil || w.Register > uint16(op.DW_OP_reg31-op.DW_OP_reg0) {
		return false, err
	}
	return calls.Passes(w.Addr+uint64(w.Size), []byte{uint8(op.DW_OP_reg0) + uint8(w.Register)})
}
