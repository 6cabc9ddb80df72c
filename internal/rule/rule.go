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
	Caller
	Table
	Operand
	Call
)
