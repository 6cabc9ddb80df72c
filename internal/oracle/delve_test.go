package oracle_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/oracle"
)

// delve evaluates an expression with delve's stack machine. known is false if delve does not
// support it.
func (s state) delve(expr []byte, frameBase, cfa uint64) (res oracle.Result, known bool, err error) {
	defer func() {
		if e := recover(); e != nil { // it does not check for divisions by zero
			known = false
		}
	}()
	regs := make([]*op.DwarfRegister, lastGeneral+1)
	for n := range regs {
		v, _ := s.reg(uint64(n))
		regs[n] = op.DwarfRegisterFromUint64(v)
	}
	r := op.NewDwarfRegisters(s.bias(), regs, binary.LittleEndian, 16, 7, 6, 0)
	r.CFA, r.FrameBase = int64(cfa), int64(frameBase)
	addr, pieces, err := op.ExecuteStackProgram(*r, expr, 8, func(p []byte, addr uint64) (int, error) {
		s.mem(addr, p)
		return len(p), nil
	})
	switch {
	case err != nil && (strings.Contains(err.Error(), "invalid instruction") || strings.Contains(err.Error(), "not supported")):
		return res, false, nil
	case err != nil:
		return res, true, err
	case pieces == nil:
		return oracle.Result{Kind: oracle.InMemory, Value: uint64(addr)}, true, nil
	}
	part := func(p op.Piece) oracle.Result {
		switch {
		case p.Kind == op.AddrPiece:
			return oracle.Result{Kind: oracle.InMemory, Value: p.Val}
		case p.Kind == op.RegPiece:
			v, _ := s.reg(p.Val)
			return oracle.Result{Kind: oracle.InRegister, Reg: p.Val, Value: v}
		case p.Bytes != nil:
			return oracle.Result{Kind: oracle.IsBytes, Bytes: p.Bytes}
		}
		return oracle.Result{Kind: oracle.IsValue, Value: p.Val}
	}
	if len(pieces) == 1 && (pieces[0].Size == 0 || pieces[0].Bytes != nil && len(pieces[0].Bytes) == pieces[0].Size) {
		return part(pieces[0]), true, nil
	}
	res.Kind = oracle.InPieces
	for _, p := range pieces {
		res.Pieces = append(res.Pieces, oracle.Piece{Result: part(p), Bits: 8 * uint64(p.Size)})
	}
	return res, true, nil
}

// delveKnown reports whether a difference is one of delve's known faults: see
// TestDelveFaults.
func delveKnown(ours, delves oracle.Result, ops map[byte]bool) bool {
	if ops[0x1d] { // mod
		return true
	}
	if ours.Kind != oracle.InPieces || len(ours.Pieces) != len(delves.Pieces) {
		return false
	}
	for i, p := range ours.Pieces {
		d := delves.Pieces[i]
		if p.Kind == oracle.IsMissing && d.Kind == oracle.IsValue && d.Value == 0 {
			continue
		}
		if fmt.Sprint(p) != fmt.Sprint(d) {
			return false
		}
	}
	return true
}

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
			s := state{1}
			m := oracle.Machine{Reg: s.reg, Mem: s.mem}
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
			d, known, err := s.delve(c.expr, 0, 0)
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
