package argument

import (
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/types"
)

// counted makes the argument the string that a structure or class is, in languages whose
// strings have a length. always is set if the definition asks for a string. ok is false for other types.
func (a *argument) counted(t *types.Type, always bool) (ok bool, err error) {
	chars, length, err := compute.TextOf(a.variable, t, always)
	if err != nil || chars == nil {
		return false, err
	}
	return true, a.setCounted(chars, length)
}

// countedOrPointed is counted for what the definition calls a string, or a pointer to one.
func (a *argument) countedOrPointed(t *types.Type) (ok bool, err error) {
	if t.Kind != types.Pointer {
		return a.counted(t, true)
	}
	el, err := element(t)
	if err != nil || !isRecord(el) {
		return false, err
	}
	object, err := compute.Follow(a.variable, []syntax.Step{{Kind: syntax.StepIndex}})
	if err != nil || object.Wrong != nil {
		return false, err
	}
	pointer := a.variable
	a.variable = object
	if ok, err = a.counted(el, true); !ok || err != nil {
		a.variable = pointer
	}
	return ok, err
}

// setCounted makes the argument the string at an address, with a length.
func (a *argument) setCounted(chars, length *dwarfloc.Variable) error {
	if a.Kind != prologue.KindUserString {
		a.Kind = prologue.KindString
	}
	a.Size, a.Signed = 0, false
	whole := a.variable
	switch {
	case !length.Located():
		a.lose(loc.Reason{Code: length.Reason.Code, Detail: "the string's length is not located"})
		return nil
	case chars.Loc.Kind == loc.KindImplicitPointer:
		a.Reason = loc.Reason{}
		a.variable = chars
		err := a.followObject()
		a.variable = whole
		if n := length.Loc; err == nil && n.Kind == loc.KindConstant && a.Loc.Kind == loc.KindBytes {
			a.Loc.Bytes = a.Loc.Bytes[:min(uint64(len(a.Loc.Bytes)), n.Expr.K)]
			a.Size = len(a.Loc.Bytes)
			return nil
		}
		a.lose(chars.Reason)
		return err
	case !chars.Located():
		a.lose(chars.Reason)
		return nil
	}
	a.Reason = loc.Reason{}
	a.variable = chars
	a.follow()
	if a.Loc.Kind == loc.KindMemory {
		a.Length = length.Loc
		whole = reached(whole)
	}
	a.variable = whole
	return nil
}
