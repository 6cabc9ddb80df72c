package plan

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// multi reports whether a link for many sites attaches the program at a site.
func (t Target) multi(s *Site) bool {
	return t.UprobeMulti || t.KprobeMulti && ftraceServes(s)
}

// ftraceServes reports whether ftrace calls programs at a site, and saves all the
// registers that its arguments need.
func ftraceServes(s *Site) bool {
	if s.Kind != dwarfloc.SiteEntry || s.Offset != 0 && !s.LocalEntry || s.Symbol == "" || s.AfterPrologue {
		return false
	}
	a := s.Image.Arch()
	serves := true
	for i := range s.Args {
		s.Args[i].Loc.Exprs(func(e *loc.Expr) {
			e.Walk(func(e *loc.Expr) {
				if e.Op == ops.Reg && !ftraceSaves(a, uint16(e.K), s.Return) {
					serves = false
				}
			})
		})
	}
	return serves
}

// ftraceSaves reports whether a program that ftrace calls at a function's entry, or at its
// return, finds a register's value in its struct pt_regs. Since Linux 6.14 only the
// registers of arguments and results are saved there (HAVE_FTRACE_REGS_HAVING_PT_REGS and
// ftrace_partial_regs in include/linux/ftrace.h), at a return only that of the result.
func ftraceSaves(a *arch.Arch, dwarf uint16, isReturn bool) bool {
	if isReturn {
		return dwarf == a.Results[0]
	}
	return dwarf == a.SP || slices.Contains(a.Args, dwarf)
}
