package producer_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/producer"
)

// TestMarked: what GCC 12 writes where a cold part begins, without and with markers of statements. Without, the first rows are not of statements because the row at the end of the
// section's function before was not.
func TestMarked(t *testing.T) {
	row := func(addr uint64, line, view uint32, statement bool) dw.Row {
		return dw.Row{Addr: addr, File: 1, Line: line, View: view, Stmt: statement}
	}
	without := []dw.Row{row(0x8519, 4384, 0, false), row(0x8519, 3776, 1, false), row(0x8519, 91, 2, true), row(0x8534, 91, 0, false), row(0x8586, 4344, 1, true), row(0x8593, 4344, 0, false)}
	if producer.Marked(without) {
		t.Error("rows without markers have some")
	}
	if with := append(without, row(0x8598, 3068, 0, false)); !producer.Marked(with) {
		t.Error("rows with markers have none")
	}
}
