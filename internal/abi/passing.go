package abi

import (
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/types"
)

// How the calling convention passes values of a type: which parts of it are in integer
// registers, and which in vector registers. What differs between architectures is in package abi.

// class is the kind of register that holds a part of a value.
type class uint8

const (
	classNone    class = iota // no field of the value is there
	classInteger              // a general register
	classVector               // a vector register, which a probe does not see
)

// part is what of a value is in one register, with the padding that follows it.
type part struct {
	off, size int64 // bytes
	class     class
}

// Machine is what decides how values are passed: an architecture, and the flags of an image (e_flags of its ELF header).
type Machine struct {
	*arch.Arch
	Flags uint32
}

// Passing is how values of a type are passed.
type Passing struct {
	parts     []part
	Vectors   int   // vector registers, or units of them (Convention.VectorUnit)
	slots     int   // that it stands for, if that is not by its size
	unit      int   // of these, how many must be aligned
	size      int64 // bytes
	align     int64 // bytes
	memory    bool  // on the stack, or for a result where the caller says
	reference bool  // by an address
	separate  bool  // each part is passed like a value of its own
	whole     bool  // it is not known where it is if it finds too few registers
}

// Nothing reports whether no register and no memory has the value.
func (p *Passing) Nothing() bool { return len(p.parts) == 0 && !p.memory }

// PassingOf returns how values of a type are passed as arguments. ok is false if that is not known.
func PassingOf(t *types.Type, lang uint64, a Machine) (p Passing, ok bool, err error) {
	return passingBy(t, lang, a, false)
}

// passingBy is passingOf, or the same for results.
func passingBy(t *types.Type, lang uint64, a Machine, result bool) (p Passing, ok bool, err error) {
	if t, err = t.Complete(); err != nil {
		return p, false, err
	}
	word := int64(a.WordSize)
	p = Passing{size: t.Size, align: 1}
	c := Of(a.Arch)
	rust := lang == dw.LangRust
	switch {
	case plain(t):
		p.align = t.Size
		p.inWords(word)
		return p, t.Size > 0, nil
	case rust && !c.Rust:
		return p, false, nil
	case rust && t.Size == 0:
		return p, true, nil // nothing is passed
	case t.Size <= 0 || c.Floats == FloatsUnknown:
		return p, false, nil
	case t.IsRecord() && t.ByReference:
		p.byAddress(word)
		return p, true, nil
	case t.IsRecord() && !dw.IsC(lang) && !rust && !t.ByValue:
		return p, false, nil // a C++ class: whether it can be copied bit by bit is not said
	case t.IsRecord() && rust && t.Size <= 2*word:
		return rustPair(t, a.Arch, 0)
	case t.IsRecord() && rust:
		p.byAddress(word)
		return p, true, nil
	}
	known := false
	if t.IsRecord() {
		known, err = p.structure(t, c, word, result)
	} else {
		known = p.number(t, c, word, result)
	}
	if err != nil || !known {
		return p, false, err
	}
	return p, p.floatsKnown(a, c), nil
}

// maxParts bounds the parts of a value: more than there are registers for arguments.
const maxParts = 16

// inWords makes it a value that is like so many integers. Of a large one there are only the first.
func (p *Passing) inWords(word int64) {
	p.parts, p.Vectors = nil, 0
	for off := int64(0); off < p.size && len(p.parts) < maxParts; off += word {
		p.parts = append(p.parts, part{off, min(word, p.size-off), classInteger})
	}
}

// byAddress makes it a value of which only the address is passed.
func (p *Passing) byAddress(word int64) {
	*p = Passing{parts: []part{{0, word, classInteger}}, size: word, align: word, reference: true}
}

// inVectors makes it a value in vector registers, one for each of so many equal parts.
func (p *Passing) inVectors(c *Convention, parts int64) {
	p.parts, p.Vectors = nil, 0
	each := p.size / parts
	for i := range parts {
		p.parts = append(p.parts, part{i * each, each, classVector})
	}
	p.units(c)
}

// units counts the vector registers of the parts.
func (p *Passing) units(c *Convention) {
	p.Vectors, p.unit = 0, 1
	for _, x := range p.parts {
		switch {
		case x.class != classVector:
		case c.VectorUnit == 0:
			p.Vectors++
		default:
			p.unit = int(x.size) / c.VectorUnit
			p.Vectors += p.unit
		}
	}
}

