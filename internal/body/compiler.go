package body

import (
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/dw"
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

func (u *Unit) compiler() *compiler {
	u.compilerOnce.Do(func() { u.compiled = compilerOf(u.Producer()) })
	return &u.compiled
}

// Optimized reports whether the unit is known to be optimized.
func (u *Unit) Optimized() bool { return u.compiler().optimized }

// Unoptimized reports whether the unit is known not to be.
func (u *Unit) Unoptimized() bool { return u.compiler().unoptimized }

// RowsOfCalls reports whether the line table has a row for each call, even of an
// inlined function, as GCC's has.
func (u *Unit) RowsOfCalls() bool { return u.GNU() }

// GNU reports whether GCC compiled the unit.
func (u *Unit) GNU() bool { return u.compiler().gnu }

// TracksAssignments reports whether GCC followed variables by their assignments, as it does
// with optimization. Otherwise it describes registers, and a view has no value of its own.
func (u *Unit) TracksAssignments() bool { return u.compiler().assignmentsTracked }

// IsGo reports whether Go's own compiler or assembler made the unit. gccgo's functions use
// the calling convention of C, on stacks that do not move.
func (u *Unit) IsGo() bool { return u.Lang == dw.LangGo && !u.GNU() }
