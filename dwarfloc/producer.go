package dwarfloc

import (
	"strings"
)

// optimized reports whether DW_AT_producer says that the unit was optimized. GCC records
// its options there. clang does not, so false can also mean unknown.
func (u *unit) optimized() bool {
	u.optimizedOnce.Do(func() {
		producer := u.Producer()
		if !strings.HasPrefix(producer, "GNU ") {
			return
		}
		level := ""
		for f := range strings.FieldsSeq(producer) {
			if strings.HasPrefix(f, "-O") {
				level = f
			}
		}
		u.isOptimized = level != "" && level != "-O0"
	})
	return u.isOptimized
}

// unoptimized reports whether DW_AT_producer says that GCC did not optimize: it has options,
// and none is -O1 or higher.
func (u *unit) unoptimized() bool {
	return !u.optimized() && strings.HasPrefix(u.Producer(), "GNU ") && strings.Contains(u.Producer(), " -m")
}

// rowsOfCalls reports whether the line table has a row for each call, even of an
// inlined function, as GCC's has.
func (u *unit) rowsOfCalls() bool { return strings.HasPrefix(u.Producer(), "GNU ") }

// tracksAssignments reports whether GCC followed variables by their assignments, as it does
// with optimization. Otherwise it describes registers, and a view has no value of its own.
func (u *unit) tracksAssignments() bool {
	return !strings.Contains(u.Producer(), "-fno-var-tracking-assignments")
}
