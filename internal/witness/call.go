package witness

import (
	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/convention"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/loc"
)

// saysOfCall reports whether the debug information says of a call what makes it a witness: that it is of the function that is its target, or that
// it passes something in the register. Others have what was left there. It says the latter also by the declaration of what is called, if other
// units may call that too: then it takes its parameters as they are declared.
func saysOfCall(u *entries.Unit, w *body.Witness) (bool, error) {
	calls, err := u.Calls()
	if err != nil || w.Register > uint16(op.DW_OP_reg31-op.DW_OP_reg0) {
		return false, err
	}
	c, ok, err := calls.At(w.Addr + uint64(w.Size))
	if !ok || err != nil {
		return false, err
	}
	if w.Target {
		e, ok, err := c.Callee()
		if !ok || err != nil {
			return false, err
		}
		return isAt(u, e, w.Value.Const)
	}
	if passes, err := c.Passes([]byte{uint8(op.DW_OP_reg0) + uint8(w.Register)}); passes || err != nil {
		return passes, err
	}
	if !u.Body.GNU() || !dw.IsC(u.Lang) && !dw.IsCPlusPlus(u.Lang) {
		return false, nil // LLVM passes nothing that a function of its unit does not use (DeadArgumentElimination)
	}
	e, ok, err := c.Callee()
	if !ok || err != nil {
		return false, err
	}
	if is, err := callsAsDeclared(u, e, w.Shape); !is || err != nil {
		return false, err
	}
	passes := false
	_, err = convention.Assign(u, e, func(f func(d *entries.Var) (bool, error)) error { return u.Img.EachParam(e, f) },
		func(_ *entries.Var, l *loc.Location, _ loc.Reason) (bool, error) {
			passes = l.Kind == loc.KindRegister && l.Expr.K == uint64(w.Register)
			return !passes, nil
		})
	return passes, err
}

// callsAsDeclared reports whether what is called is the function of an entry, and not a clone of it, and other units can call it.
func callsAsDeclared(u *entries.Unit, e dw.Entry, target uint64) (bool, error) {
	nocall, external, err := u.Callable(e)
	if err != nil || nocall || !external {
		return false, err
	}
	return isAt(u, e, target)
}

// isAt reports whether the symbol at an address is that of the function of an entry.
func isAt(u *entries.Unit, e dw.Entry, addr uint64) (bool, error) {
	name, err := entries.SymbolName(e)
	if err != nil || name == "" {
		return false, err
	}
	s := u.Img.File.SymbolAt(addr, name)
	return s != nil && s.Addr == addr && s.Name == name, nil
}
