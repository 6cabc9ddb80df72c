package resolve

import (
	"bytes"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// LLVM drops the extension of a number of which the body uses the lower bits alone, and names the register of the number that was not extended: "f(x)" with
// an int x in %ebp, and %rbp for a parameter of 64 bits.

// Narrower looks for a variable of a caller, or a member of one, that has fewer bits than the parameter and is in its register. One that has as many
// refutes it, but not if LLVM may have taken its extension for a copy; and so does the code, if the register has on all paths nothing above those bits, nor a sign to extend. Where no
// variable is there, it asks whether the code has left a number of 32 bits in the register with zeros above it: nobody says whether that had a sign.
func (e *evidence) Narrower() (bool, error) {
	t, err := e.v.Type.Resolve()
	if err != nil || e.v.Loc.Kind != loc.KindRegister || t.Size <= 1 || t.Kind != types.Int && t.Kind != types.Char && t.Kind != types.Enum {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	register, wanted := e.v.Loc.Expr.K, uint64(t.Size)*8
	if register > uint64(op.DW_OP_reg31-op.DW_OP_reg0) {
		return false, nil
	}
	if err := e.readCallers(); err != nil {
		return false, err
	}
	known := wanted                // so many lower bits are no sign's
	var half, wide *placedVariable // those that were there first
	for i := range e.ev.callers {
		its := &e.ev.callers[i]
		if bytes.IndexByte(its.Expr, byte(op.DW_OP_reg0)+byte(register)) < 0 {
			continue
		}
		bits, signed, err := e.bitsIn(its, register)
		switch {
		case err != nil:
			return false, err
		case bits >= wanted:
			wide = e.former(wide, its, register)
			continue
		case bits == 32:
			half = e.former(half, its, register)
		}
		if bits > 0 && signed {
			bits--
		}
		if bits > 0 {
			known = min(known, bits)
		}
	}
	if wide != nil && (wanted != 64 || half == nil || e.former(half, wide, register) == wide || !e.takenForCopy(register)) {
		return false, nil
	}
	has := registers{e.ev}.Bits(register)
	if known == wanted {
		return wanted == 64 && has == 32, nil
	}
	return has > known, nil
}

// takenForCopy reports whether the code extends the lower half of the register into another one. LLVM follows what a variable is from one register to another, through instructions that
// copy, and takes "movl %edx, %r11d" for one, which makes a size_t of a member or an unsigned number: where it goes on with %edx, both are noted as %rdx, of which the upper half may be the
// next member.
func (e *evidence) takenForCopy(register uint64) bool {
	c, err := e.ev.codeOf(e.s)
	return err == nil && c.Held().ExtendedAway(register, e.s.At.Addr)
}

// former returns which of two variables was first in the register; a, which may be nil, or b. Of two that are there from one address on it is the one that is declared first.
func (e *evidence) former(a, b *placedVariable, register uint64) *placedVariable {
	if a == nil {
		return b
	}
	since, other := e.since(a, register), e.since(b, register)
	if since < other || since == other && a.x.Off < b.x.Off {
		return a
	}
	return b
}

// since returns from where on a variable, or a part of it, has been in the register without a gap.
func (e *evidence) since(its *placedVariable, register uint64) uint64 {
	if its.x.Location.IsBlock() {
		return its.Lo
	}
	var from, to uint64
	l := its.x.U.Locations(its.x.Location, its.x.Views)
	for v := (dw.LocEntry{}); l.Next(&v) && v.Lo <= its.Lo; {
		if bytes.IndexByte(v.Expr, byte(op.DW_OP_reg0)+byte(register)) < 0 {
			continue
		}
		if v.Lo != to || to == 0 {
			from = v.Lo
		}
		to = v.Hi
	}
	return from
}

// bitsIn returns how many bits of a variable are in a register, and whether they may be a negative number's, as those of a member may.
func (e *evidence) bitsIn(its *placedVariable, register uint64) (bits uint64, signed bool, _ error) {
	var l loc.Location
	if r, err := e.ev.Locate(its.Expr, its.Sec, its.Off, &l); err != nil || r.Code != reasons.None {
		return 0, false, nil //nolint:nilerr // it is reported where the variable is asked for
	}
	for i := range l.Pieces {
		if p := &l.Pieces[i]; p.Loc.Kind == loc.KindRegister && p.Loc.Expr.K == register {
			return p.BitSize, true, nil
		}
	}
	if l.Kind != loc.KindRegister || l.Expr.K != register {
		return 0, false, nil
	}
	if err := its.x.Complete(); err != nil {
		return 0, false, err
	}
	t, err := its.x.U.TypeOf(its.x.Type)
	if err == nil {
		t, err = t.Resolve()
	}
	if err != nil || t.Size <= 0 {
		return 0, false, nil //nolint:nilerr // the type is asked for where the variable is
	}
	return uint64(t.Size) * 8, t.Signed, nil
}
