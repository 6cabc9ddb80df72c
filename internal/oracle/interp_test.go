package oracle_test

import (
	"encoding/binary"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/exprtest"
	"github.com/bpfprologue/bpfprologue/internal/oracle"
	"github.com/bpfprologue/bpfprologue/loc"
)

// state is a machine's state, derived from a seed: every register and every byte of memory
// has a fixed value.
type state struct{ seed uint64 }

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// lastGeneral is the highest DWARF register number of amd64 that struct pt_regs
// holds: 0 to 15 are the general registers, 16 is the return address (psABI,
// figure 3.36). From 17 to 32 are vector registers.
const (
	lastGeneral = 16
	firstVector = 17
	lastVector  = 32
)

func (s state) reg(n uint64) (uint64, bool) {
	if n > lastGeneral {
		return 0, false
	}
	v := mix(s.seed + n*0x9e3779b97f4a7c15)
	if v&3 == 0 {
		v >>= 56 // small numbers find other faults than large ones
	}
	return v, true
}

func (s state) mem(addr uint64, p []byte) bool {
	for i := range p {
		p[i] = byte(mix(s.seed^mix(addr+uint64(i))) >> 24)
	}
	return true
}

func (s state) bias() uint64 { return s.seed << 21 & 0x3fe00000 }

// Register, Address and Load make the state an exprtest.Machine.
func (s state) Register(n uint64) (uint64, bool) { return s.reg(n) }
func (s state) Address(addr uint64) uint64       { return addr + s.bias() }
func (s state) Load(addr uint64, size int) (v uint64, ok bool) {
	var b [8]byte
	ok = s.mem(addr, b[:size])
	return binary.LittleEndian.Uint64(b[:]), ok
}

// result computes a symbolic location. ok is false for a fault.
func (s state) result(l *loc.Location) (res oracle.Result, ok bool) {
	switch l.Kind {
	case loc.KindNone:
		return oracle.Result{Kind: oracle.IsMissing}, true
	case loc.KindBytes:
		return oracle.Result{Kind: oracle.IsBytes, Bytes: l.Bytes}, true
	case loc.KindImplicitPointer:
		return oracle.Result{Kind: oracle.IsImplicit, Target: l.Target, TargetOffset: l.TargetOffset}, true
	case loc.KindPieces:
		res.Kind = oracle.InPieces
		for i := range l.Pieces {
			p := &l.Pieces[i]
			part, ok := s.result(&p.Loc)
			if !ok {
				return res, false
			}
			res.Pieces = append(res.Pieces, oracle.Piece{Result: part, Bits: p.BitSize, Skip: p.BitOffset})
		}
		return res, true
	}
	v, ok := exprtest.Value(s, l.Expr)
	res = oracle.Result{Kind: oracle.IsValue, Value: v}
	switch l.Kind {
	case loc.KindRegister:
		if l.Expr.Op != loc.OpReg {
			return res, false
		}
		res.Kind, res.Reg = oracle.InRegister, l.Expr.K
	case loc.KindMemory:
		res.Kind = oracle.InMemory
	}
	return res, ok
}

// shorten replaces bytes that fit into a number by the number, as dwarfloc does.
func shorten(r oracle.Result) oracle.Result {
	if n := len(r.Bytes); r.Kind == oracle.IsBytes && n > 0 && n <= 8 {
		var v uint64
		for i, b := range r.Bytes {
			v |= uint64(b) << (8 * i)
		}
		return oracle.Result{Kind: oracle.IsValue, Value: v}
	}
	r.Pieces = slices.Clone(r.Pieces)
	for i := range r.Pieces {
		r.Pieces[i].Result = shorten(r.Pieces[i].Result)
	}
	return r
}
