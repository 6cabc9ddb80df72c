package dwarfloc

import (
	"strings"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/loc"
)

// How the calling convention passes values of a type: which words of it are in integer
// registers, and which in vector registers. The rules are those of the System V ABI (AMD64
// supplement, section 3.2.3) and of the Procedure Call Standard for the Arm 64-bit
// Architecture (sections 6.8 and 6.9). Where they differ, fields of arch.Arch decide.

// class is the kind of register that holds a word.
type class uint8

const (
	classNone    class = iota // no field of the value is there
	classInteger              // a general register
	classVector               // a vector register, which a probe does not see
	classMemory               // none: the whole value is in memory
)

// passing is how values of a type are passed.
type passing struct {
	words     []class
	size      int64 // bytes
	align     int64 // bytes
	memory    bool  // on the stack, or for a result where the caller says
	reference bool  // by an address
	separate  bool  // each word is passed like a value of its own
}

// passingOf returns how values of a type are passed. ok is false if that is not known.
func passingOf(t *Type, lang uint64, a *arch.Arch) (p passing, ok bool, err error) {
	p.align = 1
	if t, err = t.resolve(0); err != nil {
		return p, false, err
	}
	p.size = t.Size
	word := int64(a.WordSize)
	rust := lang == dw.LangRust
	switch {
	case a.PlainOnly && !plain(t, a):
		return p, false, nil
	case rust && t.Size == 0:
		return p, true, nil // nothing is passed
	case t.Size <= 0:
		return p, false, nil
	case isRecord(t) && t.byReference:
		return passing{words: []class{classInteger}, size: word, align: word, reference: true}, true, nil
	case isRecord(t) && !dw.IsC(lang) && !rust && !t.byValue:
		return p, false, nil // a C++ class: whether it can be copied bit by bit is not said
	case isRecord(t) && rust && t.Size <= 2*word:
		return rustPair(t, a, 0)
	case isRecord(t) && (rust || a.LargeByReference) && t.Size > 2*word:
		return passing{words: []class{classInteger}, size: word, align: word, reference: true}, true, nil
	}
	if t.Size <= 2*word {
		p.words = make([]class, (t.Size+word-1)/word)
	}
	c := classifier{p: &p, word: word}
	if ok, err := c.add(t, 0, 0); err != nil || !ok {
		return p, false, err
	}
	p.memory = t.Size > 2*word
	for _, w := range p.words {
		switch {
		case w == classMemory:
			p.memory = true
		case w == classNone, w == classVector && isRecord(t) && !a.WordClasses:
			// An object without members, padding as large as a word, or members that could
			// be in up to four vector registers.
			return p, false, nil
		}
	}
	return p, true, nil
}

// plain reports whether a type is one that is passed alike by all conventions: an integer or a pointer of
// at most a word, or on machines with words of 4 bytes of two.
func plain(t *Type, a *arch.Arch) bool {
	switch t.Kind {
	case TypeInt, TypeBool, TypeChar, TypePointer, TypeEnum:
		return t.Size <= 8
	}
	return false
}

// rustPair is passingOf for a structure of Rust of at most two words. Rust's convention is
// not documented, and has changed. These have been passed alike by all versions: a structure
// with one scalar, and a fat pointer, as two scalars.
func rustPair(t *Type, a *arch.Arch, depth int) (p passing, ok bool, err error) {
	members, err := t.Members()
	if err != nil || len(members) == 0 {
		return p, false, err
	}
	fat := len(members) == 2 && (strings.HasPrefix(t.Name, "&") || strings.HasPrefix(t.Name, "*"))
	if len(members) != 1 && !fat || t.Size > int64(len(members)*a.WordSize) || fat && t.Size != 2*int64(a.WordSize) || depth > maxTypeDepth {
		return p, false, nil // or it contradicts itself
	}
	p = passing{size: t.Size, align: int64(a.WordSize), separate: true}
	for _, m := range members {
		r, err := m.Type.resolve(0)
		if err != nil {
			return p, false, err
		}
		if isRecord(r) && !fat && r.Size <= int64(a.WordSize) {
			return rustPair(r, a, depth+1)
		}
		switch r.Kind {
		case TypeInt, TypeBool, TypeChar, TypePointer, TypeEnum:
		default:
			return p, false, nil
		}
		if r.Size > int64(a.WordSize) {
			return p, false, nil
		}
		p.words = append(p.words, classInteger)
	}
	return p, true, nil
}

// classifier adds up the fields of a type.
type classifier struct {
	p      *passing
	word   int64
	fields int
}

// maxFields bounds the fields of a type that are looked at: 16 bytes have no more, but
// larger types are classified too, for their alignment.
const maxFields = 256

