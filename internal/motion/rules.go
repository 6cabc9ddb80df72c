// Package motion knows what compilers' code motion makes of a body: which of its instructions and markers they have moved, copied, merged or
// dropped, so that they are where no run begins, or may begin.
//
//	r := motion.Of(code)
//	marks = r.WithoutHoisted(i, twins, marks)
//	found := r.Runs(solver, i, marks)
//	again := r.Converted(i, &found.In[0])
//
// It reads the facts of a function's code (package body), and marks and ways as package flow has them. It finds no runs itself: package runs
// sets the marks, asks these rules about them, solves, and asks again about the ways that were found.
//
// Most rules doubt. They drop a mark, and none begins there; make it one where a run may begin; or say of a way that a probe there may also
// fire without a run (Again). Five add marks, where the compiler has left out markers, and one makes a mark one where a run begins. The third column has what shows it to the rule
// and, behind the semicolon, what looks alike and is something else: a program that has that refutes the rule.
//
//	rule                 what the compiler has done                     what shows it, and what would refute it          effect
//	in code with markers of statements (GCC)
//	WithoutHoisted       moved instructions ahead of the body           a statement of another comes first on each       mark dropped, or
//	                                                                    path from the entry; a run without a statement   perhaps
//	WithCopied           copied the beginning for one path (LTO,        the block has instructions of the body alone     mark added
//	                     without markers)                               and goes on in it; a run of that block alone
//	WithThreaded         threaded a jump past the body's first test     an instruction of the body, before a branch      mark added
//	                                                                    that leaves it; one that was only moved there
//	pastMarkers          left out a block of markers and a jump alone   an instruction of the body that begins a block,  perhaps
//	(of WithThreaded)                                                   no statement, nothing that acts to the body's
//	                                                                    end; equal ends of others, merged
//	pastAll              left out a block of markers and a jump alone,  a test of the body without a statement, which    perhaps
//	(of WithThreaded)    all that a path of the caller's had            other paths come to behind its own, and one from
//	                                                                    a test of the caller's; one of the caller's that
//	                                                                    is equal, merged
//	besideTwins          threaded a run of another instance past the     no statement; the other run has had a test or a   mark added, or
//	(of WithThreaded)    body's first test                              statement that follows, outside of loops; equal  perhaps
//	                                                                    ends, merged, with code of this body before
//	Joins                merged equal ends of blocks (-fcrossjumping)   the target's statements repeat the block's;      edge unsure, or
//	                                                                    statements of another run, alike                 behind its marks
//	repeatsOwn           merged equal ends behind one statement that    the last statement is the same one, in the same  edge unsure
//	(of Joins)           is on both paths                               body, and others' are in front of it; another
//	                                                                    turn of a loop
//	restElsewhere        merged a body's rest with another's, where     nothing acts behind its test, and what others    edge behind
//	(of Joins)           the test falls through                         have there it lacks; a run whose rest is known   the marks
//	restIn               merged a body's rest with another's, from      the last statements are equal, and the body      edge behind
//	(of Joins)           the midst of a statement on                    lacks what the other does next; a run without    the marks
//	callIn               merged a body's call with another's, from      the last statements are equal, and the body has  edge behind
//	(of Joins)           the call on                                    no call; a run without one                       the marks
//	goesOnPast           threaded a path past a body's first test to    a test of the body leads to what it does next,   edge unsure
//	(of Joins)           its second one, and left the first's marker    behind the marker of that test; its next turn
//	InMerged             merged that with the beginning of one more     a jump is all that is there of the body; a run     again
//	                                                                    of the other path that has nothing to do
//	Taken                took common statements of several bodies out   all paths come to a first statement, some to     again
//	                     (-fcode-hoisting)                              this body's; statements that are its own
//	InTail               merged equal ends of two bodies                not at a first statement, and another body's     again
//	                                                                    statement comes before; a jump into the middle
//	LeftOver             merged all but what was computed ahead         no entry, no statement, nothing that acts; a     again
//	                                                                    body that has nothing to do here
//	Lowest               merged an end of the body with others'         no entry and no statement where its lowest       again
//	                                                                    piece is; an entry that GCC does not write
//	LowestEarly          computed a part ahead of the caller's test,    no statement, and the body goes on behind one    again
//	                     and merged the rest with others'               side; a call before the test in the source, or
//	                                                                    a part that the caller needs up to the test
//	MergedAway           merged the ends of two paths                   the body's record alone is where another body    again
//	                                                                    begins; a record of a run of its own
//	MergedPart           merged the rests of split functions            called from where it is declared, in another     again
//	                     (-fipa-icf)                                    function; a call at that very place
//	Distributed          made two loops of one                          equal statements, no instruction of the body;    again
//	                     (-ftree-loop-distribution)                     a second loop of the caller's that is alike
//	Converted            made one of both sides of a test               no marker, and an instruction chooses what the   again
//	                     (if-conversion)                                body computes; a choice of the body's own.
//	                                                                    Or one makes a number of a condition, and no
//	                                                                    other body has any; one known in all others
//	JoinedTests          joined two tests (-ftree-ifcombine)            two branches at one place, one needs a load      again
//	                                                                    of the caller's; a test the body makes twice
//	Lost, Bare           inlined a body without its markers (LTO)       no marker, but instructions of its text          found by positions,
//	                                                                                                                     each of several again
//	in code without them (LLVM, Go, GCC without markers)
//	Speculated           moved a piece before the caller's test         nothing acts before the test, one side acts;     mark dropped
//	                                                                    a run that only computes, or goes on in a
//	                                                                    body that shares code with it
//	prepares, loads,     moved loads ahead, into the turn before        nothing acts, and the next piece, where a run    mark dropped
//	feeds                or the ends of paths                           begins in any case, needs it; a run of its own
//	forTwin              made a constant again, for another instance    the statement acts elsewhere; a run that only    mark dropped
//	                                                                    makes the constant
//	constantsFor         makes a constant once for several parts        only constants, which the body needs elsewhere,  mark dropped
//	                                                                    and not on each path; a run that is only one
//	remainder            tests for left turns of the caller's loop      a test at a place without a copy, before a       perhaps
//	                                                                    run; the body's own first test
//	anticipated          computed a part ahead of the caller's test     nothing acts, and the rest behind both sides     perhaps
//	                     (GCC, -ftree-pre)                              needs it; a run of the result of another
//	BehindTest           loads behind the body's test                   the only way there is a test of the body's;      perhaps
//	                                                                    a run of another turn
//	OnlyLeaves           copied the end of a block                      only a jump out is left; a run that is that      perhaps
//	invariant            moved code out of the caller's loop            nothing acts, no copy elsewhere, and a way is    mark dropped
//	                                                                    in the loop; a first turn that was peeled off
//	                                                                    GCC: or the loop's head has no place but that,
//	                                                                    and the body needs it elsewhere; stores there
//	unswitched           moved a test out of the caller's loop          a test alone, none at its place in the loop;     mark dropped
//	                                                                    a run of that test alone
//	IsLent               computes once what two calls of a function     a piece of the second, in one block and in the   not looked at
//	                     need, in the midst of the first                midst of the first; a run that only computes
//	continues            put parts of an expression apart               it needs what the body computed before, on       mark dropped
//	                                                                    each path; equal numbers of another run
//	branchesFor          merged ends: a branch keeps one's position     only a branch, and another instance compares     mark dropped
//	                                                                    for it at that place; one that compares itself
//	comparesAgain        compared again what the caller needs (LLVM)    the registers of the first comparison, as then,  mark dropped
//	                                                                    and nothing acts; another turn's comparison
//	comparesKept         compared again where the result is used        what it reads is unchanged since another way,    mark dropped
//	                     (LLVM)                                         on each path; a run in an unrolled loop of what
//	                                                                    is the same in all turns
//	loadsAhead           loaded ahead of a loop (LLVM)                  only loads, the body acts, and goes on at an     mark dropped
//	                                                                    earlier line on each path; a loop of its own
//	Repeated,            copied the body, or its loop's turns           equal instructions, and something of its own     enter, perhaps or
//	GoesOnBehind                                                        in each copy, or behind all; turns that differ   inside
//	comparesBoth         loads both sides of a comparison with the      the body's branch ends the block, and its first  inside
//	(of Repeated)        position of a macro (LLVM)                     comparison needs both; one in the first, too
//	ActsAgain            put instructions of one expression apart       GCC, nothing that acts behind the second is as   perhaps
//	                                                                    before it; runs of which one was made
//	UsedAgain            unrolled a caller's loop, and computes what     the caller uses what the body has made, before a    enter
//	                     all runs begin with once (LLVM)                piece and after one like it, at one place; the
//	                                                                    caller's code in turns of the body's own loop
//	CopiesAlone          copied variables where paths meet, all copies   a block of copies alone, at one place that       not looked at
//	                     at the place of one path's                     another path there has; code of the caller's
//	Sunk                 loads an argument in the midst of the body     LLVM since 16, the row has the line of the call,    not looked at
//	                                                                    without a column; code of the caller's there
//	EntryRow             counts a function's first instructions to a    the row is the function's first, without         not looked at
//	                     body                                           column; a body that is declared so
//	RestMerged           merged what follows, without position          most bodies act and this piece does not, but     again
//	                                                                    what it feeds does; a run that ends there
//	Guessed              gave an instruction its neighbour's place      GCC, the place is that of what stands before     again
//	                                                                    and execution jumps there; a place of its own
//	                                                                    Or it is that of another body's instruction,
//	                                                                    and not the body's lowest one; bodies of one line
//	turnsBack            copied registers for the next turn of the      GCC, the body goes on to such copies, or to what  again
//	                     body's own loop                                has no place, and they to it; a caller's loop
//	Early                loaded ahead of the caller's tests             GCC, nothing acts before the test, and behind   again
//	                                                                    some tests alone; a test of the body's own
//	InRest               merged the end of the body with others'        GCC, no body begins at that place, and on all   again
//	                                                                    paths in the body it acts or tests before; a
//	                                                                    run of which the test is known
//	OnlyComputes         shares a value between places                  GCC, nothing acts where the body does; all       again
//	                                                                    that is left of a run
//	OnceMore             gives a value that the caller needs the        LLVM, nothing acts where the body does, another  again
//	                     position of the body's                         way leads there, in no loop, and nothing in the
//	                                                                    body is alike; all that is left of a run
//	TwinFirst            computes ahead of tests what several bodies    GCC, nothing acts, and on a path another body     again
//	                     need (LTO, without markers), and merges the    of the function begins before this one acts; a
//	                     rest                                           run whose own rest comes first on each path
//	InMidst              writes no entry, only the lowest piece         GCC, the body itself comes there and has acted   no beginning
//	                                                                    or tested; runs of a loop of the caller's
//	InTurns              sets variables for a loop behind the body      GCC, nothing acts, the first time another way    again
//	                                                                    comes before, and no body begins at that place;
//	                                                                    runs in the loop, their beginning moved out
//	Apart                puts an addition together with the caller's    GCC, nothing acts, and what comes next, where    again
//	                                                                    paths meet, needs it; a run of another's result
//	Unfinished           shares a load with a loop of others            GCC, nothing acts in the loop, the rest is       again
//	                                                                    behind it; runs whose test is known
//	Shared               computes ahead of tests what the body and      GCC, nothing acts, the body goes on with that    again
//	                     others need (-fcode-hoisting)                  behind one side, and others need it behind
//	                                                                    another; a run whose rest one side alone needs
//	TurnsOn              shares a load of the body's loop with the      GCC, the body's branch closes the loop, nothing  perhaps
//	                     caller                                         of others acts; a caller's loop without a test
//	Unframes             puts a body's rest behind the frame's end      GCC, the stack pointer changes, and nothing of   not looked at
//	                                                                    the caller's is behind; a body that is that rest
//
// To act is to call, or to write memory that others may see.
package motion

import "github.com/bpfprologue/bpfprologue/internal/body"

// Rules are the rules for the bodies in the code of one function. They are not for concurrent use.
type Rules struct {
	*body.Code

	firstRows    []int32 // see declaredRows, which are known if
	declaredRead bool
	bares        []bool  // see unmarked; nil before
	ended        []int32 // see endedIn; nil before

	lent     map[int32]int32 // where the pieces end that these instructions are in; see IsLent, which are known if
	lentRead bool
}

// Of returns the rules for the bodies in some code.
func Of(c *body.Code) Rules { return Rules{Code: c} }
