package witness

import (
	"bytes"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/pack"
)

// TestRecover: rules that are left out say nothing, and their parameters are lost, in a pack as in its image.
func TestRecover(t *testing.T) {
	testenv.Tool(t, "gcc")
	path := build(t, []string{"-O2"})
	// rules returns how many parameters each rule says, and how many are lost for each reason.
	rules := func(open func(o *dwarfloc.Options) (*dwarfloc.Image, error), names []string) map[string]int {
		t.Helper()
		img, err := open(&dwarfloc.Options{Recover: names})
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		out := make(map[string]int)
		sites, err := img.Sites(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sites {
			params, err := s.Params()
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range params {
				if v.Located() {
					out[v.Loc.Rule.String()]++
				} else {
					out[v.Reason.Code.String()]++
				}
			}
		}
		return out
	}
	image := func(o *dwarfloc.Options) (*dwarfloc.Image, error) { return dwarfloc.Open(path, o) }
	var packed bytes.Buffer
	img := testenv.Open(t, path)
	if _, err := pack.Write(t.Context(), img, pack.Options{}, &packed); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(o *dwarfloc.Options) (*dwarfloc.Image, error){
		"image": image,
		"pack": func(o *dwarfloc.Options) (*dwarfloc.Image, error) {
			return dwarfloc.FromBytes("pack", packed.Bytes(), o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			all, none, one := rules(open, nil), rules(open, []string{}), rules(open, []string{"call", "table"})
			operand, call := all["operand"], all["call"]
			if operand < 50 {
				t.Fatalf("all rules: %v", all)
			}
			if none["operand"]+none["call"]+none["caller"]+none["table"] > 0 || none["optimized-out"] != all["optimized-out"]+operand+call {
				t.Errorf("no rule: %v; all rules: %v", none, all)
			}
			if one["operand"] > 0 || one["call"] != call || one["optimized-out"] != all["optimized-out"]+operand {
				t.Errorf("two rules: %v; all rules: %v", one, all)
			}
			_, err := open(&dwarfloc.Options{Recover: []string{"guess"}})
			if err == nil || !strings.Contains(err.Error(), `no rule "guess" says what the debug information has lost: those are caller, moved, table, operand, call, member`) {
				t.Errorf("an unknown rule: %v", err)
			}
		})
	}
}
