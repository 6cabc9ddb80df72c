package dw

import (
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// CFARules answers what Data.CFA does. It remembers the description that it was asked about last: neighbours are in one, whose
// instructions are run once. The zero value is ready to use, by one goroutine.
type CFARules struct {
	table *frameTable
	next  int // the number of the entry behind that of the description
	f     FDE
	known []cfaFrom
	whole bool // known has all
}

// cfaFrom is a rule, and the address from which it holds.
type cfaFrom struct {
	addr uint64
	rule CFARule
}

// At returns the rule for the canonical frame address at a link-time address. ok is false if no frame description covers it.
func (c *CFARules) At(d *Data, addr uint64) (rule CFARule, ok bool, err error) {
	t := d.frameTable()
	next := t.after(addr)
	if c.table != t || c.next != next || addr >= c.f.hi {
		if c.table = nil; next == 0 || t.err != nil {
			return d.CFA(addr)
		}
		f, ok := d.frameAt(t.entry(next - 1))
		if !ok || addr >= f.hi || f.cie.err != nil {
			return d.CFA(addr)
		}
		c.table, c.next, c.f = t, next, f
		c.read(d)
	}
	if !c.whole {
		rule, err = d.runFrame(&c.f, addr, nil)
	} else {
		rule = ruleAt(c.known, addr)
	}
	return rule, err == nil && rule.defined, err
}

// FrameRules are the rules for the canonical frame address in the code that one frame description is of.
type FrameRules struct {
	Code  Range
	rules []cfaFrom
}

// Rules returns the rules of the description that covers a link-time address, until c is asked for another one. ok is false if there
// is none, or not all of its rules are known.
func (c *CFARules) Rules(d *Data, addr uint64) (rules FrameRules, ok bool, err error) {
	if _, ok, err = c.At(d, addr); err != nil || !ok || c.table == nil || !c.whole {
		return FrameRules{}, false, err
	}
	return FrameRules{c.f.Range(), c.known}, true, nil
}

// At returns the rule at a link-time address in the code.
func (f *FrameRules) At(addr uint64) CFARule { return ruleAt(f.rules, addr) }

// Unset reports whether there is no frame yet at some link-time addresses in the code: the canonical frame address has the rule with which the code begins
// at each, and another one elsewhere. So it is where LLVM makes the frame on some paths alone (shrink wrapping), behind the end of the prologue too.
func (f *FrameRules) Unset(at ...uint64) bool {
	first := f.rules[0].rule
	begins := func(r CFARule) bool { return r.Of(first.Reg) && r.Off == first.Off }
	for _, addr := range at {
		if !begins(f.At(addr)) {
			return false
		}
	}
	for i := range f.rules {
		if !begins(f.rules[i].rule) {
			return begins(first)
		}
	}
	return false
}

// ruleAt returns the last of some rules that holds from an address or one before it. The first one's address must be such.
func ruleAt(rules []cfaFrom, addr uint64) CFARule {
	return rules[sort.Search(len(rules), func(i int) bool { return rules[i].addr > addr })-1].rule
}

// First returns how far the canonical frame address is above a register, and from which address on it is known by that. ok is false if it never
// is, or not always by the same distance.
func (f *FrameRules) First(register uint64) (above int64, from uint64, ok bool) {
	for _, r := range f.rules {
		switch {
		case !r.rule.Of(register):
		case !ok:
			above, from, ok = r.rule.Off, r.addr, true
		case r.rule.Off != above:
			return 0, 0, false
		}
	}
	return above, from, ok
}

// Of reports whether the address is so far above a register.
func (r CFARule) Of(register uint64) bool { return r.defined && r.Expr == nil && r.Reg == register }

// read runs the description's instructions. It does not know all rules if they are damaged, or go back.
func (c *CFARules) read(d *Data) {
	c.known, c.whole = c.known[:0], false
	r := frameRun{d: d, f: &c.f, loc: c.f.lo, b: bin.Reader{D: c.f.cie.instr, BigEndian: d.BigEndian}}
	for r.b.P < len(r.b.D) {
		if _, err := r.step(); err != nil {
			return
		}
	}
	r.b = bin.Reader{D: c.f.instr, BigEndian: d.BigEndian}
	for r.b.P < len(r.b.D) {
		before := r.rule
		next, err := r.step()
		if err != nil || next < r.loc {
			return
		}
		if next > r.loc {
			c.known = append(c.known, cfaFrom{r.loc, before})
			r.loc = next
		}
	}
	c.known = append(c.known, cfaFrom{r.loc, r.rule})
	c.whole = true
}
