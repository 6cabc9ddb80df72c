package listing

import (
	"io"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/plan"
)

// Prediction is what is predicted of the probe at a site.
type Prediction struct {
	Cause  attachable.Cause
	Method attachable.Method
}

// Predictor predicts probes. A nil one predicts nothing.
type Predictor func(s *plan.Site) Prediction

// At predicts the probe at a site.
func (p Predictor) At(s *plan.Site) Prediction {
	if p == nil {
		return Prediction{}
	}
	return p(s)
}

// printProbe prints what is predicted for one site.
func (o *Options) printProbe(w io.Writer, a *Prediction) {
	if a.Cause != attachable.CauseNone {
		terminal.Fprintf(w, "    %s\n", o.Styledf(screen.RoleFault, "no probe: %v: %s", a.Cause, a.Cause.Describe()))
	}
	if a.Method != attachable.MethodNone {
		terminal.Fprintf(w, "    probe: %v: %s\n", a.Method, a.Method.Describe())
	}
}
