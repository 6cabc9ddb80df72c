package prologue

import (
	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// Pieces, as DWARF 5 section 2.6.1.2 has them. An object's bits are numbered in
// the order of its memory: on a little-endian machine bit 0 is the least
// significant one of the first byte and so of the value, on a big-endian machine
// the most significant one. A piece's BitOffset counts the same way in memory
// and in known bytes, but from the least significant end in a register or a
// computed value, on every machine. DW_OP_piece leaves to the ABI which part of a
// register it means; all ABIs here, GCC and GDB take the low-order bytes.

// pieces puts total bits of an object together, at most 64, from bit from on.
func (l *lowering) pieces(pieces []dwarfloc.Piece, from, total uint64) (*node, error) {
	value := l.pool.constant(0)
	start := uint64(0) // of the piece, in the object
	at := uint64(0)    // bits of the value done
	for i := range pieces {
		p := &pieces[i]
		skip := min(from+at-start, p.BitSize)
		n := min(p.BitSize-skip, total-at)
		start += p.BitSize
		if n == 0 {
			if at == total {
				break
			}
			continue
		}
		if k := p.Loc.Kind; k == dwarfloc.KindNone || k == dwarfloc.KindImplicitPointer {
			return nil, refuse(dwarfloc.MissingPiece, "bits %d to %d", from+at, from+at+n-1)
		}
		off := p.BitOffset + skip
		if l.be && fromLSB(p.Loc.Kind) {
			// The first bits of a piece are its most significant ones.
			off = p.BitOffset + p.BitSize - skip - n
		}
		v, err := l.bits(&p.Loc, off, n)
		if err != nil {
			return nil, err
		}
		shift := at
		if l.be {
			shift = total - at - n
		}
		value = l.pool.binaryOp(dwarfloc.OpOr, value, l.pool.binaryOp(dwarfloc.OpShl, v, l.pool.constant(shift)))
		at += n
		l.nodes += 4
	}
	if at < total {
		return nil, refuse(dwarfloc.MissingPiece, "bits %d to %d are not described", from+at, from+total-1)
	}
	return value, nil
}

// fromLSB reports whether bits of such a location are counted from the least
// significant one.
func fromLSB(k dwarfloc.Kind) bool {
	return k == dwarfloc.KindRegister || k == dwarfloc.KindValue || k == dwarfloc.KindConstant
}

// bits takes n bits, at most 64, from bit off on of what is at a location. They
// are the low-order bits of the result, the others are 0.
func (l *lowering) bits(loc *dwarfloc.Location, off, n uint64) (*node, error) {
	var err error
	var word func(byteOff, bytes uint64) (*node, error) // some bytes, as a number
	switch loc.Kind {
	case dwarfloc.KindRegister, dwarfloc.KindValue, dwarfloc.KindConstant:
		if off > 64 || off+n > 64 {
			return nil, refuse(dwarfloc.MissingPiece, "%d bits from bit %d on of a value of 64", n, off)
		}
		v, err := l.expr(loc.Expr)
		if err != nil {
			return nil, err
		}
		return l.lowBits(l.pool.binaryOp(dwarfloc.OpShr, v, l.pool.constant(off)), n), nil
	case dwarfloc.KindMemory:
		var a *node
		if a, err = l.expr(loc.Expr); err != nil {
			return nil, err
		}
		word = func(byteOff, bytes uint64) (*node, error) {
			return l.pool.deref(l.pool.binaryOp(dwarfloc.OpAdd, a, l.pool.constant(byteOff)), int(bytes)), nil
		}
	case dwarfloc.KindBytes:
		word = func(byteOff, bytes uint64) (*node, error) {
			if end := uint64(len(loc.Bytes)); byteOff > end || bytes > end-byteOff {
				return nil, refuse(dwarfloc.MissingPiece, "only %d bytes are known", end)
			}
			var v uint64
			for i := range bytes {
				b := uint64(loc.Bytes[byteOff+i])
				if l.be {
					v = v<<8 | b
				} else {
					v |= b << (8 * i)
				}
			}
			return l.pool.constant(v), nil
		}
	default:
		return nil, refuse(dwarfloc.Unsupported, "a piece of kind %d", loc.Kind)
	}

	// Bits that are spread over nine bytes are taken in two parts.
	skip := off % 8
	first := min(n, 64-skip)
	bytes := (skip + first + 7) / 8
	v, err := word(off/8, bytes)
	if err != nil {
		return nil, err
	}
	drop := skip
	if l.be {
		drop = 8*bytes - skip - first
	}
	v = l.lowBits(l.pool.binaryOp(dwarfloc.OpShr, v, l.pool.constant(drop)), first)
	if first == n {
		return v, nil
	}
	rest, err := l.bits(loc, off+first, n-first)
	if err != nil {
		return nil, err
	}
	if l.be {
		return l.pool.binaryOp(dwarfloc.OpOr, l.pool.binaryOp(dwarfloc.OpShl, v, l.pool.constant(n-first)), rest), nil
	}
	return l.pool.binaryOp(dwarfloc.OpOr, v, l.pool.binaryOp(dwarfloc.OpShl, rest, l.pool.constant(first))), nil
}

// lowBits clears all but the n low-order bits.
func (l *lowering) lowBits(v *node, n uint64) *node {
	switch {
	case n >= 64:
		return v
	case v.op == dwarfloc.OpShr && v.b.isConst() && v.b.k+n >= 64:
		return v // the shift brought zeros in
	case n%8 == 0:
		return l.pool.extend(dwarfloc.OpZExt, v, int(n/8))
	}
	return l.pool.binaryOp(dwarfloc.OpAnd, v, l.pool.constant(1<<n-1))
}
