package loc

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// Pieces, as DWARF 5 section 2.6.1.2 has them. An object's bits are numbered in
// the order of its memory: on a little-endian machine bit 0 is the least
// significant one of the first byte and so of the value, on a big-endian machine
// the most significant one. A piece's BitOffset counts the same way in memory
// and in known bytes, but from the least significant end in a register or a
// computed value, on every machine. DW_OP_piece leaves to the ABI which part of a
// register it means; all ABIs here, GCC and GDB take the low-order bytes.

// unavailable is the reason for something that cannot be taken from a location.
func unavailable(code ReasonCode, format string, args ...any) Reason {
	return Reason{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Bits takes n bits, at most 64, from bit off on of the object at a location. They are the
// low-order bits of the result, the others are 0.
func (b *Builder) Bits(l *Location, off, n uint64) (*Expr, Reason) {
	switch l.Kind {
	case KindRegister, KindValue, KindConstant:
		if off > 64 || off+n > 64 {
			return nil, unavailable(ReasonMissingPiece, "%d bits from bit %d on of a value of 64", n, off)
		}
		return b.lowBits(b.shift(OpShr, l.Expr, off), n), Reason{}
	case KindMemory, KindBytes:
		return b.bytesBits(l, off, n)
	case KindPieces:
		return b.pieceBits(l.Pieces, off, n)
	case KindImplicitPointer:
		return nil, Reason{Code: ReasonImplicitPointer}
	}
	return nil, Reason{Code: ReasonOptimizedOut}
}

// BitField is Bits for a member of a structure: extended to 64 bits by its sign if it is
// signed.
func (b *Builder) BitField(l *Location, off, n uint64, signed bool) (*Expr, Reason) {
	lead := off % 8
	whole := 8 * ((lead + n + 7) / 8)
	if b.BigEndian || whole > 64 {
		e, r := b.Bits(l, off, n)
		if r.Code != ReasonNone || !signed || n >= 64 {
			return e, r
		}
		return b.shift(OpShra, b.shift(OpShl, e, 64-n), 64-n), Reason{}
	}
	e, r := b.Bits(l, off-lead, whole)
	switch {
	case r.Code != ReasonNone:
		return nil, r
	case signed && n < 64:
		// The shift to the left drops what is above: no mask is needed.
		return b.shift(OpShra, b.shift(OpShl, e, 64-lead-n), 64-n), Reason{}
	}
	return b.lowBits(b.shift(OpShr, e, lead), n), Reason{}
}

// shift is x shifted by n bits.
func (b *Builder) shift(op Op, x *Expr, n uint64) *Expr {
	if n == 0 {
		return x
	}
	return b.Binary(op, x, b.Const(n))
}

// word is some bytes of an object in memory, or of known bytes, as a number.
func (b *Builder) word(l *Location, off, n uint64) (*Expr, Reason) {
	if l.Kind == KindMemory {
		return b.Deref(b.Binary(OpAdd, l.Expr, b.Const(off)), int(n)), Reason{}
	}
	if end := uint64(len(l.Bytes)); off > end || n > end-off {
		return nil, unavailable(ReasonMissingPiece, "only %d bytes are known", end)
	}
	return b.Const(bin.Uint(l.Bytes[off:off+n], b.BigEndian)), Reason{}
}

// bytesBits is Bits for what is in memory, or is known bytes. Bits that are spread over
// nine bytes are taken in two parts.
func (b *Builder) bytesBits(l *Location, off, n uint64) (*Expr, Reason) {
	skip := off % 8
	first := min(n, 64-skip)
	bytes := (skip + first + 7) / 8
	v, r := b.word(l, off/8, bytes)
	if r.Code != ReasonNone {
		return nil, r
	}
	drop := skip
	if b.BigEndian {
		drop = 8*bytes - skip - first
	}
	v = b.lowBits(b.shift(OpShr, v, drop), first)
	if first == n {
		return v, Reason{}
	}
	rest, r := b.bytesBits(l, off+first, n-first)
	if r.Code != ReasonNone {
		return nil, r
	}
	if b.BigEndian {
		return b.Binary(OpOr, b.shift(OpShl, v, n-first), rest), Reason{}
	}
	return b.Binary(OpOr, v, b.shift(OpShl, rest, first)), Reason{}
}

// pieceBits is Bits for an object that is put together from pieces.
func (b *Builder) pieceBits(pieces []Piece, from, total uint64) (*Expr, Reason) {
	var value *Expr
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
		if k := p.Loc.Kind; k == KindNone || k == KindImplicitPointer {
			return nil, unavailable(ReasonMissingPiece, "bits %d to %d", from+at, from+at+n-1)
		}
		if p.Loc.Kind == KindPieces {
			return nil, unavailable(ReasonUnsupported, "a piece of kind %d", p.Loc.Kind)
		}
		off := p.BitOffset + skip
		if b.BigEndian && p.Loc.Kind.fromLSB() {
			// The first bits of a piece are its most significant ones.
			off = p.BitOffset + p.BitSize - skip - n
		}
		v, r := b.Bits(&p.Loc, off, n)
		if r.Code != ReasonNone {
			return nil, r
		}
		shift := at
		if b.BigEndian {
			shift = total - at - n
		}
		if v = b.shift(OpShl, v, shift); value == nil {
			value = v
		} else {
			value = b.Binary(OpOr, value, v)
		}
		at += n
	}
	if at < total {
		return nil, unavailable(ReasonMissingPiece, "bits %d to %d are not described", from+at, from+total-1)
	}
	return value, Reason{}
}

// fromLSB reports whether bits of such a location are counted from the least
// significant one.
func (k Kind) fromLSB() bool { return k == KindRegister || k == KindValue || k == KindConstant }

// lowBits clears all but the n low-order bits.
func (b *Builder) lowBits(v *Expr, n uint64) *Expr {
	switch {
	case n >= 64:
		return v
	case v.Op == OpShr && v.B.Op == OpConst && v.B.K+n >= 64:
		return v // the shift brought zeros in
	case n%8 == 0:
		return b.Extend(v, int(n/8), false)
	}
	return b.Binary(OpAnd, v, b.Const(1<<n-1))
}

// Constant returns where an object is whose bytes are known.
func (b *Builder) Constant(d []byte) Location {
	if len(d) > 0 && len(d) <= 8 {
		return Location{Kind: KindConstant, Expr: b.Const(bin.Uint(d, b.BigEndian))}
	}
	return Location{Kind: KindBytes, Bytes: append([]byte(nil), d...)}
}

// Part returns where the bits [off, off+size) of an object are; both are multiples of 8
// unless the object is in pieces. With the reason ReasonMissingPiece the pieces of the part
// that are there may be returned.
func (b *Builder) Part(l *Location, off, size uint64) (Location, Reason) {
	if off%8 != 0 && l.Kind != KindPieces {
		return Location{}, Reason{ReasonUnsupported, "a part of an object that begins inside a byte"}
	}
	switch l.Kind {
	case KindMemory:
		return Location{Kind: KindMemory, Expr: b.Binary(OpAdd, l.Expr, b.Const(off/8))}, Reason{}
	case KindRegister, KindValue, KindConstant:
		switch {
		case size == 0:
			return Location{}, Reason{Code: ReasonIncompleteType}
		case off == 0 && size == 64:
			return *l, Reason{}
		case off+size > 64:
			return Location{}, Reason{Code: ReasonMissingPiece}
		case b.BigEndian:
			return Location{}, Reason{ReasonUnsupported, "a part of a big-endian register"}
		}
		return b.Value(b.Extend(b.shift(OpShr, l.Expr, off), int(size/8), false)), Reason{}
	case KindBytes:
		if off/8+size/8 > uint64(len(l.Bytes)) {
			return Location{}, Reason{Code: ReasonMissingPiece}
		}
		return b.Constant(l.Bytes[off/8 : off/8+size/8]), Reason{}
	case KindPieces:
		return b.partOfPieces(l, off, size)
	case KindImplicitPointer:
		if off == 0 {
			return *l, Reason{Code: ReasonImplicitPointer}
		}
	}
	return Location{}, Reason{Code: ReasonMissingPiece}
}

// Value is the location of a value that is computed.
func (b *Builder) Value(e *Expr) Location {
	if e.Op == OpConst {
		return Location{Kind: KindConstant, Expr: e}
	}
	return Location{Kind: KindValue, Expr: e}
}

// partOfPieces is Part for an object that is put together from pieces: a part of one, or
// several.
func (b *Builder) partOfPieces(l *Location, off, size uint64) (Location, Reason) {
	var out []Piece
	at, have := uint64(0), uint64(0)
	for i := range l.Pieces {
		p := &l.Pieces[i]
		from, to := max(off, at), min(off+size, at+p.BitSize)
		if from < to {
			sub := *p
			sub.BitOffset += from - at
			sub.BitSize = to - from
			have += sub.BitSize
			out = append(out, sub)
		}
		at += p.BitSize
	}
	if have < size || len(out) == 0 {
		return Location{}, Reason{Code: ReasonMissingPiece}
	}
	if len(out) == 1 {
		p := &out[0]
		if p.Loc.Kind == KindNone {
			return Location{}, Reason{Code: ReasonMissingPiece}
		}
		return b.Part(&p.Loc, p.BitOffset, p.BitSize)
	}
	loc := Location{Kind: KindPieces, Pieces: out}
	if loc.Missing() {
		return loc, Reason{Code: ReasonMissingPiece}
	}
	return loc, Reason{}
}
