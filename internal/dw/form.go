package dw

import (
	"fmt"
	"unsafe"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// Value is an attribute's undecoded value: a number, an offset, an index, a
// reference, or bytes.
type Value struct {
	U    uint64 // for a string in place: its offset in the section
	p    *byte  // block, expression or string: see Bytes
	n    uint32
	Form Form // 0: the attribute is absent
}

// Bytes returns the value of a block, an expression or a string in place. Storing a
// slice would make a Value 40 bytes instead of 24, and a site has many of them.
func (v Value) Bytes() []byte { return unsafe.Slice(v.p, v.n) }

// BlockValue returns a value made of bytes.
func BlockValue(f Form, b []byte) Value {
	return Value{Form: f, p: unsafe.SliceData(b), n: uint32(len(b))}
}

// IsBlock reports whether the value is a block or an expression.
func (v Value) IsBlock() bool {
	switch v.Form {
	case FormExprloc, FormBlock, FormBlock1, FormBlock2, FormBlock4:
		return true
	}
	return false
}

// IsConstant reports whether the value's class is constant (DWARF 5 section 7.5.5).
func (v Value) IsConstant() bool {
	switch v.Form {
	case FormData1, FormData2, FormData4, FormData8, FormSdata, FormUdata, FormImplicitConst:
		return true
	}
	return false
}

// ReadAttr reads the value of an attribute of one of the unit's entries. b is bad if the value
// is not all there.
func (u *Unit) ReadAttr(b *bin.Reader, at AttrSpec) Value {
	if at.form == FormImplicitConst {
		return u.readAttr(b, u.table().consts, at)
	}
	return u.ReadForm(b, at.form)
}

// readAttr reads the value of an attribute, of a table that has constants.
func (u *Unit) readAttr(b *bin.Reader, consts []int64, at AttrSpec) Value {
	if at.form == FormImplicitConst {
		return Value{Form: FormImplicitConst, U: uint64(consts[at.konst])}
	}
	return u.ReadForm(b, at.form)
}

// ReadForm reads a value. An unknown form marks the buffer bad. Only
// DW_FORM_indirect can lead to one: abbreviations that have one are rejected.
func (u *Unit) ReadForm(b *bin.Reader, f Form) Value {
	v := Value{Form: f}
	switch f {
	case FormData1, FormRef1, FormFlag, FormStrx1, FormAddrx1:
		v.U = uint64(b.U8())
	case FormData2, FormRef2:
		v.U = uint64(b.U16())
	case FormData4, FormRef4:
		v.U = uint64(b.U32())
	case FormData8:
		v.U = b.U64()
	case FormSecOffset, FormStrp, FormLineStrp:
		v.U = b.Offset(u.Dwarf64)
	case FormFlagPresent:
		v.U = 1
	case FormSdata:
		v.U = uint64(b.SLEB())
	case FormUdata, FormRefUdata, FormStrx, FormAddrx, FormLoclistx, FormRnglistx, FormGNUAddrIndex, FormGNUStrIndex:
		v.U = b.ULEB()
	case FormString:
		at := uint64(b.P)
		v = BlockValue(f, b.CString())
		v.U = at
	case FormBlock1:
		v = BlockValue(f, b.Bytes(uint64(b.U8())))
	case FormBlock2:
		v = BlockValue(f, b.Bytes(uint64(b.U16())))
	case FormBlock4:
		v = BlockValue(f, b.Bytes(uint64(b.U32())))
	case FormBlock, FormExprloc:
		v = BlockValue(f, b.Bytes(b.ULEB()))
	case FormData16:
		v = BlockValue(f, b.Bytes(16))
	case FormIndirect:
		actual := Form(min(b.ULEB(), 1<<16-1))
		if actual == FormIndirect || actual == FormImplicitConst {
			b.Fail()
			return v
		}
		return u.ReadForm(b, actual)
	default:
		n := fixedSize(f, u)
		if n < 0 {
			b.Fail()
			return v
		}
		v.U = b.Uint(n)
	}
	return v
}

// Text returns a string value, or "" if it is damaged or not a string: names of
// units and types are only displayed.
func (u *Unit) Text(v Value) string {
	s, _ := u.StringValue(v)
	return s
}

// StringValue returns a string value, or "" if the attribute is absent.
func (u *Unit) StringValue(v Value) (string, error) {
	sec, table := "", []byte(nil)
	switch v.Form {
	case 0:
		return "", nil
	case FormString:
		return u.Data.Texts.Make(v.Bytes()), nil
	case FormStrp:
		sec, table = ".debug_str", u.Data.Str
	case FormLineStrp:
		sec, table = ".debug_line_str", u.Data.LineStr
	case FormStrx, FormStrx1, FormStrx2, FormStrx3, FormStrx4, FormGNUStrIndex:
		off, err := u.Strx(v.U)
		if err != nil {
			return "", err
		}
		v.U = off
		sec, table = ".debug_str", u.Data.Str
	case FormGNUStrpAlt, FormStrpSup:
		if sup := u.Data.sup; sup != nil {
			return sup.text(v.U)
		}
		fallthrough
	default:
		return "", fmt.Errorf("%s: form %#x is no string", u.Data.Path, uint32(v.Form))
	}
	s, ok := u.Data.Texts.At(table, v.U)
	if !ok {
		return "", u.Data.Errorf(sec, v.U, "the string is outside the section or has no end")
	}
	return s, nil
}

// text returns a string of .debug_str.
func (d *Data) text(off uint64) (string, error) {
	s, ok := d.Texts.At(d.Str, off)
	if !ok {
		return "", d.Errorf(".debug_str", off, "the string is outside the section or has no end")
	}
	return s, nil
}

// Strx returns the offset in .debug_str of the string with an index in
// .debug_str_offsets.
func (u *Unit) Strx(index uint64) (uint64, error) {
	base := u.strOffsetsBase
	if base == 0 && u.Version >= 5 {
		// Without the attribute the table starts after the section's first header. GNU's table
		// before DWARF 5 has none.
		base = uint64(2 * u.OffsetSize())
	}
	b := bin.Reader{D: u.Data.StrOffsets, BigEndian: u.Data.BigEndian}
	if index > uint64(len(b.D)) {
		b.Fail()
	}
	b.Seek(base + index*uint64(u.OffsetSize()))
	off := b.Offset(u.Dwarf64)
	if b.Bad {
		return 0, u.Data.Errorf(".debug_str_offsets", base, "string index %d is outside the section", index)
	}
	return off, nil
}

// Address returns the link-time address that an attribute's value is.
func (u *Unit) Address(v Value) (uint64, error) {
	switch v.Form {
	case FormAddr:
		return v.U, nil
	case FormAddrx, FormAddrx1, FormAddrx2, FormAddrx3, FormAddrx4, FormGNUAddrIndex:
		return u.Addrx(v.U)
	}
	return 0, fmt.Errorf("%s: form %#x is no address", u.Data.Path, uint32(v.Form))
}

// Addrx returns the link-time address with an index in .debug_addr.
func (u *Unit) Addrx(index uint64) (uint64, error) {
	b := bin.Reader{D: u.Data.Addr, BigEndian: u.Data.BigEndian}
	if index > uint64(len(b.D)) {
		b.Fail()
	}
	base := u.addrBase
	if base == 0 && u.Version >= 5 {
		base = 8 // after the section's first header, which GNU's before DWARF 5 does not have
	}
	b.Seek(base + index*uint64(u.AddrSize))
	a := b.Uint(int(u.AddrSize))
	if b.Bad {
		return 0, u.Data.Errorf(".debug_addr", base, "address index %d is outside the section", index)
	}
	return a, nil
}

// Ref returns the entry that a reference names: its unit and its offset in
// .debug_info.
func (u *Unit) Ref(v Value) (*Unit, uint64, error) {
	switch v.Form {
	case FormRef1, FormRef2, FormRef4, FormRef8, FormRefUdata:
		off := u.Off + v.U
		if off < u.First || off >= u.End || v.U > u.End {
			return nil, 0, u.Data.Errorf(".debug_info", u.Off, "reference to %#x is outside its unit", v.U)
		}
		return u, off, nil
	case FormRefAddr, FormGNURefAlt, FormRefSup4, FormRefSup8:
		off, ok := u.Global(v)
		if !ok {
			return nil, 0, u.Data.Errorf(".debug_info", u.Off, "reference to %#x, which is outside the section", v.U)
		}
		t := u.Data.UnitAt(off)
		if t == nil {
			return nil, 0, u.Data.Errorf(".debug_info", off, "reference to an offset outside any unit")
		}
		if err := t.Load(); err != nil {
			return nil, 0, err
		}
		return t, off, nil
	case FormRefSig8:
		t := u.Data.typeUnit(v.U)
		if t == nil {
			return nil, 0, u.Data.Errorf(".debug_info", u.Off, "no type unit has signature %#x", v.U)
		}
		if err := t.Load(); err != nil {
			return nil, 0, err
		}
		return t, t.Off + t.TypeOff, nil
	}
	return nil, 0, u.Data.Errorf(".debug_info", u.Off, "form %#x is no reference", uint32(v.Form))
}

// Target returns the entry that a reference names.
func (u *Unit) Target(v Value) (Entry, error) {
	t, off, err := u.Ref(v)
	if err != nil {
		return Entry{}, err
	}
	e, err := t.Entry(off)
	if err == nil && e.Abbrev == nil {
		err = u.Data.Errorf(".debug_info", off, "reference to the end of a list of entries")
	}
	return e, err
}
