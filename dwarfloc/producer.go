package dwarfloc

import (
	"strings"
)

// compiler is what DW_AT_producer says about a unit. GCC records its options there; clang and
// rustc do not.
type compiler struct {
	gnu                bool
	optimized          bool // GCC optimized; false can also mean unknown
	unoptimized        bool // GCC did not
	assignmentsTracked bool
	statementsMarked   bool // GCC optimized, and kept where statements begin (-gstatement-frontiers)
}

func compilerOf(producer string) compiler {
	c := compiler{gnu: strings.HasPrefix(producer, "GNU ")}
	c.assignmentsTracked = !strings.Contains(producer, "-fno-var-tracking-assignments")
	if !c.gnu {
		return c
	}
	level := ""
	for f := range strings.FieldsSeq(producer) {
		if strings.HasPrefix(f, "-O") {
			level = f
		}
	}
	c.optimized = level != "" && level != "-O0"
	// Link-time optimization ("GNU GIMPLE") loses the markers.
	c.statementsMarked = c.optimized && !strings.HasPrefix(producer, "GNU GIMPLE ") && !strings.Contains(producer, "-gno-statement-frontiers")
	c.unoptimized = !c.optimized && strings.Contains(producer, " -m")
	return c
}

func (u *unit) compiler() *compiler {
	u.compilerOnce.Do(func() { u.compiled = compilerOf(u.Producer()) })
	return &u.compiled
}

// optimized reports whether the unit is known to be optimized.
func (u *unit) optimized() bool { return u.compiler().optimized }

// unoptimized reports whether the unit is known not to be.
func (u *unit) unoptimized() bool { return u.compiler().unoptimized }

// rowsOfCalls reports whether the line table has a row for each call, even of an
// inlined function, as GCC's has.
func (u *unit) rowsOfCalls() bool { return u.gnu() }

// gnu reports whether GCC compiled the unit.
func (u *unit) gnu() bool { return u.compiler().gnu }

// tracksAssignments reports whether GCC followed variables by their assignments, as it does
// with optimization. Otherwise it describes registers, and a view has no value of its own.
func (u *unit) tracksAssignments() bool { return u.compiler().assignmentsTracked }
