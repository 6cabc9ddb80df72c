package loc

import (
	"fmt"
)

// ReasonCode says why a variable has no location at a site. The list is closed. String returns a short, stable
// name, by which reasons are told apart; that of 0, for a variable that has a location, is "":
//
//   - optimized-out: the compiler kept no location for it
//   - not-at-site: its location list covers other addresses, not this site
//   - not-stored-yet: the debug information names stack memory that is not written until later
//   - entry-value-only: only its value at the entry of the enclosing function is described, and the register has changed since
//   - parameter-ref: only callers of this function know it (DW_OP_GNU_parameter_ref): the clone lost the parameter
//   - implicit-pointer: the pointer itself was optimized away; what it points to can be read through member access
//   - vector-register: it is in a floating point or vector register, which a probe does not see
//   - no-register: it is in a register that struct pt_regs does not hold
//   - thread-local: it is thread-local, and its address depends on the thread
//   - module-address: it is, or is at, an address in a relocatable file (a module), whose sections the kernel loads wherever it
//     likes
//   - load-bias: it is, or is at, an address of a position-independent image, and what a return probe sees does not say where that
//     is loaded
//   - unsupported-operation: its location uses an operation that has no BPF equivalent
//   - no-frame-info: its location is relative to the call frame, and no call frame information covers the site
//   - incomplete-type: the size of its type is unknown
//   - no-such-variable: no variable of this name is in scope
//   - no-such-member: its type has no member of this name
//   - type-mismatch: its type does not allow what the definition asks for
//   - missing-piece: parts of it were optimized away
//   - too-large: it does not fit into the fetch convention
//   - reassigned: the body may assign the parameter at once, and its location does not say which value it is for
//   - contradictory: its debug information contradicts the calling convention or itself, or does not say how wide its arithmetic is
//   - damaged: its debug information is damaged
//   - not-described: what takes the place of debug information, a pack, BTF or a symbol, does not say
type ReasonCode uint8

// reasonText is in the order of the constants of package internal/reasons.
var reasonText = [...]struct{ name, text string }{
	{"", ""},
	{"optimized-out", "the compiler kept no location for it"},
	{"not-at-site", "its location list covers other addresses, not this site"},
	{"not-stored-yet", "the debug information names stack memory that is written only later"},
	{"entry-value-only", "only its value at the entry of the enclosing function is described, and the register has changed since"},
	{"parameter-ref", "only callers of this function know it (DW_OP_GNU_parameter_ref): the clone lost the parameter"},
	{"implicit-pointer", "the pointer itself was optimized away; what it points to can be read through member access"},
	{"vector-register", "it is in a floating point or vector register, which a probe does not see"},
	{"no-register", "it is in a register that struct pt_regs does not hold"},
	{"thread-local", "it is thread-local, and its address depends on the thread"},
	{"module-address", "it is, or is at, an address of a relocatable file (a module), whose sections the kernel loads wherever it likes"},
	{"load-bias", "it is, or is at, an address of a position-independent image, and what a return probe sees does not say where that is loaded"},
	{"unsupported-operation", "its location uses an operation that has no BPF equivalent"},
	{"no-frame-info", "its location is relative to the call frame, and no call frame information covers the site"},
	{"incomplete-type", "the size of its type is unknown"},
	{"no-such-variable", "no variable of this name is in scope"},
	{"no-such-member", "its type has no member of this name"},
	{"type-mismatch", "its type does not allow what the definition asks of it"},
	{"missing-piece", "parts of it were optimized away"},
	{"too-large", "it does not fit into the fetch convention"},
	{"reassigned", "the body may assign it at once, and its location does not say which value it is for"},
	{"contradictory", "its debug information contradicts the calling convention or itself, or does not say how wide its arithmetic is"},
	{"damaged", "its debug information is damaged"},
	{"not-described", "what takes the place of debug information, a pack, BTF or a symbol, does not say"},
}

// String returns the short, stable name: "optimized-out".
func (c ReasonCode) String() string {
	if int(c) < len(reasonText) {
		return reasonText[c].name
	}
	return fmt.Sprintf("reason-%d", uint8(c))
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
