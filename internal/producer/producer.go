// Package producer says what compiled a unit, by its DW_AT_producer and the rows of its line table.
package producer

import (
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// Compiler is what DW_AT_producer says about a unit. GCC records its options there; clang and
// rustc do not.
type Compiler struct {
	GNU                bool
	Optimized          bool // GCC optimized; false can also mean unknown
	Unoptimized        bool // GCC did not
	AssignmentsTracked bool
	Together           bool // all functions of the unit were compiled with the same options, and none was written and read again
}

// Of returns what a producer's name says.
func Of(producer string) Compiler {
	c := Compiler{GNU: strings.HasPrefix(producer, "GNU ")}
	c.AssignmentsTracked = !strings.Contains(producer, "-fno-var-tracking-assignments")
	if !c.GNU {
		return c
	}
	c.Together = !strings.HasPrefix(producer, "GNU GIMPLE ") && !strings.Contains(producer, "-gno-statement-frontiers")
	level := ""
	for f := range strings.FieldsSeq(producer) {
		if strings.HasPrefix(f, "-O") {
			level = f
		}
	}
	c.Optimized = level != "" && level != "-O0"
	c.Unoptimized = !c.Optimized && strings.Contains(producer, " -m")
	return c
}

// Marked reports whether GCC's rows of a function have markers of statements (-gstatement-frontiers): then rows of instructions begin
// none. Where a function has no markers, as after link-time optimization that cloned it, and before GCC 8, each row of an instruction at
// another place in the source begins a statement, and only one for another discriminator of the same place does not (GCC: gcc/final.cc,
// notice_source_line). So the rows say it, and not the producer's name or its options. Those before the first statement say nothing: where a function's
// cold part begins, the flag is what the section had it to be at the end of another function's, and so it is in a row that has no instruction before it.
func Marked(rows []dw.Row) bool {
	begun := false
	for i := 1; i < len(rows); i++ {
		r, before := &rows[i], &rows[i-1]
		begun = begun || before.Stmt
		if begun && !r.Stmt && !r.End && !before.End && (r.Line != before.Line || r.Column != before.Column || r.File != before.File) {
			return true
		}
	}
	return false
}
