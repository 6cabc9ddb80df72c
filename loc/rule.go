package loc

import (
	"fmt"
)

// Rule says how a location was chosen among those in the debug information.
//
//   - RuleNone: there was nothing to choose from
//   - RuleConstant: DW_AT_const_value, the same everywhere
//   - RuleWhole: a single expression for the variable's whole scope
//   - RuleView: the list entry that covers the site's address and view
//   - RuleLaterView: the first list entry that begins at the site's address with a
//     later view: the variable is bound one view after the inlined body's entry,
//     with the same machine state
//   - RuleFirst: the first entry that begins at the site's address, in a list without
//     views: what follows at the same address is a value assigned later
//   - RuleAddress: the entry that covers the address, in a list without views
//   - RuleDefault: DW_LLE_default_location, for addresses that no entry covers
//   - RuleGiven: the definition itself names a place
//   - RuleABI: the architecture's calling convention gives the place
//   - RuleBTFInline: a section .BTF.inline says the place
//   - RuleABIBTF: it does so for a signature that BTF gives, which does not say whether the compiler kept it
type Rule uint8

const (
	// RuleNone means that there was nothing to choose from.
	RuleNone Rule = iota
	// RuleConstant is DW_AT_const_value, the same everywhere.
	RuleConstant
	// RuleWhole is a single expression for the variable's whole scope.
	RuleWhole
	// RuleView is the list entry that covers the site's address and view.
	RuleView
	// RuleLaterView is the first list entry that begins at the site's address with a
	// later view: the variable is bound one view after the inlined body's entry, with
	// the same machine state.
	RuleLaterView
	// RuleFirst is the first entry that begins at the site's address, in a list without
	// views: what follows at the same address is a value assigned later.
	RuleFirst
	// RuleAddress is the entry that covers the address, in a list without views.
	RuleAddress
	// RuleDefault is DW_LLE_default_location, for addresses that no entry covers.
	RuleDefault
	// RuleGiven means that the definition itself names a place.
	RuleGiven
	// RuleABI means that the architecture's calling convention gives the place.
	RuleABI
	// RuleABIBTF means that it does so for a signature that BTF gives, which does not say whether the
	// compiler kept it.
	RuleABIBTF
	// RuleBTFInline means that a section .BTF.inline says the place.
	RuleBTFInline
)

var ruleText = [...]struct{ name, text string }{
	RuleNone:      {"none", "nothing to choose from"},
	RuleConstant:  {"constant", "a constant value (DW_AT_const_value)"},
	RuleWhole:     {"whole-scope", "one expression for the whole scope"},
	RuleView:      {"view", "the list entry that covers the address and the view"},
	RuleLaterView: {"later-view", "the first list entry at this address with a later view"},
	RuleFirst:     {"first", "the first list entry that begins at the address (a list without views)"},
	RuleAddress:   {"address", "the list entry that covers the address (a list without views)"},
	RuleDefault:   {"default", "the list's default location"},
	RuleGiven:     {"given", "the place that the definition names"},
	RuleABI:       {"abi", "the place that the calling convention says"},
	RuleABIBTF:    {"abi-btf", "the place that the calling convention says for the signature in BTF"},
	RuleBTFInline: {"btf-inline", "the place that .BTF.inline says"},
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
