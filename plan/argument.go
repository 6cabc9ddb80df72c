package plan

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Argument is one argument of the definition at one site. The embedded Arg is what its
// prologue fetches: where the bytes are, or why they have no location, how many, and how
// they are extended.
type Argument struct {
	prologue.Arg
	// DefinitionArg is the index in Definition.Args of the argument that this one comes
	// from. $params and $vars become several arguments here.
	DefinitionArg int
	// Variable is what the argument's name stands for at the site, with its location or
	// the reason why it has none. Arg.Loc differs from its location for strings and arrays
	// that a pointer leads to, and for bits that the definition's type picks.
	Variable *dwarfloc.Variable
	Type     probe.TypeSpec // in the definition
	// Unfetched is why the prologue does not fetch the argument: the reason that it has no
	// location, or, with a location, that it does not fit the convention. It is the zero
	// Reason for an argument that is fetched.
	Unfetched loc.Reason
}

// Fetched reports whether the prologue fetches the argument.
func (a *Argument) Fetched() bool { return a.Unfetched.Code == loc.ReasonNone }

// NewArgument returns the argument that fetches a variable: as many bytes as the type
// of the debug information has, or fewer if the definition's type is narrower, and
// as signed as the definition's type. A wider type of the definition changes nothing: the
// bytes after the object are not its own. If the variable's type does not allow the
// definition's, the reason is in the argument's Variable, which is a copy then: v is not
// changed.
//
// Only Options.Convention and Options.StringBytes are used: with
// prologue.ConventionRegisters an aggregate is not fetched whole.
func NewArgument(name string, v *dwarfloc.Variable, want probe.TypeSpec, o Options) Argument {
	a := Argument{Arg: prologue.Arg{Name: name, Loc: v.Loc, Reason: v.Reason}, Variable: v, Type: want}
	if err := a.shape(&o); err != nil {
		a.lose(loc.Reason{Code: loc.ReasonDamaged, Detail: err.Error()})
	}
	return a
}

// without is a copy of a variable that has a reason in place of its location.
func without(v *dwarfloc.Variable, r loc.Reason) *dwarfloc.Variable {
	own := *v
	own.Loc, own.Reason = loc.Location{}, r
	return &own
}

// lose drops the argument's location and records why.
func (a *Argument) lose(r loc.Reason) {
	a.Variable = without(a.Variable, r)
	a.Loc, a.Reason = loc.Location{}, r
}

// mismatch records that the variable's type does not allow the definition's.
func (a *Argument) mismatch(format string, args ...any) {
	if !a.Variable.Reason.Code.Mistaken() {
		a.lose(loc.Reason{Code: loc.ReasonTypeMismatch, Detail: fmt.Sprintf(format, args...)})
	}
}

// shape finds what is fetched of the argument's variable.
func (a *Argument) shape(o *Options) error {
	t, err := a.Variable.Type.Resolve()
	if err != nil {
		return err
	}
	bytes, err := t.ByteSize()
	if err != nil {
		return err
	}
	a.Size, a.Signed = int(max(bytes, 0)), t.Signed
	switch want := &a.Type; {
	case want.Kind == probe.TypeString, want.Kind == probe.TypeUString:
		return a.str(t, o)
	case want.Count > 0:
		a.array(t)
	case want.Kind == probe.TypeBitfield:
		a.bitField(t)
	case want.Kind != probe.TypeNone:
		a.number()
	case o.Convention != prologue.ConventionRegisters && a.Size > 0 && (a.Size > 8 || aggregate(t)):
		a.Kind = prologue.Object
	}
	return nil
}

func aggregate(t *dwarfloc.Type) bool {
	switch t.Kind {
	case dwarfloc.TypeStruct, dwarfloc.TypeUnion, dwarfloc.TypeClass, dwarfloc.TypeArray:
		return true
	}
	return false
}

// elementBits is the size of one element of a definition's type, or 0 for the
// variable's own.
func elementBits(t probe.TypeSpec) int {
	switch t.Kind {
	case probe.TypeChar, probe.TypeBool:
		return 8
	case probe.TypeSymbol:
		return 64
	}
	return t.Bits
}

// number narrows a scalar.
func (a *Argument) number() {
	bytes := elementBits(a.Type) / 8
	if bytes == 0 {
		a.Signed = a.Type.Kind == probe.TypeSigned
		return
	}
	if bytes <= a.Size || a.Size == 0 {
		a.Size, a.Signed = bytes, a.Type.Kind == probe.TypeSigned
	}
}

