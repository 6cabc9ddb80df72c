package truth

import (
	"slices"
	"strings"
)

// known are values that a compiler describes wrongly with nothing in the debug information
// that shows it. They are counted as wrong, but are no news.
var known = []struct {
	build      string // a part of the names of builds
	label, arg string
	why        string
}{
	{"clang", "unset", "n", "LLVM folds the body's n + n into the caller's shift, and names the register of the sum"},
	{"rustc -C opt-level=1", "visit", "i", "LLVM gives the register of the loop's next index for this turn's"},
}

// Known is why the value is known to be wrong, or "".
func (w *Wrong) Known() string {
	for _, k := range known {
		if w.Label == k.label && w.Arg == k.arg && strings.Contains(w.Build, k.build) {
			return k.why
		}
	}
	return ""
}

// knownRuns are functions whose hits are not their runs, by the compilers' family.
var knownRuns = map[string][]string{
	// Bodies were merged, or hoisted, or copied and their statements dropped.
	"gcc": {"back_to_back", "by_table", "counted_last", "each", "early", "far_body", "fixed_loop", "fixed_turns", "in_case", "in_loop", "indirect", "inner", "loop_last", "loop_middle", "middle", "rethrows", "search", "throws", "two_ways", "unused", "virtual_call", "walk"},
	// Of some bodies there is no record; merged ones have one (LLVM before 17); a test of the caller has the place of the body; turns of the
	// body are copies like its runs.
	"clang": {"before_tail", "do_loop", "far_body", "fixed_turns", "loop_last", "two_ways"},
	// The same.
	"rustc": {"matched", "option", "parsed"},
	// Ways out that a run passes twice; runs that panic do not return.
	"go": {"outer", "panics"},
}

// KnownToDiffer reports whether hits of the function are known not to be its runs, or whether
// the tool said which of its probes it did not place, and why: runs that only these would see
// are missed.
func (b *Body) KnownToDiffer() bool {
	refused := len(b.Refused) > 0 && b.In.Twice == 0 && b.Out.Twice == 0
	return refused || slices.Contains(knownRuns[b.Family], b.Label)
}
