package twin

import (
	"slices"
	"strings"
)

// Rule is a reason for which B's hits of a function may be others than A's runs.
type Rule string

const (
	// NoCode: B has no site of the function: the compiler removed it, with its calls, or made them part of something else.
	NoCode Rule = "no code"
	// Merged: the linker's symbols say that the code of a site is that of another function too.
	Merged Rule = "merged with an equal function"
	// Split: a site is in a part of a function that the compiler split off, whose runs are not the function's.
	Split Rule = "a part that was split off"
	// Ways: the tool says of a site that it does not know all ways into the body.
	Ways Rule = "ways not known, as the site says"
	// Refused: the kernel takes no probe at a site.
	Refused Rule = "no probe possible"
)

// explain finds the rules that explain a function's missed runs and extra hits.
func (v *Verdict) explain(b *seen, extra []*hit) {
	if v.Missed > 0 {
		switch {
		case len(b.sites) == 0:
			v.Missing[NoCode] = v.Missed
		case slices.ContainsFunc(b.sites, func(s *site) bool { return s.refused }):
			v.Missing[Refused] = v.Missed
		case slices.ContainsFunc(b.sites, func(s *site) bool { return s.WaysUnknown != "" }):
			v.Missing[Ways] = v.Missed
		}
	}
	for _, h := range extra {
		switch s := h.site; {
		case s.WaysUnknown != "":
			v.More[Ways]++
		case strings.Contains(s.Symbol, ".part."):
			v.More[Split]++
		}
	}
}