// character reports whether a string can be made of a type.
func character(t *dwarfloc.Type) bool {
	return t.Size == 1 && (t.Kind == dwarfloc.TypeChar || t.Kind == dwarfloc.TypeInt)
}

// str makes the argument a string: the array that its variable is, or what its
// variable points to.
func (a *Argument) str(t *dwarfloc.Type, o *Options) error {
	a.Kind = prologue.String
	if a.Type.Kind == probe.TypeUString {
		a.Kind = prologue.UserString
	}
	a.MaxBytes = o.stringBytes()
	size := a.Size
	a.Size, a.Signed = 0, false
	v := a.Variable
	var el *dwarfloc.Type
	if t.Kind == dwarfloc.TypePointer || t.Kind == dwarfloc.TypeArray {
		var err error
		if el, err = t.Elem(); err == nil {
			el, err = el.Resolve()
		}
		if err != nil {
			return err
		}
	}
	switch {
	case el == nil && v.Role == dwarfloc.Given && v.Loc.Kind == loc.KindMemory:
		// Memory that the definition names has no type that could forbid it.
	case el == nil || !character(el):
		a.mismatch("%q is %v, and a string is a char * or an array of char", a.Name, v.Type)
	case t.Kind == dwarfloc.TypeArray:
		if a.Size = size; size > 0 {
			a.MaxBytes = min(a.MaxBytes, size+1)
		}
	default:
		a.follow()
	}
	return nil
}

// array makes the argument as many elements as the definition says, of the object that
// its variable is, or of what its variable points to.
func (a *Argument) array(t *dwarfloc.Type) {
	has := a.Size
	a.Kind, a.Signed = prologue.Object, false
	a.Size = a.Type.Count * elementBits(a.Type) / 8
	v := a.Variable
	switch {
	case t.Kind == dwarfloc.TypePointer:
		a.follow()
	case v.Role == dwarfloc.Given && v.Loc.Kind == loc.KindMemory:
	case has > 0 && a.Size > has:
		a.mismatch("%q is %v of %d bytes, and %v takes %d", a.Name, v.Type, has, a.Type, a.Size)
	}
}

// follow puts the argument where its variable points to.
func (a *Argument) follow() {
	v := a.Variable
	l := loc.Location{Kind: loc.KindMemory, Rule: v.Loc.Rule}
	switch v.Loc.Kind {
	case loc.KindRegister, loc.KindValue, loc.KindConstant:
		l.Expr = v.Loc.Expr
	case loc.KindMemory:
		l.Expr = &loc.Expr{Op: loc.OpDeref, Size: pointerSize(v.Type), A: v.Loc.Expr}
	default:
		// Without a location, or with an implicit pointer, there is a reason already. A
		// pointer in pieces must not be taken for what it points to.
		if v.Located() {
			a.lose(loc.Reason{Code: loc.ReasonUnsupported, Detail: "a pointer that is " + v.Loc.Kind.String()})
		}
		return
	}
	a.Loc = l
}

func pointerSize(t *dwarfloc.Type) uint8 {
	if n, err := t.ByteSize(); err == nil && n > 0 && n <= 8 {
		return uint8(n)
	}
	return 8
}

// bitField picks bits of what the variable's location holds.
func (a *Argument) bitField(t *dwarfloc.Type) {
	whole := a.Type.Container / 8
	if aggregate(t) || a.Size > 0 && whole > a.Size {
		a.mismatch("%q is %v of %d bytes, and %v is cut from %d", a.Name, a.Variable.Type, a.Size, a.Type, whole)
		return
	}
	a.Size, a.Signed = (a.Type.Bits+7)/8, false
	at := &a.Variable.Loc
	var e *loc.Expr
	switch at.Kind {
	case loc.KindRegister, loc.KindValue, loc.KindConstant:
		e = at.Expr
	case loc.KindMemory:
		e = &loc.Expr{Op: loc.OpDeref, Size: uint8(whole), A: at.Expr}
	case loc.KindNone, loc.KindImplicitPointer:
		return
	default:
		a.mismatch("%q is not in one piece, and %v is cut from one", a.Name, a.Type)
		return
	}
	if a.Type.Offset > 0 {
		e = &loc.Expr{Op: loc.OpShr, A: e, B: &loc.Expr{Op: loc.OpConst, K: uint64(a.Type.Offset)}}
	}
	if a.Type.Bits < 64 {
		e = &loc.Expr{Op: loc.OpAnd, A: e, B: &loc.Expr{Op: loc.OpConst, K: 1<<a.Type.Bits - 1}}
	}
	a.Loc = loc.Location{Kind: loc.KindValue, Rule: at.Rule, Expr: e}
}
