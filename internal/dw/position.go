package dw

import "sort"

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
	sorted, last := true, uint64(0)
	err = u.EachCodeRow(t, func(r *Row) {
		sorted = sorted && (last < r.Addr || last == r.Addr && !r.End) // as compareRows has it
		last = r.Addr
		all = addPosition(all, r)
	})
	if err != nil || sorted {
		return all, err
	}
	rows, err := u.Rows()
	all = all[:0]
	for i := range rows {
		all = addPosition(all, &rows[i])
	}
	return all, err
}

// addPosition adds that of a row, which takes the place of a row before it at the same address.
func addPosition(all []Position, r *Row) []Position {
	p := Position{r.Addr, r.Line, r.Column}
	n := len(all)
	if n > 0 && all[n-1].Addr == p.Addr {
		all = all[:n-1]
		n--
	}
	if n > 0 && all[n-1].Line == p.Line && all[n-1].Column == p.Column {
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
