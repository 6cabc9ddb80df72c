package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestEndedFrameKernel: what a function of a kernel had in a frame that has ended is where the kernel saves registers for the probe.
// GCC's lists go on to the return instruction.
func TestEndedFrameKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a kernel image")
	}
	img := testenv.Open(t, testenv.CloudVmlinux(t))
	for _, text := range []string{"spin_unlock_irqrestore%exit flags", "task_rq_unlock%exit rf->flags", "FSE_decompress_wksp_body%exit dst", "__refcount_dec_and_test%exit r"} {
		ended := false
		p := plantest.New(t, img, text, plan.Options{})
		for i := range p.Sites {
			for k := range p.Sites[i].Args {
				a := &p.Sites[i].Args[k]
				ended = ended || a.Unfetched == eval.Overwritten
				if eval.BelowStack(&a.Variable.Loc, img.Arch()) {
					t.Errorf("%v: %s is %s", &p.Sites[i], a.Name, a.Variable.Loc.Text(img.Arch()))
				}
			}
		}
		if !ended {
			t.Errorf("%s: nothing was in a frame that has ended", text)
		}
	}
}
