package dwarfloc

import (
	"fmt"
	"unsafe"
)

// value is an attribute's value as it stands in the data: a number, an offset,
// an index, a reference, or bytes.
type value struct {
	u    uint64 // of a string in place, where in its section it is
	p    *byte  // block, expression or string: see bytes
	n    uint32
	form form // 0: the attribute is absent
}

// bytes is the value of a block, an expression or a string in place. A slice would
// make a value 40 bytes instead of 24, and sites are read into many of them.
func (v value) bytes() []byte { return unsafe.Slice(v.p, v.n) }

// blockValue is a value of bytes.
func blockValue(f form, b []byte) value {
	return value{form: f, p: unsafe.SliceData(b), n: uint32(len(b))}
}

// isBlock reports whether the value is a block or an expression.
func (v value) isBlock() bool {
	switch v.form {
	case formExprloc, formBlock, formBlock1, formBlock2, formBlock4:
		return true
	}
	return false
}

// isConstant reports whether the value is of class constant.
func (v value) isConstant() bool {
	switch v.form {
	case formData1, formData2, formData4, formData8, formSdata, formUdata, formImplicitConst:
		return true
	}
	return false
}

// readAttr reads the value of an attribute of a table.
func (u *unit) readAttr(b *buf, t *abbrevTable, at attrSpec) value {
	if at.form == formImplicitConst {
		return value{form: formImplicitConst, u: uint64(t.consts[at.konst])}
	}
	return u.readForm(b, at.form)
}

// readForm reads a value. An unknown form marks the buffer bad; abbreviations
// with unknown forms are refused before, so that takes DW_FORM_indirect.
func (u *unit) readForm(b *buf, f form) value {
	v := value{form: f}
	switch f {
	case formData1, formRef1, formFlag, formStrx1, formAddrx1:
		v.u = uint64(b.u8())
	case formData2, formRef2:
		v.u = uint64(b.u16())
	case formData4, formRef4:
		v.u = uint64(b.u32())
	case formData8:
		v.u = b.u64()
	case formSecOffset, formStrp, formLineStrp:
		v.u = b.offset(u.dwarf64)
	case formFlagPresent:
		v.u = 1
	case formSdata:
		v.u = uint64(b.sleb())
	case formUdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx:
		v.u = b.uleb()
	case formString:
		at := uint64(b.p)
		v = blockValue(f, b.cstr())
		v.u = at
	case formBlock1:
		v = blockValue(f, b.bytes(uint64(b.u8())))
	case formBlock2:
		v = blockValue(f, b.bytes(uint64(b.u16())))
	case formBlock4:
		v = blockValue(f, b.bytes(uint64(b.u32())))
	case formBlock, formExprloc:
		v = blockValue(f, b.bytes(b.uleb()))
	case formData16:
		v = blockValue(f, b.bytes(16))
	case formIndirect:
		actual := form(min(b.uleb(), 1<<16-1))
		if actual == formIndirect || actual == formImplicitConst {
			b.fail()
			return v
		}
		return u.readForm(b, actual)
	default:
		n := fixedSize(f, u)
		if n < 0 {
			b.fail()
			return v
		}
		v.u = b.uint(n)
	}
	return v
}

// text returns a string value, or "" for a value that is none or damaged: names
// of units and types are told, not computed with.
func (u *unit) text(v value) string {
	s, _ := u.stringValue(v)
	return s
}

func (u *unit) stringValue(v value) (string, error) {
	img := u.img
	sec, d := "", []byte(nil)
	switch v.form {
	case 0:
		return "", nil
	case formString:
		return string(v.bytes()), nil
	case formStrp:
		sec, d = ".debug_str", img.str
	case formLineStrp:
		sec, d = ".debug_line_str", img.lineStr
	case formStrx, formStrx1, formStrx2, formStrx3, formStrx4:
		off, err := u.strx(v.u)
		if err != nil {
			return "", err
		}
		v.u = off
		sec, d = ".debug_str", img.str
	case formGNUStrpAlt, formStrpSup:
		return "", fmt.Errorf("%s: unsupported supplementary (dwz) debug file", img.path)
	default:
		return "", fmt.Errorf("%s: form %#x is no string", img.path, uint32(v.form))
	}
	s, ok := zstr(d, v.u)
	if !ok {
		return "", img.errorf(sec, v.u, "the string is outside the section or has no end")
	}
	return s, nil
}

// strx returns the offset in .debug_str of a string index.
func (u *unit) strx(index uint64) (uint64, error) {
	base := u.strOffsetsBase
	if base == 0 {
		// Without the attribute the table starts behind the section's first header.
		base = uint64(2 * u.offsetSize())
	}
	b := buf{d: u.img.strOffsets, be: u.img.be}
	if index > uint64(len(b.d)) {
		b.fail()
	}
	b.seek(base + index*uint64(u.offsetSize()))
	off := b.offset(u.dwarf64)
	if b.bad {
		return 0, u.img.errorf(".debug_str_offsets", base, "string index %d is outside the section", index)
	}
	return off, nil
}

// address returns a value of class address.
func (u *unit) address(v value) (uint64, error) {
	switch v.form {
	case formAddr:
		return v.u, nil
	case formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4:
		return u.addrx(v.u)
	}
	return 0, fmt.Errorf("%s: form %#x is no address", u.img.path, uint32(v.form))
}

// addrx returns the address with an index in .debug_addr.
func (u *unit) addrx(index uint64) (uint64, error) {
	b := buf{d: u.img.addr, be: u.img.be}
	if index > uint64(len(b.d)) {
		b.fail()
	}
	base := u.addrBase
	if base == 0 {
		base = 8
	}
	b.seek(base + index*uint64(u.addrSize))
	a := b.uint(int(u.addrSize))
	if b.bad {
		return 0, u.img.errorf(".debug_addr", base, "address index %d is outside the section", index)
	}
	return a, nil
}

// ref returns the unit and the absolute offset that a reference names.
func (u *unit) ref(v value) (*unit, uint64, error) {
	switch v.form {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		off := u.off + v.u
		if off < u.first || off >= u.end || v.u > u.end {
			return nil, 0, u.img.errorf(".debug_info", u.off, "reference to %#x is outside its unit", v.u)
		}
		return u, off, nil
	case formRefAddr:
		t := u.img.unitAt(v.u)
		if t == nil {
			return nil, 0, u.img.errorf(".debug_info", v.u, "reference to an offset outside any unit")
		}
		if err := t.load(); err != nil {
			return nil, 0, err
		}
		return t, v.u, nil
	case formRefSig8:
		for i := range u.img.units {
			t := &u.img.units[i]
			if t.kind == unitType && t.signature == v.u {
				if err := t.load(); err != nil {
					return nil, 0, err
				}
				return t, t.off + t.typeOff, nil
			}
		}
		return nil, 0, u.img.errorf(".debug_info", u.off, "no type unit has signature %#x", v.u)
	case formGNURefAlt, formRefSup4, formRefSup8:
		return nil, 0, fmt.Errorf("%s: unsupported reference to a supplementary (dwz) debug file", u.img.path)
	}
	return nil, 0, u.img.errorf(".debug_info", u.off, "form %#x is no reference", uint32(v.form))
}

// target is the entry that a reference names.
func (u *unit) target(v value) (entry, error) {
	t, off, err := u.ref(v)
	if err != nil {
		return entry{}, err
	}
	e, err := t.entry(off)
	if err == nil && e.ab == nil {
		err = u.img.errorf(".debug_info", off, "reference to the end of a list of entries")
	}
	return e, err
}
