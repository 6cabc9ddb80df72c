package loc

import (
	"fmt"
)

// ReasonCode says why a variable has no location at a site. The list is closed.
//
//   - ReasonNone: the variable has a location
//   - ReasonOptimizedOut ("optimized-out"): the compiler kept no location for it
//   - ReasonNotAtSite ("not-at-site"): its location list covers other addresses, not
//     this site
//   - ReasonNotStoredYet ("not-stored-yet"): the debug information names stack memory
//     that is not written until later
//   - ReasonEntryValueOnly ("entry-value-only"): only its value at the entry of the
//     enclosing function is described, and the register has changed since
//   - ReasonParameterRef ("parameter-ref"): only callers of this function know it
//     (DW_OP_GNU_parameter_ref): the clone lost the parameter
//   - ReasonImplicitPointer ("implicit-pointer"): the pointer itself was optimized
//     away; what it points to can be read through member access
//   - ReasonVectorRegister ("vector-register"): it is in a floating point or vector
//     register, which a probe does not see
//   - ReasonNoRegister ("no-register"): it is in a register that struct pt_regs does
//     not hold
//   - ReasonThreadLocal ("thread-local"): it is thread-local, and its address depends
//     on the thread
//   - ReasonModuleAddress ("module-address"): it is, or is at, an address in a
//     relocatable file (a module), whose sections the kernel loads wherever it likes
//   - ReasonLoadBias ("load-bias"): it is, or is at, an address of a position-independent
//     image, and what a return probe sees does not say where that is loaded
//   - ReasonUnsupported ("unsupported-operation"): its location uses an operation that
//     has no BPF equivalent
//   - ReasonNoFrameInfo ("no-frame-info"): its location is relative to the call frame,
//     and no call frame information covers the site
//   - ReasonIncompleteType ("incomplete-type"): the size of its type is unknown
//   - ReasonNoSuchVariable ("no-such-variable"): no variable of this name is in scope
//   - ReasonNoSuchMember ("no-such-member"): its type has no member of this name
//   - ReasonTypeMismatch ("type-mismatch"): its type does not allow what the definition
//     asks for
//   - ReasonMissingPiece ("missing-piece"): parts of it were optimized away
//   - ReasonTooLarge ("too-large"): it does not fit into the fetch convention
//   - ReasonReassigned ("reassigned"): the body may assign the parameter at once, and its
//     location does not say which value it is for
//   - ReasonContradictory ("contradictory"): its debug information cannot be right: it
//     contradicts the calling convention, or itself
//   - ReasonDamaged ("damaged"): its debug information is damaged
//   - ReasonNotDescribed ("not-described"): what takes the place of debug information, a pack
//     or BTF, does not say
type ReasonCode uint8

const (
	// ReasonNone means that the variable has a location.
	ReasonNone ReasonCode = iota
	// ReasonOptimizedOut ("optimized-out"): the compiler kept no location for it.
	ReasonOptimizedOut
	// ReasonNotAtSite ("not-at-site"): its location list covers other addresses, not this site.
	ReasonNotAtSite
	// ReasonNotStoredYet ("not-stored-yet"): the debug information names stack memory that
	// is not written until later.
	ReasonNotStoredYet
	// ReasonEntryValueOnly ("entry-value-only"): only its value at the entry of the
	// enclosing function is described, and the register has changed since.
	ReasonEntryValueOnly
	// ReasonParameterRef ("parameter-ref"): only callers of this function know it
	// (DW_OP_GNU_parameter_ref): the clone lost the parameter.
	ReasonParameterRef
	// ReasonImplicitPointer ("implicit-pointer"): the pointer itself was optimized away;
	// what it points to can be read through member access.
	ReasonImplicitPointer
	// ReasonVectorRegister ("vector-register"): it is in a floating point or vector
	// register, which a probe does not see.
	ReasonVectorRegister
	// ReasonNoRegister ("no-register"): it is in a register that struct pt_regs does not hold.
	ReasonNoRegister
	// ReasonThreadLocal ("thread-local"): it is thread-local, and its address depends on
	// the thread.
	ReasonThreadLocal
	// ReasonModuleAddress ("module-address"): it is, or is at, an address in a relocatable
	// file (a module), whose sections the kernel loads wherever it likes.
	ReasonModuleAddress
	// ReasonLoadBias ("load-bias"): it is, or is at, an address of a position-independent
	// image, and what a return probe sees does not say where that is loaded.
	ReasonLoadBias
	// ReasonUnsupported ("unsupported-operation"): its location uses an operation that has
	// no BPF equivalent.
	ReasonUnsupported
	// ReasonNoFrameInfo ("no-frame-info"): its location is relative to the call frame, and
	// no call frame information covers the site.
	ReasonNoFrameInfo
	// ReasonIncompleteType ("incomplete-type"): the size of its type is unknown.
	ReasonIncompleteType
	// ReasonNoSuchVariable ("no-such-variable"): no variable of this name is in scope.
	ReasonNoSuchVariable
	// ReasonNoSuchMember ("no-such-member"): its type has no member of this name.
	ReasonNoSuchMember
	// ReasonTypeMismatch ("type-mismatch"): its type does not allow what the definition asks for.
	ReasonTypeMismatch
	// ReasonMissingPiece ("missing-piece"): parts of it were optimized away.
	ReasonMissingPiece
	// ReasonTooLarge ("too-large"): it does not fit into the fetch convention.
	ReasonTooLarge
	// ReasonReassigned ("reassigned"): the body may assign the parameter at once, and its
	// location does not say which value it is for.
	ReasonReassigned
	// ReasonContradictory ("contradictory"): its debug information cannot be right: it
	// contradicts the calling convention, or itself.
	ReasonContradictory
	// ReasonDamaged ("damaged"): its debug information is damaged.
	ReasonDamaged
	// ReasonNotDescribed ("not-described"): what takes the place of debug information, a pack or
	// BTF, does not say.
	ReasonNotDescribed
)

