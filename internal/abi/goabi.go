package abi

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Go's conventions (cmd/compile/abi-internal.md in Go's source).

// Go assigns parameters and then results to registers and the stack.
type Go struct {
	arch         *arch.Arch
	internal     bool     // ABIInternal, which passes values in registers
	ints, floats []uint16 // registers that are left, by their DWARF numbers
	stack        int64    // bytes that are used on the stack

	// What the current value has.
	pieces  []loc.Piece
	bits    uint64 // of pieces
	vectors bool   // some pieces are in vector registers
}

// goRegisters has the registers of Go's ABIInternal by architecture: R0 to R15 on arm64, RAX,
// RBX, RCX, RDI, RSI, R8 to R11 on amd64, and as many vector registers.
var goRegisters = map[string]struct{ ints, floats []uint16 }{
	"amd64": {[]uint16{0, 3, 2, 5, 4, 8, 9, 10, 11}, sequence(17, 15)},
	"arm64": {sequence(0, 16), sequence(64, 16)},
}

func sequence(from uint16, n int) []uint16 {
	out := make([]uint16, n)
	for i := range out {
		out[i] = from + uint16(i)
	}
	return out
}

// NewGo begins with the parameters of a function. internal is set if it has Go's convention for its own functions.
func NewGo(a *arch.Arch, internal bool) *Go {
	out := &Go{arch: a, internal: internal}
	out.begin()
	return out
}

// begin makes all registers free. Before Go 1.17, and in assembler code and what it calls
// (ABI0), none is used.
func (a *Go) begin() {
	a.ints, a.floats = nil, nil
	if a.internal {
		r := goRegisters[a.arch.Name]
		a.ints, a.floats = r.ints, r.floats
	}
}

// Results begins with the results: all registers are free again, and those on the stack are
// aligned.
func (a *Go) Results() {
	a.begin()
	a.align(int64(a.arch.WordSize))
}

func (a *Go) align(n int64) {
	if n > 1 {
		a.stack = (a.stack + n - 1) / n * n
	}
}

// Place assigns the next value: all of it to registers, if there are enough, or else to
// the stack.
func (a *Go) Place(t *types.Type) (l loc.Location, r loc.Reason, err error) {
	size, err := t.ByteSize()
	if err != nil {
		return l, r, err
	}
	if f, err := t.Resolve(); err == nil && f.Kind == types.Func {
		size = int64(a.arch.WordSize) // a pointer to a closure
	}
	ints, floats := a.ints, a.floats
	a.pieces, a.bits, a.vectors = nil, 0, false
	fits, err := a.registers(t, 0, 0)
	if err != nil || size < 0 {
		return l, loc.Reason{Code: reasons.IncompleteType}, err
	}
	if fits {
		l, r := a.inRegisters(uint64(size))
		return l, r, nil
	}
	a.ints, a.floats = ints, floats
	align, err := goAlign(t, 0)
	if err != nil {
		return l, r, err
	}
	a.align(align)
	// The first argument is after the return address, which arm64 leaves room for too.
	l = loc.Location{Kind: loc.KindMemory, Rule: rule.ABI, Expr: Register(a.arch.SP, uint64(int64(a.arch.WordSize)+a.stack))}
	a.stack += size
	return l, loc.Reason{}, nil
}

// inRegisters returns the location that the pieces make. Of a structure with a number in a
// vector register the rest can still be read.
func (a *Go) inRegisters(size uint64) (l loc.Location, r loc.Reason) {
	if a.vectors {
		r.Code = reasons.VectorRegister
		if !slices.ContainsFunc(a.pieces, func(p loc.Piece) bool { return p.Loc.Kind != loc.KindNone }) {
			return l, r
		}
	}
	a.fill(8 * size)
	if len(a.pieces) == 1 && a.pieces[0].Loc.Kind == loc.KindRegister {
		l = a.pieces[0].Loc
	} else {
		l = loc.Location{Kind: loc.KindPieces, Pieces: a.pieces}
	}
	l.Rule = rule.ABI
	return l, r
}

// fill makes the pieces end at a bit: what is between two members is in no register.
func (a *Go) fill(to uint64) {
	if to > a.bits {
		a.pieces = append(a.pieces, loc.Piece{BitSize: to - a.bits})
		a.bits = to
	}
}

// registers assigns a value of a type, off bytes from the beginning of the whole.
func (a *Go) registers(t *types.Type, off uint64, depth int) (fits bool, err error) {
	r, err := t.Resolve()
	if err != nil || depth > maxDepth {
		return false, err
	}
	switch r.Kind {
	case types.Float:
		return a.vector(off, uint64(max(r.Size, 0))), nil
	case types.Complex:
		half := uint64(max(r.Size, 0)) / 2
		return a.vector(off, half) && a.vector(off+half, half), nil
	case types.Struct:
		members, err := r.Members()
		if err != nil {
			return false, err
		}
		for i := range members {
			m := &members[i]
			if fits, err := a.registers(m.Type, off+m.BitOffset/8, depth+1); err != nil || !fits {
				return false, err
			}
		}
		return true, nil
	case types.Array:
		el, n, err := r.Count()
		if err != nil || n > 1 || n < 0 {
			return false, err
		}
		if n == 0 {
			return true, nil
		}
		return a.registers(el, off, depth+1)
	case types.Func:
		return a.integer(off, uint64(a.arch.WordSize)), nil
	}
	if r.Size < 0 || r.Size > int64(a.arch.WordSize) {
		return false, nil
	}
	return a.integer(off, uint64(r.Size)), nil
}

func (a *Go) integer(off, size uint64) bool {
	if len(a.ints) == 0 {
		return false
	}
	a.add(off, size, loc.Location{Kind: loc.KindRegister, Expr: Register(a.ints[0], 0)})
	a.ints = a.ints[1:]
	return true
}

func (a *Go) vector(off, size uint64) bool {
	if len(a.floats) == 0 {
		return false
	}
	a.add(off, size, loc.Location{})
	a.pieces[len(a.pieces)-1].Reason.Code = reasons.VectorRegister
	a.floats, a.vectors = a.floats[1:], true
	return true
}

func (a *Go) add(off, size uint64, l loc.Location) {
	a.fill(8 * off)
	a.pieces = append(a.pieces, loc.Piece{BitSize: 8 * size, Loc: l})
	a.bits += 8 * size
}

// goAlign returns the alignment in bytes of a type on the stack: that of its largest scalar.
func goAlign(t *types.Type, depth int) (int64, error) {
	r, err := t.Resolve()
	if err != nil || depth > maxDepth {
		return 1, err
	}
	align := int64(1)
	switch r.Kind {
	case types.Struct:
		members, err := r.Members()
		if err != nil {
			return 1, err
		}
		for i := range members {
			n, err := goAlign(members[i].Type, depth+1)
			if err != nil {
				return 1, err
			}
			align = max(align, n)
		}
	case types.Array:
		el, _, err := r.Count()
		if err != nil {
			return 1, err
		}
		return goAlign(el, depth+1)
	case types.Complex:
		align = r.Size / 2
	default:
		align = r.Size
	}
	return max(1, min(align, 8)), nil
}
