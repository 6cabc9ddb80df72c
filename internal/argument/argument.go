// Package argument decides which bytes of a variable an argument fetches.
package argument

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/types"
)

// Options holds New's options.
type Options struct {
	Convention  prologue.Convention // ConventionRegisters does not fetch whole aggregates
	StringBytes int                 // bytes for a string in a record, including its NUL
}

// argument is an argument under construction.
type argument struct {
	*prologue.Arg
	variable *dwarfloc.Variable
	want     syntax.TypeSpec
}

// Set makes arg the argument that fetches a variable: as many bytes as the variable's type
// has, or fewer if the definition's type, want, is narrower. want also decides whether it
// is signed. A wider want has no effect: the bytes after the object belong to something
// else.
//
// It returns the argument's variable. If the variable's type does not allow want, that
// is a copy of v with a reason; v is not changed.
func Set(arg *prologue.Arg, name string, v *dwarfloc.Variable, want syntax.TypeSpec, o Options) *dwarfloc.Variable {
	*arg = prologue.Arg{}
	arg.Name, arg.Loc, arg.Reason = name, v.Loc, v.Reason
	a := argument{Arg: arg, variable: v, want: want}
	if err := a.shape(&o); err != nil {
		a.lose(loc.Reason{Code: reasons.Damaged, Detail: err.Error()})
	}
	return a.variable
}

// Without returns a copy of a variable with a reason instead of a location.
func Without(v *dwarfloc.Variable, r loc.Reason) *dwarfloc.Variable {
	own := *v
	own.Loc, own.Reason = loc.Location{}, r
	return &own
}

// reached returns a copy of a variable without a reason: what it refers to is fetched, even
// if not all of the variable itself can be.
func reached(v *dwarfloc.Variable) *dwarfloc.Variable {
	own := *v
	own.Reason = loc.Reason{}
	return &own
}

// lose removes the argument's location and records why.
func (a *argument) lose(r loc.Reason) {
	a.variable = Without(a.variable, r)
	a.Loc, a.Reason = loc.Location{}, r
}

// mismatch records that the variable's type does not allow the definition's.
func (a *argument) mismatch(format string, args ...any) {
	if !reasons.Mistaken(a.variable.Reason.Code) {
		a.lose(loc.Reason{Code: reasons.TypeMismatch, Detail: fmt.Sprintf(format, args...)})
	}
}

// shape decides what to fetch of the argument's variable.
func (a *argument) shape(o *Options) error {
	t, err := a.variable.Type.Complete()
	if err != nil {
		return err
	}
	bytes, err := t.ByteSize()
	if err != nil {
		return err
	}
	a.Size, a.Signed, a.LowBit = int(max(bytes, 0)), t.Signed, a.variable.LowBit
	if a.want.Kind != syntax.TypeNone && a.want.Kind != syntax.TypeBool {
		a.LowBit = false // the definition asks for the bits as they are
	}
	if a.variable.Elements.Kind != loc.KindNone {
		return a.elements(t, o)
	}
	switch want := &a.want; {
	case want.Kind == syntax.TypeBytes && want.Count == 0:
		if a.Kind, a.Signed = prologue.KindObject, false; a.Size <= 0 {
			a.mismatch("the size of %q, which is %v, is not known: hex[COUNT] says how many bytes there are", a.Name, a.variable.Type)
		}
		return nil
	case want.Kind == syntax.TypeString, want.Kind == syntax.TypeUString:
		return a.str(t, o)
	case want.Count > 0:
		a.array(t)
	case want.Kind == syntax.TypeBitfield:
		a.bitField(t)
	case want.Kind != syntax.TypeNone:
		a.number()
	case o.Convention != prologue.ConventionRegisters && a.Size > 0 && (a.Size > 8 || aggregate(t)):
		a.Kind = prologue.KindObject
		return a.contents(t, o)
	}
	return nil
}

// contents makes an argument that is a string or a slice, in languages where these are
// structures, what it refers to.
func (a *argument) contents(t *types.Type, o *Options) error {
	if !isRecord(t) || o.StringBytes == 0 {
		return nil // or there is no room
	}
	a.MaxBytes = o.StringBytes
	if ok, err := a.counted(t, false); err != nil || ok {
		return err
	}
	if ok, err := a.slice(t); err != nil || ok {
		return err
	}
	a.MaxBytes = 0
	return nil
}

func isRecord(t *types.Type) bool {
	return t.Kind == types.Struct || t.Kind == types.Class
}

// element returns the type of what a pointer points to, or of an array's elements, without
// typedefs and qualifiers.
func element(t *types.Type) (*types.Type, error) {
	el, err := t.Elem()
	if err != nil {
		return nil, err
	}
	return el.Resolve()
}

func aggregate(t *types.Type) bool {
	switch t.Kind {
	case types.Struct, types.Union, types.Class, types.Array:
		return true
	}
	return false
}

// ElementBits returns the size in bits of one element of a definition's type, or 0 if the
// variable's own size applies.
func ElementBits(t syntax.TypeSpec) int {
	switch t.Kind {
	case syntax.TypeChar, syntax.TypeBool, syntax.TypeBytes:
		return 8
	case syntax.TypeSymbol:
		return 64
	}
	return t.Bits
}

// number narrows a scalar.
func (a *argument) number() {
	bytes := ElementBits(a.want) / 8
	if bytes == 0 {
		a.Signed = a.want.Kind == syntax.TypeSigned
		return
	}
	if bytes <= a.Size || a.Size == 0 {
		a.Size, a.Signed = bytes, a.want.Kind == syntax.TypeSigned
	}
}

// character reports whether elements with a type can form a string.
func character(t *types.Type) bool {
	return t.Size == 1 && (t.Kind == types.Char || t.Kind == types.Int)
}

