// Package judge decides whether the location that debug information gives for a parameter, at a place where a run of its body begins, is
// that of the passed value.
//
//	doubt, row, err := judge.Judge(&candidate, evidence)
//
// Debug information says where a variable is. A probe asks what was passed. The two differ where the body has assigned the parameter
// before its first instruction, where the compiler's note is about the value after a statement, and where the place was used again. The
// table Rows is all that decides it: the first row that fits a candidate gives the verdict. A candidate that no row doubts is sure.
//
// What is known of the candidate costs nothing; what Evidence answers is read on demand, by the rows that ask for it.
package judge

import (
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Candidate is a location that debug information gives for a variable at a probe.
type Candidate struct {
	Parameter  bool // of the function, and a run of the body begins at the probe: else the variable is what it is
	Entry      bool // the probe is at the first instruction of an out-of-line function
	Pointer    bool // it is a pointer or a reference
	Constant   bool // no statement can assign it: it is of a const type, a reference, or the object of a C++ member function
	Clone      bool // the symbol of the function says that its parameters are not as declared; asked if Note is Whole or Later, at an entry
	Removed    bool // and that some may be gone
	Note       Note
	Views      bool  // the note is from a list with location views
	Changed    bool  // the list has another place before, which holds for no code
	Place      Place // what the location is
	Counted    bool  // the location divides, or multiplies what is no address: LLVM's may be made of a loop's counter; GCC's divides a register's distance from a number
	Impossible bool  // it is a number that no value of its type is
	Compiler   Compiler
}

// Note says where the part of the debug information that gives the location begins.
type Note uint8

const (
	// Whole is one place for the whole body.
	Whole Note = iota
	// First is the first of several entries that begin at the probe, in a list without views.
	First
	// Before is an entry that begins before the probe.
	Before
	// Here is an entry that begins at the probe.
	Here
	// Later is an entry that begins some views after the probe, at its address.
	Later
)

// Place is what a location is.
type Place uint8

const (
	// Held is a register, or memory.
	Held Place = iota
	// Computed is a number that is computed from registers or memory.
	Computed
	// Fixed is a constant, or an address in the image, or has a part that is one.
	Fixed
	// Global is a variable of the image.
	Global
)

// Compiler is what a unit's compiler writes.
type Compiler uint8

const (
	// Marks is GCC with a marker where each statement begins (-gstatement-frontiers).
	Marks Compiler = iota
	// Unmarked is GCC without them.
	Unmarked
	// LLVM is clang, rustc and all others: one row says where an instruction comes from, and nothing where a statement begins.
	LLVM
)

// Assignment is what all bodies of a function show about one of its parameters.
type Assignment uint8

const (
	// Never means that nothing shows an assignment.
	Never Assignment = iota
	// Between means that its place differs from one part of a body to the next, or is computed.
	Between
	// Inside means that it changes inside a part of a body.
	Inside
)

// Evidence answers what a candidate does not show. Errors are those of reading the image.
type Evidence interface {
	// Statements returns how many statements of the body begin at the probe's address.
	Statements() (int, error)
	// Begun reports whether a statement of the body begins between the probe and the note.
	Begun() (bool, error)
	// ForAnother reports whether what is passed in the place may be another parameter of the clone, or a part of one, or that two parts of a structure have one place.
	ForAnother() (bool, error)
	// Ran reports whether statements of the body begin between the note's beginning and the probe: those of an earlier run.
	Ran() (bool, error)
	// PassedOn reports whether a variable of a caller is in the same place.
	PassedOn() (bool, error)
	// PassedBefore reports whether one was there before the probe.
	PassedBefore() (bool, error)
	// Narrower reports whether a caller's variable that has fewer bits is in the register, none that has as many, and nothing shows that it was extended.
	Narrower() (bool, error)
	// Cut reports whether a register has fewer bits of what is in memory than the parameter, or the part of it, has, and no variable of a caller is what it has; or bits above the number
	// that are no part of it.
	Cut() (bool, error)
	// Placed reports whether the debug information or the code shows where the body begins.
	Placed() (bool, error)
	// Assigned returns what the bodies of the function show.
	Assigned() (Assignment, error)
	// Several reports whether the function has several bodies, of which Assigned says what they show.
	Several() (bool, error)
	// Kept reports whether the function out of line has what it was called with to its end, and none of its bodies assigns it inside a part.
	Kept() (bool, error)
	// Made reports whether an instruction before the probe has computed what the register holds.
	Made() (bool, error)
	// Spent reports whether the body needs, in straight code from the probe on, all bits of what the register holds, and has no other parameter there.
	Spent() (bool, error)
	// Outside reports whether instructions that are not the body's have computed what the register holds, by their places; with only, and none but the body's use it.
	Outside(only bool) (bool, error)
	// KeptOutside reports whether an instruction that is not the body's has stored all bits of what the register holds, on the one path to the probe.
	KeptOutside() (bool, error)
	// MadeInside reports whether an instruction of the body has computed or loaded what the register holds before the probe, and none of others follows.
	MadeInside() (bool, error)
	// Stepped reports whether the register that it is computed from was last written by an access that adds to it just what the computation does.
	Stepped() (bool, error)
	// Midway reports whether the probe is at a statement of the body that is not its first one.
	Midway() (bool, error)
	// Looped reports whether the body updates the place in a loop around the probe, where the note still holds.
	Looped() (bool, error)
	// Overtaken reports whether an instruction that is not the body's has written the register between the body's first instructions, which
	// were moved there, and the probe.
	Overtaken() (bool, error)
	// Hoisted reports whether the debug information does not say where the body is entered, or the note begins some views later, and the register was last changed by an
	// instruction of the body's before the probe.
	Hoisted() (bool, error)
	// Alone reports whether the place is a register that no variable of a caller is in, and that the instruction at the probe writes, or in a function of
	// whose parameters none has a list.
	Alone() (bool, error)
	// Elsewhere reports whether the debug information says that the body is entered, with its first statement, at another place than the probe.
	Elsewhere() (bool, error)
	// MadeBehind reports whether another copy of the call, as the source has it, has the number for the parameter behind the body's beginning alone.
	MadeBehind() (bool, error)
	// OfNumber reports whether a statement of the body at the probe makes something else than a number, of which another body shows that it makes a number of one.
	OfNumber() (bool, error)
	// Turned reports whether a caller's variable has the same number at the probe as before a loop that leads there, in which it has another value.
	Turned() (bool, error)
	// Copied reports whether the notes at the probe are those of another way into the body: a caller's variable has one number at both, and another one in between.
	Copied() (bool, error)
	// Over reports whether the note also holds behind a statement of the body at the probe's address that, as another body of the function shows, assigns the parameter.
	Over() (bool, error)
	// Steady reports whether bodies of the function in the image show that the statements at the probe leave the parameter, all but the last.
	Steady() (bool, error)
	// PassedNumber reports whether the number is that of a caller's variable, which the call passes, as all bodies of that call show.
	PassedNumber() (bool, error)
	// ChosenSince reports whether the value is one with which the function was entered, by the debug information, and a conditional move has changed the register that
	// had it last.
	ChosenSince() (bool, error)
	// PassedOther reports whether a call of the clone says that it passes another number than the note's, or what is no number.
	PassedOther() (bool, error)
	// Returned reports whether the note ends where an instruction of the body's has changed what it is computed from: the variable then has what that computed.
	Returned() (bool, error)
	// MovedOut reports whether the note of a register ends where it begins, in a loop that changes the register and uses what the body has made in front of it: at another way into
	// the body than that of its code, or of what was in that register.
	MovedOut() (bool, error)
	// OnePlace reports whether one register is noted for all of the body, no instruction of the body writes it, and the code of another body makes another number of the parameter; or whether it
	// is noted over the first branch of the body, in front of which the code of another body adds a number to the parameter.
	OnePlace() (bool, error)
	// Joined reports whether the note ends where it begins, at a probe to which several paths come from outside of the body, some of which may begin no run.
	Joined() (bool, error)
}

// Row is a line of the table.
type Row struct {
	Name    string // short and stable
	Because string // what the row knows
	Doubt   loc.ReasonCode
	// fits reports whether the row decides.
	fits func(c *Candidate, e Evidence) (bool, error)
}

// Judge returns why a candidate may not be the passed value, or reasons.None, and the row that says so.
func Judge(c *Candidate, e Evidence) (doubt loc.ReasonCode, row *Row, err error) {
	for i := range Rows {
		row := &Rows[i]
		fits, err := row.fits(c, e)
		if err != nil {
			return reasons.None, nil, err
		}
		if fits {
			return row.Doubt, row, nil
		}
	}
	return reasons.None, nil, nil
}
