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
	u.rowsMu.Lock()
	rows := t.rows
	u.rowsMu.Unlock()
	if rows != nil {
		return positionsOf(rows, all), nil
	}
	p := u.runLines(t)
	last, first, none := uint64(0), uint64(0), true // the addresses of the rows before the row's address and at it
	for p.next() {
		r := &p.row
		if none || first != r.Addr {
			last, first, none = first, r.Addr, false
		}
		// As compareRows has it. What a sequence has at its end is dropped (see EachCodeRow), and here the end takes its place.
		if r.Addr < last || r.Addr == last && r.End {
			if rows, err = u.Rows(); err != nil {
				return nil, err
			}
			return positionsOf(rows, all[:0]), nil
		}
		all = addPosition(all, r)
		if r.End {
			last, none = r.Addr, true
		}
	}
	return all, p.err
}

// positionsOf adds those of rows.
func positionsOf(rows []Row, all []Position) []Position {
	for i := range rows {
		all = addPosition(all, &rows[i])
	}
	return all
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
