package eval

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Pieces follow DWARF 5 section 2.6.1.2. An object's bits are numbered in memory
// order: bit 0 is the least significant bit of the first byte, and so of the value, on
// a little-endian machine, and the most significant one on a big-endian machine. A
// piece's BitOffset counts the same way in memory and in known bytes, but from the
// least significant end in a register or a computed value, on every machine.
// DW_OP_piece leaves it to the ABI which part of a register it means; all ABIs here,
// GCC and GDB take the low-order bytes.

// unavailable returns the reason why something cannot be taken from a location.
func unavailable(code loc.ReasonCode, format string, args ...any) loc.Reason {
	return loc.Reason{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Bits returns n bits, at most 64, of the object at a location, from bit off on. They are
// the low-order bits of the result; the others are 0.
func (b *Builder) Bits(l *loc.Location, off, n uint64) (*loc.Expr, loc.Reason) {
	switch l.Kind {
	case loc.KindRegister, loc.KindValue, loc.KindConstant:
		if have := b.bitsOf(l); off > have || off+n > have {
			return nil, unavailable(reasons.MissingPiece, "%d bits from bit %d on of a value of %d", n, off, have)
		}
		return b.lowBits(b.shift(ops.Shr, l.Expr, off), n), loc.Reason{}
	case loc.KindMemory, loc.KindBytes:
		return b.bytesBits(l, off, n)
	case loc.KindPieces:
		return b.pieceBits(l.Pieces, off, n)
	case loc.KindImplicitPointer:
		return nil, loc.Reason{Code: reasons.ImplicitPointer}
	}
	return nil, loc.Reason{Code: reasons.OptimizedOut}
}

// bitsOf returns how many bits a register or a value has.
func (b *Builder) bitsOf(l *loc.Location) uint64 {
	switch {
	case l.Kind == loc.KindRegister && b.RegisterBytes != 0:
		return 8 * uint64(b.RegisterBytes)
	case l.Kind == loc.KindValue && l.Size != 0:
		return 8 * uint64(l.Size)
	}
	return 64
}

// BitField is Bits for a member of a structure: it is sign-extended to 64 bits if signed
// is set.
func (b *Builder) BitField(l *loc.Location, off, n uint64, signed bool) (*loc.Expr, loc.Reason) {
	lead := off % 8
	whole := 8 * ((lead + n + 7) / 8)
	if b.BigEndian || whole > 64 {
		e, r := b.Bits(l, off, n)
		if r.Code != reasons.None || !signed || n >= 64 {
			return e, r
		}
		return b.shift(ops.Shra, b.shift(ops.Shl, e, 64-n), 64-n), loc.Reason{}
	}
	e, r := b.Bits(l, off-lead, whole)
	if r.Code != reasons.None && l.Kind == loc.KindPieces {
		e, r = b.Bits(l, off, n) // only a neighbour in the same byte may be missing
		lead = 0
	}
	switch {
	case r.Code != reasons.None:
		return nil, r
	case signed && n < 64:
		// The left shift drops the higher bits, so no mask is needed.
		return b.shift(ops.Shra, b.shift(ops.Shl, e, 64-lead-n), 64-n), loc.Reason{}
	}
	return b.lowBits(b.shift(ops.Shr, e, lead), n), loc.Reason{}
}

// shift returns x shifted by n bits.
func (b *Builder) shift(op loc.Op, x *loc.Expr, n uint64) *loc.Expr {
	if n == 0 {
		return x
	}
	return b.Binary(op, x, b.Const(n))
}

// word returns n bytes of an object in memory, or of known bytes, as a number.
func (b *Builder) word(l *loc.Location, off, n uint64) (*loc.Expr, loc.Reason) {
	if l.Kind == loc.KindMemory {
		return b.Deref(b.Binary(ops.Add, l.Expr, b.Const(off)), int(n)), loc.Reason{}
	}
	if end := uint64(len(l.Bytes)); off > end || n > end-off {
		return nil, unavailable(reasons.MissingPiece, "only %d bytes are known", end)
	}
	return b.Const(bin.Uint(l.Bytes[off:off+n], b.BigEndian)), loc.Reason{}
}

// bytesBits is Bits for memory and known bytes. Bits that span nine bytes are taken in
// two parts.
func (b *Builder) bytesBits(l *loc.Location, off, n uint64) (*loc.Expr, loc.Reason) {
	skip := off % 8
	first := min(n, 64-skip)
	bytes := (skip + first + 7) / 8
	v, r := b.word(l, off/8, bytes)
	if r.Code != reasons.None {
		return nil, r
	}
	drop := skip
	if b.BigEndian {
		drop = 8*bytes - skip - first
	}
	v = b.lowBits(b.shift(ops.Shr, v, drop), first)
	if first == n {
		return v, loc.Reason{}
	}
	rest, r := b.bytesBits(l, off+first, n-first)
	if r.Code != reasons.None {
		return nil, r
	}
	if b.BigEndian {
		return b.Binary(ops.Or, b.shift(ops.Shl, v, n-first), rest), loc.Reason{}
	}
	return b.Binary(ops.Or, v, b.shift(ops.Shl, rest, first)), loc.Reason{}
}

// pieceBits is Bits for an object in pieces.
func (b *Builder) pieceBits(pieces []loc.Piece, from, total uint64) (*loc.Expr, loc.Reason) {
	var value *loc.Expr
	start := uint64(0) // the piece's first bit in the object
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
		if k := p.Loc.Kind; k == loc.KindNone || k == loc.KindImplicitPointer {
			if p.Reason.Code != reasons.None {
				return nil, p.Reason
			}
			return nil, unavailable(reasons.MissingPiece, "bits %d to %d", from+at, from+at+n-1)
		}
		if p.Loc.Kind == loc.KindPieces {
			return nil, unavailable(reasons.Unsupported, "a piece of kind %d", p.Loc.Kind)
		}
		off := p.BitOffset + skip
		if b.BigEndian && fromLSB(p.Loc.Kind) {
			// The first bits of a piece are its most significant ones.
			off = p.BitOffset + p.BitSize - skip - n
		}
		v, r := b.Bits(&p.Loc, off, n)
		if r.Code != reasons.None {
			return nil, r
		}
		shift := at
		if b.BigEndian {
			shift = total - at - n
		}
		if v = b.shift(ops.Shl, v, shift); value == nil {
			value = v
		} else {
			value = b.Binary(ops.Or, value, v)
		}
		at += n
	}
	if at < total {
		return nil, unavailable(reasons.MissingPiece, "bits %d to %d are not described", from+at, from+total-1)
	}
	return value, loc.Reason{}
}

// fromLSB reports whether the bits of a location of this kind are counted from the least
// significant one.
func fromLSB(k loc.Kind) bool {
	return k == loc.KindRegister || k == loc.KindValue || k == loc.KindConstant
}

// lowBits clears all but the n low-order bits.
func (b *Builder) lowBits(v *loc.Expr, n uint64) *loc.Expr {
	switch {
	case n >= 64:
		return v
	case v.Op == ops.Shr && v.B.Op == ops.Const && v.B.K+n >= 64:
		return v // the shift has cleared the others
	case n%8 == 0:
		return b.Extend(v, int(n/8), false)
	}
	return b.Binary(ops.And, v, b.Const(1<<n-1))
}

// Constant returns the location of an object whose bytes are known.
func (b *Builder) Constant(d []byte) loc.Location {
	if len(d) > 0 && len(d) <= 8 {
		return loc.Location{Kind: loc.KindConstant, Expr: b.Const(bin.Uint(d, b.BigEndian))}
	}
	return loc.Location{Kind: loc.KindBytes, Bytes: append([]byte(nil), d...)}
}

// Part returns the location of the bits [off, off+size) of an object; off and size must be
// multiples of 8 unless the object is in pieces. With a reason, the location may have the
// pieces that exist.
func (b *Builder) Part(l *loc.Location, off, size uint64) (loc.Location, loc.Reason) {
	if off%8 != 0 && l.Kind != loc.KindPieces {
		return loc.Location{}, loc.Reason{Code: reasons.Unsupported, Detail: "a part of an object that begins inside a byte"}
	}
	switch l.Kind {
	case loc.KindMemory:
		return loc.Location{Kind: loc.KindMemory, Expr: b.Binary(ops.Add, l.Expr, b.Const(off/8))}, loc.Reason{}
	case loc.KindRegister, loc.KindValue, loc.KindConstant:
		switch {
		case size == 0:
			return loc.Location{}, loc.Reason{Code: reasons.IncompleteType}
		case off == 0 && size == b.bitsOf(l):
			return *l, loc.Reason{}
		case off+size > b.bitsOf(l):
			return loc.Location{}, loc.Reason{Code: reasons.MissingPiece}
		case b.BigEndian:
			return loc.Location{}, loc.Reason{Code: reasons.Unsupported, Detail: "a part of a big-endian register"}
		}
		return b.Value(b.Extend(b.shift(ops.Shr, l.Expr, off), int(size/8), false)), loc.Reason{}
	case loc.KindBytes:
		if off/8+size/8 > uint64(len(l.Bytes)) {
			return loc.Location{}, loc.Reason{Code: reasons.MissingPiece}
		}
		return b.Constant(l.Bytes[off/8 : off/8+size/8]), loc.Reason{}
	case loc.KindPieces:
		return b.partOfPieces(l, off, size)
	case loc.KindImplicitPointer:
		if off == 0 {
			return *l, loc.Reason{Code: reasons.ImplicitPointer}
		}
	}
	return loc.Location{}, loc.Reason{Code: reasons.MissingPiece}
}

// Value returns the location of a computed value.
func (b *Builder) Value(e *loc.Expr) loc.Location {
	if e.Op == ops.Const {
		return loc.Location{Kind: loc.KindConstant, Expr: e}
	}
	return loc.Location{Kind: loc.KindValue, Expr: e}
}

// partOfPieces is Part for an object in pieces. The result is a part of one, or has
// several.
func (b *Builder) partOfPieces(l *loc.Location, off, size uint64) (loc.Location, loc.Reason) {
	var out []loc.Piece
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
		return loc.Location{}, loc.Reason{Code: reasons.MissingPiece}
	}
	if len(out) == 1 {
		p := &out[0]
		if p.Loc.Kind == loc.KindNone {
			return loc.Location{}, MissingPart(&loc.Location{Pieces: out})
		}
		return b.Part(&p.Loc, p.BitOffset, p.BitSize)
	}
	parts := loc.Location{Kind: loc.KindPieces, Pieces: out}
	return parts, MissingPart(&parts)
}

// MissingPart returns the reason of an object with pieces that cannot be read: that of the
// first one with a reason of its own, else reasons.MissingPiece. It is zero if there are
// none.
func MissingPart(l *loc.Location) (r loc.Reason) {
	for i := range l.Pieces {
		p := &l.Pieces[i]
		switch {
		case p.Reason.Code != reasons.None:
			return p.Reason
		case p.Loc.Kind == loc.KindNone, p.Loc.Kind == loc.KindImplicitPointer:
			r.Code = reasons.MissingPiece
		}
	}
	return r
}
