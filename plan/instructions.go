package plan

import (
	"errors"
	"fmt"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/probed"
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
		return p.checkMisread()
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
		unknown := errors.Is(problem, refusals.ErrNotDecoded)
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

// misread is the name of the cause in package attachable, which a pack has.
const misread = "misread"

// checkMisread refuses sites of a kernel at instructions that kprobes run as other ones. The kernel checks all else itself.
func (p *Plan) checkMisread() error {
	rules := probed.For(inside.File(p.Image).Instructions())
	if rules == nil {
		return nil
	}
	const longest = 16
	var sites []*dwarfloc.Site
	var which []int
	for i := range p.Sites {
		s := &p.Sites[i]
		if cause, known := inside.Refused(s.Site); known {
			if cause == misread {
				s.Refused = fmt.Errorf("%s: %#x: %w: the kernel takes it for another one", p.Image.Path(), s.Addr, refusals.ErrHarmful)
			}
			continue
		}
		sec := inside.File(p.Image).SectionAt(s.Addr)
		if sec == nil {
			continue
		}
		// Code that cannot be read has no probe in it.
		_ = inside.File(p.Image).View(s.Addr, min(longest, sec.Addr+sec.Size-s.Addr), func(code []byte) {
			if rules.Kprobe(code) != "" {
				sites, which = append(sites, s.Site), append(which, i)
			}
		})
	}
	problems, err := inside.CheckInstructions(p.Image, sites)
	for i, problem := range problems {
		if errors.Is(problem, refusals.ErrHarmful) {
			p.Sites[which[i]].Refused = problem
		}
	}
	return err
}
