package oracle

import (
	"fmt"
)

// maxBits is the largest size of objects whose padding is considered.
const maxBits = 1 << 16

// used reports for each bit of an object of a type whether a member uses it. The result is
// nil for types that are too large or of unknown size.
func (r *Reader) used(n *node) ([]bool, error) {
	info, err := r.typeOf(n)
	if err != nil || info.Size < 0 || info.Size > maxBits/8 {
		return nil, err
	}
	bits := make([]bool, 8*info.Size)
	return bits, r.mark(n, bits, 0)
}

// mark sets the bits that belong to the type that an attribute of an entry names.
// Unions and structures are the same here: a bit is used if any member has it.
func (r *Reader) mark(n *node, bits []bool, depth int) error {
	t, err := r.bare(n)
	if err != nil || t == nil {
		return err
	}
	if depth > maxChain {
		return fmt.Errorf("oracle: types of the entry at %#x do not end", uint64(n.Offset))
	}
	if t.Tag == tagArrayType {
		el, err := r.typeOf(t)
		if err != nil || el.Size <= 0 {
			return err
		}
		for at := 0; at+8*int(el.Size) <= len(bits); at += 8 * int(el.Size) {
			if err := r.mark(t, bits[at:at+8*int(el.Size)], depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if t.Tag != tagStructType && t.Tag != tagUnionType && t.Tag != tagClassType {
		for i := range bits {
			bits[i] = true
		}
		return nil
	}
	for _, m := range t.children {
		if m.Tag == tagVariantPart { // an enumeration of Rust: what is used depends on its value
			for i := range bits {
				bits[i] = true
			}
			return nil
		}
		if m.Tag != tagMember && m.Tag != tagInheritance {
			continue
		}
		number := func(a attr) int { v, _ := m.Val(a).(int64); return int(v) }
		info, err := r.typeOf(m)
		if err != nil {
			return err
		}
		from, size := 8*number(attrDataMemberLoc), 8*int(info.Size)
		field := false
		if m.field(attrBitSize) != nil {
			field = true
			storage := size
			if v := number(attrByteSize); v > 0 {
				storage = 8 * v
			}
			size = number(attrBitSize)
			if m.field(attrBitOffset) != nil {
				// DWARF 2 counts from the highest bit of the storage unit.
				if r.f.big {
					from += number(attrBitOffset)
				} else {
					from += storage - number(attrBitOffset) - size
				}
			}
		}
		from += number(attrDataBitOffset)
		if size < 0 || from < 0 || from+size > len(bits) {
			continue // an open array at the end
		}
		if part := bits[from : from+size]; field {
			for i := range part {
				part[i] = true
			}
		} else if err := r.mark(m, part, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// FillPadding replaces missing pieces that contain only padding by zeros: the object is
// complete without them.
func (p *Param) FillPadding(res Result) (Result, error) {
	if res.Kind != InPieces || p.typed == nil {
		return res, nil
	}
	bits, err := p.r.used(p.typed)
	if err != nil || bits == nil {
		return res, err
	}
	at := uint64(0)
	for i := range res.Pieces {
		q := &res.Pieces[i]
		held := false
		for b := at; b < at+q.Bits && b < uint64(len(bits)); b++ {
			held = held || bits[b]
		}
		if at += q.Bits; q.Kind == IsMissing && !held {
			q.Result = Result{Kind: IsValue}
		}
	}
	return res, nil
}
