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

// rowsOfCalls reports whether the line table has a row for each call, even of an
// inlined function, as GCC's has.
func (u *unit) rowsOfCalls() bool { return strings.HasPrefix(u.Producer(), "GNU ") }
