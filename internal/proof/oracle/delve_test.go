package oracle_test

import (
	"fmt"
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/proof/agree"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
)

// A fault that delve has fixed must be removed from the table, or it would hide others.
func TestDelveFaults(t *testing.T) {
	for _, c := range []struct {
		what string
		expr []byte
		want string // of ours
		have string // of delve's; "": it panics or refuses
	}{
		{"DW_OP_mod is signed", []byte{0x09, 0xf9, 0x35, 0x1d, 0x9f}, "value 4", "value -2"},
		{"a division by zero panics", []byte{0x31, 0x30, 0x1b, 0x9f}, "fault: division by zero", ""},
		{"DW_OP_plus_uconst on an empty stack panics", []byte{0x23, 1}, "invalid expression: the stack is not that deep", ""},
		{"DW_OP_deref_size reads 2, 4 and 8 bytes only", []byte{0x30, 0x94, 1, 0x9f}, "value 16", ""},
		{"a piece that was optimized away is 0", []byte{0x50, 0x93, 8, 0x93, 8}, "missing", "value 0"},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := agree.State{Seed: 1, Arch: arch.ByName("amd64")}
			m := oracle.Machine{Reg: s.Reg, Mem: s.Mem}
			show := func(r oracle.Result) string {
				switch r.Kind {
				case oracle.InPieces:
					r = r.Pieces[len(r.Pieces)-1].Result
					if r.Kind == oracle.IsMissing {
						return "missing"
					}
				}
				return fmt.Sprintf("value %d", int64(r.Value))
			}
			res, err := m.Eval(c.expr)
			got := show(res)
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("ours: %s, want %s", got, c.want)
			}
			d, known, err := s.Delve(c.expr, 0, 0)
			if c.have == "" {
				if known {
					t.Errorf("delve no longer refuses: %v, %v", d, err)
				}
				return
			}
			if err != nil || show(d) != c.have {
				t.Errorf("delve: %s, %v; had: %s", show(d), err, c.have)
			}
		})
	}
}
