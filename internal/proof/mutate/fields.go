package mutate

import (
	"debug/elf"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// field is where an attribute's value is in .debug_info.
type field struct {
	off, size int
	attr      dw.Attr
	form      dw.Form
	class     class
	value     uint64
}

// class is what an attribute's value is (DWARF 5, section 7.5.5).
type class uint8

const (
	classNumber class = iota
	classReference
	classAddress
	classOffset // of something in another section, or an index there
	classExpression
	classString
)

// classOf returns the class of a value, by its form and its attribute.
func classOf(attr dw.Attr, form dw.Form) class {
	switch form {
	case dw.FormRef1, dw.FormRef2, dw.FormRef4, dw.FormRef8, dw.FormRefUdata, dw.FormRefAddr, dw.FormRefSig8:
		return classReference
	case dw.FormAddr, dw.FormAddrx, dw.FormAddrx1, dw.FormAddrx2, dw.FormAddrx3, dw.FormAddrx4:
		return classAddress
	case dw.FormSecOffset, dw.FormLoclistx, dw.FormRnglistx:
		return classOffset
	case dw.FormExprloc, dw.FormBlock, dw.FormBlock1, dw.FormBlock2, dw.FormBlock4:
		return classExpression
	case dw.FormString, dw.FormStrp, dw.FormLineStrp, dw.FormStrx, dw.FormStrx1, dw.FormStrx2, dw.FormStrx3, dw.FormStrx4:
		return classString
	}
	if slices.Contains([]dw.Attr{dw.AttrHighpc, dw.AttrEntrypc}, attr) {
		return classAddress
	}
	return classNumber
}

// fieldsOf returns all attributes of all entries in a good file's .debug_info, which is size bytes.
func fieldsOf(d *dw.Data, size int) (out []field, err error) {
	if err := d.ReadUnits(); err != nil {
		return nil, err
	}
	for i := range d.Units {
		u := &d.Units[i]
		if u.End > uint64(size) {
			break // .debug_types
		}
		if err := u.Load(); err != nil {
			return nil, err
		}
		var walk func(e dw.Entry) (bool, error)
		walk = func(e dw.Entry) (bool, error) {
			b := e.Data()
			for _, at := range e.Specs() {
				from := b.P
				value := u.ReadAttr(&b, at)
				if b.P > from {
					out = append(out, field{from, b.P - from, at.Name, value.Form, classOf(at.Name, value.Form), value.U})
				}
			}
			return true, e.Children(walk)
		}
		root, err := u.Entry(u.First)
		if err != nil {
			return nil, err
		}
		if _, err := walk(root); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func addressOf(f *elf.File, name string) uint64 {
	if s := f.Section(name); s != nil {
		return s.Addr
	}
	return 0
}

// field picks one of the attributes that match.
func (v *variant) field(match func(*field) bool) (field, bool) {
	for range 200 {
		if len(v.fields) == 0 {
			break
		}
		if f := &v.fields[v.IntN(len(v.fields))]; match(f) {
			return *f, true
		}
	}
	return field{}, false
}

// bytesOf returns the bytes of an attribute's value, to be changed in place.
func (v *variant) bytesOf(f field) []byte {
	info, _ := v.pick(named(".debug_info"))
	if f.off+f.size > len(info) {
		return nil
	}
	return info[f.off : f.off+f.size]
}

// change changes an attribute's value in place.
func (v *variant) change(f field) {
	b := v.bytesOf(f)
	what := ".debug_info: " + f.attr.String()
	switch f.form {
	case dw.FormUdata, dw.FormSdata, dw.FormRefUdata, dw.FormLoclistx, dw.FormRnglistx, dw.FormStrx, dw.FormAddrx, dw.FormIndirect:
		v.leb(b, what)
	default:
		v.number(b, what)
	}
}
