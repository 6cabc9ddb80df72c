package loc

import (
	"fmt"
)

// Rule says how a location was chosen among those in the debug information. String returns its short, stable name, by which rules are
// told apart, and Describe says in words what it means:
//
//   - none: there was nothing to choose from
//   - constant: DW_AT_const_value, the same everywhere
//   - whole-scope: a single expression for the variable's whole scope
//   - view: the list entry that covers the site's address and view
//   - later-view: the first list entry that begins at the site's address with a later view: the variable is bound one view after
//     the inlined body's entry, with the same machine state
//   - first: the first entry that begins at the site's address, in a list without views: what follows at the same address is a value
//     assigned later
//   - address: the entry that covers the address, in a list without views
//   - default: DW_LLE_default_location, for addresses that no entry covers
//   - given: the definition itself names a place
//   - abi: the architecture's calling convention gives the place
//   - abi-btf: it does so for a signature that BTF gives, which does not say whether the compiler kept it
//   - btf-inline: a section .BTF.inline says the place
//   - caller: the debug information names a value that the function was called with, and its call sites say what that was: the
//     return address tells which one it is
//   - table: the debug information has lost it, and a table of the kernel states it
//   - operand: it has lost it, and an instruction of the body accesses what it points to
//   - call: it has lost it, and the body passes it to a function
//   - abi-symbol: there is only a symbol, and the calling convention says where a function gets its words
//   - moved: the debug information names a value that the function was called with, and the function's instructions have moved it there
//   - member: it has lost it, and a statement of the body reads a member of what it points to
//   - note: the note of a statically defined probe says the place
type Rule uint8

// ruleText is in the order of the constants of package internal/rule.
var ruleText = [...]struct{ name, text string }{
	{"none", "nothing to choose from"},
	{"constant", "a constant value (DW_AT_const_value)"},
	{"whole-scope", "one expression for the whole scope"},
	{"view", "the list entry that covers the address and the view"},
	{"later-view", "the first list entry at this address with a later view"},
	{"first", "the first list entry that begins at the address (a list without views)"},
	{"address", "the list entry that covers the address (a list without views)"},
	{"default", "the list's default location"},
	{"given", "the place that the definition names"},
	{"abi", "the place that the calling convention says"},
	{"abi-btf", "the place that the calling convention says for the signature in BTF"},
	{"btf-inline", "the place that .BTF.inline says"},
	{"caller", "what the call site passed that the return address names"},
	{"table", "what a table of the kernel states"},
	{"operand", "what an instruction of the body accesses"},
	{"call", "what the body passes to a function, or calls"},
	{"abi-symbol", "the place that the calling convention says for a word, of a function of which only the symbol is known"},
	{"note", "the place that the note of a statically defined probe says"},
	{"moved", "where the function's instructions have moved what it was called with"},
	{"member", "what a statement of the body reads a member of"},
}

// String returns the rule's short, stable name.
func (r Rule) String() string {
	if int(r) < len(ruleText) {
		return ruleText[r].name
	}
	return fmt.Sprintf("rule-%d", uint8(r))
}

// Describe says in words what the rule means.
func (r Rule) Describe() string {
	if int(r) < len(ruleText) {
		return ruleText[r].text
	}
	return ""
}
