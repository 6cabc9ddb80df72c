package dw

import (
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Position is what the code from a link-time address on was compiled for. A unit has a third as many as rows, of half the size.
type Position struct {
	Addr         uint64
	Line, Column uint32
}

// Positions returns the positions of the unit's code, sorted by address, in memory that is used again.
func (u *Unit) Positions(memory []Position) (all []Position, err error) {
	t, err := u.lineTable()
	if err != nil || t.program.D == nil {
		return memory[:0], err
	}
	all = memory[:0]
	u.rowsMu.Lock()
	rows := t.rows
	u.rowsMu.Unlock()
	if rows != nil {
		return positionsOf(rows, all), nil
	}
	p := u.runLines(t)
	sequences, from := []sequence(nil), 0 // from: the first position of the last sequence
	last := uint64(0)
	for ; p.next(); last = p.row.Addr {
		r := &p.row
		if from < len(all) && r.Addr < last {
			return u.sortedPositions(all[:0])
		}
		all = addPosition(all, from, Position{r.Addr, r.Line, r.Column})
		if r.End {
			sequences = append(sequences, sequence{from, len(all), r.Addr})
			from = len(all)
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	if from < len(all) {
		sequences = append(sequences, sequence{from, len(all), last + 1}) // it has no end
	}
	n := len(all)
	if all = inOrder(all, sequences); all == nil {
		return u.sortedPositions(memory[:0])
	}
	return append(all[:0], all[n:]...), nil
}

// sortedPositions adds those of the rows, which takes longer.
func (u *Unit) sortedPositions(all []Position) ([]Position, error) {
	rows, err := u.Rows()
	return positionsOf(rows, all), err
}

// sequence is one of a line program: which positions are its, and the address where it ends.
type sequence struct {
	from, to int
	end      uint64
}

// inOrder adds to positions those of all sequences, by address. A compiler writes a sequence for each section that a unit has code in. It
// returns nil if one begins inside of another, or has no code.
func inOrder(all []Position, sequences []sequence) []Position {
	n := len(all)
	end := uint64(0)
	for _, s := range radix.Sort(sequences, func(s *sequence) uint64 { return all[s.from].Addr }) {
		if first := all[s.from].Addr; first < end || first == s.end {
			return nil
		}
		end = s.end
		for _, p := range all[s.from:s.to] {
			all = addPosition(all, n, p)
		}
	}
	return all
}

// positionsOf adds those of rows.
func positionsOf(rows []Row, all []Position) []Position {
	for i := range rows {
		r := &rows[i]
		all = addPosition(all, 0, Position{r.Addr, r.Line, r.Column})
	}
	return all
}

// addPosition adds one to those from a place on, where it takes the place of one before it at the same address.
func addPosition(all []Position, from int, p Position) []Position {
	n := len(all)
	if n > from && all[n-1].Addr == p.Addr {
		all = all[:n-1]
		n--
	}
	if n > from && all[n-1].Line == p.Line && all[n-1].Column == p.Column {
		return all
	}
	return append(all, p)
}

// PositionAt returns what an instruction at an address was compiled for, of sorted positions, or nothing.
func PositionAt(all []Position, addr uint64) (line, column uint32) {
	k := sort.Search(len(all), func(k int) bool { return all[k].Addr > addr })
	if k == 0 {
		return 0, 0
	}
	return all[k-1].Line, all[k-1].Column
}
