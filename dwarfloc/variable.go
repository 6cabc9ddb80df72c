package dwarfloc

import (
	"bytes"
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/resolve"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Role says what a variable is to the function at a site.
//
//   - RoleParameter: a formal parameter of the site's function
//   - RoleLocal: a variable of the function, static ones included, or of one of its
//     blocks
//   - RoleGlobal: a variable outside functions
//   - RoleGiven: not a variable of the program: a register, memory, a constant or a
//     result that a definition names
type Role uint8

const (
	// RoleParameter is a formal parameter of the site's function.
	RoleParameter Role = iota
	// RoleLocal is a variable of the function, static ones included, or of one of its blocks.
	RoleLocal
	// RoleGlobal is a variable outside functions.
	RoleGlobal
	// RoleGiven is not a variable of the program: a register, memory, a constant or a result
	// that a definition names.
	RoleGiven
)

// String returns "parameter", "local", "global" or "given".
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("role-%d", uint8(r))
}

var roleNames = [...]string{"parameter", "local", "global", "given"}

// Variable is a variable as one site sees it: its type, and either a location or
// the reason why there is none.
type Variable struct {
	Name   string
	Role   Role
	Type   *types.Type
	Loc    loc.Location
	Reason loc.Reason // zero if Loc is where the whole value is
	// Entries is how many entries of the debug information describe the variable at
	// the site. GCC 12 describes some parameters twice, mostly with equal locations.
	Entries int
	// Bits is the size in bits of the bit-field that a path led to, or 0. Its location is
	// the value of these bits, zero- or sign-extended.
	Bits int
	// Wrong says what the types do not allow, for the reasons reasons.NoSuchMember and
	// reasons.TypeMismatch; otherwise it is nil.
	Wrong error

	// LowBit is set if only bit 0 of the value at Loc counts. So it is for a truth value
	// inside a body: a compiler that passes the low bit of a number to an inlined function
	// leaves out the mask, and describes the whole number.
	LowBit bool
	// Reference is set if the variable, or the last member of a path, is a C++ reference,
	// and Type and Loc are those of what it refers to: see Referent.
	Reference bool

	// Elements is the number of elements of which the location has the first one, a number of 8
	// bytes, if the variable is a syntax.StepRange; else its kind is loc.KindNone.
	Elements loc.Location
	// OfFunction is set for RoleGiven and RoleGlobal if it depends on parameters or locals of the
	// function: it is computed from them, or one is an index on the way to it.
	OfFunction bool

	// Because says what decided whether a parameter is what was passed, or is "".
	Because string

	Site *Site // where it was looked up

	raw resolve.Raw
}

// Located reports whether the whole value is at Loc.
func (v *Variable) Located() bool { return v.Reason.Code == reasons.None }

// set makes the variable what is known of it at a site.
func (v *Variable) set(s *Site, a *resolve.Answer) {
	v.Type, v.Loc, v.Reason, v.LowBit, v.Because, v.Site, v.raw = a.Type, a.Loc, a.Reason, a.LowBit, a.Because, s, a.Raw
}

// variable returns the variable that an entry describes, as it is at the site.
func (s *Site) variable(x *entries.Var, ev *resolve.Evaluator) (*Variable, error) {
	var a resolve.Answer
	if err := ev.Resolve(&a, x); err != nil {
		return nil, err
	}
	v := &Variable{Name: x.U.Text(x.Name), Role: RoleLocal, Entries: 1}
	if x.Tag == dw.TagFormalParameter && !x.Result {
		v.Role = RoleParameter
	}
	v.set(s, &a)
	return v, nil
}

// Expression returns the DWARF expression that the location came from, or nil for a
// constant. It also returns a section and an offset there, in bytes: of the expression in
// a section of location lists, or of the variable's entry in .debug_info. If the image was closed, expr
// is nil.
func (v *Variable) Expression() (expr []byte, section string, off uint64) {
	if v.raw.U != nil {
		_ = v.raw.U.Img.Index.Guard(func() error {
			expr = bytes.Clone(v.raw.Expr) // Close unmaps the original
			return nil
		})
	}
	return expr, v.raw.Sec, v.raw.Off
}

// ExpressionText prints the operations of the DWARF expression that the location came from:
// "DW_OP_breg7 0x6 DW_OP_stack_value". It is "" for a constant.
func (v *Variable) ExpressionText() string {
	expr, _, _ := v.Expression()
	if expr == nil {
		return ""
	}
	return eval.ExpressionText(expr, v.raw.U.Encoding())
}
