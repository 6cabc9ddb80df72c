package steady

import (
	"bytes"
	"encoding/binary"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
)

// note is a part of a parameter's list, with all that follow it and say the same.
type note struct {
	dw.LocEntry
	of of
}

// of is what a note depends on.
type of struct {
	known     bool // it is all of it
	number    bool // nothing: it is a number, or an address in the image
	held      bool // on registers or memory
	registers body.Registers
}

// notesOf returns those of a parameter, or none if its list is damaged. One place for the whole body says nothing: GCC writes the only note that it has so, whatever that is about.
func notesOf(u *entries.Unit, x *entries.Var) (out []note) {
	if x.Location.IsBlock() {
		return nil
	}
	l := u.Locations(x.Location, x.Views)
	for e := (dw.LocEntry{}); l.Next(&e); {
		if n := len(out); n > 0 && out[n-1].Hi == e.Lo && bytes.Equal(out[n-1].Expr, e.Expr) {
			out[n-1].Hi = e.Hi
			continue
		}
		out = append(out, note{e, dependsOn(u, e.Expr)})
	}
	if l.Err != nil {
		return nil
	}
	return out
}

// noteAt returns the note of an address, or nil.
func noteAt(notes []note, addr uint64) *note {
	for i := range notes {
		if n := &notes[i]; !n.Default && n.Lo <= addr && addr < n.Hi {
			return n
		}
	}
	return nil
}

// dependsOn reads an expression. What depends on memory is not known: instructions may store to it.
func dependsOn(u *entries.Unit, expr []byte) (d of) {
	value := false // it says what the variable is, and not where
	d.known = len(expr) > 0
	for at := 0; at < len(expr); {
		o, err := eval.Decode(expr, at, u.Encoding())
		if err != nil {
			return of{}
		}
		at = o.Next
		c := op.Opcode(o.Code)
		register := ^uint64(0)
		switch {
		case c >= op.DW_OP_reg0 && c <= op.DW_OP_reg31:
			register, value = uint64(c-op.DW_OP_reg0), true
		case c >= op.DW_OP_breg0 && c <= op.DW_OP_breg31:
			register = uint64(c - op.DW_OP_breg0)
		case c == op.DW_OP_stack_value, o.IsImplicitValue():
			value = true
		case c == op.DW_OP_fbreg, c == op.DW_OP_call_frame_cfa, o.Code == eval.OpEntryValue, o.Code == eval.OpGNUEntryValue:
			d.held = true
		case o.IsConstant(), o.IsAddress(), o.IsConversion():
		case c >= op.DW_OP_dup && c <= op.DW_OP_ne && c != op.DW_OP_xderef && c != op.DW_OP_bra:
			// of the stack alone
		default:
			d.known, d.held = false, true
		}
		if register < 64 {
			d.held = true
			d.registers |= 1 << register
		}
	}
	d.known = d.known && value
	d.number = d.known && !d.held
	return d
}

// numberOf returns the number that a variable is, by its constant or an expression, in a form that can be compared, or nil if it is none.
func numberOf(x *entries.Var, expr []byte) []byte {
	n, ok := x.Constant.U, true
	switch {
	case x.Constant.Form == 0:
		n, ok = eval.Number(expr, x.U.Encoding())
	case x.Constant.IsBlock(), x.Constant.Form == dw.FormData16:
		return nil
	}
	switch {
	case ok:
		return binary.LittleEndian.AppendUint64(nil, asDeclared(x, n))
	case dependsOn(x.U, expr).number:
		return expr
	}
	return nil
}

// asDeclared returns the number that a variable of its type has of a constant: LLVM writes -112 for 144 in a byte.
func asDeclared(x *entries.Var, n uint64) uint64 {
	full := *x
	if full.Complete() != nil {
		return n
	}
	t, err := full.U.TypeOf(full.Type)
	if err != nil {
		return n
	}
	r, err := t.Resolve()
	size, unsized := t.ByteSize()
	switch {
	case err != nil || unsized != nil || size < 1 || size > 8:
		return n
	case r.Signed:
		return uint64(int64(n<<(64-8*size)) >> (64 - 8*size))
	}
	return n << (64 - 8*size) >> (64 - 8*size)
}
