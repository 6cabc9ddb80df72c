package dwarfloc

import (
	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Member is one member of a structure or union.
type Member struct {
	Name      string // "" for an anonymous structure or union, and for a base class
	Type      *Type
	BitOffset uint64 // bits from the structure's start, in memory order
	BitSize   uint64 // bits of a bit-field, or 0
}

// maxMembers bounds the members of one type.
const maxMembers = 1 << 16

// Members returns the members of a structure, union or class, in the order of their
// declarations. Other types have none.
func (t *Type) Members() (out []Member, err error) {
	if !isRecord(t) {
		return nil, nil
	}
	if t.b != nil {
		err = t.guard(func() error {
			out, err = t.b.members(t)
			return err
		})
		return out, err
	}
	err = t.children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagMember && c.Tag() != dw.TagInheritance {
			return true, nil
		}
		m, ok, err := t.u.member(c)
		if ok {
			out = append(out, m)
		}
		return len(out) < maxMembers, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// member reads a member. ok is false for a member without a fixed place in the
// object, such as a static one.
func (u *unit) member(c dw.Entry) (m Member, ok bool, err error) {
	var name, typ dw.Value
	var byteOff, storage, oldBits, bits, dataBits uint64
	var hasOld, hasData bool
	ok = true
	err = c.Attrs(func(a dw.Attr, v dw.Value) {
		switch a {
		case dw.AttrName:
			name = v
		case dw.AttrType:
			typ = v
		case dw.AttrDataMemberLoc:
			var fixed bool
			byteOff, fixed = memberOffset(v)
			ok = ok && fixed
		case dw.AttrByteSize:
			storage = v.U
		case dw.AttrBitSize:
			bits = v.U
		case dw.AttrBitOffset:
			oldBits, hasOld = v.U, true
		case dw.AttrDataBitOffset:
			dataBits, hasData = v.U, true
		case dw.AttrExternal, dw.AttrDeclaration:
			ok = ok && v.U == 0
		}
	})
	if err != nil || !ok {
		return m, false, err
	}
	if m.Type, err = u.typeOf(typ); err != nil {
		return m, false, err
	}
	m.Name, m.BitSize = u.Text(name), bits
	m.BitOffset = 8 * byteOff
	switch {
	case hasData:
		m.BitOffset = dataBits
	case hasOld:
		// DWARF 2 and 3: bits from the most significant bit of a storage unit.
		if storage == 0 {
			n, err := m.Type.ByteSize()
			if err != nil {
				return m, false, err
			}
			storage = uint64(max(n, 0))
		}
		if u.img.BigEndian() {
			m.BitOffset += oldBits
		} else {
			m.BitOffset += 8*storage - oldBits - bits
		}
	}
	return m, m.BitOffset < 1<<43 && bits < 1<<16, nil
}

// memberOffset returns the value of a DW_AT_data_member_location in bytes. In DWARF 2 it is an
// expression that adds to the structure's address (section 5.5.6), mostly as one operation.
// Other expressions, as of virtual bases, are not fixed places.
func memberOffset(v dw.Value) (off uint64, fixed bool) {
	if !v.IsBlock() {
		return v.U, v.IsConstant() || v.Form == dw.FormSecOffset
	}
	b := bin.Reader{D: v.Bytes()}
	if op.Opcode(b.U8()) != op.DW_OP_plus_uconst {
		return 0, false
	}
	off = b.ULEB()
	return off, !b.Bad && b.P == len(b.D)
}

// find finds a member by name, also in anonymous structures and unions. tries counts
// the types searched, because they can form a cycle in a damaged file.
func (t *Type) find(name string, depth int, tries *int) (m Member, ok bool, err error) {
	if *tries++; depth > maxTypeDepth || *tries > maxMembers {
		return m, false, nil
	}
	members, err := t.Members()
	if err != nil {
		return m, false, err
	}
	for _, m := range members {
		if m.Name == name && name != "" {
			return m, true, nil
		}
	}
	for _, a := range members {
		if a.Name != "" {
			continue
		}
		in, err := a.Type.resolve(0)
		if err != nil {
			return m, false, err
		}
		if m, ok, err = in.find(name, depth+1, tries); ok || err != nil {
			m.BitOffset += a.BitOffset
			return m, ok, err
		}
	}
	return m, false, nil
}

// memberNames appends the names that find can find. tries is as for find.
func (t *Type) memberNames(names []string, depth int, tries *int) ([]string, error) {
	if *tries++; depth > maxTypeDepth || *tries > maxMembers || len(names) > maxMembers {
		return names, nil
	}
	members, err := t.Members()
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Name != "" {
			names = append(names, m.Name)
			continue
		}
		in, err := m.Type.resolve(0)
		if err == nil {
			names, err = in.memberNames(names, depth+1, tries)
		}
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// padding reports whether the bits [lo, hi) of an object belong to none of its
// members, so that their value means nothing.
func (t *Type) padding(lo, hi uint64, depth int) (bool, error) {
	t, err := t.Resolve()
	if err != nil || depth > maxTypeDepth || !isRecord(t) {
		return false, err
	}
	members, err := t.Members()
	if err != nil {
		return false, err
	}
	for _, m := range members {
		size := m.BitSize
		if size == 0 {
			n, err := m.Type.ByteSize()
			if err != nil {
				return false, err
			}
			size = 8 * uint64(max(n, 0))
		}
		from, to := max(lo, m.BitOffset), min(hi, m.BitOffset+size)
		if from >= to {
			continue
		}
		if inside, err := m.Type.padding(from-m.BitOffset, to-m.BitOffset, depth+1); err != nil || !inside {
			return false, err
		}
	}
	return len(members) > 0, nil
}

// fillPadding replaces a location's missing pieces by zeros if they hold only
// padding: the object is complete without them.
func (ev *evaluator) fillPadding(l *loc.Location, t *Type) error {
	at := uint64(0)
	for i := range l.Pieces {
		p := &l.Pieces[i]
		if p.Loc.Kind == loc.KindNone {
			pad, err := t.padding(at, at+p.BitSize, 0)
			if err != nil {
				return err
			}
			if pad {
				p.Loc, p.Reason = loc.Location{Kind: loc.KindConstant, Expr: ev.Const(0)}, loc.Reason{}
			}
		}
		at += p.BitSize
	}
	return nil
}
