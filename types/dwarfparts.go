package types

import (
	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// What the debug information has below the entry of a type: members, enumerators, variants, parameters.

// children calls f for the entries below a type's own, until it returns false.
func (u *unitTypes) children(t *Type, f func(c dw.Entry) (more bool, err error)) error {
	e, err := u.Entry(t.id)
	if err != nil {
		return err
	}
	return e.Children(f)
}

func (u *unitTypes) members(t *Type) (out []Member, err error) {
	err = u.children(t, func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagMember && c.Tag() != dw.TagInheritance {
			return true, nil
		}
		m, ok, err := u.member(c)
		if ok {
			out = append(out, m)
		}
		return len(out) < maxMembers, err
	})
	return out, err
}

// member reads a member. ok is false for a member without a fixed place in the
// object, such as a static one.
func (u *unitTypes) member(c dw.Entry) (m Member, ok bool, err error) {
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
	if m.Type, err = u.typeIn(typ, 0); err != nil {
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
		if u.all.o.BigEndian {
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

// enumeratorOf reads an enumerator.
func enumeratorOf(c dw.Entry) (name dw.Value, v int64, err error) {
	err = c.Attrs(func(a dw.Attr, x dw.Value) {
		switch a {
		case dw.AttrName:
			name = x
		case dw.AttrConstValue:
			v = int64(x.U) // compilers give those below 0 a form with a sign
		}
	})
	return name, v, err
}

func (u *unitTypes) enumerators(t *Type, f func(name func() (string, error), v int64) (more bool)) error {
	return u.children(t, func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagEnumerator {
			return true, nil
		}
		text, v, err := enumeratorOf(c)
		return err == nil && f(func() (string, error) { return u.Text(text), nil }, v), err
	})
}

func (u *unitTypes) variants(t *Type) (discriminant *Member, out []Variant, err error) {
	err = u.children(t, func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagVariantPart {
			return true, nil
		}
		discriminant, out, err = u.readVariants(c)
		return false, err
	})
	return discriminant, out, err
}

// readVariants reads a DW_TAG_variant_part.
func (u *unitTypes) readVariants(part dw.Entry) (discriminant *Member, out []Variant, err error) {
	var discr dw.Value
	if err := part.Attrs(func(a dw.Attr, v dw.Value) {
		if a == dw.AttrDiscr {
			discr = v
		}
	}); err != nil {
		return nil, nil, err
	}
	if discr.Form != 0 {
		e, err := u.Target(discr)
		if err != nil {
			return nil, nil, err
		}
		m, ok, err := u.all.of(e.Unit).member(e)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			discriminant = &m
		}
	}
	size := int64(8)
	if discriminant != nil {
		if size, err = discriminant.Type.ByteSize(); err != nil {
			return nil, nil, err
		}
	}
	err = part.Children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagVariant || len(out) >= maxMembers {
			return len(out) < maxMembers, nil
		}
		v := Variant{Default: true}
		err := c.Attrs(func(a dw.Attr, x dw.Value) {
			if a == dw.AttrDiscrValue {
				v.Value, v.Default = x.U, false
				if size > 0 && size < 8 {
					v.Value &= 1<<(8*size) - 1
				}
			}
		})
		if err != nil {
			return false, err
		}
		return true, c.Children(func(m dw.Entry) (bool, error) {
			if m.Tag() != dw.TagMember {
				return true, nil
			}
			member, ok, err := u.member(m)
			if ok {
				v.Member = member
				out = append(out, v)
			}
			return false, err
		})
	})
	return discriminant, out, err
}

func (u *unitTypes) parameter(t *Type, name string) (p *Type, err error) {
	err = u.children(t, func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagTemplateTypeParam {
			return true, nil
		}
		var text, typ dw.Value
		err := c.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrName:
				text = v
			case dw.AttrType:
				typ = v
			}
		})
		if err != nil || u.Text(text) != name {
			return true, err
		}
		p, err = u.typeIn(typ, 0)
		return false, err
	})
	return p, err
}

func (u *unitTypes) declared(t *Type) (file string, line int, err error) {
	e, err := u.Entry(t.id)
	if err != nil {
		return "", 0, err
	}
	err = e.Attrs(func(a dw.Attr, v dw.Value) {
		switch a {
		case dw.AttrDeclFile:
			file = u.File(v.U)
		case dw.AttrDeclLine:
			line = int(v.U)
		}
	})
	return file, line, err
}

func (u *unitTypes) tagged(*Type) bool { return dw.IsC(u.language()) }

func (u *unitTypes) memberPointer(t *Type, depth int) (prefix, suffix string) {
	el, err := u.typeIn(t.made(), 0)
	p, s := "?", ""
	if err != nil {
		el = VoidType
	} else {
		p, s = el.spell(depth + 1)
	}
	if of := u.containing(t) + "::*"; el.Kind == Func {
		return p + " (" + of, ")" + s
	} else {
		return p + " " + of, s
	}
}

// containing returns the name of the class of a pointer to a member.
func (u *unitTypes) containing(t *Type) string {
	e, err := u.Entry(t.id)
	if err != nil {
		return "?"
	}
	var class dw.Value
	if err := e.Attrs(func(a dw.Attr, v dw.Value) {
		if a == dw.AttrContainingType {
			class = v
		}
	}); err != nil {
		return "?"
	}
	c, err := u.typeIn(class, 0)
	if err != nil {
		return "?"
	}
	return c.Name
}
