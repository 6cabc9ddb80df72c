package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestHoistedSlot: a slot has what the body's instructions have computed, if they come before the probe. "credits += ..." is the first statement of
// ext4_whiteout_for_rename, and behind it a loop begins.
func TestHoistedSlot(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a kernel image")
	}
	cloud := testenv.CloudVmlinux(t)
	p := plantest.New(t, testenv.Open(t, cloud), "ext4_whiteout_for_rename credits", plan.Options{})
	for i := range p.Sites {
		if v := p.Sites[i].Args[0].Variable; v.Reason.Code == reasons.None && v.Loc.Doubt != reasons.Reassigned {
			t.Errorf("%v is sure", &p.Sites[i])
		}
	}
}

// TestWrittenInside: refcount_inc_not_zero writes the number itself that it passes, and has no parameter that could be an outer function's loop variable, whatever
// its number is.
func TestWrittenInside(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a kernel image")
	}
	p := plantest.New(t, testenv.Open(t, testenv.CloudVmlinux(t)), "__refcount_inc_not_zero oldp", plan.Options{})
	for i := range p.Sites {
		if v := p.Sites[i].Args[0].Variable; v.Loc.Kind == loc.KindConstant && v.Loc.Doubt != reasons.None {
			t.Errorf("%v is doubtful", &p.Sites[i])
		}
	}
}
