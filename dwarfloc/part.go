package dwarfloc

// narrow leads from an object to bits of it: [off, off+size) in memory order, both
// multiples of 8. An object that is not whole may still have all of the part.
func (ev *evaluator) narrow(o *object, off, size uint64) {
	if o.reason.Code != Located && o.loc.Kind != KindPieces {
		o.lost(o.reason)
		return
	}
	loc, r := ev.part(&o.loc, off, size)
	o.loc, o.reason = loc, r
}

// part is where bits [off, off+size) of an object are.
func (ev *evaluator) part(l *Location, off, size uint64) (Location, Reason) {
	if off%8 != 0 && l.Kind != KindPieces {
		return Location{}, Reason{Unsupported, "a part of an object that begins inside a byte"}
	}
	switch l.Kind {
	case KindMemory:
		return Location{Kind: KindMemory, Expr: ev.binary(OpAdd, l.Expr, ev.constant(off/8))}, Reason{}
	case KindRegister, KindValue, KindConstant:
		switch {
		case size == 0:
			return Location{}, Reason{Code: IncompleteType}
		case off == 0 && size >= 64:
			if size > 64 {
				return Location{}, Reason{Code: MissingPiece}
			}
			return *l, Reason{}
		case off+size > 64:
			return Location{}, Reason{Code: MissingPiece}
		}
		if ev.u.img.be {
			return Location{}, Reason{Unsupported, "a part of a big-endian register"}
		}
		e := l.Expr
		if off > 0 {
			e = ev.binary(OpShr, e, ev.constant(off))
		}
		kind := KindValue
		if e = ev.extend(e, int(size/8), false); e.Op == OpConst {
			kind = KindConstant
		}
		return Location{Kind: kind, Expr: e}, Reason{}
	case KindBytes:
		if off/8+size/8 > uint64(len(l.Bytes)) {
			return Location{}, Reason{Code: MissingPiece}
		}
		return ev.bytesLocation(l.Bytes[off/8 : off/8+size/8]), Reason{}
	case KindPieces:
		return ev.partOfPieces(l, off, size)
	case KindImplicitPointer:
		if off == 0 {
			return *l, Reason{Code: ImplicitPointer}
		}
	}
	return Location{}, Reason{Code: MissingPiece}
}

// partOfPieces is part for an object that is put together from pieces: a part of
// one, or several.
func (ev *evaluator) partOfPieces(l *Location, off, size uint64) (Location, Reason) {
	var out []Piece
	at := uint64(0)
	for i := range l.Pieces {
		p := &l.Pieces[i]
		from, to := max(off, at), min(off+size, at+p.BitSize)
		if from < to {
			sub := *p
			sub.BitOffset += from - at
			sub.BitSize = to - from
			out = append(out, sub)
		}
		at += p.BitSize
	}
	have := uint64(0)
	for i := range out {
		have += out[i].BitSize
	}
	if have < size || len(out) == 0 {
		return Location{}, Reason{Code: MissingPiece}
	}
	if len(out) == 1 {
		p := &out[0]
		if p.Loc.Kind == KindNone {
			return Location{}, Reason{Code: MissingPiece}
		}
		return ev.part(&p.Loc, p.BitOffset, p.BitSize)
	}
	loc := Location{Kind: KindPieces, Pieces: out}
	if loc.Missing() {
		return loc, Reason{Code: MissingPiece}
	}
	return loc, Reason{}
}

// valueOf is an object of up to 8 bytes as a number, zero-extended where it is not
// known to be extended already.
func (ev *evaluator) valueOf(l *Location, size int) (*Expr, Reason) {
	if size < 1 || size > 8 {
		return nil, Reason{Code: TooLarge}
	}
	switch l.Kind {
	case KindMemory:
		return ev.node(Expr{Op: OpDeref, Size: uint8(size), A: l.Expr}), Reason{}
	case KindRegister, KindValue, KindConstant:
		return ev.extend(l.Expr, size, false), Reason{}
	case KindBytes:
		if size > len(l.Bytes) {
			return nil, Reason{Code: MissingPiece}
		}
		return ev.constant(bytesUint(l.Bytes[:size], ev.u.img.be)), Reason{}
	case KindPieces:
		return ev.joined(l, size)
	case KindImplicitPointer:
		return nil, Reason{Code: ImplicitPointer}
	}
	return nil, Reason{Code: OptimizedOut}
}

