package judge_test

import (
	"errors"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/judge"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
)

// known is evidence that a test gives. Each answer that was asked for is noted.
type known struct {
	statements                                                      int
	begun, passedOn, midway, looped, overtaken, made                bool
	passedBefore, unplaced, ran, another, stepped                   bool
	joined, kept, alone, turned, elsewhere, hoisted, across, steady bool
	chosen, returned, narrower, spent                               bool
	outside, only, several, keptOutside, cut, ofNumber              bool
	madeInside, madeBehind, passedNumber, movedOut                  bool
	copied, passedOther, onePlace                                   bool
	assigned                                                        judge.Assignment
	err                                                             error
}

func (k known) Statements() (int, error)            { return k.statements, k.err }
func (k known) Begun() (bool, error)                { return k.begun, k.err }
func (k known) PassedOn() (bool, error)             { return k.passedOn, k.err }
func (k known) PassedBefore() (bool, error)         { return k.passedBefore, k.err }
func (k known) Narrower() (bool, error)             { return k.narrower, k.err }
func (k known) Cut() (bool, error)                  { return k.cut, k.err }
func (k known) Placed() (bool, error)               { return !k.unplaced, k.err }
func (k known) Ran() (bool, error)                  { return k.ran, k.err }
func (k known) ForAnother() (bool, error)           { return k.another, k.err }
func (k known) Midway() (bool, error)               { return k.midway, k.err }
func (k known) Assigned() (judge.Assignment, error) { return k.assigned, k.err }
func (k known) Stepped() (bool, error)              { return k.stepped, k.err }
func (k known) Made() (bool, error)                 { return k.made, k.err }
func (k known) Outside(only bool) (bool, error)     { return k.outside && (k.only || !only), k.err }
func (k known) KeptOutside() (bool, error)          { return k.keptOutside, k.err }
func (k known) MadeInside() (bool, error)           { return k.madeInside, k.err }
func (k known) Several() (bool, error)              { return k.several, k.err }
func (k known) Spent() (bool, error)                { return k.spent, k.err }
func (k known) Looped() (bool, error)               { return k.looped, k.err }
func (k known) Overtaken() (bool, error)            { return k.overtaken, k.err }
func (k known) Hoisted() (bool, error)              { return k.hoisted, k.err }
func (k known) ChosenSince() (bool, error)          { return k.chosen, k.err }
func (k known) PassedOther() (bool, error)          { return k.passedOther, k.err }
func (k known) Kept() (bool, error)                 { return k.kept, k.err }
func (k known) Alone() (bool, error)                { return k.alone, k.err }
func (k known) Elsewhere() (bool, error)            { return k.elsewhere, k.err }
func (k known) MadeBehind() (bool, error)           { return k.madeBehind, k.err }
func (k known) Turned() (bool, error)               { return k.turned, k.err }
func (k known) Over() (bool, error)                 { return k.across, k.err }
func (k known) Steady() (bool, error)               { return k.steady, k.err }
func (k known) PassedNumber() (bool, error)         { return k.passedNumber, k.err }
func (k known) Returned() (bool, error)             { return k.returned, k.err }
func (k known) Joined() (bool, error)               { return k.joined, k.err }
func (k known) OfNumber() (bool, error)             { return k.ofNumber, k.err }
func (k known) Copied() (bool, error)               { return k.copied, k.err }
func (k known) MovedOut() (bool, error)             { return k.movedOut, k.err }
func (k known) OnePlace() (bool, error)             { return k.onePlace, k.err }

