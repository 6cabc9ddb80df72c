package dwarfloc

import (
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/op"
)

// ExpressionText prints a DWARF expression's operations by name, for explanations:
// "DW_OP_breg7 0x6 DW_OP_stack_value". What delve's table does not know ends it,
// since the length of its operands is unknown.
func ExpressionText(expr []byte) (text string) {
	// The printer panics on a number that is cut short (leb128.DecodeUnsigned).
	defer func() {
		if recover() != nil {
			text = "an expression that is cut short"
		}
	}()
	for code, name := range opNames {
		if len(expr) > 0 && expr[0] == code {
			return name + " ..."
		}
	}
	var b strings.Builder
	op.PrettyPrint(&b, expr, nil)
	return strings.TrimSpace(b.String())
}
