package resolve

import (
	mathbits "math/bits"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/arithmetic"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/madeof"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// GCC notes a bit-field that is passed to an inlined function in three ways (gcc/cfgexpand.cc, expand_debug_expr; gcc/dwarf2out.cc, mem_loc_descriptor):
//
// One that begins with its byte, or word, becomes all of that, extended to the parameter's type: which bits are the field's is not said. The type of what the
// memory is a part of tells, where a caller has a variable that points there.
//
// Another one is extracted by two shifts: see arithmetic.Extracted.
//
// A number that is stored into a field and passed is cut to the bits of the mode that has room for it, 8 or 16, or not at all for 17 bits and more.
//
// A truth value that was made of an integer becomes the register of that, of which only the lowest bit counts. "!b" of a truth value becomes ~b, of which the same is so; a number that is
// passed can be that, or as many bits of ~b as it has.

// fields sets what a number is that GCC made of a bit-field, and says why it may be another one, or "".
func (ev *Evaluator) fields(l *loc.Location, t *types.Type) (because string, err error) {
	extract(l)
	if ev.spot.Kind != entries.Inline {
		return "", nil
	}
	if made, err := ev.madeOfTruth(l, t); made || err != nil {
		return "a caller has a truth value in the register, of which only the lowest bit counts", err
	}
	if cut, err := ev.cutByField(l, t); cut || err != nil {
		return "a bit-field of a caller's may cut the number to fewer bits than GCC's note says", err
	}
	m, ok, err := ev.container(l, t)
	if !ok || err != nil {
		return "", err
	}
	if f, err := ev.beginsField(m); f.is && err == nil {
		if cut, err := ev.cutToField(l, t, &f); cut || err != nil {
			return "", err
		}
		return "GCC's note is the memory that a bit-field is in, without saying which bits it has", nil
	}
	return "", err
}

// extract makes two shifts the extraction of a bit-field.
func extract(l *loc.Location) {
	if l.Kind == loc.KindValue {
		l.Expr = arithmetic.Extracted(l.Expr)
	}
}

// cutByField reports whether a number is computed, and may be cut by a bit-field of which GCC's note gives the mode: a variable of a caller has one, or points to what has.
func (ev *Evaluator) cutByField(l *loc.Location, t *types.Type) (bool, error) {
	if l.Kind != loc.KindValue || !scalar(t) {
		return false, nil
	}
	e, bits, cut := l.Expr, uint64(0), true
	switch {
	case e.Op == ops.And && e.B.Op == ops.Const:
		bits, e = 8*uint64(arithmetic.MaskBytes(e.B.K)), e.A
	case e.Op == ops.ZExt || e.Op == ops.SExt:
		bits, e = 8*uint64(e.Size), e.A
	case arithmetic.Extends(e):
		bits, e = 64-e.B.K, e.A.A
	default:
		if size, err := t.ByteSize(); err == nil {
			bits, cut = 8*uint64(size), false
		}
	}
	switch e.Op {
	case ops.Add, ops.Sub, ops.Mul, ops.Shl, ops.Neg, ops.Not:
	default:
		return false, nil
	}
	if bits != 8 && bits != 16 && bits != 32 {
		return false, nil
	}
	least := bits/2 + 1
	if bits == 8 {
		least = 2
	}
	cuts := func(width uint64) bool { return width >= least && width < bits }
	if !cut {
		// Only a number that is negative in so many bits shows it.
		var widths []uint64
		e.Walk(func(n *loc.Expr) {
			if width := uint64(mathbits.Len64(n.K)); n.Op == ops.Const && cuts(width) && n.K>>(width-2) == 3 {
				widths = append(widths, width)
			}
		})
		if len(widths) == 0 {
			return false, nil
		}
		cuts = func(width uint64) bool { return slices.Contains(widths, width) }
	}
	return ev.spot.OfCallers(func(x *entries.Scoped) (bool, error) {
		t, err := ev.typeOf(x)
		if err != nil || t == nil {
			return false, err
		}
		if t.Kind == types.Pointer {
			if !cut || bits == 32 { // that a structure elsewhere has such a field means little
				return false, nil
			}
			if t, err = t.Elem(); err != nil {
				return false, nil //nolint:nilerr // reported where that variable is asked for
			}
		}
		return hasField(t, cuts, 0), nil
	})
}

// hasField reports whether a type has a bit-field of such a width, in bits.
func hasField(t *types.Type, such func(width uint64) bool, depth int) bool {
	r, err := t.Resolve()
	if err != nil || depth > maxWithin || !r.IsRecord() {
		return false
	}
	members, err := r.Members()
	return err == nil && slices.ContainsFunc(members, func(m types.Member) bool {
		if m.BitSize != 0 {
			return such(m.BitSize)
		}
		return hasField(m.Type, such, depth+1)
	})
}

// maxWithin bounds how deep in structures a bit-field is looked for.
const maxWithin = 4

// container returns the memory that a number is, or that it extends. ok is false for other numbers.
func (ev *Evaluator) container(l *loc.Location, t *types.Type) (m body.Slot, ok bool, err error) {
	var few [1]body.Slot
	e := l.Expr
	switch l.Kind {
	case loc.KindMemory:
		size, err := t.ByteSize()
		if err != nil || size > 2 || !scalar(t) { // longer fields are rare, and other numbers in memory are not
			return m, false, nil //nolint:nilerr // the type is asked for elsewhere
		}
		out := madeof.SlotAt(few[:0], e, size)
		if len(out) == 1 {
			m = out[0]
		}
		return m, len(out) == 1 && m.Base != uint64(ev.Arch.SP), nil
	case loc.KindValue:
	default:
		return m, false, nil
	}
	bytes := int64(0)
	switch {
	case e.Op == ops.And && e.B.Op == ops.Const:
		bytes, e = arithmetic.MaskBytes(e.B.K), e.A
	case e.Op == ops.ZExt || e.Op == ops.SExt:
		bytes, e = int64(e.Size), e.A
	case arithmetic.Extends(e):
		bytes, e = int64(64-e.B.K)/8, e.A.A
	case e.Op == ops.Deref:
		bytes = int64(e.Size)
	}
	switch {
	case bytes == 0 || bytes > 2:
	case e.Op == ops.Deref && int64(e.Size) == bytes:
		if out := madeof.SlotAt(few[:0], e.A, bytes); len(out) == 1 {
			return out[0], true, nil
		}
	case e.Op == ops.Reg:
		m, ok, err = ev.spot.U.Body.LoadedNear(e.K, ev.spot.At.Addr)
		return m, ok && m.Size == bytes, err
	}
	return m, false, nil
}

// maxNesting bounds how deep in structures and arrays a bit is looked for.
const maxNesting = 64

// scalar reports whether a type is that of a number.
func scalar(t *types.Type) bool {
	r, err := t.Resolve()
	return err == nil && (r.Kind == types.Int || r.Kind == types.Char || r.Kind == types.Enum)
}

// cutToField makes a number the lower bits of it, without a sign, as many as the field has that begins there: if debug information knows of nothing else there, or if an instruction
// for the call leaves just so many. The same memory, read as a byte or a word, would not be cut for a call, or to as many bits.
func (ev *Evaluator) cutToField(l *loc.Location, t *types.Type, f *field) (bool, error) {
	e := l.Expr
	r, err := t.Resolve()
	size, also := t.ByteSize()
	switch {
	case err != nil || also != nil || f.bits == 0:
		return false, nil
	case l.Kind == loc.KindMemory && !r.Signed:
		e = &loc.Expr{Op: ops.Deref, Size: uint8(size), A: e}
	case l.Kind == loc.KindValue && e.Op == ops.And || l.Kind == loc.KindValue && e.Op == ops.ZExt:
		e = e.A
	default:
		return false, nil
	}
	if f.shared || f.signed {
		c, err := ev.codeOf(ev.spot)
		if err != nil || !c.CutsForCall(ev.spot.Rec, ev.spot.At.Addr, uint8(f.bits), func(s *body.State) (body.Number, bool) { return numberOf(s, e) }) {
			return false, err
		}
	}
	l.Kind, l.Expr = loc.KindValue, &loc.Expr{Op: ops.And, A: e, B: &loc.Expr{Op: ops.Const, K: 1<<f.bits - 1}}
	ev.lacked = true
	return true, nil
}

// field is a bit-field that begins where memory does that is read, and has fewer bits.
type field struct {
	is     bool
	bits   uint64 // or 0, if there are several of different sizes
	signed bool
	shared bool // something else is known to be there
}

// add adds what is at a bit of a type, where so many bits are read. known is true if a bit-field begins there, or a number of as many bits as are read.
func (f *field) add(t *types.Type, at, bits uint64, depth int) (known bool) {
	r, err := t.Resolve()
	if err != nil || depth > maxNesting {
		f.shared = true
		return false
	}
	if r.Kind == types.Array {
		el, _, err := r.Count()
		if err != nil {
			return false
		}
		size, err := el.ByteSize()
		if err != nil || size <= 0 {
			return false
		}
		return f.add(el, at%(8*uint64(size)), bits, depth+1)
	}
	members, err := r.Members()
	if !r.IsRecord() || err != nil {
		size, err := r.ByteSize()
		f.shared = f.shared || err != nil || at < 8*uint64(size)
		return false
	}
	for i := range members {
		m := &members[i]
		if m.BitSize != 0 {
			if m.BitOffset == at {
				known = true
				f.begins(m, bits)
			}
			continue
		}
		size, err := m.Type.ByteSize()
		switch {
		case err != nil || at < m.BitOffset || at >= m.BitOffset+8*uint64(size):
		case scalar(m.Type):
			f.shared = true
			known = known || at == m.BitOffset && 8*uint64(size) == bits
		default:
			known = f.add(m.Type, at-m.BitOffset, bits, depth+1) || known
		}
	}
	return known
}

// begins adds a bit-field, of which so many bits are read.
func (f *field) begins(m *types.Member, bits uint64) {
	if r, err := m.Type.Resolve(); err != nil || r.Signed {
		f.signed = true
	}
	switch {
	case m.BitSize >= bits:
		f.shared = true
	case !f.is:
		f.is, f.bits = true, m.BitSize
	case f.bits != m.BitSize:
		f.bits = 0
	}
}

// beginsField returns the bit-field that begins where memory does: of what a variable of a caller is, or points to.
func (ev *Evaluator) beginsField(m body.Slot) (f field, err error) {
	// GCC notes the memory by any register that has the pointer, and the caller's variable in the one that it was moved from.
	bases := body.Registers(1) << m.Base
	alike := false // they are known
	based := func(register uint64) (bool, error) {
		if !bases.Has(register) && !alike {
			c, err := ev.codeOf(ev.spot)
			if err != nil {
				return false, err
			}
			bases, alike = bases|c.Held().Alike(m.Base, ev.spot.At.Addr), true
		}
		return bases.Has(register), nil
	}
	_, err = ev.spot.OfCallers(func(x *entries.Scoped) (bool, error) {
		l, ok := ev.placeOfVariable(x)
		if !ok {
			return false, nil
		}
		base, at := uint64(0), uint64(m.Off)
		pointer := l.Kind == loc.KindRegister
		if pointer {
			base = l.Expr.K
		} else {
			var few [1]body.Slot
			if l.Kind != loc.KindMemory {
				return false, nil
			}
			own := madeof.SlotAt(few[:0], l.Expr, 0)
			if len(own) != 1 || own[0].Off > m.Off {
				return false, nil
			}
			base, at = own[0].Base, uint64(m.Off-own[0].Off)
		}
		t, err := ev.typeOf(x)
		if err != nil || t == nil {
			return false, err
		}
		if pointer {
			if t.Kind != types.Pointer {
				return false, nil
			}
			if t, err = t.Elem(); err != nil {
				return false, nil //nolint:nilerr // reported where that variable is asked for
			}
			if size, err := t.ByteSize(); err == nil && size > 0 && at >= uint64(size) { // it points to several
				at %= uint64(size)
			}
		}
		with := f
		known := with.add(t, 8*at, 8*uint64(m.Size), 0)
		if !known && with == f {
			return false, nil
		}
		if is, err := based(base); !is || err != nil {
			return false, err
		}
		f = with
		// Another variable may say that something else is there, after a field.
		return known && !f.is, nil
	})
	return f, err
}

// placeOfVariable returns where a variable in scope is.
func (ev *Evaluator) placeOfVariable(x *entries.Scoped) (l loc.Location, ok bool) {
	its, ok := ev.spot.Placed(x)
	if !ok {
		return l, false
	}
	r, err := ev.Locate(its.Expr, its.Sec, its.Off, &l)
	return l, err == nil && r.Code == reasons.None
}

// typeOf returns the resolved type of a variable in scope, or nil.
func (ev *Evaluator) typeOf(x *entries.Scoped) (*types.Type, error) {
	v := x.Var
	if err := v.Complete(); err != nil {
		return nil, err
	}
	t, err := v.U.TypeOf(v.Type)
	if err == nil {
		t, err = t.Resolve()
	}
	if err != nil {
		return nil, nil //nolint:nilerr // reported where that variable is asked for
	}
	return t, nil
}

// madeOfTruth reports whether a number is computed from a register that a truth value of a caller is in, and that may have other bits than the lowest one.
func (ev *Evaluator) madeOfTruth(l *loc.Location, t *types.Type) (made bool, err error) {
	size, err := t.ByteSize()
	if err != nil || l.Kind != loc.KindValue {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	r, err := t.Resolve()
	truth := err == nil && r.Kind == types.Bool // of which the lowest bit is fetched
	var computed, flipped []uint64
	l.Expr.Walk(func(n *loc.Expr) {
		switch n.Op {
		case ops.Not:
			if n.A.Op == ops.Reg && !truth {
				flipped = append(flipped, n.A.K)
			}
		case ops.Add, ops.Sub, ops.Mul, ops.Or, ops.Xor, ops.Shl:
			if size > 1 || n.B.Op == ops.Const {
				return // to more bits, it would be extended
			}
			for _, x := range [...]*loc.Expr{n.A, n.B} {
				if x.Op == ops.Reg {
					computed = append(computed, x.K)
				}
			}
		case ops.And:
			if n.A.Op == ops.Reg && n.B.Op == ops.Const && n.B.K == 0xff {
				computed = append(computed, n.A.K)
			}
		}
	})
	for _, r := range computed {
		if made, err = ev.hasTruth(1 << r); err != nil || made && (registers{ev}).Bits(r) > 1 {
			return made, err
		}
	}
	if len(flipped) == 0 {
		return false, nil
	}
	c, err := ev.codeOf(ev.spot)
	if err != nil {
		return false, err
	}
	for _, r := range flipped {
		// The caller's variable may still be noted in the register from which it was moved.
		if made, err = ev.hasTruth(c.Held().Alike(r, ev.spot.At.Addr)); made || err != nil {
			return made, err
		}
	}
	return false, nil
}

// hasTruth reports whether a truth value of a caller is in one of some registers.
func (ev *Evaluator) hasTruth(of body.Registers) (bool, error) {
	return ev.spot.OfCallers(func(x *entries.Scoped) (bool, error) {
		l, ok := ev.placeOfVariable(x)
		if !ok || l.Kind != loc.KindRegister || !of.Has(l.Expr.K) {
			return false, nil
		}
		t, err := ev.typeOf(x)
		return err == nil && t != nil && t.Kind == types.Bool, err
	})
}
