package ending_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/ending"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/probe"
)

// text prints what is left to compute; b0 and e0 are what was fetched first where a run began, and where it ended.
func text(n *ending.Node) string {
	switch {
	case n.Op == "!":
		return "!" + text(n.A)
	case n.Op != "":
		return "(" + text(n.A) + n.Op + text(n.B) + ")"
	}
	return map[ending.Operand]string{ending.Number: "N", ending.Duration: "D", ending.AtBegin: "b", ending.AtEnd: "e"}[n.Operand]
}

func texts(list []*syntax.Expr) string {
	var out []string
	for _, e := range list {
		out = append(out, e.String())
	}
	return strings.Join(out, " ")
}

// TestSplit: what is fetched where a run begins and ends, and what is computed of that.
func TestSplit(t *testing.T) {
	for condition, want := range map[string]string{
		"a>1":                         "a>1 | | |",
		"a>1&&b":                      "(a>1)&&b | | |",
		"$duration>1ms":               " | (D>N) | |",
		"a==2&&$duration>1ms&&b":      "(a==2)&&b | (D>N) | |",
		"$duration>1ms&&$retval<0":    " | (D>N) e | | !(!($retval<0))",
		"$duration>1ms||$retval->x<0": " | ((D>N)||e) | | !(!($retval->x<0))",
		"$duration>limit":             " | (D>b) | ~(~limit) |",
		"1s<=$duration":               " | (N<=D) | |",
		"!($duration<1us||a)":         " | !((D<N)||b) | !(!a) |",
		"$retval!=count":              " | (e!=b) | ~(~count) | ~(~$retval)",
		"$retval+n>2":                 " | e | | !(!(($retval+n)>2))",
		"$retval==n+$retval":          " | e | | !(!($retval==(n+$retval)))",
		`$retval->name=="x"`:          " | e | | " + `!(!($retval->name=="x"))`,
	} {
		def, err := probe.Parse("if=" + condition + "; f")
		if err != nil {
			t.Errorf("%s: %v", condition, err)
			continue
		}
		begin, late, err := ending.Split(def.Options.If, false)
		if err != nil {
			t.Errorf("%s: %v", condition, err)
			continue
		}
		got, parts := "", []string{}
		if begin != nil {
			got = begin.String()
		}
		if late == nil {
			late = new(ending.Condition)
		}
		for _, n := range late.All {
			parts = append(parts, text(n))
		}
		got = strings.TrimRight(got+" | "+strings.Join(parts, " ")+" | "+texts(late.Begin)+" | "+texts(late.End), " ")
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%s: %s, want %s", condition, got, want)
		}
	}
	for condition, want := range map[string]string{
		"$duration":               "is compared with a time",
		"$duration+1>2":           "not computed with",
		"a>$duration*2":           "not computed with",
		"f[$duration]==2":         "not computed with",
		"$duration>1||-$duration": "is compared with a time",
	} {
		def, err := probe.Parse("if=" + condition + "; f")
		if err != nil {
			t.Errorf("%s: %v", condition, err)
			continue
		}
		if _, _, err := ending.Split(def.Options.If, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", condition, err, want)
		}
	}
}

// TestSplitAll: what can be computed where a run begins can be left to compute too.
func TestSplitAll(t *testing.T) {
	def, err := probe.Parse("if=a>1&&$duration>1ms&&b; f")
	if err != nil {
		t.Fatal(err)
	}
	begin, late, err := ending.Split(def.Options.If, true)
	if err != nil || begin != nil || len(late.Start) != 2 || len(late.All) != 1 || texts(late.Begin) != "!(!(a>1)) !(!b)" || late.Unsure() {
		t.Errorf("%v, %+v, %v", begin, late, err)
	}
}

// TestCommon: operands are compared as C does.
func TestCommon(t *testing.T) {
	for _, tt := range []struct {
		a, b   ending.Node
		size   int
		signed bool
	}{
		{ending.Node{Size: 4, Signed: true}, ending.Node{Size: 4, Signed: true}, 4, true},
		{ending.Node{Size: 4, Signed: true}, ending.Node{Size: 4}, 4, false},
		{ending.Node{Size: 8, Signed: true}, ending.Node{Size: 4}, 8, true},
		{ending.Node{Size: 4, Signed: true}, ending.Node{Size: 8}, 8, false},
		{ending.Node{Size: 8, Signed: true}, ending.Node{Size: 8}, 8, false},
	} {
		n := ending.Node{Op: "<", A: &tt.a, B: &tt.b}
		if size, signed := n.Common(); size != tt.size || signed != tt.signed {
			t.Errorf("%+v and %+v: %d %v", tt.a, tt.b, size, signed)
		}
	}
}
