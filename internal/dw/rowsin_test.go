package dw

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// randomLines is a line program with sequences in any order, which may overlap.
func randomLines(rng *rand.Rand) *lines {
	var program []byte
	for range rng.IntN(5) {
		program = append(program, 0, 9, 2) // DW_LNE_set_address
		program = binary.LittleEndian.AppendUint64(program, rng.Uint64N(24))
		for range rng.IntN(9) {
			switch rng.IntN(12) {
			case 0:
				program = append(program, 1) // DW_LNS_copy
			case 1:
				program = append(program, 2, byte(rng.IntN(3))) // DW_LNS_advance_pc
			case 2:
				program = append(program, 5, byte(0x80|rng.IntN(128)), byte(rng.IntN(2))) // DW_LNS_set_column
			case 3:
				program = append(program, 5, byte(rng.IntN(128)))
			case 4:
				program = append(program, 6) // DW_LNS_negate_stmt
			case 5:
				program = append(program, 10) // DW_LNS_set_prologue_end
			default:
				program = append(program, byte(13+rng.IntN(14*3))) // up to two bytes on, -1 to 12 lines
			}
		}
		if rng.IntN(8) > 0 {
			program = append(program, 2, byte(rng.IntN(3)), 0, 1, 1) // DW_LNE_end_sequence
		}
	}
	return &lines{LineTable: LineTable{program: bin.Reader{D: program}, minInst: 1, maxOps: 1, lineBase: -1, lineRange: 14, opcodeBase: 13, opLengths: make([]byte, 12)}}
}

// TestRowsIn: the rows in a range are those of all rows, whether the range was foreseen, one of few that were not, or one of many.
func TestRowsIn(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	some := 0
	for range 5000 {
		u := new(Unit)
		table := randomLines(rng)
		u.lines.Store(&lines{LineTable: table.LineTable})
		all, err := u.Rows()
		if err != nil {
			t.Fatal(err)
		}
		all = slices.Clone(all)
		u.lines.Store(table)
		anywhere := func() Range {
			lo := rng.Uint64N(30)
			return Range{lo, lo + rng.Uint64N(12)}
		}
		wanted := []Range{anywhere(), anywhere()}
		if err := u.WantRows(wanted[:rng.IntN(3)]); err != nil {
			t.Fatal(err)
		}
		asked := slices.Clone(wanted)
		for range rng.IntN(4) {
			asked = append(asked, anywhere())
		}
		for _, r := range asked {
			rows, err := u.RowsIn(r)
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) < len(all) {
				some++
			}
			in := func(rows []Row) []Row {
				return slices.DeleteFunc(slices.Clone(rows), func(x Row) bool { return x.Addr < r.Lo || x.Addr >= r.Hi })
			}
			if got, want := in(rows), in(all); !slices.Equal(got, want) {
				t.Fatalf("in %#x to %#x: %v, want %v, of %v", r.Lo, r.Hi, got, want, all)
			}
		}
	}
	if some == 0 {
		t.Error("all rows were kept each time")
	}
}