// TestRows: each row has a candidate that it decides, and no row is without one.
func TestRows(t *testing.T) {
	type candidate = judge.Candidate
	gcc := candidate{Parameter: true, Note: judge.Here, Compiler: judge.Marks}
	views := gcc
	views.Views = true
	unmarked := gcc
	unmarked.Compiler = judge.Unmarked
	llvm := gcc
	llvm.Compiler = judge.LLVM
	with := func(c candidate, f func(c *candidate)) candidate { f(&c); return c }
	computed := func(c candidate) candidate { c.Place = judge.Computed; return c }
	decided := make(map[string]bool)
	for _, tt := range []struct {
		row   string // "" for none
		doubt bool
		c     candidate
		k     known
	}{
		{"inside", false, with(computed(llvm), func(c *candidate) { c.Parameter = false }), known{}},
		{"stepped", true, with(computed(views), func(c *candidate) { c.Constant = true }), known{stepped: true}},
		{"narrower", true, llvm, known{narrower: true, passedOn: true, passedBefore: true}},
		{"cut", true, llvm, known{cut: true, passedOn: true, passedBefore: true}},
		{"", false, with(llvm, func(c *candidate) { c.Entry = true }), known{cut: true}},
		{"views", false, views, known{cut: true}},
		{"counted", true, with(computed(llvm), func(c *candidate) { c.Counted = true }), known{kept: true}},
		{"counted down", true, with(computed(views), func(c *candidate) { c.Counted = true }), known{}},
		{"const", false, with(computed(llvm), func(c *candidate) { c.Constant, c.Pointer = true, true }), known{}},
		{"const, by GCC", false, with(computed(views), func(c *candidate) { c.Constant = true }), known{}},
		{"const, by GCC", false, with(views, func(c *candidate) { c.Constant = true }), known{midway: true, assigned: judge.Inside, chosen: true}},
		{"overtaken", true, with(views, func(c *candidate) { c.Constant = true }), known{overtaken: true}},
		{"hoisted", true, with(views, func(c *candidate) { c.Constant = true }), known{hoisted: true}},
		{"const", false, with(llvm, func(c *candidate) { c.Constant, c.Place = true, judge.Fixed }), known{}},
		{"computed", true, with(computed(llvm), func(c *candidate) { c.Constant = true }), known{}},
		{"made", true, with(llvm, func(c *candidate) { c.Constant = true }), known{made: true}},
		{"const", false, with(llvm, func(c *candidate) { c.Constant = true }), known{made: true, spent: true}},
		{"made", true, llvm, known{made: true, spent: true}},
		{"made inside", true, llvm, known{madeInside: true, passedOn: true}},
		{"first", false, with(computed(llvm), func(c *candidate) { c.Note = judge.First }), known{assigned: judge.Inside}},
		{"views: at an entry", false, with(views, func(c *candidate) { c.Entry, c.Changed = true, true }), known{}},
		{"overtaken", true, views, known{overtaken: true}},
		{"views: the only note", true, with(views, func(c *candidate) { c.Note = judge.Whole }), known{alone: true}},
		{"views", false, with(views, func(c *candidate) { c.Note = judge.Whole }), known{elsewhere: true}},
		{"views: elsewhere", true, with(views, func(c *candidate) { c.Note, c.Place = judge.Whole, judge.Fixed }), known{elsewhere: true}},
		{"views", false, with(views, func(c *candidate) { c.Note, c.Place = judge.Whole, judge.Fixed }), known{}},
		{"joined", true, with(views, func(c *candidate) { c.Place = judge.Fixed }), known{joined: true}},
		{"made behind", true, with(gcc, func(c *candidate) { c.Note, c.Place = judge.Whole, judge.Fixed }), known{madeBehind: true}},
		{"no truth value", true, with(views, func(c *candidate) { c.Place, c.Entry, c.Impossible = judge.Fixed, true, true }), known{}},
		{"moved out", true, views, known{movedOut: true, passedOn: true}},
		{"of a number", true, with(views, func(c *candidate) { c.Place = judge.Fixed }), known{ofNumber: true}},
		{"views", false, views, known{ofNumber: true}},
		{"copied", true, with(views, func(c *candidate) { c.Note = judge.Before }), known{copied: true}},
		{"turned", true, with(views, func(c *candidate) { c.Place = judge.Fixed }), known{turned: true}},
		{"views: over a statement", true, with(views, func(c *candidate) { c.Note = judge.Before }), known{across: true}},
		{"views", false, views, known{joined: true}},
		{"hoisted", true, with(views, func(c *candidate) { c.Note = judge.Before }), known{hoisted: true}},
		{"views", false, computed(views), known{hoisted: true}},
		{"held by the caller", false, llvm, known{hoisted: true, passedOn: true}},
		{"chosen", true, computed(views), known{chosen: true}},
		{"held by the caller", false, llvm, known{chosen: true, passedOn: true}},
		{"overtaken", true, unmarked, known{overtaken: true}},
		{"before, unmarked", false, with(unmarked, func(c *candidate) { c.Note = judge.Before }), known{overtaken: true}},
		{"views", false, with(views, func(c *candidate) { c.Note = judge.Before }), known{overtaken: true}},
		{"views", false, views, known{midway: true, assigned: judge.Between, kept: true}},
		{"midway", true, views, known{midway: true, assigned: judge.Between}},
		{"midway", true, llvm, known{midway: true, assigned: judge.Inside}},
		{"views", false, views, known{midway: true}},
		{"views", false, views, known{midway: true, passedOn: true, assigned: judge.Inside}},
		{"views: the caller's", false, with(views, func(c *candidate) { c.Changed = true }), known{passedOn: true}},
		{"views: the caller's", false, with(views, func(c *candidate) { c.Note = judge.Later }), known{passedOn: true, begun: true}},
		{"views: the caller's", false, with(computed(views), func(c *candidate) { c.Note = judge.Later }), known{passedOn: true, begun: true}},
		{"views: after a statement", true, with(computed(views), func(c *candidate) { c.Note = judge.Later }), known{passedOn: true, begun: true, returned: true}},
		{"views: after a statement", true, with(views, func(c *candidate) { c.Note, c.Place = judge.Later, judge.Fixed }), known{passedOn: true, begun: true}},
		{"views: changed", true, with(views, func(c *candidate) { c.Changed = true }), known{}},
		{"views: changed", true, with(views, func(c *candidate) { c.Changed, c.Place = true, judge.Fixed }), known{passedOn: true}},
		{"views", false, with(views, func(c *candidate) { c.Note = judge.Later }), known{}},
		{"views", false, computed(views), known{statements: 2}},
		{"before", false, with(computed(gcc), func(c *candidate) { c.Note = judge.Before }), known{statements: 2}},
		{"statements", true, with(computed(gcc), func(c *candidate) { c.Note = judge.Before }), known{statements: 2, ran: true}},
		{"before", false, with(gcc, func(c *candidate) { c.Note = judge.Before }), known{statements: 2, ran: true}},
		{"removed", true, with(views, func(c *candidate) {
			c.Entry, c.Clone, c.Removed, c.Note, c.Place = true, true, true, judge.Whole, judge.Fixed
		}), known{}},
		{"removed", true, with(views, func(c *candidate) { c.Entry, c.Clone, c.Note, c.Place = true, true, judge.Whole, judge.Fixed }), known{assigned: judge.Between}},
		{"removed", true, with(views, func(c *candidate) { c.Entry, c.Clone, c.Note, c.Place = true, true, judge.Whole, judge.Fixed }), known{passedOther: true}},
		{"removed", true, with(unmarked, func(c *candidate) { c.Entry, c.Clone, c.Removed, c.Note = true, true, true, judge.Whole }), known{}},
		{"views: at an entry", false, with(views, func(c *candidate) { c.Entry, c.Clone, c.Note, c.Place = true, true, judge.Whole, judge.Fixed }), known{}},
		{"views: after a statement", true, with(views, func(c *candidate) { c.Entry, c.Clone, c.Note, c.Place = true, true, judge.Later, judge.Computed }), known{begun: true}},
		{"late, unmarked", true, with(unmarked, func(c *candidate) { c.Entry, c.Clone, c.Note = true, true, judge.Later }), known{another: true}},
		{"at an entry", false, with(unmarked, func(c *candidate) { c.Entry, c.Clone, c.Note = true, true, judge.Later }), known{}},
		{"at an entry", false, with(unmarked, func(c *candidate) { c.Entry = true }), known{assigned: judge.Between}},
		{"one statement", false, computed(gcc), known{statements: 1}},
		{"statements", true, computed(gcc), known{statements: 2}},
		{"statements", true, gcc, known{statements: 2}},
		{"steady", false, with(gcc, func(c *candidate) { c.Place = judge.Fixed }), known{statements: 2, steady: true}},
		{"differs", true, with(unmarked, func(c *candidate) { c.Place = judge.Fixed }), known{passedNumber: true, assigned: judge.Inside}},
		{"passed number", false, with(unmarked, func(c *candidate) { c.Place = judge.Fixed }), known{passedNumber: true}},
		{"passed number", false, with(llvm, func(c *candidate) { c.Place, c.Note = judge.Fixed, judge.Whole }), known{passedNumber: true}},
		{"fixed", true, with(unmarked, func(c *candidate) { c.Place, c.Note = judge.Fixed, judge.Whole }), known{passedNumber: true}},
		{"kept", false, gcc, known{statements: 2, kept: true}},
		{"the caller's", false, gcc, known{statements: 2, passedOn: true}},
		{"statements", true, with(gcc, func(c *candidate) { c.Place = judge.Fixed }), known{statements: 2, passedOn: true}},
		{"looped", true, llvm, known{looped: true, passedOn: true}},
		{"before, unmarked", false, with(unmarked, func(c *candidate) { c.Note = judge.Before }), known{}},
		{"another's", true, with(unmarked, func(c *candidate) { c.Note = judge.Before }), known{another: true}},
		{"kept", false, with(unmarked, func(c *candidate) { c.Note = judge.Before }), known{another: true, kept: true}},
		{"computed", true, with(computed(unmarked), func(c *candidate) { c.Note = judge.Before }), known{}},
		{"looped", true, with(unmarked, func(c *candidate) { c.Note = judge.Before }), known{looped: true}},
		{"late, unmarked", true, with(unmarked, func(c *candidate) { c.Note = judge.Later }), known{}},
		{"held by the caller", false, llvm, known{assigned: judge.Inside, passedOn: true}},
		{"made", true, llvm, known{made: true}},
		{"made", true, llvm, known{made: true, passedOn: true}},
		{"held by the caller", false, llvm, known{made: true, passedOn: true, passedBefore: true}},
		{"made", true, llvm, known{made: true, outside: true, passedOn: true}},
		{"made", true, llvm, known{made: true, passedOn: true, several: true}},
		{"made", true, llvm, known{made: true, outside: true, passedOn: true, several: true, assigned: judge.Between}},
		{"held by the caller", false, llvm, known{made: true, outside: true, passedOn: true, several: true}},
		{"made", true, llvm, known{made: true, outside: true, keptOutside: true}},
		{"", false, llvm, known{made: true, outside: true, keptOutside: true, several: true}},
		{"made", true, llvm, known{made: true, outside: true, spent: true}},
		{"made", true, llvm, known{made: true, outside: true, only: true}},
		{"", false, llvm, known{made: true, outside: true, spent: true, only: true}},
		{"another's", true, llvm, known{another: true, passedOn: true}},
		{"another's", true, with(llvm, func(c *candidate) { c.Entry = true }), known{another: true}},
		{"another's", true, gcc, known{statements: 2, another: true, passedOn: true}},
		{"kept", false, with(computed(llvm), func(c *candidate) { c.Pointer = true }), known{another: true, kept: true}},
		{"computed", true, computed(llvm), known{another: true, kept: true}},
		{"unplaced", true, llvm, known{unplaced: true, passedOn: true}},
		{"const", false, with(llvm, func(c *candidate) { c.Constant = true }), known{unplaced: true}},
		{"assigned", true, with(llvm, func(c *candidate) { c.Place = judge.Fixed }), known{assigned: judge.Inside}},
		{"", false, llvm, known{assigned: judge.Inside}},
		{"one place", true, llvm, known{onePlace: true, passedOn: true}},
		{"one place", true, gcc, known{onePlace: true, statements: 1}},
		{"views", false, views, known{onePlace: true}},
		{"assigned", true, computed(llvm), known{assigned: judge.Inside, passedOn: true}},
		{"global", true, with(llvm, func(c *candidate) { c.Place = judge.Global }), known{}},
		{"the caller's", false, with(computed(llvm), func(c *candidate) { c.Pointer = true }), known{passedOn: true}},
		{"computed", true, computed(llvm), known{passedOn: true}},
		{"computed", true, with(computed(llvm), func(c *candidate) { c.Note = judge.Whole }), known{assigned: judge.Inside}},
		{"computed", true, computed(llvm), known{}},
		{"computed", true, computed(unmarked), known{}},
		{"differs", true, unmarked, known{assigned: judge.Between, made: true}},
		{"", false, llvm, known{assigned: judge.Between}},
		{"statements", true, with(computed(gcc), func(c *candidate) { c.Entry = true }), known{statements: 2}},
		{"one statement", false, with(gcc, func(c *candidate) { c.Entry, c.Place = true, judge.Fixed }), known{statements: 1}},
		{"fixed", true, with(llvm, func(c *candidate) { c.Entry, c.Place = true, judge.Fixed }), known{}},
		{"fixed", true, with(llvm, func(c *candidate) { c.Place = judge.Fixed }), known{}},
		{"kept", false, with(llvm, func(c *candidate) { c.Place = judge.Fixed }), known{kept: true}},
		{"kept", false, computed(unmarked), known{kept: true}},
		{"made", true, llvm, known{kept: true, made: true}},
		{"fixed", true, with(unmarked, func(c *candidate) { c.Place = judge.Fixed }), known{}},
		{"fixed", true, with(llvm, func(c *candidate) { c.Place = judge.Fixed }), known{passedOn: true}},
		{"", false, llvm, known{}},
		{"", false, with(llvm, func(c *candidate) { c.Note = judge.Whole }), known{assigned: judge.Between}},
	} {
		doubt, row, err := judge.Judge(&tt.c, tt.k)
		name := ""
		if row != nil {
			name = row.Name
		}
		if err != nil || name != tt.row || (doubt != reasons.None) != tt.doubt {
			t.Errorf("%+v with %+v: %q, %v, %v; want %q, doubtful %v", tt.c, tt.k, name, doubt, err, tt.row, tt.doubt)
		}
		decided[name] = true
		if _, silent, err := judge.Judge(&tt.c, judge.Silent{}); tt.k == (known{}) && (silent != row || err != nil) {
			t.Errorf("%+v without evidence: %v, %v; want %q", tt.c, silent, err, tt.row)
		}
	}
	seen := make(map[string]bool)
	for _, r := range judge.Rows {
		if !decided[r.Name] || seen[r.Name] || r.Because == "" {
			t.Errorf("row %q: no candidate, or no reason, or twice", r.Name)
		}
		seen[r.Name] = true
	}
}

// TestEvidenceFails: what cannot be read is no verdict.
func TestEvidenceFails(t *testing.T) {
	damaged := errors.New("damaged")
	for _, c := range []judge.Candidate{{Parameter: true, Views: true}, {Parameter: true}, {Parameter: true, Compiler: judge.LLVM, Place: judge.Computed}} {
		if _, _, err := judge.Judge(&c, known{err: damaged}); !errors.Is(err, damaged) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
