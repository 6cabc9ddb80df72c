package abi

import (
	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Assigner gives places to values in the order in which they are passed.
type Assigner struct {
	machine Machine
	ints    int    // general registers, or slots, in use
	vectors uint64 // vector registers in use, by bits
	stack   int64  // bytes taken by values on the stack
	lost    bool   // compilers differ in where a value is, and so in where later ones are
}

// NewAssigner returns one that begins with a function's first parameter.
func NewAssigner(m Machine) *Assigner { return &Assigner{machine: m} }

// notKnown is the reason for arguments after one of which it is not known where it is.
var notKnown = loc.Reason{Code: reasons.Unsupported, Detail: "how this or an earlier parameter is passed is not known"}

// Result takes the register of the address for the function's result, if that is in memory. variadic is set if the function
// has variable arguments.
func (c *Assigner) Result(t *types.Type, lang uint64, variadic bool) (known bool, err error) {
	if t.Kind == types.Void {
		return true, nil
	}
	p, known, err := passingBy(t, lang, c.machine, true)
	if variadic && p.Vectors > 0 && Of(c.machine.Arch).VariadicWords {
		known = false
	}
	if known && (p.memory || p.reference) && Of(c.machine.Arch).ResultArgument {
		c.ints++
	}
	return known, err
}

// Next returns the place of the next value at the first instruction of a function.
func (c *Assigner) Next(p *Passing) (l loc.Location, r loc.Reason) {
	a, by := c.machine.Arch, Of(c.machine.Arch)
	word := int64(a.WordSize)
	switch {
	case c.lost:
		return l, notKnown
	case p.memory:
		return c.onStack(p), r
	case by.Slots:
		return c.inSlots(p)
	}
	ints := p.ints()
	taken, fits := c.takeVectors(p)
	if by.Floats == FloatsFlat && p.Vectors > 0 && (!fits || c.ints+ints > len(a.Args)) {
		other := *p
		other.inWords(word)
		p, fits, ints = &other, true, len(other.parts)
		taken = c.vectors
	}
	if by.Even && p.align > word && ints > 1 {
		c.ints += c.ints % 2
	}
	left := len(a.Args) - c.ints
	switch {
	case fits && ints <= left:
		l, r = inRegisters(p, a, a.Args[c.ints:])
		c.ints += ints
		c.vectors = taken
		return l, r
	case p.whole:
		c.lost = true
		return l, notKnown
	case fits && by.Split && left > 0 && c.stack == 0 && !p.separate:
		l = c.split(p, left)
		c.ints = len(a.Args)
		return l, r
	case p.separate && len(p.parts) > 1:
		r = loc.Reason{Code: reasons.Unsupported, Detail: "a pair that is partly on the stack"}
		if !by.Backfill {
			c.ints = len(a.Args)
		}
		return l, r
	case !by.Backfill && p.Vectors > 0:
		c.vectors = 1<<by.Vectors - 1
	case !by.Backfill:
		c.ints = len(a.Args)
	}
	l = c.onStack(p)
	if p.reference {
		l.Expr = &loc.Expr{Op: ops.Deref, Size: uint8(word), A: l.Expr}
	}
	return l, r
}

// ints returns the number of general registers of a value.
func (p *Passing) ints() (n int) {
	for _, x := range p.parts {
		if x.class == classInteger {
			n++
		}
	}
	return n
}

// takeVectors finds vector registers for a value, and returns those in use then.
func (c *Assigner) takeVectors(p *Passing) (taken uint64, fits bool) {
	if p.Vectors == 0 {
		return c.vectors, true
	}
	by := Of(c.machine.Arch)
	first := 0
	if by.VectorUnit == 0 { // those before the last one in use are not used any more
		for c.vectors>>first != 0 {
			first++
		}
	}
	for at := first; at+p.Vectors <= by.Vectors; at += p.unit {
		need := uint64(1<<p.Vectors-1) << at
		if c.vectors&need == 0 {
			return c.vectors | need, true
		}
	}
	return c.vectors, false
}

// onStack returns the place of a value on the stack.
func (c *Assigner) onStack(p *Passing) loc.Location {
	word := int64(c.machine.WordSize)
	step := max(word, min(p.align, 16))
	c.stack = (c.stack + step - 1) / step * step
	at := int64(c.machine.StackArgs) + c.stack
	if c.machine.BigEndian && p.size < word {
		at += word - p.size // the low bytes of a word
	}
	c.stack += (p.size + word - 1) / word * word
	return loc.Location{Kind: loc.KindMemory, Expr: Register(c.machine.SP, uint64(at))}
}

// split returns the place of a value of which the last registers hold the beginning.
func (c *Assigner) split(p *Passing, registers int) loc.Location {
	word := int64(c.machine.WordSize)
	begin := Passing{parts: p.parts[:registers], size: int64(registers) * word}
	l, _ := inRegisters(&begin, c.machine.Arch, c.machine.Args[len(c.machine.Args)-registers:])
	if l.Kind != loc.KindPieces {
		l = loc.Location{Kind: loc.KindPieces, Pieces: []loc.Piece{{BitSize: 8 * uint64(begin.size), Loc: l}}}
	}
	rest := Passing{size: p.size - begin.size, align: word}
	l.Pieces = append(l.Pieces, loc.Piece{BitSize: 8 * uint64(rest.size), Loc: c.onStack(&rest)})
	return l
}

// inSlots is next where each value has slots.
func (c *Assigner) inSlots(p *Passing) (l loc.Location, r loc.Reason) {
	a, by := c.machine.Arch, Of(c.machine.Arch)
	word := int64(a.WordSize)
	if by.Even && p.align > word {
		c.ints += c.ints % 2
	}
	first := c.ints
	slots := int((p.size + word - 1) / word)
	if p.slots > 0 {
		slots = p.slots
	}
	c.ints += slots
	onStack := func(slot int) *loc.Expr {
		return Register(a.SP, uint64(int64(a.StackArgs)+int64(slot-len(a.Args))*word))
	}
	if p.Vectors == len(p.parts) && by.Floats == FloatsEqual {
		taken, fits := c.takeVectors(p)
		switch {
		case fits:
			c.vectors = taken
			return inRegisters(p, a, nil)
		case first < len(a.Args) || p.slots > 0:
			c.vectors = 1<<by.Vectors - 1
			return l, notKnown
		}
	}
	left := len(a.Args) - first
	switch {
	case left <= 0:
		l = loc.Location{Kind: loc.KindMemory, Expr: onStack(first)}
		if p.reference {
			l.Expr = &loc.Expr{Op: ops.Deref, Size: uint8(word), A: l.Expr}
		}
		return l, r
	case slots <= left:
		return inRegisters(p, a, a.Args[first:])
	}
	begin := Passing{parts: p.parts[:left], size: int64(left) * word}
	if l, r = inRegisters(&begin, a, a.Args[first:]); l.Kind != loc.KindPieces {
		l = loc.Location{Kind: loc.KindPieces, Pieces: []loc.Piece{{BitSize: 8 * uint64(begin.size), Loc: l, Reason: r}}}
	}
	l.Pieces = append(l.Pieces, loc.Piece{BitSize: 8 * uint64(p.size-begin.size), Loc: loc.Location{Kind: loc.KindMemory, Expr: onStack(len(a.Args))}})
	return l, r
}

// inRegisters returns the location of a value whose integer parts are in registers. Where values have slots, regs are those of its
// parts, whatever they are in.
func inRegisters(p *Passing, a *arch.Arch, regs []uint16) (l loc.Location, r loc.Reason) {
	slots := Of(a).Slots
	var pieces []loc.Piece
	for _, x := range p.parts {
		piece := loc.Piece{BitSize: 8 * uint64(x.size)}
		if x.class == classInteger {
			piece.Loc = loc.Location{Kind: loc.KindRegister, Expr: Register(regs[0], 0)}
		} else {
			r = loc.Reason{Code: reasons.VectorRegister}
			piece.Reason = r
		}
		if len(regs) > 0 && (slots || x.class == classInteger) {
			regs = regs[1:]
		}
		pieces = append(pieces, piece)
	}
	switch {
	case len(pieces) == 1 && r.Code == reasons.None && p.reference:
		return loc.Location{Kind: loc.KindMemory, Expr: pieces[0].Loc.Expr}, r
	case len(pieces) == 1:
		return pieces[0].Loc, r
	}
	return loc.Location{Kind: loc.KindPieces, Pieces: pieces}, r
}

// Register returns the expression for a register plus an offset.
func Register(n uint16, off uint64) *loc.Expr {
	r := &loc.Expr{Op: ops.Reg, K: uint64(n)}
	if off == 0 {
		return r
	}
	return &loc.Expr{Op: ops.Add, A: r, B: &loc.Expr{Op: ops.Const, K: off}}
}