var reasonText = [...]struct{ name, text string }{
	ReasonNone:            {"", ""},
	ReasonOptimizedOut:    {"optimized-out", "the compiler kept no location for it"},
	ReasonNotAtSite:       {"not-at-site", "its location list covers other addresses, not this site"},
	ReasonNotStoredYet:    {"not-stored-yet", "the debug information names stack memory that is written only later"},
	ReasonEntryValueOnly:  {"entry-value-only", "only its value at the entry of the enclosing function is described, and the register has changed since"},
	ReasonParameterRef:    {"parameter-ref", "only callers of this function know it (DW_OP_GNU_parameter_ref): the clone lost the parameter"},
	ReasonImplicitPointer: {"implicit-pointer", "the pointer itself was optimized away; what it points to can be read through member access"},
	ReasonVectorRegister:  {"vector-register", "it is in a floating point or vector register, which a probe does not see"},
	ReasonNoRegister:      {"no-register", "it is in a register that struct pt_regs does not hold"},
	ReasonThreadLocal:     {"thread-local", "it is thread-local, and its address depends on the thread"},
	ReasonModuleAddress:   {"module-address", "it is, or is at, an address of a relocatable file (a module), whose sections the kernel loads wherever it likes"},
	ReasonLoadBias:        {"load-bias", "it is, or is at, an address of a position-independent image, and what a return probe sees does not say where that is loaded"},
	ReasonUnsupported:     {"unsupported-operation", "its location uses an operation that has no BPF equivalent"},
	ReasonNoFrameInfo:     {"no-frame-info", "its location is relative to the call frame, and no call frame information covers the site"},
	ReasonIncompleteType:  {"incomplete-type", "the size of its type is unknown"},
	ReasonNoSuchVariable:  {"no-such-variable", "no variable of this name is in scope"},
	ReasonNoSuchMember:    {"no-such-member", "its type has no member of this name"},
	ReasonTypeMismatch:    {"type-mismatch", "its type does not allow what the definition asks of it"},
	ReasonMissingPiece:    {"missing-piece", "parts of it were optimized away"},
	ReasonTooLarge:        {"too-large", "it does not fit into the fetch convention"},
	ReasonReassigned:      {"reassigned", "the body may assign it at once, and its location does not say which value it is for"},
	ReasonContradictory:   {"contradictory", "its debug information cannot be right: it contradicts the calling convention, or itself"},
	ReasonDamaged:         {"damaged", "its debug information is damaged"},
	ReasonNotDescribed:    {"not-described", "what takes the place of debug information, a pack or BTF, does not say"},
}

// String returns the short, stable name: "optimized-out".
func (c ReasonCode) String() string {
	if int(c) < len(reasonText) {
		return reasonText[c].name
	}
	return fmt.Sprintf("reason-%d", uint8(c))
}

// Mistaken reports whether a reason is the definition's fault (an unknown name, an
// impossible type) rather than the site's.
func (c ReasonCode) Mistaken() bool {
	switch c {
	case ReasonNoSuchVariable, ReasonNoSuchMember, ReasonTypeMismatch:
		return true
	}
	return false
}

// Describe returns the meaning of the code in words, or "" if it is unknown.
func (c ReasonCode) Describe() string {
	if int(c) < len(reasonText) {
		return reasonText[c].text
	}
	return ""
}

// Reason says why a variable has no location at a site. The zero Reason means that it has
// one.
type Reason struct {
	Code   ReasonCode
	Detail string // the operation, the type or the nearest names; may be empty
}

// String returns the name of the code, followed by ": " and the detail if there is one.
func (r Reason) String() string {
	if r.Detail == "" {
		return r.Code.String()
	}
	return r.Code.String() + ": " + r.Detail
}
