package rule_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
)

// TestNames: the numbers here are those that package loc has names for.
func TestNames(t *testing.T) {
	for r, want := range map[loc.Rule]string{
		rule.None: "none", rule.Constant: "constant", rule.Whole: "whole-scope", rule.View: "view", rule.LaterView: "later-view",
		rule.First: "first", rule.Address: "address", rule.Default: "default", rule.Given: "given", rule.ABI: "abi",
		rule.ABIBTF: "abi-btf", rule.BTFInline: "btf-inline", rule.Caller: "caller", rule.Table: "table", rule.Operand: "operand", rule.Call: "call",
		rule.ABISymbol: "abi-symbol", rule.Note: "note", rule.Moved: "moved", rule.Member: "member",
	} {
		if r.String() != want || r.Describe() == "" {
			t.Errorf("rule %d is %s (%q), want %s", r, r, r.Describe(), want)
		}
	}
}