// str makes the argument a string: its variable must be an array, or point to one.
func (a *argument) str(t *types.Type, o *Options) error {
	a.Kind = prologue.KindString
	if a.want.Kind == syntax.TypeUString {
		a.Kind = prologue.KindUserString
	}
	a.MaxBytes = o.StringBytes
	size := a.Size
	a.Size, a.Signed = 0, false
	if ok, err := a.countedOrPointed(t); err != nil || ok {
		return err
	}
	v := a.variable
	var el *types.Type
	if t.Kind == types.Pointer || t.Kind == types.Array {
		var err error
		if el, err = element(t); err != nil {
			return err
		}
	}
	switch {
	case el == nil && v.Role == dwarfloc.RoleGiven && v.Loc.Kind == loc.KindMemory && t.Kind == types.Int:
		// Memory that the definition names has no type that could disallow it.
	case el == nil && v.Role == dwarfloc.RoleGiven && t.Kind == types.Int && bytes(t) == 8, el != nil && t.Kind == types.Pointer && el.Kind == types.Void:
		a.follow() // an address without a type, or with void: a register, void *
	case el == nil || !character(el):
		a.mismatch("%q is %v, and a string is a char * or an array of char", a.Name, v.Type)
	case t.Kind == types.Array:
		if a.Size = size; size > 0 {
			a.MaxBytes = min(a.MaxBytes, size+1)
		}
	case v.Loc.Kind == loc.KindImplicitPointer:
		return a.followObject()
	default:
		a.follow()
	}
	return nil
}

// followObject makes the argument the string at an implicit pointer. No register holds its
// address, but the object has a location, or its bytes are known.
func (a *argument) followObject() error {
	o, err := compute.Pointee(a.variable)
	if err != nil || !o.Located() {
		return err
	}
	a.Loc, a.Reason = o.Loc, o.Reason
	a.Loc.Rule = a.variable.Loc.Rule
	if o.Loc.Kind == loc.KindBytes {
		a.Size = len(o.Loc.Bytes)
	} else if n, err := o.Type.ByteSize(); err != nil {
		return err
	} else if n > 0 {
		a.Size = int(n)
	}
	return nil
}

// array makes the argument an array with as many elements as the definition says, from
// its variable or from what that points to.
func (a *argument) array(t *types.Type) {
	has := a.Size
	a.Kind, a.Signed = prologue.KindObject, false
	a.Size = a.want.Count * ElementBits(a.want) / 8
	v := a.variable
	switch {
	case t.Kind == types.Pointer:
		a.follow()
	case v.Role == dwarfloc.RoleGiven && v.Loc.Kind == loc.KindMemory && t.Kind == types.Int:
	case v.Role == dwarfloc.RoleGiven && t.Kind == types.Int && has == 8 && a.Size > has:
		a.follow() // a register or a computed address
	case has > 0 && a.Size > has:
		a.mismatch("%q is %v of %d bytes, and %v takes %d", a.Name, v.Type, has, a.want, a.Size)
	}
}

// follow makes the argument's location that of what its variable points to.
func (a *argument) follow() {
	v := a.variable
	if p := v.Loc.Pointee; p != reasons.None && v.Loc.Doubt == reasons.None {
		own := *v
		own.Loc.Doubt = p
		a.variable, v = &own, &own
	}
	l := loc.Location{Kind: loc.KindMemory, Rule: v.Loc.Rule}
	switch v.Loc.Kind {
	case loc.KindRegister, loc.KindValue, loc.KindConstant:
		l.Expr = v.Loc.Expr
	case loc.KindMemory:
		l.Expr = &loc.Expr{Op: ops.Deref, Size: pointerSize(v.Type), A: v.Loc.Expr}
	default:
		// A variable without a location, or an implicit pointer, already has a reason. A
		// pointer in pieces must not be mistaken for what it points to.
		if v.Located() {
			a.lose(loc.Reason{Code: reasons.Unsupported, Detail: "a pointer that is " + v.Loc.Kind.String()})
		}
		return
	}
	a.Loc = l
}

func bytes(t *types.Type) int64 {
	n, err := t.ByteSize()
	if err != nil {
		return -1
	}
	return n
}

func pointerSize(t *types.Type) uint8 {
	if n, err := t.ByteSize(); err == nil && n > 0 && n <= 8 {
		return uint8(n)
	}
	return 8
}

// bitField picks bits from what the variable's location holds.
func (a *argument) bitField(t *types.Type) {
	whole := a.want.Container / 8
	if aggregate(t) || a.Size > 0 && whole > a.Size {
		a.mismatch("%q is %v of %d bytes, and %v is cut from %d", a.Name, a.variable.Type, a.Size, a.want, whole)
		return
	}
	a.Size, a.Signed = (a.want.Bits+7)/8, false
	at := &a.variable.Loc
	var e *loc.Expr
	switch at.Kind {
	case loc.KindRegister, loc.KindValue, loc.KindConstant:
		e = at.Expr
	case loc.KindMemory:
		e = &loc.Expr{Op: ops.Deref, Size: uint8(whole), A: at.Expr}
	case loc.KindNone, loc.KindImplicitPointer:
		return
	default:
		a.mismatch("%q is not in one piece, and %v is cut from one", a.Name, a.want)
		return
	}
	if a.want.Offset > 0 {
		e = &loc.Expr{Op: ops.Shr, A: e, B: &loc.Expr{Op: ops.Const, K: uint64(a.want.Offset)}}
	}
	if a.want.Bits < 64 {
		e = &loc.Expr{Op: ops.And, A: e, B: &loc.Expr{Op: ops.Const, K: 1<<a.want.Bits - 1}}
	}
	a.Loc = loc.Location{Kind: loc.KindValue, Rule: at.Rule, Expr: e}
}
