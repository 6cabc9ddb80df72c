package oracle

import (
	"fmt"
)

// TypeInfo is what a fetch must know about a type.
type TypeInfo struct {
	Size   int64 // bytes, -1 when unknown
	Signed bool
	Scalar bool // an integer, a character, a boolean, an enumeration or a pointer
	Float  bool
}

// Encodings of base types, DWARF 5 section 7.8.
const (
	encSigned      = 0x05
	encSignedChar  = 0x06
	encFloat       = 0x04
	encComplex     = 0x03
	encImaginary   = 0x09
	encDecimal     = 0x0f
	encUTF         = 0x10
	encUnsigned    = 0x07
	encUnsignedChr = 0x08
	encBoolean     = 0x02
	encAddress     = 0x01
)

// typeOf describes the type that an entry names. Without DW_AT_type it is void.
func (r *Reader) typeOf(n *node) (TypeInfo, error) { return r.typeIn(n, 0) }

// typeIn is typeOf at a depth: in a damaged file an array may be its own element.
func (r *Reader) typeIn(n *node, depth int) (TypeInfo, error) {
	t, err := r.bare(n)
	if err != nil || t == nil {
		return TypeInfo{Size: -1}, err
	}
	return r.describe(t, depth)
}

// describe describes a type, which is no typedef and has no qualifiers.
func (r *Reader) describe(t *node, depth int) (TypeInfo, error) {
	if depth > maxChain {
		return TypeInfo{}, fmt.Errorf("oracle: types of the entry at %#x do not end", uint64(t.Offset))
	}
	size := int64(-1)
	if v, ok := t.Val(attrByteSize).(int64); ok {
		size = v
	}
	switch t.Tag {
	case tagBaseType:
		info := TypeInfo{Size: size, Scalar: true}
		switch enc, _ := t.Val(attrEncoding).(int64); enc {
		case encSigned, encSignedChar:
			info.Signed = true
		case encFloat, encComplex, encImaginary, encDecimal:
			info.Scalar, info.Float = false, true
		}
		return info, nil
	case tagPointerType, tagReferenceType, tagRvalueReferenceType:
		if size < 0 {
			size = int64(r.f.word)
		}
		return TypeInfo{Size: size, Scalar: true}, nil
	case tagPtrToMemberType:
		// Itanium C++ ABI, 2.3: an offset, or for a function an address and an offset.
		to, err := r.bare(t)
		if err != nil || size >= 0 {
			return TypeInfo{Size: size}, err
		}
		if size = int64(r.f.word); to != nil && to.Tag == tagSubroutineType {
			size *= 2
		}
		return TypeInfo{Size: size}, nil
	case tagEnumerationType:
		info := TypeInfo{Size: size, Scalar: true}
		if under, err := r.typeIn(t, depth+1); err != nil {
			return info, err
		} else if under.Size >= 0 {
			info.Signed = under.Signed
			return info, nil
		}
		for _, c := range t.children {
			if v, ok := c.Val(attrConstValue).(int64); ok && v < 0 {
				info.Signed = true
			}
		}
		return info, nil
	case tagArrayType:
		if size < 0 {
			el, err := r.typeIn(t, depth+1)
			if err != nil {
				return TypeInfo{}, err
			}
			size = arraySize(t, el.Size)
		}
	}
	if decl, _ := t.Val(attrDeclaration).(bool); decl {
		size = -1
	}
	return TypeInfo{Size: size}, nil
}

func arraySize(t *node, size int64) int64 {
	dims := 0
	for _, c := range t.children {
		if c.Tag != tagSubrangeType {
			continue
		}
		dims++
		if n, ok := c.Val(attrCount).(int64); ok {
			size *= n
		} else if n, ok := c.Val(attrUpperBound).(int64); ok {
			size *= n + 1
		} else {
			return -1
		}
	}
	if dims == 0 || size < 0 {
		return -1
	}
	return size
}

// baseType describes the base type at an offset from the unit's start, for typed
// operations.
func (r *Reader) baseType(t *tree, off uint64) (BaseType, error) {
	n := t.nodes[ref(t.Off+off)]
	if n == nil || n.Tag != tagBaseType {
		return BaseType{}, fmt.Errorf("no base type at %#x", t.Off+off)
	}
	size, _ := n.Val(attrByteSize).(int64)
	b := BaseType{Size: int(size)}
	name, _ := n.Val(attrName).(string)
	for _, made := range []string{"DW_ATE_unsigned_%d", "DW_ATE_signed_%d"} { // by LLVM, for its conversions
		if got, _ := fmt.Sscanf(name, made, &b.Bits); got == 1 && b.Bits >= 1 && b.Bits < 8*b.Size {
			break
		}
		b.Bits = 0
	}
	switch enc, _ := n.Val(attrEncoding).(int64); enc {
	case encSigned, encSignedChar:
		b.Signed = true
	case encUnsigned, encUnsignedChr, encBoolean, encAddress, encUTF:
	default:
		b.Float = true
	}
	return b, nil
}
