package plan

import (
	"strconv"

	"github.com/bpfprologue/bpfprologue/types"
)

// variant prints an enum of Rust: the variant that its discriminant selects, with its
// members. ok is false for other types.
func variant(t *types.Type, b []byte, depth int) (text literal, ok bool) {
	discriminant, variants, err := t.Variants()
	if err != nil || len(variants) == 0 {
		return "", false
	}
	var value uint64
	if discriminant != nil {
		size, err := discriminant.Type.ByteSize()
		at := int64(discriminant.BitOffset / 8)
		if err != nil || size < 1 || size > 8 || at+size > int64(len(b)) {
			return "", false
		}
		value = number(b[at : at+size])
	}
	for i := range variants {
		v := &variants[i]
		if discriminant != nil && !v.Default && v.Value != value {
			continue
		}
		text = literal(v.Member.Name)
		if at := int(v.Member.BitOffset / 8); at <= len(b) {
			text += payload(v.Member.Type, b[at:], depth+1)
		}
		return text, true
	}
	return "", false
}

// payload prints a variant's members as Rust writes them: nothing, {w=2, h=3}, or (4, 5) if
// they have no names.
func payload(t *types.Type, b []byte, depth int) literal {
	r, err := t.Resolve()
	if err != nil || depth > maxFormatDepth {
		return rawBytes(b)
	}
	if all, err := r.Members(); err == nil && len(all) > 0 && unnamed(all) {
		return members(all, object(r, b), depth, "()")
	}
	if text := show(decode(r, b, depth)); text != "{}" {
		return literal(text)
	}
	return ""
}

// unnamed reports whether members are those of a tuple, which rustc calls __0, __1, ...
func unnamed(all []types.Member) bool {
	for i := range all {
		if all[i].Name != "__"+strconv.Itoa(i) {
			return false
		}
	}
	return true
}
