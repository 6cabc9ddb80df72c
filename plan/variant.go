package plan

import (
	"strconv"

	"github.com/bpfprologue/bpfprologue/types"
)

// variant decodes an enum of Rust: the variant that its discriminant selects, with its
// members. It returns nil for other types.
func (d *decoder) variant(t *types.Type, b []byte, depth int) any {
	discriminant, variants, err := t.Variants()
	if err != nil || len(variants) == 0 {
		return nil
	}
	var value uint64
	if discriminant != nil {
		size, err := discriminant.Type.ByteSize()
		at := int64(discriminant.BitOffset / 8)
		if err != nil || size < 1 || size > 8 || at+size > int64(len(b)) {
			return nil
		}
		value = number(b[at : at+size])
	}
	for i := range variants {
		v := &variants[i]
		if discriminant != nil && !v.Default && v.Value != value {
			continue
		}
		out := &variant{name: v.Member.Name}
		if at := int(v.Member.BitOffset / 8); at <= len(b) {
			out.payload = d.payload(v.Member.Type, b[at:], depth+1)
		}
		return out
	}
	return nil
}

// payload decodes a variant's members, to nil if it has none.
func (d *decoder) payload(t *types.Type, b []byte, depth int) any {
	x := d.decode(t, b, "", depth)
	if o, is := x.(*object); is {
		if len(o.members) == 0 {
			return nil
		}
		o.tuple = unnamed(o.members)
	}
	return x
}

// unnamed reports whether members are those of a tuple, which rustc calls __0, __1, ...
func unnamed(all []member) bool {
	for i := range all {
		if all[i].name != "__"+strconv.Itoa(i) {
			return false
		}
	}
	return true
}
