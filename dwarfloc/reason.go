package dwarfloc

import (
	"fmt"
	"strings"
)

// ReasonCode says why a variable has no location at a site. The list is closed.
type ReasonCode uint8

const (
	// Located: there is no reason, the variable has a location.
	Located ReasonCode = iota
	OptimizedOut
	NotAtSite
	NotStoredYet
	EntryValueOnly
	ParameterRef
	ImplicitPointer
	VectorRegister
	NoRegister
	ThreadLocal
	ModuleAddress
	Unsupported
	NoFrameInfo
	IncompleteType
	NoSuchVariable
	NoSuchMember
	TypeMismatch
	MissingPiece
	TooLarge
	Damaged
	reasonCount
)

var reasonText = [reasonCount]struct{ name, text string }{
	Located:         {"", ""},
	OptimizedOut:    {"optimized-out", "the compiler kept no location for it"},
	NotAtSite:       {"not-at-site", "its location list covers other addresses, not this site"},
	NotStoredYet:    {"not-stored-yet", "the debug information names stack memory that is written only later"},
	EntryValueOnly:  {"entry-value-only", "only its value at the entry of the enclosing function is described, and the register has changed since"},
	ParameterRef:    {"parameter-ref", "only callers of this function know it (DW_OP_GNU_parameter_ref): the clone lost the parameter"},
	ImplicitPointer: {"implicit-pointer", "the pointer itself was optimized away; what it points to can be read through member access"},
	VectorRegister:  {"vector-register", "it is in a floating point or vector register, which a probe does not see"},
	NoRegister:      {"no-register", "it is in a register that struct pt_regs does not hold"},
	ThreadLocal:     {"thread-local", "it is thread-local, and its address depends on the thread"},
	ModuleAddress:   {"module-address", "it is, or is at, an address of a relocatable file (a module), whose sections the kernel loads wherever it likes"},
	Unsupported:     {"unsupported-operation", "its location uses an operation that has no BPF equivalent"},
	NoFrameInfo:     {"no-frame-info", "its location is relative to the call frame, and no call frame information covers the site"},
	IncompleteType:  {"incomplete-type", "the size of its type is unknown"},
	NoSuchVariable:  {"no-such-variable", "no variable of this name is in scope"},
	NoSuchMember:    {"no-such-member", "its type has no member of this name"},
	TypeMismatch:    {"type-mismatch", "its type does not allow what the definition asks of it"},
	MissingPiece:    {"missing-piece", "parts of it were optimized away"},
	TooLarge:        {"too-large", "it does not fit into the fetch convention"},
	Damaged:         {"damaged", "its debug information is damaged"},
}

// ReasonCodes returns all codes, in order.
func ReasonCodes() []ReasonCode {
	out := make([]ReasonCode, 0, reasonCount-1)
	for c := OptimizedOut; c < reasonCount; c++ {
		out = append(out, c)
	}
	return out
}

// String returns the short, stable name: "optimized-out".
func (c ReasonCode) String() string {
	if c < reasonCount {
		return reasonText[c].name
	}
	return fmt.Sprintf("reason-%d", uint8(c))
}

// Text returns the sentence that goes with the name.
func (c ReasonCode) Text() string {
	if c < reasonCount {
		return reasonText[c].text
	}
	return ""
}

// Reason says why a variable has no location at a site. The zero Reason stands
// for a variable that has one.
type Reason struct {
	Code   ReasonCode
	Detail string // what exactly: the operation, the type, the nearest names; may be empty
}

// String returns the name, and the detail behind a colon.
func (r Reason) String() string {
	if r.Detail == "" {
		return r.Code.String()
	}
	return r.Code.String() + ": " + r.Detail
}

// noSuchVariable is the reason for a name that is not in scope.
func noSuchVariable(name string, nearest []string) Reason {
	r := Reason{Code: NoSuchVariable, Detail: fmt.Sprintf("%q", name)}
	if len(nearest) > 0 {
		r.Detail += "; in scope: " + strings.Join(nearest, ", ")
	}
	return r
}
