package rule

import (
	"fmt"
	"strings"

	"github.com/bpfprologue/bpfprologue/loc"
)

// Set has rules.
type Set uint32

// recovering are the rules that say what the debug information does not, and that may be left out.
var recovering = []loc.Rule{Caller, Moved, Table, Operand, Call, Member}

// LeftOut returns the rules among those that say what the debug information does not without the ones that have a name. nil names all.
func LeftOut(names []string) (Set, error) {
	if names == nil {
		return 0, nil
	}
	byName := make(map[string]loc.Rule)
	out, all := Set(0), make([]string, len(recovering))
	for i, r := range recovering {
		all[i] = r.String()
		byName[all[i]] = r
		out |= 1 << r
	}
	for _, n := range names {
		r, known := byName[n]
		if !known {
			return 0, fmt.Errorf("no rule %q says what the debug information has lost: those are %s", n, strings.Join(all, ", "))
		}
		out &^= 1 << r
	}
	return out, nil
}

// Has reports whether a rule is in the set.
func (s Set) Has(r loc.Rule) bool { return s>>r&1 != 0 }

// ByInstruction reports whether a rule is that an instruction of the body says a value that the debug information has lost.
func ByInstruction(r loc.Rule) bool { return r == Operand || r == Call || r == Member }
