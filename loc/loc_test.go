package loc

import (
	"strings"
	"testing"
)

// TestNames: every kind, rule and reason has a name of its own and says what it means, and
// a number out of range prints.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for c := ReasonCode(1); int(c) < len(reasonText); c++ {
		if c.String() == "" || c.Describe() == "" || seen[c.String()] || strings.ContainsAny(c.String(), " _") {
			t.Errorf("reason %d: name %q, text %q", c, c, c.Describe())
		}
		seen[c.String()] = true
	}
	if got := (Reason{1, "DW_OP_call2"}).String(); got != "optimized-out: DW_OP_call2" {
		t.Error(got)
	}
	for r := Rule(0); int(r) < len(ruleText); r++ {
		if r.String() == "" || r.Describe() == "" {
			t.Errorf("rule %d has no name or text", r)
		}
	}
	for k := KindNone; int(k) < len(kindNames); k++ {
		if k.String() == "" {
			t.Errorf("kind %d has no name", k)
		}
	}
	for _, got := range []string{ReasonCode(200).String(), Rule(200).String(), Kind(200).String(), Op(200).String()} {
		if !strings.HasSuffix(got, "-200") {
			t.Errorf("out of range: %q", got)
		}
	}
	if ReasonCode(200).Describe() != "" || Rule(200).Describe() != "" {
		t.Error("a text for a number out of range")
	}
}
