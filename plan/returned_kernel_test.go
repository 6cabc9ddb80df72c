package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestReturnedNumber: of "pmde = pmd_mkold(pmde)" and pmd_wrprotect GCC notes what the body makes, "%rbp & -33", as the parameter too, in remove_migration_pmd. Elsewhere
// "pmd_mkold(pmd_wrprotect(pmd))" passes such a number.
func TestReturnedNumber(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a kernel image")
	}
	img := testenv.Open(t, testenv.CloudVmlinux(t))
	for _, tt := range []struct {
		definition, symbol string
		doubt              bool
	}{
		{"pmd_mkold pmd", "remove_migration_pmd", true},
		{"pmd_wrprotect pmd", "remove_migration_pmd", true},
		{"pmd_mkold pmd", "copy_huge_pmd", false},
		{"pmd_clear_flags pmd", "madvise_free_huge_pmd", false},
	} {
		p := plantest.New(t, img, tt.definition, plan.Options{})
		seen := false
		for i := range p.Sites {
			v := p.Sites[i].Args[0].Variable
			if p.Sites[i].Symbol != tt.symbol || v.Reason.Code != reasons.None {
				continue
			}
			if seen = true; (v.Loc.Doubt == reasons.Reassigned) != tt.doubt {
				t.Errorf("%s: %v: %v, because %s", tt.definition, &p.Sites[i], v, v.Because)
			}
		}
		if !seen {
			t.Errorf("%s: no value in %s", tt.definition, tt.symbol)
		}
	}
}
