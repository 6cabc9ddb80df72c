package dwarfloc

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// Variant is one of the alternatives that an object of a Rust enum can be.
type Variant struct {
	Value   uint64 // of the discriminant, as wide as that
	Default bool   // it is meant by all values that no other variant has
	Member  Member // named like the variant; its type has the variant's members
}

// Variants returns the alternatives of an enum of Rust that has data (DW_TAG_variant_part),
// the default last, and the member that says which one an object is; that is nil if there is
// only one. Other types have no variants.
func (t *Type) Variants() (discriminant *Member, out []Variant, err error) {
	if !isRecord(t) || t.b != nil {
		return nil, nil, nil
	}
	err = t.children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagVariantPart {
			return true, nil
		}
		discriminant, out, err = t.u.variants(c)
		return false, err
	})
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(out, func(a, b Variant) int {
		switch {
		case a.Default == b.Default:
			return 0
		case a.Default:
			return 1
		}
		return -1
	})
	return discriminant, out, nil
}

// variants reads a DW_TAG_variant_part.
func (u *unit) variants(part dw.Entry) (discriminant *Member, out []Variant, err error) {
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
		m, ok, err := u.img.of(e.Unit).member(e)
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

// Parameter returns the type that a parameter of a generic type or a template has in this
// instance (DW_TAG_template_type_parameter), or nil.
func (t *Type) Parameter(name string) (p *Type, err error) {
	if !isRecord(t) || t.b != nil {
		return nil, nil
	}
	err = t.children(func(c dw.Entry) (bool, error) {
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
		if err != nil || t.u.Text(text) != name {
			return true, err
		}
		p, err = t.u.typeOf(typ)
		return false, err
	})
	return p, err
}
