package oracle

import (
	"errors"
	"fmt"
)

// Step is one step of a path from an object to one of its parts, or to what it points to.
type Step struct {
	Member string // a member's name; "" for an element
	Deref  bool   // the member is one of what the object points to
	Index  int64  // of an element of an array, or of what the object points to
}

// ErrNotRead is for paths that this reader does not follow: through types that the unit only
// declares, or optimized pointers.
var ErrNotRead = errors.New("not followed")

// Object is where a path has led: some bits of what a location describes.
type Object struct {
	m    *Machine
	r    *Reader
	from Result
	off  int64 // bits from its start
	bits int64 // of a bit-field, or 0
	typ  *node // without typedefs and qualifiers; nil: void
}

// Follow returns what a path leads to from a parameter that is at res.
func (p *Param) Follow(m *Machine, res Result, steps []Step) (*Object, error) {
	if p.typed == nil {
		return nil, fmt.Errorf("%w: a parameter without a type", ErrNotRead)
	}
	t, err := p.r.bare(p.typed)
	if err != nil {
		return nil, err
	}
	o := &Object{m: m, r: p.r, from: res, typ: t}
	for _, s := range steps {
		if err := o.step(s); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// bare returns the type that an entry names, without typedefs and qualifiers.
func (r *Reader) bare(n *node) (*node, error) {
	for range maxChain {
		t, err := r.refer(n, attrType)
		if err != nil || t == nil {
			return nil, err
		}
		switch t.Tag {
		case tagTypedef, tagConstType, tagVolatileType, tagRestrictType, tagAtomicType:
			n = t
			continue
		}
		return t, nil
	}
	return nil, fmt.Errorf("oracle: types of the entry at %#x do not end", uint64(n.Offset))
}

func (o *Object) step(s Step) error {
	if s.Member == "" {
		return o.element(s.Index)
	}
	if s.Deref {
		if err := o.deref(); err != nil {
			return err
		}
	}
	ok, err := o.member(o.typ, s.Member, o.off, 0)
	if err == nil && !ok {
		err = fmt.Errorf("%w: no member %q in this unit", ErrNotRead, s.Member)
	}
	return err
}

// deref leads to what a pointer points to.
func (o *Object) deref() error {
	if o.typ == nil || o.typ.Tag != tagPointerType {
		return fmt.Errorf("%w: what is no pointer", ErrNotRead)
	}
	addr, err := o.number(8 * int64(o.m.address()))
	if err != nil {
		return err
	}
	if o.typ, err = o.r.bare(o.typ); err != nil {
		return err
	}
	o.from, o.off = Result{Kind: InMemory, Value: addr}, 0
	return nil
}

// member leads to a member of a type at a bit, also to one of an anonymous member.
func (o *Object) member(t *node, name string, at int64, depth int) (bool, error) {
	if t == nil || depth > maxChain {
		return false, nil
	}
	for _, pass := range []bool{false, true} { // own members before those of anonymous ones
		for _, c := range t.children {
			if c.Tag != tagMember && c.Tag != tagInheritance {
				continue
			}
			own, _ := c.Val(attrName).(string)
			if anonymous := own == ""; anonymous != pass || !anonymous && own != name {
				continue
			}
			off, bits, err := o.r.memberBits(c)
			if err != nil {
				return false, err
			}
			typ, err := o.r.bare(c)
			if err != nil {
				return false, err
			}
			if !pass {
				o.typ, o.off, o.bits = typ, at+off, bits
				return true, nil
			}
			if ok, err := o.member(typ, name, at+off, depth+1); ok || err != nil {
				return ok, err
			}
		}
	}
	return false, nil
}

// memberBits returns where a member is in its structure in bits, and the bits of a bit-field.
func (r *Reader) memberBits(c *node) (off, bits int64, err error) {
	if f := c.field(attrDataMemberLoc); f != nil && !f.constant {
		return 0, 0, fmt.Errorf("%w: a member whose place is computed", ErrNotRead)
	}
	number := func(a attr) int64 { v, _ := c.Val(a).(int64); return v }
	off = 8 * number(attrDataMemberLoc)
	if c.field(attrBitSize) == nil {
		return off, 0, nil
	}
	bits = number(attrBitSize)
	if c.field(attrBitOffset) == nil {
		return off + number(attrDataBitOffset), bits, nil
	}
	// DWARF 2 counts from the highest bit of the storage unit.
	storage := number(attrByteSize)
	if storage == 0 {
		info, err := r.typeOf(c)
		if err != nil {
			return 0, 0, err
		}
		storage = info.Size
	}
	if r.f.big {
		return off + number(attrBitOffset), bits, nil
	}
	return off + 8*storage - number(attrBitOffset) - bits, bits, nil
}

// element leads to an element of an array of one dimension, or of what a pointer points to.
func (o *Object) element(index int64) error {
	array := o.typ
	if array == nil {
		return fmt.Errorf("%w: an element of void", ErrNotRead)
	}
	if array.Tag == tagPointerType {
		if err := o.deref(); err != nil {
			return err
		}
	} else if len(array.children) != 1 || array.Tag != tagArrayType {
		return fmt.Errorf("%w: an array of several dimensions", ErrNotRead)
	}
	info, err := o.r.typeOf(array)
	if err != nil {
		return err
	}
	if info.Size <= 0 {
		return fmt.Errorf("%w: elements of unknown size", ErrNotRead)
	}
	if o.typ, err = o.r.bare(array); err != nil {
		return err
	}
	o.off += 8 * info.Size * index
	return nil
}

// Value reads the object as a number of 64 bits. size and signed are for a part of it, as a
// definition may ask for it; with size 0 they are those of its type.
func (o *Object) Value(size int, signed bool) (uint64, error) {
	info, err := o.info()
	if err != nil {
		return 0, err
	}
	if o.bits > 0 {
		v, err := o.number(o.bits)
		if shift := 64 - uint(o.bits); err == nil && info.Signed {
			v = uint64(int64(v<<shift) >> shift)
		}
		return v, err
	}
	if size == 0 {
		size, signed = int(info.Size), info.Signed
	}
	if size < 1 || size > 8 {
		return 0, fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
	}
	v, err := o.number(8 * int64(size))
	return Extend(v, size, signed), err
}

func (o *Object) info() (TypeInfo, error) {
	if o.typ == nil {
		return TypeInfo{Size: -1}, nil
	}
	return o.r.describe(o.typ, 0)
}

// number reads up to 64 bits at the object's start.
func (o *Object) number(n int64) (uint64, error) {
	if n < 1 || n > 64 {
		return 0, fmt.Errorf("%w: %d bits", ErrTooLarge, n)
	}
	return o.m.bitsAt(&o.from, o.off, n)
}

// bitsAt reads n bits, up to 64, from a bit of what a location describes on.
func (m *Machine) bitsAt(res *Result, off, n int64) (uint64, error) {
	skip := uint(off & 7)
	size := int((int64(skip) + n + 7) / 8)
	var b []byte
	switch first := off >> 3; res.Kind {
	case InMemory:
		b = make([]byte, size)
		if addr := res.Value + uint64(first); m.Mem == nil || !m.Mem(addr, b) {
			return 0, fmt.Errorf("%w at %#x", ErrFault, addr)
		}
	case InRegister, IsValue, IsBytes:
		all := res.Bytes
		if res.Kind != IsBytes {
			have := m.have(res)
			if m.BigEndian {
				// The object is in the low bytes, and its size is not known here.
				if off != 0 || int(n) > 8*have {
					return 0, fmt.Errorf("%w: a part of a big-endian register", ErrNotRead)
				}
				have, skip = size, uint(8*int64(size)-n)
			}
			all = bytesOf(res.Value, have, m.BigEndian)
		}
		if first < 0 || first+int64(size) > int64(len(all)) {
			return 0, fmt.Errorf("%w: bytes %d to %d, the location has %d", ErrTooLarge, first, first+int64(size), len(all))
		}
		b = all[first : first+int64(size)]
	case InPieces:
		return m.bitsOfPieces(res.Pieces, off, n)
	case IsImplicit:
		return 0, fmt.Errorf("%w: %w", ErrNotRead, ErrImplicitPointer)
	default:
		return 0, ErrMissing
	}
	var v uint64
	for i := range n {
		bit := uint64(bitAt(b, uint64(skip)+uint64(i), m.BigEndian))
		if m.BigEndian {
			v = v<<1 | bit
		} else {
			v |= bit << i
		}
	}
	return v, nil
}

// bitsOfPieces is bitsAt for an object in pieces: those that have none of the bits do not
// matter.
func (m *Machine) bitsOfPieces(pieces []Piece, off, n int64) (uint64, error) {
	var v uint64
	got, start := int64(0), int64(0)
	for i := range pieces {
		p := &pieces[i]
		end := start + int64(p.Bits)
		from := off + got
		if take := min(off+n, end) - from; from >= start && take > 0 {
			part, err := m.pieceAt(p, from-start, take)
			if err != nil {
				return 0, err
			}
			if m.BigEndian {
				v = v<<uint(take) | part
			} else {
				v |= part << got
			}
			got += take
		}
		start = end
	}
	if got < n {
		return 0, ErrMissing
	}
	return v, nil
}

// pieceAt reads bits of a piece.
func (m *Machine) pieceAt(p *Piece, off, n int64) (uint64, error) {
	if m.BigEndian && (p.Kind == InRegister || p.Kind == IsValue) {
		// The piece is Bits bits from bit Skip on, counted from the lowest; its first bit is the highest.
		low := int64(p.Skip) + int64(p.Bits) - off - n
		if low < 0 || low+n > int64(8*m.have(&p.Result)) {
			return 0, fmt.Errorf("%w: a piece of %d bits", ErrTooLarge, p.Bits)
		}
		return p.Value >> uint(low) & (1<<uint(n) - 1), nil
	}
	return m.bitsAt(&p.Result, int64(p.Skip)+off, n)
}

// Number is an operand of an expression: a number of a type.
type Number struct {
	Value   uint64 // extended to 64 bits
	Size    int    // bytes of its type
	Signed  bool
	Bits    int64 // of a bit-field, or 0
	Pointer bool
}

// Number reads the object as an operand.
func (o *Object) Number() (n Number, err error) {
	info, err := o.info()
	if err != nil {
		return n, err
	}
	if !info.Scalar {
		return n, fmt.Errorf("%w: an operand that is no number", ErrNotRead)
	}
	n = Number{Size: int(info.Size), Signed: info.Signed, Bits: o.bits}
	n.Pointer = o.typ != nil && o.typ.Tag == tagPointerType
	n.Value, err = o.Value(0, false)
	return n, err
}
