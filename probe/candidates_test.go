package probe_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/probe"
)

func TestCandidates(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"f", []string{"f"}},
		{"kfree_skb_reason|kfree_skb", []string{"kfree_skb_reason", "kfree_skb"}},
		{"a|b*|c", []string{"a", "b*", "c"}},
		{`a\|b|c`, []string{`a\|b`, "c"}},
		{"[|x]y|z", []string{"[|x]y", "z"}},
		{"operator|", []string{"operator|"}},
		{"A::operator||", []string{"A::operator||"}},
		{"operator|=", []string{"operator|="}},
		{"operator+|add", []string{"operator+", "add"}},
		{"|a", []string{"|a"}},
		{"a|", []string{"a|"}},
		{"[", []string{"["}},
	} {
		p := probe.Point{Function: tt.text}
		if d := cmp.Diff(tt.want, p.Candidates()); d != "" {
			t.Errorf("%s: %s", tt.text, d)
		}
	}
}
