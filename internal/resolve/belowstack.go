package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/loc"
)

// overwritten returns the reason if a location in a kernel is memory that the probe itself overwrites.
func (ev *Evaluator) overwritten(l *loc.Location) (loc.Reason, error) {
	if !eval.BelowStack(l, ev.Arch) {
		return loc.Reason{}, nil
	}
	if kernel, err := ev.spot.U.Img.Code.IsKernel(); err != nil || !kernel {
		return loc.Reason{}, err
	}
	return eval.Overwritten, nil
}
