package judge

import (
	"github.com/bpfprologue/bpfprologue/internal/reasons"
)

// Rows is the table, in order.
var Rows = []Row{
	{
		Name: "inside", Because: "inside a body a variable is what it is",
		fits: plain(func(c *Candidate) bool { return !c.Parameter }),
	},
	{
		// GCC 16: -1 for the bool of "f(n & 1)", where n is -1: it leaves the conversion to the one bit to the reader.
		Name: "no truth value", Because: "a truth value is 0 or 1, and the note has another number", Doubt: reasons.Contradictory,
		fits: plain(func(c *Candidate) bool { return c.Impossible }),
	},
	{
		// arm64: "ldr w5, [x0], #8" before a call of f(p + 8), and then x0+8 for what is passed in x0.
		Name: "stepped", Because: "an access has already added to the register what is computed from it, and GCC's notes can miss that", Doubt: reasons.Contradictory,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler == LLVM || c.Place != Computed {
				return false, nil
			}
			return e.Stepped()
		},
	},
	{
		// clang 14 to 22: "(%rbx / 0xc000000000000000) * 60" for a variable that grows by 60 with each turn, and has wrapped.
		Name: "counted", Because: "LLVM notes a variable as computed from a loop's counter, with that one's width and sign", Doubt: reasons.Contradictory,
		fits: plain(func(c *Candidate) bool { return c.Compiler == LLVM && c.Place == Computed && !c.Entry && c.Counted }),
	},
	{
		// GCC 12: "(%r14-21 /u 7)+2" for the i of "for (i = 2; i >= 0; i--)", of which it counts 7 * i alone, from 21 down.
		Name: "counted down", Because: "GCC divides, without a sign, how far a counter is from its first number, and the counter may have fallen below that", Doubt: reasons.Contradictory,
		fits: plain(func(c *Candidate) bool { return c.Compiler != LLVM && c.Place == Computed && !c.Entry && c.Counted }),
	},
	{
		// clang 14 to 22: %rbp for "f(x)" with an int x that is in %ebp, and a parameter of 64 bits that the body cuts to 32.
		Name: "narrower", Because: "a caller's variable of fewer bits is in the register, and LLVM may have left out its extension", Doubt: reasons.Contradictory,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler != LLVM || c.Entry || c.Place != Held {
				return false, nil
			}
			return e.Narrower()
		},
	},
	{
		// clang 14 to 22: "movzbl (%rdi),%ebx" for f(s->n) with an int n, of which f uses the lowest byte, and for a member of a structure.
		Name: "cut", Because: "the register has fewer bits of what is in memory, or others above the number, and LLVM may have left out those that the body does not use", Doubt: reasons.Contradictory,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler != LLVM || c.Entry || c.Place != Held {
				return false, nil
			}
			return e.Cut()
		},
	},
	{
		Name: "const", Because: "no statement assigns a parameter of a const type, a reference, or the object of a member function",
		// But LLVM leaves out bits that the body does not use all the same: clang 14's bigits[index], with an index that is compared first, has all.
		fits: func(c *Candidate, e Evidence) (bool, error) {
			switch {
			case !c.Constant, c.Compiler != LLVM, !c.Pointer && c.Place == Computed:
				return false, nil
			case !c.Pointer && c.Place == Held:
				if made, err := e.Made(); !made || err != nil {
					return !made, err
				}
				return e.Spent()
			}
			return true, nil
		},
	},
	{
		Name: "unplaced", Because: "the debug information does not say where the body begins, and where jumps of its function lead is not known", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler != LLVM || c.Entry {
				return false, nil
			}
			placed, err := e.Placed()
			return !placed, err
		},
	},
	{
		Name: "first", Because: "of several entries that begin at one address without views, the first is what was passed",
		fits: plain(func(c *Candidate) bool { return c.Note == First }),
	},

	// GCC with views: a list has an entry for what was passed and one for what is assigned, both at one address. It can lack the first:
	// GCC had no place for the argument, or wrote none for a range without code. Of the 16,887 parameters at probes in Debian's 6.1 kernel
	// (amd64) that begin at a later view, 84 begin after a statement, and more than half of those are what it computes.
	{
		Name: "removed", Because: "the clone is not passed what it does not use, and one place for all of it may be that after a statement", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if !c.Clone || !c.Entry || c.Constant || c.Note != Whole || c.Place != Fixed && (c.Views || !c.Removed) {
				return false, nil
			}
			if c.Removed {
				return true, nil
			}
			if a, err := e.Assigned(); a != Never || err != nil {
				return true, err
			}
			return e.PassedOther()
		},
	},
	{
		Name: "views: at an entry", Because: "a list goes on with the parts of what was passed at a function's first instruction",
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if !c.Views || !c.Entry {
				return false, nil
			}
			another, err := late(c, e)
			return !another, err
		},
	},
	{
		Name: "overtaken", Because: "the register was written by another's instruction after the body's first ones", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler == LLVM || c.Place != Held || c.Note == Before {
				return false, nil
			}
			return e.Overtaken()
		},
	},
	{
		// GCC computes the first statement of both sides of a branch in front of it, and loses the markers of that and of where the body begins. And it moves the first
		// statement's instruction ahead of the caller's last ones, and notes the caller's variable in the register until it is written again.
		Name: "hoisted", Because: "an instruction of the body's has changed what is in the place before the probe, and the debug information does not say where the body is entered, or where the note begins, or says later what is there", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler == LLVM || c.Place != Held {
				return false, nil
			}
			return e.Hoisted()
		},
	},
	{
		Name: "const, by GCC", Because: "no statement assigns a parameter of a const type, and nothing has written its place again",
		fits: plain(func(c *Candidate) bool { return c.Constant && c.Compiler != LLVM }),
	},
	{
		Name: "midway", Because: "the body is entered behind its first statement, and bodies of the function show an assignment", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Entry || c.Place == Fixed && c.Note == Whole {
				return false, nil
			}
			if is, err := e.Midway(); !is || err != nil {
				return false, err
			}
			if a, err := e.Assigned(); a == Never || err != nil {
				return false, err
			}
			if passed, err := e.PassedOn(); passed || err != nil {
				return false, err
			}
			kept, err := e.Kept()
			return !kept, err
		},
	},
	{
		// GCC notes "len = 2" at the end of one of several branches that go on in common code, and at that code's address.
		Name: "joined", Because: "paths meet at the probe, where a note of a number covers no code: it may be that of one path", Doubt: reasons.Contradictory,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if !c.Views || c.Entry || c.Place != Fixed || c.Note == Whole {
				return false, nil
			}
			return e.Joined()
		},
	},
	{
		// GCC 12 moves the least of what is in %rcx and 8 out of a loop, keeps another variable in %rcx from then on, and still notes the argument there: notes do not count as a use.
		Name: "moved out", Because: "the loop changes the register, and uses what the body has made in front of it: what is passed does not change", Doubt: reasons.Contradictory,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if !c.Views || c.Entry || c.Place != Held || c.Note != Here {
				return false, nil
			}
			return e.MovedOut()
		},
	},
	{
		// GCC 12 goes on that "len" of "len = 0; if (n > len) len = n; ..." is 0, and notes "f(len)" so, of which the body's first statement makes what is in a register.
		Name: "of a number", Because: "a statement makes of the number what has to be read, and in another body of the function it makes a number of one", Doubt: reasons.Contradictory,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if !c.Views || c.Entry || c.Place != Fixed || c.Note == Whole {
				return false, nil
			}
			return e.OfNumber()
		},
	},
	{
		// GCC 12 loses the 2 of "f(2)", and notes what f makes of it: behind its beginning where it notes more than that, and else for the whole body.
		Name: "made behind", Because: "GCC writes the only note of a number as that of the whole body, and in another copy of the call the number is there behind the body's beginning alone", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler == LLVM || c.Entry || c.Place != Fixed || c.Note != Whole {
				return false, nil
			}
			return e.MadeBehind()
		},
	},
	{
		// GCC loses the statement of "if (n < max) max = n" in a conditional move, and goes on that max is what the function was called with.
		Name: "chosen", Because: "in a register that had the value an instruction has chosen between that and another one, which may be an assignment", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler == LLVM || c.Entry {
				return false, nil
			}
			return e.ChosenSince()
		},
	},
	{
		// GCC 12 notes "e = -11" behind "do e--; while (...)", of which that is the first turn.
		Name: "turned", Because: "a loop leads to the probe, in which the caller's variable changes, and the number is that of its first turn", Doubt: reasons.Contradictory,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if !c.Views || c.Entry || c.Place != Fixed || c.Note == Whole {
				return false, nil
			}
			return e.Turned()
		},
	},
	{
		// GCC 16, for the copies of an unrolled loop's body whose first turns are apart (-funroll-loops): "i = 1" and "v = a[1]" in all of them, though i grows.
		Name: "copied", Because: "the notes are those of another copy of the body: a caller's variable has the same number at both, and had another one in between", Doubt: reasons.Contradictory,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if !c.Views || c.Entry || c.Note == Whole {
				return false, nil
			}
			return e.Copied()
		},
	},
	{
		Name: "views: the caller's", Because: "a caller's variable is in the place to which the list changes, or that is noted late",
		fits: func(c *Candidate, e Evidence) (bool, error) {
			// That a caller's variable is the same number means nothing: GCC 11 and 12 note "p3 >>= 2" that gives 0, and a loop's counter is 0 there.
			if !c.Views || !c.Changed && c.Note != Later || c.Place == Fixed {
				return false, nil
			}
			if passed, err := e.PassedOn(); !passed || err != nil || c.Note != Later || c.Place != Computed {
				return passed, err
			}
			// GCC notes what "n = add(n)" makes as the parameter too, where one register has both: the caller's variable is that, behind the body's statements.
			returned, err := e.Returned()
			return !returned, err
		},
	},
	{
		Name: "views: changed", Because: "the list has another place before, and no instruction has moved the value in between", Doubt: reasons.Reassigned,
		fits: plain(func(c *Candidate) bool { return c.Views && c.Changed }),
	},
	{
		// For functions that are too large for it, GCC does not track assignments, and notes what a statement assigns alone.
		Name: "views: the only note", Because: "GCC writes the only note of a variable as its register in the whole body, whatever the note is about", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if !c.Views || c.Entry || c.Note != Whole || c.Place != Held {
				return false, nil
			}
			return e.Alone()
		},
	},
	{
		// Where GCC threads a jump past the beginning of a body, what it noted there is lost on that path.
		Name: "views: elsewhere", Because: "the only note of the variable is that of another way into the body", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if !c.Views || c.Entry || c.Note != Whole || c.Place == Held {
				return false, nil
			}
			return e.Elsewhere()
		},
	},
	{
		Name: "views: after a statement", Because: "the note begins after a statement of the body", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if !c.Views || c.Note != Later {
				return false, nil
			}
			return e.Begun()
		},
	},
	{
		// GCC moves "i += start" out of the caller's loop, which then counts the sum, and notes that alone: as what is passed, and as what the statement makes of it.
		Name: "views: over a statement", Because: "the note holds before and behind a statement that, in another body of the function, assigns the parameter, with no code in between", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if !c.Views || c.Note != Before || c.Place == Fixed { // one that begins at the probe is of what is passed; and a number does not count anything
				return false, nil
			}
			return e.Over()
		},
	},
	{
		Name: "views", Because: "the note holds at the probe, by its views",
		fits: plain(func(c *Candidate) bool { return c.Views }),
	},

	{
		Name: "at an entry", Because: "no instruction of the function has run that could set the register or memory, by GCC's notes",
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if !c.Entry || c.Place != Held || c.Compiler == LLVM {
				return false, nil
			}
			another, err := late(c, e)
			return !another, err
		},
	},

	// Without views only the last of the entries at one address is left.
	{
		// "n++" of "f(a - 1)" is the caller's a, and that is all that is noted: no instruction subtracts or adds.
		Name: "one place", Because: "the register is noted for all of the body, which leaves it, or over its first branch, and another body of the function shows that the parameter is assigned there", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Entry || c.Place != Held || c.Note == Before {
				return false, nil
			}
			return e.OnePlace()
		},
	},
	{
		Name: "before", Because: "GCC's note begins before the probe, and the body's statements do not",
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler != Marks || c.Note != Before || c.Place == Held {
				return c.Compiler == Marks && c.Note == Before, nil
			}
			ran, err := e.Ran()
			return !ran, err
		},
	},
	{
		Name: "one statement", Because: "GCC's markers: a value that a statement assigns holds from the next statement on, and one at most begins here",
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler != Marks || c.Entry && c.Place == Held {
				return false, nil
			}
			n, err := e.Statements()
			return n <= 1, err
		},
	},
	{
		Name: "looped", Because: "the body updates the place in a loop around the probe", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Place == Fixed || c.Note == Whole {
				return false, nil
			}
			return e.Looped()
		},
	},
	{
		Name: "before, unmarked", Because: "GCC's note of a place begins before the probe, and the body does not repeat there",
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler != Unmarked || c.Note != Before || c.Place != Held {
				return false, nil
			}
			// Of "a = b" at the body's beginning the note of b's place can be left for both, as it is of LLVM's.
			another, err := e.ForAnother()
			return !another, err
		},
	},
	{
		Name: "made", Because: "an instruction before the body computes what the register holds, or what was stored to the slot, and LLVM may have folded a statement of the body into it, or left out bits that the body does not use", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler != LLVM || c.Place != Held || c.Entry {
				return false, nil
			}
			if is, err := e.Made(); !is || err != nil {
				return false, err
			}
			if before, err := e.PassedBefore(); before || err != nil {
				return false, err
			}
			// What the caller's own instructions compute is no statement of the body, unless both compute the same. That is refuted where a function has several bodies
			// and none shows an assignment, or where none but the body uses the number, all bits of it.
			if outside, err := e.Outside(false); !outside || err != nil {
				return true, err
			}
			if a, err := e.Assigned(); a != Never || err != nil {
				return true, err
			}
			its, err := e.PassedOn()
			if !its && err == nil {
				its, err = e.KeptOutside()
			}
			if err != nil {
				return true, err
			}
			if its {
				several, err := e.Several()
				return !several, err
			}
			if spent, err := e.Spent(); !spent || err != nil {
				return true, err
			}
			only, err := e.Outside(true)
			return !only, err
		},
	},
	{
		// clang 14 gives the load of "c = tolower(c)" no line, so that the body begins behind it.
		Name: "made inside", Because: "an instruction of the body has made what the register holds, and the probe follows", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler != LLVM || c.Place != Held || c.Entry {
				return false, nil
			}
			return e.MadeInside()
		},
	},
	{
		// Of "a = b" at the body's beginning no note is left but that of b's place, for both.
		Name: "another's", Because: "another parameter of the body, or another part of it, is in the same place, and a statement may have made one the other", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Views || c.Entry && c.Compiler != LLVM || c.Place != Held && c.Place != Computed {
				return false, nil
			}
			if another, err := e.ForAnother(); !another || err != nil {
				return false, err
			}
			kept, err := e.Kept()
			return !kept, err
		},
	},
	{
		Name: "held by the caller", Because: "a caller's variable is in the register or memory, where it would not be any more if the body had changed that",
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler != LLVM || c.Place != Held {
				return false, nil
			}
			return e.PassedOn()
		},
	},
	{
		// But where the body uses the lowest bits alone, LLVM may compute no others: clang 14 and 22 add 0x7fffffffffffffff for the a of "f(x - 1)" with "a << 3".
		Name: "kept", Because: "the function out of line has what it was called with to its end: no statement assigns the parameter",
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler == LLVM && c.Place != Fixed && (c.Place != Computed || !c.Pointer) {
				return false, nil
			}
			return e.Kept()
		},
	},
	{
		Name: "assigned", Because: "bodies of the function assign the parameter, and this may be what they assign", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler != LLVM || c.Place == Held || c.Note == Whole && c.Place == Computed {
				return false, nil
			}
			a, err := e.Assigned()
			return a == Inside, err
		},
	},
	{
		Name: "global", Because: "the body may have assigned the parameter to a variable of the image", Doubt: reasons.Reassigned,
		fits: plain(func(c *Candidate) bool { return c.Place == Global && c.Note == Here }),
	},
	{
		Name: "the caller's", Because: "a caller's variable is in the same place",
		fits: func(c *Candidate, e Evidence) (bool, error) {
			// That a caller has the same number means nothing, nor that LLVM computes both from the same.
			if c.Place == Fixed || c.Compiler == LLVM && c.Place == Computed && !c.Pointer {
				return false, nil
			}
			return e.PassedOn()
		},
	},
	{
		// As "instrument_atomic_write(addr, sizeof(long))" of riscv64's set_bit.
		Name: "steady", Because: "other bodies of the function show that the statements which begin at the probe leave it, all but the last",
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler != Marks || c.Entry || c.Note == Whole {
				return false, nil
			}
			return e.Steady()
		},
	},
	{
		// As "index2value(L, idx)" in lua_type, and lua_type in 18 functions that pass 1, 2 and 3: LLVM, and GCC without markers, as with link-time optimization.
		Name: "passed number", Because: "a caller's variable and the parameter have the same number in all bodies of the call, and not always one number",
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Compiler == Marks || c.Entry || c.Place != Fixed || c.Compiler == Unmarked && c.Note == Whole {
				return false, nil
			}
			if a, err := e.Assigned(); a == Inside || err != nil { // "f(i + 1)" and "n--" would give both i
				return false, err
			}
			return e.PassedNumber()
		},
	},
	{
		Name: "statements", Because: "several statements of the body begin at the probe, and the place may be that after the first", Doubt: reasons.Reassigned,
		fits: plain(func(c *Candidate) bool { return c.Compiler == Marks && (!c.Entry || c.Place != Held) }),
	},
	{
		Name: "late, unmarked", Because: "the note begins after the probe, and perhaps after a statement", Doubt: reasons.Reassigned,
		fits: plain(func(c *Candidate) bool { return c.Compiler == Unmarked && c.Note == Later }),
	},
	{
		Name: "computed", Because: "what is computed may be what a statement of the body computes: nothing tells", Doubt: reasons.Reassigned,
		fits: plain(func(c *Candidate) bool { return c.Place == Computed }),
	},
	{
		Name: "differs", Because: "the place differs between the parts of bodies of the function", Doubt: reasons.Reassigned,
		fits: func(c *Candidate, e Evidence) (bool, error) {
			if c.Note == Whole && c.Place == Computed {
				return false, nil
			}
			a, err := e.Assigned()
			if a == Never || c.Place != Held || err != nil {
				return a != Never, err
			}
			return e.Made()
		},
	},
	{
		Name: "fixed", Because: "a number may be what a statement makes of a number that was passed: nothing tells", Doubt: reasons.Reassigned,
		fits: plain(func(c *Candidate) bool { return c.Place == Fixed }),
	},
}

// plain is a condition that needs no evidence.
func plain(f func(c *Candidate) bool) func(*Candidate, Evidence) (bool, error) {
	return func(c *Candidate, _ Evidence) (bool, error) { return f(c), nil }
}

// late reports whether the note of a clone's parameter is late, and is not of a place that is known to be passed for it.
func late(c *Candidate, e Evidence) (bool, error) {
	if !c.Clone || c.Note != Later {
		return false, nil
	}
	if c.Place != Held {
		return true, nil
	}
	return e.ForAnother()
}
