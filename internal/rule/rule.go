// Package rule has the numbers of the rules by which locations are chosen: loc.Rule says what they mean.
package rule

import "github.com/bpfprologue/bpfprologue/loc"

// The rules, in the order of their names in package loc.
const (
	None loc.Rule = iota
	Constant
	Whole
	View
	LaterView
	First
	Address
	Default
	Given
	ABI
	ABIBTF
	BTFInline
	// The rules from Caller on say what the debug information does not.
	Caller
	Table
	Operand
	Call
	// ABISymbol and Note are of functions that the debug information does not have.
	ABISymbol
	Note
	// Moved is of a value that the debug information names as one that the function was called with.
	Moved
	// Member is, as Operand, of what the debug information has lost.
	Member
)
