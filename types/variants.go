package types

import (
	"github.com/bpfprologue/bpfprologue/internal/radix"
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
	if !t.IsRecord() || t.src == nil {
		return nil, nil, nil
	}
	err = t.guard(func() error {
		discriminant, out, err = t.src.variants(t)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	radix.By(out, func(a, b *Variant) int {
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

// Parameter returns the type that a parameter of a generic type or a template has in this
// instance (DW_TAG_template_type_parameter), or nil.
func (t *Type) Parameter(name string) (p *Type, err error) {
	if !t.IsRecord() || t.src == nil {
		return nil, nil
	}
	err = t.guard(func() error {
		p, err = t.src.parameter(t, name)
		return err
	})
	return p, err
}
