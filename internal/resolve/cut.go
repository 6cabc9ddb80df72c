package resolve

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/madeof"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// LLVM loads of a number in memory, or keeps in another register, only the lower bits that the body uses, and goes on to note that register as what is passed:
// "movzbl (%rdi),%ebx" for "f(s->n)" with an int n, if f uses n & 255 alone, and for a member of a structure that is passed. Or it leaves above the bits that the body uses what
// is there: of a member that has 16 bits and is at a multiple of 4 bytes it loads 32 on x86, and "setb %r14b" is all of "f(i < 3)".

// Cut looks at the registers that a number, or a part of a structure, is in. That more of the number is in memory is shown by the type of what a variable of a caller points
// to, or is, and by instructions that read or write more there. A number of just so many bits refutes it: there, or as a caller's variable in the register.
func (e *evidence) Cut() (bool, error) {
	t, err := e.v.Type.Resolve()
	switch {
	case err != nil:
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	case t.Kind == types.Int || t.Kind == types.Char || t.Kind == types.Enum:
		if above, err := e.setInPart(&e.v.Loc, 8*t.Size); above || err != nil {
			return above, err
		}
		p, ok, err := e.partIn(&e.v.Loc)
		if !ok || err != nil {
			return false, err
		}
		if above, err := p.others(8 * t.Size); above || err != nil {
			return above, err
		}
		return p.cut(8 * t.Size)
	}
	for i := range e.v.Loc.Pieces {
		piece := &e.v.Loc.Pieces[i]
		p, ok, err := e.partIn(&piece.Loc)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		if cut, err := p.cut(int64(piece.BitSize)); cut || err != nil {
			return cut, err
		}
	}
	return false, nil
}

// part is what a register has, at the probe, of another number or of memory.
type part struct {
	body.Part
	e        *evidence
	code     *body.Code
	register uint64
	memory   memory
}

// partIn returns what a location has, which is a register. ok is false if that is not known.
func (e *evidence) partIn(l *loc.Location) (p part, ok bool, err error) {
	if l.Kind != loc.KindRegister {
		return p, false, nil
	}
	code, err := e.ev.codeOf(e.s)
	if err != nil {
		return p, false, err
	}
	s, from, ok := code.Held().Before(e.s.At.Addr)
	if !ok {
		return p, false, nil
	}
	v, ok := s.Register(l.Expr.K)
	if !ok {
		return p, false, nil
	}
	of, ok := s.Part(v)
	p = part{of, e, code, l.Expr.K, memory{e.ev, s, *e.s}}
	p.memory.begin.Addr, p.memory.begin.At = from, entries.Place{Addr: from}
	return p, ok, nil
}

// cut is Cut of one register, in which so many bits are wanted.
func (p *part) cut(wanted int64) (bool, error) {
	if int64(p.Bits) >= wanted {
		return false, nil
	}
	whole := p.Whole
	if p.Loaded {
		same, larger, err := p.memory.numbersAt(p.At, int64(p.Bits)/8)
		if same || err != nil {
			return false, err
		}
		whole = whole || larger || p.memory.storedWide(p.code, &p.Part)
	}
	if !whole {
		return false, nil
	}
	if err := p.e.readCallers(); err != nil {
		return false, err
	}
	for i := range p.e.ev.callers {
		if bits, _, err := p.e.bitsIn(&p.e.ev.callers[i], p.register); err != nil || bits == uint64(p.Bits) {
			return false, err
		}
	}
	return true, nil
}

// setInPart reports whether a register that calls preserve has, above the number, what it had where the function began, which is nothing of the source. Nothing refutes that.
func (e *evidence) setInPart(l *loc.Location, wanted int64) (bool, error) {
	if l.Kind != loc.KindRegister {
		return false, nil
	}
	code, err := e.ev.codeOf(e.s)
	if err != nil || !code.Preserved().Has(l.Expr.K) {
		return false, err
	}
	bits := code.Held().SetInPart(l.Expr.K, e.s.At.Addr)
	return bits > 0 && int64(bits) < wanted, nil
}

// others reports whether the register has, above the number, the next members in memory.
func (p *part) others(wanted int64) (bool, error) {
	if !p.Loaded || p.Bits > 32 { // more than 32 bits are loaded of no number that has fewer
		return false, nil
	}
	return p.memory.membersIn(p.At, min(int64(p.Bits), wanted)/8)
}

// memory says what is in memory, by the types of the callers' variables where straight code begins that leads to a probe, and of those in the frame at the probe.
type memory struct {
	ev    *Evaluator
	s     *body.State
	begin entries.Spot
}

// numbersAt reports whether numbers, by their types, are at an address that have so many bytes, or more.
func (m *memory) numbersAt(addr body.Number, size int64) (same, larger bool, err error) {
	t, at, err := m.typeAt(addr, 0)
	if t == nil || err != nil {
		return false, false, err
	}
	leafAt(t, at, 0, func(is *types.Type, _ bool) bool {
		same, larger = same || is.Size == size, larger || is.Size > size
		return false
	})
	return same, larger, nil
}

