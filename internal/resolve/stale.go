package resolve

import (
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/madeof"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// An object can lack at a site what its source has stored: a location is where the object is, and says nothing of what is there. Compilers remove stores that nobody
// reads, and move others behind the instructions of a body that does not need them.

// pointeeLacks says what the object lacks to which a value points, or "".
func (ev *Evaluator) pointeeLacks(l *loc.Location, t *types.Type, gnu bool) (because string, err error) {
	if stale, err := ev.pointeeStale(l, t); stale || err != nil {
		return "no instruction stores some bytes of the object before the probe", err
	}
	if !gnu {
		return "", nil
	}
	if late, err := ev.pointeeStoredLate(l, t); late || err != nil {
		return "what is at the address is stored by an instruction of the caller's behind the probe", err
	}
	return "", nil
}

// followed reports whether what a pointer leads to is fetched in its stead: a reference stands for its object, and an address of characters is printed as their text.
func followed(t *types.Type) bool {
	r, err := t.Resolve()
	if err != nil || r.Kind != types.Pointer || r.Word() != "*" {
		return true //nolint:nilerr // the type is asked for elsewhere
	}
	to, err := r.Elem()
	if err == nil {
		to, err = to.Resolve()
	}
	return err != nil || to.Size == 1 && (to.Kind == types.Char || to.Kind == types.Int)
}

// pointeeStoredLate reports whether a value is the address of an object into which an instruction of the caller's stores in the straight code behind
// the site, of a statement that comes before the call: what is read there is what was there before. GCC's second scheduling pass moves such stores too. And it makes one
// store of several that are next to each other, where the last one was.
func (ev *Evaluator) pointeeStoredLate(l *loc.Location, t *types.Type) (late bool, err error) {
	s := ev.spot
	register := l.Kind == loc.KindRegister
	if s.Kind != entries.Inline || !register && l.Kind != loc.KindValue {
		return false, nil
	}
	kernel, err := s.U.Img.Code.IsKernel()
	if err != nil {
		return false, err
	}
	at, fixed := fixedAddress(l.Expr)
	framed := !register && !fixed && ev.frameAddress(l.Expr)
	// One store of several members shows it on the heap, which kernels do not have: they leave vector registers alone.
	anywhere := fixed || !kernel
	if !register && !framed && !anywhere || !framed && s.PCs.Ranges.Form == 0 {
		return false, nil // of a body in one part only the frame is looked at: a copy of an object is often stored at one go, behind bodies without code
	}
	r, err := t.Resolve()
	if err != nil || r.Kind != types.Pointer {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	to, constant, err := pointedTo(r)
	if err != nil || to.Size <= 0 {
		return false, nil //nolint:nilerr // nothing is read there
	}
	size := to.Size
	// Elsewhere than in the frame only a constant object is known to be set before.
	if framed || constant && anywhere && to.IsRecord() {
		var few [1]body.Slot
		object := madeof.SlotAt(few[:0], l.Expr, size)
		switch {
		case register:
			object = append(object[:0], body.Slot{Base: l.Expr.K, Size: size})
		case fixed:
			object = append(object[:0], body.Slot{Base: body.Absolute, Off: int64(at), Size: size})
		}
		for _, o := range object {
			if late, err = ev.storedBehind(o, constant, fixed || framed); late || err != nil {
				return late, err
			}
		}
	}
	if !register {
		return false, nil
	}
	ranges, end, err := ev.bodyEnd()
	if err != nil || s.At.Addr >= end {
		return false, err
	}
	inFrame := false
	s.U.Img.Code.StoredBehind(s.At.Addr, uint64(ev.Arch.SP), func(addr uint64, _ body.Slot) {
		inFrame = inFrame || addr < end && !dw.Covers(ranges, addr)
	})
	if !inFrame {
		return false, nil
	}
	off, ok, err := s.U.Body.Distance(uint64(ev.Arch.SP), l.Expr.K, s.At.Addr)
	if !ok || err != nil {
		return false, err
	}
	return ev.storedBehind(body.Slot{Base: uint64(ev.Arch.SP), Off: off, Size: size}, constant, true)
}

// fixedAddress returns the link-time address that an expression is, if it is one.
func fixedAddress(e *loc.Expr) (addr uint64, ok bool) {
	switch {
	case e == nil:
	case e.Op == ops.Addr:
		return e.K, true
	case e.Op == ops.Add && e.A.Op == ops.Addr && e.B.Op == ops.Const:
		return e.A.K + e.B.K, true
	}
	return 0, false
}

// storedBehind reports whether an instruction of the caller's stores into an object in the straight code behind the site, for a statement before the call. constant is
// set for one that the body does not change, and known for one that is in the frame or at a fixed address.
func (ev *Evaluator) storedBehind(o body.Slot, constant, known bool) (bool, error) {
	s := ev.spot
	type store struct {
		addr uint64
		at   body.Slot
	}
	var stores []store
	s.U.Img.Code.StoredBehind(s.At.Addr, o.Base, func(addr uint64, m body.Slot) {
		if m.Overlaps(o) {
			stores = append(stores, store{addr, m})
		}
	})
	if len(stores) == 0 {
		return false, nil
	}
	ranges, end, err := ev.bodyEnd()
	if err != nil {
		return false, err
	}
	rows, err := s.U.Body.Rows()
	if err != nil {
		return false, err
	}
	for _, x := range stores {
		row := dw.RowAt(rows, x.addr)
		here := row != nil && row.Line != 0 && uint64(row.File) == s.CallFile && !dw.Covers(ranges, x.addr)
		// What a body does not change it does not store: the instruction is of a statement around it, which was moved there.
		if constant && known && dw.Covers(ranges, x.addr) && x.at.Off <= o.Off && x.at.Off+x.at.Size >= o.Off+o.Size {
			if other, err := ev.changesSuch(o.Size); !other || err != nil {
				return !other, err
			}
		}
		merged := here && constant && x.at.Size >= 16 && (x.at.Off < o.Off || x.at.Off+x.at.Size > o.Off+o.Size)
		earlier := here && known && x.addr < end && int(row.Line) <= s.CallLine
		begun := here && constant && !merged && !earlier && statementBefore(rows, row, s.At.Addr, x.addr)
		if !merged && !earlier && !begun && (!known || !constant) {
			continue
		}
		c, err := ev.codeOf(s)
		if err != nil {
			return false, err
		}
		if before, own := c.Precedes(s.Rec, x.addr); before && known && constant || own && (merged || earlier || begun) {
			return true, nil
		}
	}
	return false, nil
}

// statementBefore reports whether an instruction at a link-time address behind a site is of a statement that began before the site, not far from there, and not again in between, as the next turn of
// a loop would: by GCC's markers, which stay where the statement was.
func statementBefore(rows []dw.Row, of *dw.Row, site, addr uint64) (before bool) {
	const near = 256
	for k := sort.Search(len(rows), func(k int) bool { return rows[k].Addr+near > site }); k < len(rows) && rows[k].Addr <= addr; k++ {
		if r := &rows[k]; r.Stmt && !r.End && r.File == of.File && r.Line == of.Line {
			if before = r.Addr <= site; !before {
				return false
			}
		}
	}
	return before
}

// changesSuch reports whether another parameter of the function points to an object of so many bytes that is not const: it can be the same one.
func (ev *Evaluator) changesSuch(size int64) (found bool, err error) {
	abs, ok, err := ev.spot.Abstract()
	if err != nil || !ok {
		return true, err
	}
	err = ev.spot.U.Img.EachParam(abs, func(x *entries.Var) (bool, error) {
		if err := x.Complete(); err != nil {
			return false, err
		}
		t, err := x.U.TypeOf(x.Type)
		if err == nil {
			t, err = t.Resolve()
		}
		if err != nil || t.Kind != types.Pointer {
			return true, nil //nolint:nilerr // reported where that parameter is asked for
		}
		to, constant, err := pointedTo(t)
		found = err == nil && !constant && (to.Size <= 0 || to.Size == size)
		return !found, nil
	})
	return found, err
}

// bodyEnd returns where the body is, and where its last part begins: what is stored behind that, it does not read.
func (ev *Evaluator) bodyEnd() (ranges []dw.Range, end uint64, err error) {
	s := ev.spot
	if ranges, err = s.U.Extent(&s.PCs); err != nil {
		return nil, 0, err
	}
	for _, r := range ranges {
		end = max(end, r.Lo)
	}
	return ranges, end, nil
}

// stale reports whether a location is an object in the frame of which some bytes need not be there: compilers remove stores of members that nobody reads, and GCC moves
// others behind the body. Padding is no part of an object.
func (ev *Evaluator) stale(l *loc.Location, t *types.Type) (bool, error) {
	if ev.spot.Kind == entries.Line && l.Kind == loc.KindMemory {
		return ev.unset(l, t)
	}
	if ev.spot.Kind != entries.Inline || l.Kind != loc.KindPieces && (l.Kind != loc.KindMemory || !ev.frameAddress(l.Expr)) {
		return false, nil
	}
	r, err := t.Resolve()
	if err != nil {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	var few [1]body.Slot
	if l.Kind == loc.KindMemory {
		size, err := r.ByteSize()
		if err != nil {
			return false, nil //nolint:nilerr // likewise
		}
		return ev.lacks(madeof.SlotAt(few[:0], l.Expr, size), r, 0, 0, false)
	}
	at := uint64(0)
	for i := range l.Pieces {
		p := &l.Pieces[i]
		if p.Loc.Kind == loc.KindMemory && p.BitOffset == 0 {
			if is, err := ev.lacks(madeof.SlotAt(few[:0], p.Loc.Expr, int64(p.BitSize+7)/8), r, at, int64(at/8), false); is || err != nil {
				return is, err
			}
		}
		at += p.BitSize
	}
	return false, nil
}

// pointeeStale is stale of a pointer to an object that the body may not set.
func (ev *Evaluator) pointeeStale(l *loc.Location, t *types.Type) (bool, error) {
	if ev.spot.Kind != entries.Inline || l.Kind != loc.KindValue && l.Kind != loc.KindRegister || !ev.frameAddress(l.Expr) {
		return false, nil
	}
	r, err := t.Resolve()
	if err != nil || r.Kind != types.Pointer {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	to, constant, err := pointedTo(r)
	if err != nil || !to.IsRecord() && (r.Word() == "*" || to.Size <= 0 || to.Size > 8) {
		return false, nil //nolint:nilerr // of an array it is not known how much is pointed to
	}
	// What the body may set need not be there before, as in a constructor: in LLVM's C, one that sets all of it. But the number that a reference stands for is fetched, and what is there
	// instead is not the source's, whether the store of it is gone or there was none: of fmt's "int exp = 0; f(..., exp)" clang drops the store.
	part := !constant && to.IsRecord()
	if part && (dw.IsCPlusPlus(ev.spot.U.Lang) || ev.spot.U.Body.GNU()) {
		return false, nil
	}
	const around = 1 << 12 // the object may be a member
	var few [1]body.Slot
	return ev.lacks(madeof.SlotAt(few[:0], l.Expr, to.Size), to, 0, around, part)
}

// unset reports whether a variable at a line is in the frame, where no instruction stores any of it before: a store that nobody reads is gone, or the source has none.
func (ev *Evaluator) unset(l *loc.Location, t *types.Type) (bool, error) {
	return ev.Unset(l, t, l, t)
}

// Unset is unset of a part of a variable, with a location and a type.
func (ev *Evaluator) Unset(whole *loc.Location, of *types.Type, l *loc.Location, t *types.Type) (bool, error) {
	m, ok := ev.frameSlot(whole, of)
	part, also := ev.frameSlot(l, t)
	from := part.Off - m.Off
	if !ok || !also || part.Base != m.Base || from < 0 || from+part.Size > m.Size || part.Size <= 0 {
		return false, nil
	}
	c, err := ev.instructionsOf(ev.spot)
	if err != nil {
		return false, err
	}
	parts, ok := c.Stale(ev.spot.At.Addr, m.Base, m.Off, m.Size, 0)
	return ok && slices.ContainsFunc(parts, func(p [2]int64) bool { return p[0] <= from && from+part.Size <= p[1] }), nil
}

// frameSlot returns the slot of the frame that an object with a type is in.
func (ev *Evaluator) frameSlot(l *loc.Location, t *types.Type) (m body.Slot, ok bool) {
	size, err := t.ByteSize()
	if err != nil || l.Kind != loc.KindMemory || !ev.frameAddress(l.Expr) {
		return m, false // the type is asked for elsewhere
	}
	var few [1]body.Slot
	at := madeof.SlotAt(few[:0], l.Expr, size)
	if len(at) != 1 {
		return m, false
	}
	return at[0], true
}

// pointedTo returns what a pointer leads to, without typedefs and qualifiers, and whether it is const. What a reference refers to is
// fetched with it: of a structure that is only declared the definition is looked for.
func pointedTo(pointer *types.Type) (to *types.Type, constant bool, err error) {
	if to, err = pointer.Elem(); err != nil {
		return nil, false, err
	}
	constant = to.IsConst()
	if pointer.Word() == "*" {
		to, err = to.Resolve()
	} else {
		to, err = to.Complete()
	}
	return to, constant, err
}

// lacks reports whether bytes of an object with a type, which is at a bit of that and may begin so many bytes before the memory, need not be there; with part, others
// are.
func (ev *Evaluator) lacks(m []body.Slot, t *types.Type, bit uint64, before int64, part bool) (bool, error) {
	if len(m) != 1 || m[0].Base != uint64(ev.Arch.SP) && !ev.framedBy(m[0].Base) {
		return false, nil
	}
	// What is below the stack pointer is not allocated yet: nobody has its address.
	if below := m[0].Base == uint64(ev.Arch.SP) && m[0].Off+m[0].Size <= 0; !below {
		k, of := ev.memory(), markedOf{ev.spot.U, ev.spot.U.Body.Outermost(ev.spot.Rec)}
		if k.computing == of && k.computingFrom == m[0].Base {
			return ev.storesRest(m[0], before)
		}
		all, computes, err := ev.spot.U.Body.StoresAll(ev.spot.Rec, ev.spot.At.Addr, m[0])
		if computes {
			k.computing, k.computingFrom = of, m[0].Base
		}
		if computes && err == nil {
			return ev.storesRest(m[0], before)
		}
		if all || err != nil {
			return false, err
		}
	}
	c, err := ev.instructionsOf(ev.spot)
	if err != nil {
		return false, err
	}
	parts, _ := c.Stale(ev.spot.At.Addr, m[0].Base, m[0].Off, m[0].Size, before)
	if part && len(parts) == 1 && parts[0] == [2]int64{0, m[0].Size} {
		return false, nil
	}
	for _, p := range parts {
		if padding, err := t.Padding(bit+uint64(p[0])*8, bit+uint64(p[1])*8); err != nil || !padding {
			return true, err
		}
	}
	return false, nil
}

// storesRest reports whether the code behind the site stores a part of an object first that no instruction has stored before, where the code has the addresses of others in the frame: by
// those it could have been stored, but then not again at once. GCC moves what the last store of an argument depends on, and that store behind the site.
func (ev *Evaluator) storesRest(m body.Slot, around int64) (bool, error) {
	s := ev.spot
	if around > 0 { // a pointer to it: the address of all of it is known
		return false, nil
	}
	var rest []body.Slot
	s.U.Img.Code.StoredBehind(s.At.Addr, m.Base, func(_ uint64, x body.Slot) {
		if x.Off >= m.Off && x.Off+x.Size <= m.Off+m.Size && x.Size < m.Size {
			rest = append(rest, x)
		}
	})
	for _, x := range rest {
		if _, only := ev.storedOnly(s.At.Addr, x); !only {
			continue
		}
		c, err := ev.instructionsOf(s)
		if err != nil {
			return false, err
		}
		parts, _ := c.Stale(s.At.Addr, m.Base, m.Off, m.Size, 0)
		if slices.ContainsFunc(parts, func(p [2]int64) bool { return p[0] <= x.Off-m.Off && x.Off+x.Size-m.Off <= p[1] }) {
			return true, nil
		}
	}
	return false, nil
}

// keptBack reports whether a number is noted in memory to which the code stores it behind the site only. GCC sinks the store of "r->bits |= more; f(r->bits)" below f, which uses the
// register and stores what it makes of it, and goes on that what is passed is the member: brotli's DecodeSymbol.
func (ev *Evaluator) keptBack(l *loc.Location, t *types.Type) (bool, error) {
	s := ev.spot
	if s.Kind != entries.Inline || l.Kind != loc.KindMemory || ev.frameAddress(l.Expr) {
		return false, nil
	}
	size, err := t.ByteSize()
	if err != nil {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	var few [1]body.Slot
	m := madeof.SlotAt(few[:0], l.Expr, size)
	if len(m) != 1 || !s.U.Img.Code.StoresAhead(s.At.Addr, m[0]) {
		return false, nil
	}
	c, err := ev.codeOf(s)
	if err != nil {
		return false, err
	}
	i, ok := c.BodyOf(s.Rec)
	return ok && c.KeptBack(i, s.At.Addr, m[0]), nil
}