// joined is the number that pieces make.
func (ev *evaluator) joined(l *Location, size int) (*Expr, Reason) {
	if ev.u.img.be {
		return nil, Reason{Unsupported, "pieces of a big-endian value"}
	}
	var sum *Expr
	at := uint64(0)
	for i := range l.Pieces {
		if at >= 8*uint64(size) {
			break
		}
		p := &l.Pieces[i]
		// Bits of a piece that do not begin or end with a byte are cut out of whole ones.
		lead := p.BitOffset % 8
		whole := (lead + p.BitSize + 7) &^ 7
		if p.Loc.Kind == KindNone {
			return nil, Reason{Code: MissingPiece}
		}
		part, r := ev.part(&p.Loc, p.BitOffset-lead, whole)
		if r.Code != Located {
			return nil, r
		}
		e, r := ev.valueOf(&part, int(whole/8))
		if r.Code != Located {
			return nil, r
		}
		e = ev.bits(e, lead, p.BitSize, false)
		if at > 0 {
			e = ev.binary(OpShl, e, ev.constant(at))
		}
		if sum == nil {
			sum = e
		} else {
			sum = ev.binary(OpOr, sum, e)
		}
		at += p.BitSize
	}
	if sum == nil || at < 8*uint64(size) {
		return nil, Reason{Code: MissingPiece}
	}
	return ev.extend(sum, size, false), Reason{}
}

// bits are size bits of a value from bit off on, extended to 64.
func (ev *evaluator) bits(e *Expr, off, size uint64, signed bool) *Expr {
	if size >= 64 {
		return e
	}
	if signed {
		if off+size < 64 {
			e = ev.binary(OpShl, e, ev.constant(64-off-size))
		}
		return ev.binary(OpShra, e, ev.constant(64-size))
	}
	if off > 0 {
		e = ev.binary(OpShr, e, ev.constant(off))
	}
	if size%8 == 0 {
		return ev.extend(e, int(size/8), false)
	}
	return ev.binary(OpAnd, e, ev.constant(1<<size-1))
}

// bitField leads from a structure to a bit-field of it: size bits from bit off on.
func (ev *evaluator) bitField(o *object, off, size uint64, signed bool) {
	if o.reason.Code != Located && o.loc.Kind != KindPieces {
		o.lost(o.reason)
		return
	}
	if size > 64 || ev.u.img.be {
		o.lost(Reason{Unsupported, "a bit-field of this size or byte order"})
		return
	}
	// A compiler may use up to 9 bytes for 64 bits of a packed structure.
	lead := off % 8
	bytes := min((lead+size+7)/8, 8)
	loc, r := ev.part(&o.loc, off-lead, 8*bytes)
	var e *Expr
	if r.Code == Located {
		e, r = ev.valueOf(&loc, int(bytes))
	}
	if r.Code == Located && lead+size > 64 {
		var last *Expr
		if loc, r = ev.part(&o.loc, off-lead+64, 8); r.Code == Located {
			if last, r = ev.valueOf(&loc, 1); r.Code == Located {
				e = ev.binary(OpOr, ev.binary(OpShr, e, ev.constant(lead)), ev.binary(OpShl, last, ev.constant(64-lead)))
				lead = 0
			}
		}
	}
	if r.Code != Located {
		o.lost(r)
		return
	}
	e = ev.bits(e, lead, size, signed)
	kind := KindValue
	if e.Op == OpConst {
		kind = KindConstant
	}
	o.loc, o.reason = Location{Kind: kind, Expr: e}, Reason{}
}
