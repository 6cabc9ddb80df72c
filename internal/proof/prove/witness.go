package prove

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/plan"
)

// byInstruction reports whether an instruction says an argument.
func byInstruction(a *plan.Argument) bool { return rule.ByInstruction(a.Variable.Loc.Rule) }

// witness returns what computes the value of an argument that an instruction says: it runs the code up to there. It is nil for others, and for
// code that the second reader does not run.
func (p *prover) witness(s *dwarfloc.Site, a *plan.Argument) func(m oracle.Machine) (uint64, bool, error) {
	if !byInstruction(a) || derived(a) || p.img.Arch().Name != "amd64" {
		return nil
	}
	if function, name, ok := handedTo(a.Variable.Because); ok {
		return p.handed(s, a, function, name)
	}
	var at uint64
	if _, err := fmt.Sscanf(a.Variable.Because, "%v:", &at); err != nil {
		return nil
	}
	var distance int64
	if _, rest, found := strings.Cut(a.Variable.Because, ": it "); found {
		if _, by, found := strings.Cut(rest, ", "); found {
			_, _ = fmt.Sscanf(by, "%d bytes", &distance) // it is 0 where it is not named
		}
	}
	register := uint64(0)
	if _, name, found := strings.Cut(a.Variable.Because, "passes it in "); found {
		name, _, _ = strings.Cut(name, ",")
		r := p.img.Arch().RegisterByName(strings.TrimPrefix(name, "%"))
		if r == nil {
			return nil
		}
		register = uint64(r.DWARF)
	}
	if strings.HasSuffix(strings.SplitAfter(a.Variable.Because, ", as in")[0], ": it calls it, as in") {
		return func(m oracle.Machine) (uint64, bool, error) { return m.Called(inside.File(p.img).Bytes, at) }
	}
	return func(m oracle.Machine) (uint64, bool, error) {
		v, ok, err := m.Witness(inside.File(p.img).Bytes, s.Addr, at, register)
		if errors.Is(err, oracle.ErrWitness) {
			err = errors.Join(err, oracle.ErrNotRead)
		}
		return v - uint64(distance), ok, err
	}
}

// handedTo returns the inlined function and its parameter to which a body passes an argument, if that is what says the argument.
func handedTo(because string) (function, parameter string, ok bool) {
	_, rest, found := strings.Cut(because, ": it passes it to ")
	if !found {
		return "", "", false
	}
	function, rest, _ = strings.Cut(rest, " as ")
	parameter, _, ok = strings.Cut(rest, ",")
	return function, parameter, ok
}

// handed returns what computes the parameter of the inlined body that begins at a site as the second reader finds it.
func (p *prover) handed(s *dwarfloc.Site, a *plan.Argument, function, parameterName string) func(m oracle.Machine) (uint64, bool, error) {
	sites, err := p.reader.Around(s.DIE)
	if err != nil {
		return func(oracle.Machine) (uint64, bool, error) { return 0, false, err }
	}
	var inner *oracle.Site
	for die, x := range sites {
		if die > s.DIE && x.Inlined && x.Addr == s.Addr && x.Function == function && (inner == nil || die < inner.DIE) {
			inner = x
		}
	}
	if inner == nil {
		return func(oracle.Machine) (uint64, bool, error) {
			return 0, false, fmt.Errorf("second reader: %s is not inlined at %#x", function, s.Addr)
		}
	}
	q := parameter(inner, parameterName, -1)
	if q == nil {
		return func(oracle.Machine) (uint64, bool, error) {
			return 0, false, fmt.Errorf("second reader: %s has no parameter %s", function, parameterName)
		}
	}
	return func(m oracle.Machine) (uint64, bool, error) { return param(q, &m, *a) }
}
