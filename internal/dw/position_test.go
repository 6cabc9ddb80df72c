package dw

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPositions: a position is that of the last row at or before an address, whatever order a line program has.
func TestPositions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var rows []Row
		for range rng.IntN(12) {
			rows = append(rows, Row{Addr: rng.Uint64N(8), Line: rng.Uint32N(3), Column: rng.Uint32N(2), End: rng.IntN(4) == 0})
		}
		sortRows(rows)
		all := positionsOf(rows, nil)
		for addr := range uint64(9) {
			var want Row
			if r := RowAt(rows, addr); r != nil {
				want = *r
			}
			if line, column := PositionAt(all, addr); line != want.Line || column != want.Column {
				t.Fatalf("%#x is at %d:%d, want %d:%d: %v", addr, line, column, want.Line, want.Column, rows)
			}
		}
	}
}

// TestSequences: positions are those of the sorted rows, in whatever order a program has its sequences, if they overlap too.
func TestSequences(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var memory []Position
	for range 5000 {
		u := new(Unit)
		program := randomLines(rng)
		table := func() *lines { return &lines{LineTable: program.LineTable} }
		u.lines.Store(table())
		got, err := u.Positions(memory)
		if err != nil {
			t.Fatal(err)
		}
		memory = got
		u.lines.Store(table())
		rows, err := u.Rows()
		if err != nil {
			t.Fatal(err)
		}
		if want := positionsOf(rows, nil); !slices.Equal(got, want) {
			t.Fatalf("positions %v, want %v: %v: % x", got, want, rows, program.program.D)
		}
	}
}