// membersIn reports whether so many bytes at an address are several members of a structure. Where a union has a number of so many bytes there too, an instruction on the way shows which of
// both it is: one that reads just another member from among the bytes. Bytes of an array are often read at one go.
func (m *memory) membersIn(addr body.Number, size int64) (bool, error) {
	t, at, err := m.typeAt(addr, 0)
	if t == nil || err != nil {
		return false, err
	}
	if t, err = t.Resolve(); err != nil || !t.IsRecord() {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	first, whole := int64(0), false // the bytes of the largest member that is smaller
	leafAt(t, at, 0, func(is *types.Type, element bool) bool {
		if whole = whole || is.Size >= size; is.Size < size && !element {
			first = max(first, is.Size)
		}
		return false
	})
	if first == 0 || !whole {
		return first > 0, nil
	}
	return m.s.LoadsBehind(addr, func(off uint64, bits uint8) bool {
		return int64(off) >= first && int64(off) < size && leafAt(t, at+int64(off), 0, func(is *types.Type, element bool) bool {
			return !element && is.Size*8 == int64(bits) && int64(off)+is.Size <= size
		})
	}), nil
}

// storedWide reports whether the function stores more in a slot of its frame than was loaded from it.
func (m *memory) storedWide(code *body.Code, p *body.Part) bool {
	base, off, ok := m.s.Offset(p.At)
	off, framed := m.inFrame(base, off)
	return ok && framed && code.StoredWide(body.Slot{Base: base, Off: int64(off), Size: int64(p.Bits) / 8})
}

// inFrame returns the distance from the stack pointer at the probe, of a distance from what a register held where the code began, if that was the stack pointer.
func (m *memory) inFrame(register, off uint64) (now uint64, ok bool) {
	sp, known := m.s.Register(register)
	of, by, is := m.s.Offset(sp)
	return off - by, known && is && register == uint64(m.ev.Arch.SP) && of == register
}

// mostLoads bounds how many pointers are followed that are in memory.
const mostLoads = 4

// typeAt returns the type of an object in memory, and at which byte of it an address is, or nil.
func (m *memory) typeAt(addr body.Number, loads int) (t *types.Type, at int64, err error) {
	for _, x := range addr.Terms {
		if x.Symbol == 0 || x.Scale != 1 {
			continue
		}
		at = int64(addr.Const)
		switch k := m.s.Symbol(x.Symbol); {
		case k.Kind == body.FromRegister:
			where, register := &m.begin, uint64(k.Which)
			if off, ok := m.inFrame(register, addr.Const); ok {
				where, at = m.ev.spot, int64(off)
			}
			t, at, err = m.objectBy(where, register, at)
		case k.Kind == body.FromMemory && int(k.Bits) == 8*m.ev.Arch.WordSize && loads < mostLoads:
			var in *types.Type
			var off int64
			if in, off, err = m.typeAt(k.Of, loads+1); in != nil && err == nil {
				leafAt(in, off, 0, func(is *types.Type, _ bool) bool {
					t = elementOf(is)
					return t != nil
				})
			}
		}
		if t != nil || err != nil {
			return t, at, err
		}
	}
	return nil, 0, nil
}

// objectBy returns the type of what a register points to somewhere, or of a variable that is in memory at a distance from what it holds there.
func (m *memory) objectBy(where *entries.Spot, register uint64, off int64) (t *types.Type, at int64, err error) {
	_, err = where.OfCallers(func(x *entries.Scoped) (bool, error) {
		its, ok := where.Placed(x)
		if !ok {
			return false, nil
		}
		var l loc.Location
		if r, err := At(where).Locate(its.Expr, its.Sec, its.Off, &l); err != nil || r.Code != reasons.None {
			return false, nil //nolint:nilerr // it is reported where the variable is asked for
		}
		of, err := m.ev.typeOf(x)
		if of == nil || err != nil {
			return false, err
		}
		if l.Kind == loc.KindRegister && l.Expr.K == register {
			t, at = elementOf(of), off
		} else if l.Kind == loc.KindMemory {
			slots := madeof.SlotAt(nil, l.Expr, of.Size)
			if in := func(m body.Slot) bool { return m.Base == register && off >= m.Off && off < m.Off+m.Size }; slices.ContainsFunc(slots, in) {
				t, at = of, off-slots[0].Off
			}
		}
		return t != nil, nil
	})
	return t, at, err
}

// elementOf returns what a pointer leads to, or nil.
func elementOf(t *types.Type) *types.Type {
	if t.Kind != types.Pointer {
		return nil
	}
	el, err := t.Elem()
	if err != nil {
		return nil
	}
	return el
}

// leafAt calls f for the numbers and pointers, one for each member of a union, that begin at a byte of an object, or of one behind it in an array, until it returns true.
// element is set for those of an array. A bit-field is none: it is of no size.
func leafAt(t *types.Type, at int64, depth int, f func(is *types.Type, element bool) bool) (done bool) {
	r, err := t.Resolve()
	if err != nil || depth > maxNesting {
		return false
	}
	if r.Kind == types.Array {
		el, _, err := r.Count()
		return err == nil && leafAt(el, at, depth+1, func(is *types.Type, _ bool) bool { return f(is, true) })
	}
	if r.Size <= 0 {
		return false
	}
	if at %= r.Size; at < 0 {
		at += r.Size
	}
	if !r.IsRecord() {
		return at == 0 && f(r, false)
	}
	members, err := r.Members()
	return err == nil && slices.ContainsFunc(members, func(m types.Member) bool {
		size, err := m.Type.ByteSize()
		begins := int64(m.BitOffset / 8)
		return err == nil && m.BitSize == 0 && at >= begins && at < begins+size && leafAt(m.Type, at-begins, depth+1, f)
	})
}
