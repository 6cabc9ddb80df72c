package plan

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfstack"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Argument is one argument of the definition at one site. The embedded Arg is what its
// prologue fetches: where the bytes are, or why they have no location, how many they are,
// and how they are extended.
type Argument struct {
	prologue.Arg
	// DefinitionArg is the index in Definition.Args of the argument that this one comes
	// from. $params and $vars become several arguments here.
	DefinitionArg int
	// Variable is what the argument's name stands for at the site, with its location or
	// the reason why it has none. Arg.Loc differs from its location for strings and arrays
	// that a pointer leads to, and for bits that the definition's type picks.
	Variable *dwarfloc.Variable
	Type     syntax.TypeSpec // in the definition
	// Unfetched is why the prologue does not fetch the argument: the reason that it has no
	// location, or, with a location, that it does not fit the convention. It is the zero
	// Reason for an argument that is fetched.
	Unfetched loc.Reason
	// Parts are the places in a structure of what Options.Parts or Options.Keys fetches in their stead, after the arguments in a record, in their
	// order. One is empty for the address of a text, and for what is not fetched.
	Parts []prologue.Field
}

// Doubt returns why the value that is fetched, or that is left out for this reason, may not be the one that was passed: "reassigned",
// or none where it is sure.
func (a *Argument) Doubt() loc.ReasonCode {
	if !a.Variable.Located() {
		return reasons.None
	}
	return a.Variable.Loc.Doubt
}

// Fetched reports whether the prologue fetches the argument.
func (a *Argument) Fetched() bool { return a.Unfetched.Code == reasons.None }

// TypeText returns the argument's type in the debug information, or "-" for a variable that does not
// exist at the site.
func (a *Argument) TypeText() string {
	if a.Kind == prologue.KindComm {
		return fmt.Sprintf("char[%d]", bpfstack.CommSize)
	}
	if a.Variable.Reason.Code == reasons.NoSuchVariable {
		return "-"
	}
	return a.Variable.Type.String()
}
