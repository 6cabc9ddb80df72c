// Package reasons has the numbers of loc.ReasonCode, which says what they mean.
package reasons

import "github.com/bpfprologue/bpfprologue/loc"

// The reasons, in the order of their names in package loc.
const (
	// None means that the variable has a location.
	None loc.ReasonCode = iota
	// OptimizedOut ("optimized-out"): the compiler kept no location for it.
	OptimizedOut
	// NotAtSite ("not-at-site"): its location list covers other addresses, not this site.
	NotAtSite
	// NotStoredYet ("not-stored-yet"): the debug information names stack memory that
	// is not written until later.
	NotStoredYet
	// EntryValueOnly ("entry-value-only"): only its value at the entry of the
	// enclosing function is described, and the register has changed since.
	EntryValueOnly
	// ParameterRef ("parameter-ref"): only callers of this function know it
	// (DW_OP_GNU_parameter_ref): the clone lost the parameter.
	ParameterRef
	// ImplicitPointer ("implicit-pointer"): the pointer itself was optimized away;
	// what it points to can be read through member access.
	ImplicitPointer
	// VectorRegister ("vector-register"): it is in a floating point or vector
	// register, which a probe does not see.
	VectorRegister
	// NoRegister ("no-register"): it is in a register that struct pt_regs does not hold.
	NoRegister
	// ThreadLocal ("thread-local"): it is thread-local, and its address depends on
	// the thread.
	ThreadLocal
	// ModuleAddress ("module-address"): it is, or is at, an address in a relocatable
	// file (a module), whose sections the kernel loads wherever it likes.
	ModuleAddress
	// LoadBias ("load-bias"): it is, or is at, an address of a position-independent
	// image, and what a return probe sees does not say where that is loaded.
	LoadBias
	// Unsupported ("unsupported-operation"): its location uses an operation that has
	// no BPF equivalent.
	Unsupported
	// NoFrameInfo ("no-frame-info"): its location is relative to the call frame, and
	// no call frame information covers the site.
	NoFrameInfo
	// IncompleteType ("incomplete-type"): the size of its type is unknown.
	IncompleteType
	// NoSuchVariable ("no-such-variable"): no variable of this name is in scope.
	NoSuchVariable
	// NoSuchMember ("no-such-member"): its type has no member of this name.
	NoSuchMember
	// TypeMismatch ("type-mismatch"): its type does not allow what the definition asks for.
	TypeMismatch
	// MissingPiece ("missing-piece"): parts of it were optimized away.
	MissingPiece
	// TooLarge ("too-large"): it does not fit into the fetch convention.
	TooLarge
	// Reassigned ("reassigned"): the body may assign the parameter at once, and its
	// location does not say which value it is for.
	Reassigned
	// Contradictory ("contradictory"): its debug information contradicts the calling
	// convention or itself, or does not say how wide its arithmetic is.
	Contradictory
	// Damaged ("damaged"): its debug information is damaged.
	Damaged
	// NotDescribed ("not-described"): what takes the place of debug information, a pack,
	// BTF or a symbol, does not say.
	NotDescribed
)

// Mistaken reports whether a reason is the definition's fault (an unknown name, an impossible type) rather than the site's.
func Mistaken(c loc.ReasonCode) bool {
	switch c {
	case NoSuchVariable, NoSuchMember, TypeMismatch:
		return true
	}
	return false
}
