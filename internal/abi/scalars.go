package abi

import (
	"github.com/bpfprologue/bpfprologue/types"
)

// scalar is a number in an object: what calling conventions look at in a structure.
type scalar struct {
	off, size int64
	float     bool
	direct    bool // a member of the outermost structure
	element   bool // of an array
	shared    bool // in a union
	bits      bool // a bit-field
	pointer   bool
	packed    bool // not aligned
}

// maxDepth bounds how deeply structures nest.
const maxDepth = 64

// maxScalars bounds the numbers of an object that are looked at: those that are passed in registers have
// no more, but larger ones are read too, for their alignment.
const maxScalars = 256

// scalars collects the numbers of an object.
type scalars struct {
	all   []scalar
	size  int64 // of the object
	word  int64
	align int64
	asked int  // objects in it
	more  bool // than maxScalars
}

// add adds an object of type t. ok is false if it has something of which it is not known how that is passed.
func (c *scalars) add(t *types.Type, l scalar, depth int) (ok bool, err error) {
	if t, err = t.Complete(); err != nil || depth > maxDepth {
		return false, err
	}
	if c.asked++; c.asked > maxScalars {
		c.more = true
		return true, nil
	}
	if depth > 1 {
		l.direct = false
	}
	switch {
	case t.Kind == types.Int || t.Kind == types.Bool || t.Kind == types.Char || t.Kind == types.Enum || t.Kind == types.Pointer, t.Kind == types.MemberPointer && t.Size <= c.word:
		l.pointer = t.Kind == types.Pointer
		return c.put(l, t.Size, t.Size), nil
	case t.Kind == types.Float:
		l.float = true
		return c.put(l, t.Size, t.Size), nil
	case t.Kind == types.Complex:
		l.float, l.direct = true, false
		half := t.Size / 2
		if !c.put(l, half, half) {
			return false, nil
		}
		l.off += half
		return c.put(l, half, half), nil
	case t.IsRecord():
		members, err := t.Members()
		if err != nil {
			return false, err
		}
		in := l
		in.shared = l.shared || t.Kind == types.Union
		for _, m := range members {
			in.off, in.bits = l.off+int64(m.BitOffset/8), m.BitSize != 0
			if !in.bits {
				if ok, err := c.add(m.Type, in, depth+1); err != nil || !ok {
					return false, err
				}
				continue
			}
			if !c.put(in, int64(m.BitOffset%8+m.BitSize+7)/8, 1) {
				return false, nil
			}
			if r, err := m.Type.Resolve(); err == nil {
				c.align = max(c.align, min(r.Size, 16))
			}
		}
		return true, nil
	case t.Kind == types.Array:
		el, n, err := t.Count()
		if err != nil || n < 0 {
			return false, err
		}
		size, err := el.ByteSize()
		if err != nil || size < 0 {
			return false, err
		}
		in := l
		in.element = true
		for i := range min(n, maxScalars) {
			in.off = l.off + i*size
			if ok, err := c.add(el, in, depth+1); err != nil || !ok {
				return false, err
			}
		}
		c.more = c.more || n > maxScalars
		return true, nil
	}
	return false, nil
}

// put adds a number. ok is false for one that is not in the object: then nothing is known of how that is passed.
func (c *scalars) put(l scalar, size, align int64) (ok bool) {
	if l.off < 0 || size < 0 || size > c.size || l.off > c.size-size {
		return false
	}
	l.size = size
	l.packed = align > 0 && l.off%align != 0
	c.align = max(c.align, min(align, 16))
	c.all = append(c.all, l)
	return true
}

// floats reports whether there are floating-point numbers.
func (c *scalars) floats() bool {
	for i := range c.all {
		if c.all[i].float {
			return true
		}
	}
	return false
}

// parts returns what of a structure is in which kind of register, or nil if no part is in a vector register. known is
// false if that is not known.
func (c *scalars) parts(rule Floats, members int) (parts []part, known bool) {
	switch {
	case !c.floats():
		return nil, true
	case rule == FloatsUnknown:
		return nil, false
	}
	for i := range c.all {
		if c.all[i].float && c.all[i].size > 8 {
			return nil, false
		}
	}
	switch rule {
	case FloatsByWord:
		return c.byWord()
	case FloatsEqual:
		parts = c.equal(members)
	case FloatsFlat:
		return c.flat()
	case FloatsDoubles:
		parts = c.doubles()
	case FloatsAlone:
		if l := &c.all[0]; len(c.all) == 1 && !l.shared && !l.element && l.size == c.size {
			parts = []part{{0, c.size, classVector}}
		}
	case FloatsFew:
		for _, l := range c.all {
			if len(c.all) > 2 || !l.direct || l.shared || !l.float {
				return nil, true
			}
			parts = append(parts, part{l.off, l.size, classVector})
		}
	}
	return parts, true
}

// byWord is parts for FloatsByWord.
func (c *scalars) byWord() (parts []part, known bool) {
	for off := int64(0); off < c.size; off += c.word {
		w := part{off, min(c.word, c.size-off), classNone}
		for _, l := range c.all {
			switch {
			case l.off >= off+c.word || l.off+l.size <= off:
			case l.float && w.class != classInteger:
				w.class = classVector
			default:
				w.class = classInteger
			}
		}
		if w.class == classNone {
			return nil, false // padding as large as a word
		}
		parts = append(parts, w)
	}
	return parts, true
}

// equal is parts for FloatsEqual.
func (c *scalars) equal(members int) (parts []part) {
	size := c.all[0].size
	for _, l := range c.all {
		if !l.float || l.size != size || l.off%size != 0 || c.more {
			return nil
		}
	}
	if c.size%size != 0 || c.size/size > int64(members) {
		return nil
	}
	for off := int64(0); off < c.size; off += size {
		parts = append(parts, part{off, size, classVector})
	}
	return parts
}

// flat is parts for FloatsFlat.
func (c *scalars) flat() (parts []part, known bool) {
	if len(c.all) > 2 {
		return nil, true
	}
	for _, l := range c.all {
		switch {
		case l.shared:
			return nil, true
		case l.packed || l.bits || l.pointer:
			return nil, false // clang 14 does not count a pointer as an integer
		case l.float:
			parts = append(parts, part{l.off, l.size, classVector})
		case l.size > c.word:
			return nil, true
		default:
			parts = append(parts, part{l.off, l.size, classInteger})
		}
	}
	if len(parts) == 2 && parts[0].off > parts[1].off {
		return nil, false
	}
	// What follows a number up to the next one is padding.
	for i := range parts {
		end := c.size
		if i+1 < len(parts) {
			end = parts[i+1].off
		}
		parts[i].size = end - parts[i].off
	}
	return parts, parts[0].off == 0
}

// doubles is parts for FloatsDoubles.
func (c *scalars) doubles() (parts []part) {
	found := false
	for off := int64(0); off < c.size && len(parts) < maxParts; off += c.word {
		w := part{off, min(c.word, c.size-off), classInteger}
		for _, l := range c.all {
			if l.off == off && l.float && l.size == 8 && l.direct && !l.shared && !l.element {
				w.class, found = classVector, true
			}
		}
		parts = append(parts, w)
	}
	if !found {
		return nil
	}
	return parts
}
