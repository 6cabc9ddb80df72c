package truth

import "strings"

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
