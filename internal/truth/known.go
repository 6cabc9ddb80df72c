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
	// Two bodies were merged into one, or copied and their statements dropped.
	"gcc": {
		"two_ways", "middle", "inner", "loop_middle", "loop_last", "do_loop", "early", "fixed_turns", "indirect", "counted_last",
		"back_to_back", "fixed_loop", "walk", "by_table", "rethrows", "throws", "catches", "each", "unused", "constant", "put", "break_loop",
	},
	// Unrolled copies share one row, merged bodies have no record.
	"clang": {
		"two_ways", "before_tail", "fixed_loop", "fixed_turns", "unused", "do_loop", "break_loop", "both_sides", "loop_middle", "loop_first",
		"argument", "with_goto", "chosen", "peeled", "in_loop", "loop_of_bodies", "far_body", "far_loop", "nested_loop", "search",
	},
	"rustc": {"option", "inner", "nested", "matched", "parsed", "summed", "folded", "called"},
	// A stack that grows calls the function again.
	"go": {"grown", "outer", "panics", "switched", "recursive", "deferred"},
}

// KnownToDiffer reports whether hits of the function are known not to be its runs.
func (b *Body) KnownToDiffer() bool { return slices.Contains(knownRuns[b.Family], b.Label) }
