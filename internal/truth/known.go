package truth

import "strings"

// known are values that the debug information itself has wrong, with nothing in it that shows
// it: mistakes of compilers. They are counted as wrong, but are no news.
var known = []struct {
	compiler, label, arg string
	why                  string
}{}

// Known is why the value is known to be wrong, or "".
func (w *Wrong) Known() string {
	for _, k := range known {
		if w.Label == k.label && w.Arg == k.arg && strings.Contains(w.Build, k.compiler) {
			return k.why
		}
	}
	return ""
}
