package oracle

import "slices"

// IntegerType is a base type of integers, by its offset from the unit's start.
type IntegerType struct {
	Off    uint64
	Size   int
	Signed bool
}

// IntegerTypes returns those of a unit, in their order.
func (r *Reader) IntegerTypes(u Unit) (out []IntegerType, err error) {
	t, err := r.tree(u)
	if err != nil {
		return nil, err
	}
	for at, n := range t.nodes {
		enc, _ := n.Val(attrEncoding).(int64)
		size, _ := n.Val(attrByteSize).(int64)
		if n.Tag == tagBaseType && size <= 8 && enc >= encSigned && enc <= encUnsignedChr {
			out = append(out, IntegerType{uint64(at) - u.Off, int(size), enc == encSigned || enc == encSignedChar})
		}
	}
	slices.SortFunc(out, func(a, b IntegerType) int { return int(int64(a.Off) - int64(b.Off)) })
	return out, nil
}
