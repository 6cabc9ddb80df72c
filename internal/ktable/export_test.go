package ktable

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Replaced is the table of alternatives.
var Replaced = replaced

// Next returns a function that decodes the image's instructions.
func (m *Marks) Next() func(addr uint64) (insn.Insn, bool) { return m.reader().next }

// Warns returns the traps after which execution continues.
func (t *Tables) Warns() []uint64 { return t.warns }

// Near calls visit for each entry of a table that has two addresses, with where each of them is
// stored and what it is.
func (m *Marks) Near(l *Form, visit func(at, to uint64)) error {
	table, err := m.read(l)
	if err != nil {
		return err
	}
	if table == nil {
		return fmt.Errorf("there is no %s", l.from)
	}
	table.each(func(e entry) {
		visit(e.addr, e.near(0))
		visit(e.addr+4, e.near(4))
	})
	return nil
}

// WithTwo are the tables of code whose entries have relocations at two addresses.
var WithTwo = []*Form{Jumps, StaticCalls, Bugs, replaced}
