package agree

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
)

// lastGeneral is the highest DWARF number of the registers that delve gets: others are vector registers
// on all machines, or are never named.
const lastGeneral = 127

// Delve evaluates an expression with delve's stack machine. known is false if delve does not
// support it.
func (s State) Delve(expr []byte, frameBase, cfa uint64) (res oracle.Result, known bool, err error) {
	defer func() {
		if e := recover(); e != nil { // it does not check for divisions by zero
			known = false
		}
	}()
	regs := make([]*op.DwarfRegister, lastGeneral+1)
	for n := range regs {
		if v, ok := s.Reg(uint64(n)); ok {
			regs[n] = op.DwarfRegisterFromUint64(v)
		}
	}
	r := op.NewDwarfRegisters(s.bias(), regs, binary.LittleEndian, uint64(s.Arch.PC), uint64(s.Arch.SP), framePointers[s.Arch.Name], 0)
	r.CFA, r.FrameBase = int64(cfa), int64(frameBase)
	addr, pieces, err := op.ExecuteStackProgram(*r, expr, 8, func(p []byte, addr uint64) (int, error) {
		s.Mem(addr, p)
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
			v, _ := s.Reg(p.Val)
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
	if ops[0x1d] || ops[0x2f] { // mod, and skip
		return true
	}
	if len(ours.Pieces) == 1 && delves.Kind == oracle.IsBytes && bytes.Equal(ours.Pieces[0].Bytes, delves.Bytes) {
		return true // a piece that is the whole object
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
