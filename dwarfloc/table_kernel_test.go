package dwarfloc_test

import (
	"context"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestStaticBranches: what the kernel's table of static branches states is what debug information says wherever it does, and nearly all that
// it has lost comes back.
func TestStaticBranches(t *testing.T) {
	for name, path := range map[string]func(testenv.TB) string{
		"amd64": testenv.Vmlinux,
		"arm64": func(t testenv.TB) string { return testenv.VmlinuxOf(t, "arm64") },
	} {
		t.Run(name, func(t *testing.T) { staticBranches(t, path(t)) })
	}
}

func staticBranches(t *testing.T, path string) {
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	for _, c := range []struct{ function, parameter string }{
		{"arch_static_branch", "key"}, {"arch_static_branch", "branch"}, {"arch_static_branch_jump", "key"}, {"arch_static_branch_jump", "branch"},
		{"static_key_false", "key"}, {"static_key_true", "key"},
	} {
		sites, err := img.Sites(context.Background(), dwarfloc.Name(c.function))
		if err != nil {
			t.Fatal(err)
		}
		equal, differ, back, lost := 0, 0, 0, 0
		for _, s := range sites {
			params, err := s.Params()
			if err != nil {
				t.Fatal(err)
			}
			stated, _, err := dwarfloc.StatedByTable(s, c.parameter)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range params {
				switch text := v.Loc.Text(img.Arch()); {
				case v.Name != c.parameter:
				case v.Loc.Rule == rule.Table:
					back++
				case !v.Located():
					lost++
				case stated == text:
					equal++
				case stated != "":
					if differ++; differ <= 8 {
						t.Logf("%v at %#x: %s is %s, and the table states %s", s, s.Addr, v.Name, text, stated)
					}
				}
			}
		}
		t.Logf("%s %s: %d back, %d still lost; controls: %d equal, %d differ", c.function, c.parameter, back, lost, equal, differ)
		if differ > 0 || lost > 8 {
			t.Errorf("%s %s: see above", c.function, c.parameter)
		}
	}
}
