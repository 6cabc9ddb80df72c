package hits

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// OfOther reports whether an argument is missing since another function returns it.
func OfOther(a *plan.Argument) bool { return a.Unfetched.Detail == answers.ResultOfOther }

// WhyElsewhere says what helps then. Programs whose exceptions pass functions are those that have no return probes by themselves.
const WhyElsewhere = "$retval (?) is not there yet where a function ends with a jump to another, which returns the result: " +
	"\"force=yes; \" before the definition fetches it with a return probe, but an exception that passes one ends the program"

// WhyUnread says why memory may not be read.
func WhyUnread(t plan.Target) string {
	if t.Reads == prologue.ReadUser {
		return "there is no memory, or it is not resident, which --reads sleep reads from Linux 6.0 on"
	}
	return "there is no memory"
}

// WhyUncounted says why values are missing, if it is known: another function returns them, or programs which may sleep would have read them.
func WhyUncounted(plans []*plan.Plan, rows []tracer.Row, not *tracer.Unreported) string {
	n := int(not.Missing)
	for i := range rows {
		for _, k := range rows[i].Keys {
			if k.Text == "?" && rows[i].Outcome == "" {
				n += int(rows[i].Hits)
			}
		}
		for k := range rows[i].Totals {
			if rows[i].Outcome == "" { // what has not ended has no results
				n += int(rows[i].Totals[k].Missing)
			}
		}
	}
	fetched := slices.ContainsFunc(plans, func(p *plan.Plan) bool {
		return p.Target.Reads == prologue.ReadUser && slices.ContainsFunc(p.Sites, func(s plan.Site) bool {
			return slices.ContainsFunc(s.Args, func(a plan.Argument) bool { return a.Fetched() }) || len(s.If) > 0
		})
	})
	elsewhere := slices.ContainsFunc(plans, func(p *plan.Plan) bool {
		return slices.ContainsFunc(p.Sites, func(s plan.Site) bool {
			return slices.ContainsFunc(s.Args, func(a plan.Argument) bool { return OfOther(&a) })
		})
	})
	switch {
	case n == 0:
		return ""
	case elsewhere:
		return WhyElsewhere
	case !fetched:
		return ""
	}
	return screen.Count(n, "value") + " (?) could not be read: " + WhyUnread(plans[0].Target) + ", but not with --by stack"
}
