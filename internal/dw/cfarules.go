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
		rule = c.known[sort.Search(len(c.known), func(i int) bool { return c.known[i].addr > addr })-1].rule
	}
	return rule, err == nil && rule.defined, err
}

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
