package plan

import (
	"errors"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
	"github.com/bpfprologue/bpfprologue/probe"
)

// checkInstructions checks that instructions begin at the plan's sites. It is an error if a
// definition asks for a place in a function where none does, or, without the option force,
// where that is not known. Other sites are where compilers say that instructions are: one
// where that is wrong is refused by itself. In a kernel only what the definition asks for is
// checked, since a kernel refuses kprobes inside instructions itself.
func (p *Plan) checkInstructions() error {
	def := p.Definition
	asked := def.Point.HasAddr || def.Point.Offset != 0
	if !asked && p.Target.inKernel() {
		return nil
	}
	sites := make([]*dwarfloc.Site, len(p.Sites))
	for i := range p.Sites {
		sites[i] = p.Sites[i].Site
	}
	problems, err := inside.CheckInstructions(p.Image, sites)
	if err != nil {
		return err
	}
	for i, problem := range problems {
		unknown := errors.Is(problem, refusals.NotDecoded)
		switch {
		case problem == nil, unknown && (!asked || def.Options.Force):
		case asked && unknown:
			return probe.Errorf(def, def.Point.Pos, "%w; the option force=yes takes it all the same", problem)
		case asked:
			return probe.Errorf(def, def.Point.Pos, "%w", problem)
		default:
			p.Sites[i].Refused = problem
		}
	}
	return nil
}