// add adds an object of type t at an offset. ok is false if its class is not known.
func (c *classifier) add(t *Type, off int64, depth int) (ok bool, err error) {
	if t, err = t.resolve(0); err != nil || depth > maxTypeDepth {
		return false, err
	}
	if c.fields++; c.fields > maxFields {
		return true, nil // it is in memory, and its alignment is known by now
	}
	switch {
	case t.Kind == TypeInt || t.Kind == TypeBool || t.Kind == TypeChar || t.Kind == TypeEnum || t.Kind == TypePointer, t.Kind == TypeMemberPointer && t.Size <= c.word:
		return c.put(off, t.Size, t.Size, classInteger), nil
	case t.Kind == TypeFloat && t.Size <= c.word:
		return c.put(off, t.Size, t.Size, classVector), nil
	case t.Kind == TypeComplex && t.Size <= 2*c.word:
		return c.put(off, t.Size, t.Size/2, classVector), nil
	case t.Kind == TypeFloat && t.Name == "long double":
		return c.put(off, t.Size, t.Size, classMemory), nil
	case isRecord(t):
		members, err := t.Members()
		if err != nil {
			return false, err
		}
		for _, m := range members {
			if m.BitSize != 0 {
				if !c.put(off+int64(m.BitOffset/8), int64(m.BitOffset%8+m.BitSize+7)/8, 1, classInteger) {
					return false, nil
				}
				if r, err := m.Type.resolve(0); err == nil {
					c.p.align = max(c.p.align, min(r.Size, 16))
				}
				continue
			}
			if ok, err := c.add(m.Type, off+int64(m.BitOffset/8), depth+1); err != nil || !ok {
				return false, err
			}
		}
		return true, nil
	case t.Kind == TypeArray:
		el, n, err := t.Count()
		if err != nil || n < 0 {
			return false, err
		}
		size, err := el.ByteSize()
		if err != nil || size < 0 {
			return false, err
		}
		for i := range min(n, maxFields) {
			if ok, err := c.add(el, off+i*size, depth+1); err != nil || !ok {
				return false, err
			}
		}
	default:
		return false, nil
	}
	return true, nil
}

// put adds a field of a class. ok is false for one that is not in the object: then nothing is known of
// how that is passed.
func (c *classifier) put(off, size, align int64, k class) (ok bool) {
	if off < 0 || size < 0 || size > c.p.size || off > c.p.size-size {
		return false
	}
	if align > 0 && off%align != 0 {
		k = classMemory // a packed structure
	}
	c.p.align = max(c.p.align, min(align, 16))
	for at := off / c.word; at*c.word < off+size && int(at) < len(c.p.words); at++ {
		w := &c.p.words[at]
		switch {
		case *w == classMemory || k == classMemory:
			*w = classMemory
		case *w == classInteger || k == classInteger:
			*w = classInteger
		default:
			*w = k
		}
	}
	return true
}

// passer gives places to values in the order in which they are passed.
type passer struct {
	a       *arch.Arch
	ints    int
	vectors int
	stack   int64 // bytes taken by values on the stack
}

// next returns the place of the next value at the first instruction of a function.
func (c *passer) next(p *passing) (l loc.Location, r loc.Reason) {
	ints, vectors := 0, 0
	for _, w := range p.words {
		if w == classInteger {
			ints++
		} else {
			vectors++
		}
	}
	a := c.a
	if !a.WordClasses && p.align > int64(a.WordSize) && ints > 1 {
		c.ints += c.ints % 2
	}
	switch fits := c.ints+ints <= len(a.Args) && c.vectors+vectors <= a.VectorArgs; {
	case !p.memory && fits:
	case !a.WordClasses && ints > 0 && !p.memory:
		c.ints = len(a.Args)
		fallthrough
	default:
		if p.separate && len(p.words) > 1 {
			return l, loc.Reason{Code: loc.ReasonUnsupported, Detail: "a pair that is partly on the stack"}
		}
		step := max(int64(a.WordSize), min(p.align, 16))
		c.stack = (c.stack + step - 1) / step * step
		at := int64(a.StackArgs) + c.stack
		if a.BigEndian && p.size < int64(a.WordSize) {
			at += int64(a.WordSize) - p.size // the low bytes of a word
		}
		l = loc.Location{Kind: loc.KindMemory, Expr: register(a.SP, uint64(at))}
		c.stack += (p.size + int64(a.WordSize) - 1) / int64(a.WordSize) * int64(a.WordSize)
		if p.reference {
			l.Expr = &loc.Expr{Op: loc.OpDeref, Size: uint8(a.WordSize), A: l.Expr}
		}
		return l, r
	}
	l, r = inRegisters(p, a, a.Args[c.ints:])
	c.ints += ints
	c.vectors += vectors
	return l, r
}

// inRegisters returns the location of a value whose integer words are in registers.
func inRegisters(p *passing, a *arch.Arch, regs []uint16) (l loc.Location, r loc.Reason) {
	var pieces []loc.Piece
	left := uint64(p.size)
	for _, w := range p.words {
		bytes := min(left, uint64(a.WordSize))
		left -= bytes
		piece := loc.Piece{BitSize: 8 * bytes}
		if w == classInteger {
			piece.Loc = loc.Location{Kind: loc.KindRegister, Expr: register(regs[0], 0)}
			regs = regs[1:]
		} else {
			r = loc.Reason{Code: loc.ReasonVectorRegister}
			piece.Reason = r
		}
		pieces = append(pieces, piece)
	}
	switch {
	case len(pieces) == 1 && r.Code == loc.ReasonNone && p.reference:
		return loc.Location{Kind: loc.KindMemory, Expr: pieces[0].Loc.Expr}, r
	case len(pieces) == 1:
		return pieces[0].Loc, r
	}
	return loc.Location{Kind: loc.KindPieces, Pieces: pieces}, r
}

// register returns the expression for a register plus an offset.
func register(n uint16, off uint64) *loc.Expr {
	r := &loc.Expr{Op: loc.OpReg, K: uint64(n)}
	if off == 0 {
		return r
	}
	return &loc.Expr{Op: loc.OpAdd, A: r, B: &loc.Expr{Op: loc.OpConst, K: off}}
}
