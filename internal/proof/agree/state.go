package agree

import (
	"encoding/binary"
	"reflect"
	"slices"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/proof/exprtest"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
	"github.com/bpfprologue/bpfprologue/loc"
)

// State is a machine's state, derived from a seed: every register and every byte of memory
// has a fixed value.
type State struct {
	Seed uint64
	Arch *arch.Arch
	// Small is not 0 for registers with so many bits, and bytes with four: arithmetic of 32 bits and of 64 gives the same of a few of them.
	Small int
}

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Reg returns a register.
func (s State) Reg(n uint64) (uint64, bool) {
	if r := s.Arch.Register(n); r == nil || r.Offset < 0 {
		return 0, false
	}
	v := mix(s.Seed + n*0x9e3779b97f4a7c15)
	if v&3 == 0 {
		v >>= 56 // small numbers find other faults than large ones
	}
	if s.Small > 0 {
		v &= 1<<s.Small - 1
	}
	return s.short(v), true
}

// short reduces a number to the size of a register.
func (s State) short(v uint64) uint64 { return oracle.Extend(v, s.Arch.WordSize, false) }

// Mem reads memory.
func (s State) Mem(addr uint64, p []byte) bool {
	for i := range p {
		if p[i] = byte(mix(s.Seed^mix(s.short(addr+uint64(i)))) >> 24); s.Small > 0 {
			p[i] &= 15 // of whatever byte of a number
		}
	}
	return true
}

func (s State) bias() uint64 { return s.Seed << 21 & 0x3fe00000 }

// Register, Address and Load make the state an exprtest.Machine.

// Register returns a register.
func (s State) Register(n uint64) (uint64, bool) { return s.Reg(n) }

// Address returns where an address of the image is.
func (s State) Address(addr uint64) uint64 { return s.short(addr + s.bias()) }

// Load reads a number from memory.
func (s State) Load(addr uint64, size int) (v uint64, ok bool) {
	b := make([]byte, size)
	ok = s.Mem(addr, b)
	return s.number(b), ok
}

// number returns the number that bytes in memory are.
func (s State) number(b []byte) uint64 {
	var d [8]byte
	if s.Arch.BigEndian {
		copy(d[8-len(b):], b)
		return binary.BigEndian.Uint64(d[:])
	}
	copy(d[:], b)
	return binary.LittleEndian.Uint64(d[:])
}

// result computes a symbolic location. ok is false for a fault.
func (s State) result(l *loc.Location) (res oracle.Result, ok bool) {
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
	if l.Kind == loc.KindValue && l.Size != 0 {
		res.Value, res.Width = oracle.Extend(v, int(l.Size), false), int(l.Size)
	}
	switch l.Kind {
	case loc.KindRegister:
		if l.Expr.Op != ops.Reg {
			return res, false
		}
		res.Kind, res.Reg = oracle.InRegister, l.Expr.K
	case loc.KindMemory:
		res.Kind, res.Value = oracle.InMemory, s.short(v)
	}
	return res, ok
}

// shorten replaces bytes that fit into a number by the number, as dwarfloc does.
func (s State) shorten(r oracle.Result) oracle.Result {
	if n := len(r.Bytes); r.Kind == oracle.IsBytes && n > 0 && n <= 8 {
		return oracle.Result{Kind: oracle.IsValue, Value: s.number(r.Bytes)}
	}
	r.Pieces = slices.Clone(r.Pieces)
	for i := range r.Pieces {
		r.Pieces[i].Result = s.shorten(r.Pieces[i].Result)
	}
	return r
}

// same reports whether two results are equal. A number of an expression has all of its bits, and what is
// computed has those of an address: only those that both have are compared.
func (s State) same(dwarflocs, others oracle.Result) bool {
	return reflect.DeepEqual(s.fold(dwarflocs, others), others)
}

func (s State) fold(a, b oracle.Result) oracle.Result {
	if w := max(a.Width, b.Width); a.Kind == oracle.IsValue && b.Kind == oracle.IsValue && w != 0 && oracle.Extend(a.Value^b.Value, w, false) == 0 {
		a.Value, a.Width = b.Value, b.Width
	}
	if len(a.Pieces) != len(b.Pieces) {
		return a
	}
	a.Pieces = slices.Clone(a.Pieces)
	for i := range a.Pieces {
		a.Pieces[i].Result = s.fold(a.Pieces[i].Result, b.Pieces[i].Result)
	}
	return a
}