// number sets how a number is passed that is no integer of a word. known is false if that is not known.
func (p *Passing) number(t *types.Type, c *Convention, word int64, result bool) (known bool) {
	p.align = min(t.Size, 16)
	var how Large
	switch {
	case t.Kind == types.Float && t.Size <= 8:
		p.inVectors(c, 1)
		return true
	case t.Kind == types.Float:
		if how = c.LongDouble; how == LargeOnStack && t.Name != "long double" {
			return false // __float128
		}
		if result && c.ResultLongDouble != LargeUnknown {
			how = c.ResultLongDouble
		}
	case t.Kind == types.Complex:
		p.align = t.Size / 2
		how = c.Complex
	case t.Kind == types.Int && t.Size == 2*word:
		how = c.Int128
	case t.Kind == types.MemberPointer && t.Size <= word:
		p.inWords(word)
		return true
	}
	switch how {
	case LargeInWords:
		p.inWords(word)
	case LargeUnaligned:
		p.align = word
		p.inWords(word)
	case LargeUnlessSplit:
		p.whole = true
		p.inWords(word)
	case LargeByReference:
		p.byAddress(word)
	case LargeInVector:
		p.inVectors(c, 1)
	case LargeInVectors:
		p.inVectors(c, 2)
	case LargeAsTwo:
		p.slots = 2
		p.inVectors(c, 2)
	case LargeOnStack:
		p.memory = true
	case LargeAsMembers:
		if t.Size > 16 {
			return false
		}
		in := scalars{size: t.Size, word: word}
		if known, err := in.add(t, scalar{}, 0); err != nil || !known {
			return false
		}
		parts, known := in.parts(c.Floats, c.FloatMembers)
		if !known || parts == nil {
			return false
		}
		p.parts = parts
		p.units(c)
	default:
		return false
	}
	return true
}

// structure sets how a structure or union is passed.
func (p *Passing) structure(t *types.Type, c *Convention, word int64, result bool) (known bool, err error) {
	in := scalars{size: t.Size, word: word, align: 1}
	if known, err = in.add(t, scalar{direct: true}, 0); err != nil || !known || len(in.all) == 0 {
		return false, err
	}
	p.align = in.align
	if p.align > word && c.Slots && !c.Even {
		return false, nil // such numbers have a rule of their own
	}
	floats, most := c.Floats, c.InRegisters
	if result {
		floats, most = c.ResultFloats, c.ResultBytes
		if most == 0 {
			p.memory = true
			return true, nil
		}
	}
	if c.InRegisters > 0 && slices.ContainsFunc(in.all, func(l scalar) bool { return l.packed || l.float && l.size > 8 }) {
		// Of these, amd64 says that they are in memory; but not if integers have the same bytes, and a long double
		// alone is returned in a register of its own.
		p.memory = true
		known = t.Size > most || !slices.ContainsFunc(in.all, func(l scalar) bool { return l.float && (result || l.shared) })
		return known, nil
	}
	// Equal numbers stay in registers of their own even if they are many bytes; others do not.
	large := c.ByValue > 0 && t.Size > c.ByValue || most > 0 && t.Size > most
	var parts []part
	if !large || floats == FloatsEqual {
		if parts, known = in.parts(floats, c.FloatMembers); !known {
			return false, nil
		}
	}
	switch {
	case parts != nil:
		p.parts = parts
		p.units(c)
	case result && large, c.ByValue == 0 && large:
		p.memory = true
	case large || c.PowersOnly && t.Size&(t.Size-1) != 0:
		p.byAddress(word)
	default:
		p.inWords(word)
	}
	return true, nil
}

// floatsKnown reports whether the image says where floating-point numbers are, if there are any.
func (p *Passing) floatsKnown(a Machine, c *Convention) bool {
	return c.FloatFlag == 0 || p.Vectors == 0 || a.Flags&c.FloatFlag == c.FloatFlag
}

// plain reports whether a type is one that is passed alike by all conventions: an integer or a pointer of
// at most a word, or on machines with words of 4 bytes of two.
func plain(t *types.Type) bool {
	switch t.Kind {
	case types.Int, types.Bool, types.Char, types.Pointer, types.Enum:
		return t.Size <= 8
	}
	return false
}

// rustPair is passingOf for a structure of Rust of at most two words. Rust's convention is
// not documented, and has changed. These have been passed alike by all versions: a structure
// with one scalar, and a fat pointer, as two scalars.
func rustPair(t *types.Type, a *arch.Arch, depth int) (p Passing, ok bool, err error) {
	members, err := t.Members()
	if err != nil || len(members) == 0 {
		return p, false, err
	}
	fat := len(members) == 2 && (strings.HasPrefix(t.Name, "&") || strings.HasPrefix(t.Name, "*"))
	if len(members) != 1 && !fat || t.Size > int64(len(members)*a.WordSize) || fat && t.Size != 2*int64(a.WordSize) || depth > maxDepth {
		return p, false, nil // or it contradicts itself
	}
	p = Passing{size: t.Size, align: int64(a.WordSize), separate: true}
	for _, m := range members {
		r, err := m.Type.Resolve()
		if err != nil {
			return p, false, err
		}
		if r.IsRecord() && !fat && r.Size <= int64(a.WordSize) {
			return rustPair(r, a, depth+1)
		}
		switch r.Kind {
		case types.Int, types.Bool, types.Char, types.Pointer, types.Enum:
		default:
			return p, false, nil
		}
		if r.Size > int64(a.WordSize) {
			return p, false, nil
		}
		p.parts = append(p.parts, part{int64(len(p.parts) * a.WordSize), r.Size, classInteger})
	}
	return p, true, nil
}
