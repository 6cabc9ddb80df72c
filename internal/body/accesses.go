package body

import (
	"math"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// FramePointer returns the register that a function may keep its frame's address in, by its DWARF number. ok is false where
// accesses to slots are not decoded.
func (img *Image) FramePointer() (n uint64, ok bool) {
	arch := insn.For(img.Instructions())
	if arch == nil {
		return 0, false
	}
	return arch.Slots.Frame, true
}

// StoredLast returns the link-time address of the instruction that ends at hi and is the first to store a slot, in code
// from an address on that has no branches and no other access to the slot. A module's code is not relocated, but
// operands relative to these registers have no relocations. register is set if it stores what a register holds, and no constant.
func (img *Image) StoredLast(from, hi uint64, m Slot) (at uint64, register, ok bool) {
	arch := insn.For(img.Instructions())
	if arch == nil {
		return 0, false, false
	}
	code, err := img.Bytes(from, hi-from)
	if err != nil {
		return 0, false, false // no code: the file has only debug information
	}
	off, ok := arch.Slots.StoredLast(code, m)
	return from + uint64(off), ok && !arch.Numbered(code[off:]), ok
}

// maxPrologue bounds the code that is read before and after the end of a prologue, in bytes.
const maxPrologue = 512

// StoredLater reports whether the code that begins at a link-time address stores a slot only from another address on: that of a probe, such as where a
// function's prologue is said to end. register is set if it stores what a register holds, and no constant.
func (img *Image) StoredLater(from, end uint64, m Slot) (register, ok bool) {
	arch := insn.For(img.Instructions())
	if arch == nil || end < from || end-from > maxPrologue {
		return false, false
	}
	sec := img.SectionAt(from)
	if sec == nil {
		return false, false
	}
	code, err := img.Bytes(from, min(end-from+maxPrologue, sec.Addr+sec.Size-from))
	if err != nil || end-from >= uint64(len(code)) {
		return false, false
	}
	at, ok := arch.StoredLater(code[:end-from], code[end-from:], m)
	return ok && !arch.Numbered(code[end-from+uint64(at):]), ok
}

// maxFirst bounds the bytes of code that SetsFirst reads.
const maxFirst = 256

// SetsFirst reports whether code at a link-time address sets one of some registers before its first branch or call. One of unread, of these,
// counts only if nothing reads it before, not even what sets it.
func (img *Image) SetsFirst(from uint64, of, unread Registers) bool {
	arch := insn.For(img.Instructions())
	sec := img.SectionAt(from)
	if arch == nil || sec == nil || of == 0 {
		return false
	}
	code, err := img.Bytes(from, min(maxFirst, sec.Addr+sec.Size-from))
	for err == nil && len(code) > 0 {
		in, ok := arch.Next(code)
		if !ok || !in.Onward || in.Branches || in.Call || in.Lost || in.Leaves || in.Trap {
			return false
		}
		reads, w, ok := arch.Accesses(code)
		if of &^= reads & unread; ok && w.Registers&of != 0 {
			return true
		}
		code = code[in.Size:]
	}
	return false
}

// ReadsFirst reports whether code at a link-time address reads all of some registers before it sets them, and before its first call. It goes on behind
// branches that need not be taken. What pushes a register may only make room, or save it; what clears one by itself is no reader.
func (img *Image) ReadsFirst(from uint64, of Registers) bool {
	arch := insn.For(img.Instructions())
	sec := img.SectionAt(from)
	if arch == nil || sec == nil || of == 0 {
		return false
	}
	code, err := img.Bytes(from, min(maxFirst, sec.Addr+sec.Size-from))
	sp := Registers(1) << img.Arch().SP
	for err == nil && len(code) > 0 && of != 0 {
		in, ok := arch.Next(code)
		if !ok || !in.Onward || in.Call || in.Lost || in.Leaves || in.Trap {
			return false
		}
		if !in.Branches {
			reads, w, ok := arch.Accesses(code)
			if !ok {
				return false
			}
			if w.Registers&sp == 0 {
				of &^= reads
			}
			if w.Registers&of != 0 {
				return false
			}
		}
		code = code[in.Size:]
	}
	return err == nil && of == 0
}

// WritesBetween reports whether straight code from one link-time address to another sets one of some registers, not counting instructions
// in some ranges. Where a branch or a call is between, or an instruction is not known, nothing is known to.
func (img *Image) WritesBetween(from, to uint64, of Registers, without []dw.Range) bool {
	found := false
	straight := img.straight(from, to, func(arch *insn.Arch, at uint64, code []byte) bool {
		w, ok := arch.Writes(code)
		found = found || ok && w.Registers&of != 0 && !dw.Covers(without, at)
		return true
	})
	return straight && found
}

// Unchanged reports whether the code from one link-time address to another is straight, and sets none of some registers.
func (img *Image) Unchanged(from, to uint64, of Registers) bool {
	found := false
	return img.straight(from, to, func(arch *insn.Arch, _ uint64, code []byte) bool {
		w, ok := arch.Writes(code)
		found = found || !ok || w.Registers&of != 0
		return !found
	}) && !found
}

// Leaves reports whether no instruction in a range of link-time addresses sets a register, other than what is called.
func (img *Image) Leaves(r dw.Range, register uint64) bool {
	arch := insn.For(img.Instructions())
	if arch == nil {
		return false
	}
	leaves, err := img.each(r, func(_ uint64, in insn.Insn, code []byte) bool {
		w, known := arch.Writes(code)
		return in.Call || in.Branches || known && !w.Registers.Has(register)
	})
	return leaves && err == nil
}

// Sets reports whether the instruction at a link-time address sets a register.
func (img *Image) Sets(addr, register uint64) bool {
	arch := insn.For(img.Instructions())
	code, err := img.Instruction(addr)
	if arch == nil || err != nil || len(code) == 0 {
		return false
	}
	w, ok := arch.Writes(code)
	return ok && w.Registers.Has(register)
}

// maxBefore is how many instructions before an address are looked at.
const maxBefore = 64

// Stepped returns what was added to a register by the access that wrote it last in the straight code before a link-time address, or 0 if something
// else did, or it is not known what: in code whose instructions have different sizes.
func (img *Image) Stepped(register, at uint64) int64 {
	arch := insn.For(img.Instructions())
	sec := img.SectionAt(at)
	if arch == nil || arch.Steps == nil || arch.Fixed == 0 || sec == nil {
		return 0
	}
	n := min(maxBefore*arch.Fixed, at-sec.Addr)
	code, err := img.Bytes(at-n, n)
	for ; err == nil && uint64(len(code)) >= arch.Fixed; code = code[:uint64(len(code))-arch.Fixed] {
		last := code[uint64(len(code))-arch.Fixed:]
		in, ok := arch.Next(last)
		if !ok || !in.Onward || in.Call || in.Lost {
			return 0
		}
		if in.Branches || in.Nop {
			continue
		}
		w, ok := arch.Writes(last)
		if !ok {
			return 0
		}
		if w.Registers.Has(register) {
			r, by, ok := arch.Steps(last)
			if !ok || uint64(r) != register {
				return 0
			}
			return by
		}
	}
	return 0
}

// Padding reports whether code from one link-time address to another does nothing: it aligns what follows.
func (img *Image) Padding(from, to uint64) bool {
	return img.straight(from, to, func(arch *insn.Arch, _ uint64, code []byte) bool {
		in, _ := arch.Next(code)
		return in.Nop
	})
}

// SetBefore reports whether an instruction that ends at a link-time address may set a register: instructions of several lengths may end there.
func (img *Image) SetBefore(register, at uint64) (sets bool) {
	const longest = 8 // of those that compute a number from a register
	arch := insn.For(img.Instructions())
	if arch == nil || at < longest {
		return false
	}
	_ = img.View(at-longest, longest, func(code []byte) { // at the beginning of a section there is nothing before
		for n := 1; n <= longest && !sets; n++ {
			if in, ok := arch.Next(code[longest-n:]); ok && in.Size == n {
				w, ok := arch.Writes(code[longest-n:])
				sets = ok && w.Registers.Has(register)
			}
		}
	})
	return sets
}

// near is how far before an instruction code is followed that only goes on at the next one, in bytes.
const near = 48

// Near returns what is known of the lowest bits of a register at a link-time address by the instructions before it that only go on at the next
// one: how many are 0, and how many may not be, 64 if nothing says so. The rows of the line table say where instructions begin.
func (u *Unit) Near(register, at uint64) (zeros, bits uint8, err error) {
	bits = 64
	err = u.followNear(register, at, func(s *symbolic.State) {
		if v, ok := s.Register(register); ok {
			zeros = v.LowZeros()
			bits, _, _ = s.Bits(v)
		}
	})
	return zeros, bits, err
}

// Distance returns the distance in bytes from one register to another at a link-time address, by the instructions that Near looks at. ok is false if they
// do not say it.
func (u *Unit) Distance(from, to, at uint64) (bytes int64, ok bool, err error) {
	err = u.followNear(to, at, func(s *symbolic.State) {
		x, xok := s.Register(from)
		y, yok := s.Register(to)
		ok = xok && yok && x.Terms == y.Terms
		bytes = int64(y.Const - x.Const)
	})
	return bytes, ok, err
}

// followNear calls f with the state behind the instructions before a link-time address that only go on at the next one, if one sets a register.
func (u *Unit) followNear(register, at uint64, f func(s *symbolic.State)) error {
	arch := insn.For(u.Image.Instructions())
	rows, err := u.Rows()
	if err != nil || arch == nil {
		return err
	}
	from, ok := u.Image.straightBefore(rows, at, near)
	if !ok {
		return nil
	}
	written := false
	u.Image.straight(from, at, func(arch *insn.Arch, _ uint64, code []byte) bool {
		w, ok := arch.Writes(code)
		written = !ok || w.Registers.Has(register)
		return !written
	})
	if written {
		s := arch.State()
		u.Image.straight(from, at, func(_ *insn.Arch, addr uint64, code []byte) bool { s.Step(code, addr); return true })
		f(s)
	}
	return nil
}

// straightBefore returns the first address of some rows, no further than so many bytes before a link-time address, from which code only goes on at the next
// instruction up to there.
func (img *Image) straightBefore(rows []dw.Row, at, far uint64) (from uint64, ok bool) {
	i := sort.Search(len(rows), func(i int) bool { return rows[i].Addr >= at })
	first := sort.Search(i, func(k int) bool { return rows[k].Addr+far >= at })
	for k := first; k < i; k++ {
		again := k > first && rows[k].Addr == rows[k-1].Addr
		if !again && !rows[k].End && img.Straight(rows[k].Addr, at) {
			return rows[k].Addr, true
		}
	}
	return 0, false
}

// Absolute is the base of memory at an address that no register has.
const Absolute = math.MaxUint64

// StoredBehind calls f for each instruction in code from a link-time address on that is executed however that goes on, and that stores memory at a distance from a register, as long as no
// instruction has changed that, or with Absolute as the base, memory at a link-time address of which the first byte is known.
func (img *Image) StoredBehind(from, base uint64, f func(addr uint64, m Slot)) {
	sec, arch := img.SectionAt(from), insn.For(img.Instructions())
	if sec == nil || arch == nil {
		return
	}
	to, past := min(from+maxFirst, sec.Addr+sec.Size), from
	_, _ = img.each(dw.Range{Lo: from, Hi: to}, func(at uint64, in insn.Insn, code []byte) bool {
		switch {
		case !goesOn(&in):
			return false
		case in.Branches: // over a few instructions
			past = max(past, at+uint64(in.Target))
			return in.Target > 0 && past < to
		case base == Absolute:
			if arch.Global == nil {
				return false
			}
			if to, ok := arch.Global(code, at); ok && to != 0 && at >= past {
				if w, ok := arch.Writes(code); ok && w.Memory {
					f(at, Slot{Base: Absolute, Off: int64(to), Size: 1})
				}
			}
			return true
		}
		if m, stores, ok := arch.Operand(code); ok && stores && m.Base == base && at >= past {
			f(at, m)
		}
		w, ok := arch.Writes(code)
		return ok && !w.Registers.Has(base)
	})
}

// LoadedNear returns the memory that the instruction loads which sets a register last before a link-time address, in code that only goes on at the next instruction.
// ok is false if it does something else, or is not known.
func (u *Unit) LoadedNear(register, at uint64) (m Slot, ok bool, err error) {
	rows, err := u.Rows()
	if err != nil {
		return m, false, err
	}
	from, straight := u.Image.straightBefore(rows, at, maxFirst/2)
	if !straight {
		return m, false, nil
	}
	u.Image.straight(from, at, func(arch *insn.Arch, _ uint64, code []byte) bool {
		w, known := arch.Writes(code)
		switch {
		case !known:
			ok = false
		case w.Registers.Has(register):
			var stores bool
			m, stores, ok = arch.Operand(code)
			ok = ok && !stores && !arch.Updates(code).Has(register)
		}
		return true
	})
	return m, ok, nil
}

// Straight reports whether code from one link-time address to another only goes on at the next instruction.
func (img *Image) Straight(from, to uint64) bool {
	return img.straight(from, to, func(*insn.Arch, uint64, []byte) bool { return true })
}

// Onward reports whether execution can come from one link-time address to another by way of each instruction in between: by branches that are not taken, and from calls.
func (img *Image) Onward(from, to uint64) bool {
	whole, err := img.each(dw.Range{Lo: from, Hi: to}, func(_ uint64, in insn.Insn, _ []byte) bool {
		return in.Onward && !in.Lost && !in.Trap
	})
	return whole && err == nil
}

// straight calls visit for such instructions as long as it returns true, with the code from each on, and reports whether it was called for all up to the last address.
func (img *Image) straight(from, to uint64, visit func(arch *insn.Arch, at uint64, code []byte) bool) bool {
	arch := insn.For(img.Instructions())
	if arch == nil || from > to || to-from > maxFirst {
		return false
	}
	whole, err := img.each(dw.Range{Lo: from, Hi: to}, func(at uint64, in insn.Insn, code []byte) bool {
		return goesOn(&in) && !in.Branches && visit(arch, at, code)
	})
	return whole && err == nil
}

// goesOn reports whether execution comes from an instruction to the next one, if it does not branch.
func goesOn(in *insn.Insn) bool {
	return in.Onward && !in.Call && !in.Lost && !in.Leaves && !in.Trap
}

// Repeats reports whether code from one link-time address to another has a branch back to its first instruction.
func (img *Image) Repeats(first, end uint64) bool {
	arch := insn.For(img.Instructions())
	if arch == nil {
		return false
	}
	code, err := img.Bytes(first, end-first)
	if err != nil {
		return false
	}
	for at := uint64(0); at < uint64(len(code)); {
		in, ok := arch.Next(code[at:])
		if !ok || in.Size <= 0 {
			return false
		}
		if in.Branches && int64(at)+in.Target == 0 && !in.Call {
			return true
		}
		at += uint64(in.Size)
	}
	return false
}

// maxLoopBody is how much code of a body is read, in bytes.
const maxLoopBody = 1 << 16

// LoopUpdates returns the registers that code in some ranges updates in loops around an address. Only updates from lo to hi count, and
// lowest is where the function begins; all are link-time addresses. Where code cannot be read, it updates none.
func (img *Image) LoopUpdates(ranges []dw.Range, around, lowest, lo, hi uint64) Registers {
	arch := insn.For(img.Instructions())
	if arch == nil {
		return 0
	}
	var body []insn.Code
	left := uint64(maxLoopBody)
	for _, r := range ranges {
		n := min(r.Hi-r.Lo, left)
		left -= n
		if code, err := img.Bytes(r.Lo, n); err == nil {
			body = append(body, insn.Code{Addr: r.Lo, Bytes: code})
		}
	}
	return flow.LoopUpdates(arch, &flow.Loop{Body: body, Around: around, Lowest: lowest, Lo: lo, Hi: hi})
}

// BeginsAt reports whether a run of a record's body can begin with the first of its statements at an address: the line table has a row
// there for the function's declaration, or for the first of its lines that has code anywhere in the unit. Where there is none, and GCC without markers of statements
// lets a body inlined into it begin, it is the line of that call. known is false if there is neither.
func (u *Unit) BeginsAt(rec int32, addr uint64) (first, known bool, err error) {
	e, err := u.Entry(u.Off + uint64(u.Recs[rec].Off))
	if err != nil {
		return false, false, err
	}
	texts := u.declarations()
	own, err := texts.of(u, rec, e)
	if err != nil || own.File == 0 {
		return false, false, err
	}
	rows, err := u.RowsIn(dw.Range{Lo: addr, Hi: addr + 1})
	if err != nil {
		return false, false, err
	}
	i := sort.Search(len(rows), func(i int) bool { return rows[i].Addr >= addr })
	least := uint32(math.MaxUint32)
	for k := i; k < len(rows) && rows[k].Addr == addr; k++ {
		if texts.at(u, &rows[k]) == own {
			least = min(least, rows[k].Line)
		}
	}
	if least == math.MaxUint32 && u.GNU() {
		// Where there are markers of statements, views say which has begun.
		marked, err := u.MarksStatements(rec)
		if err == nil && !marked {
			least, err = u.calledAt(rec, addr, own)
		}
		if err != nil {
			return false, false, err
		}
	}
	if least == math.MaxUint32 {
		return false, false, nil
	}
	if least <= own.Line {
		return true, true, nil
	}
	return least <= texts.first(u, rows, own), true, nil
}

// calledAt returns the least line of a text from which what is inlined into a record's body, and begins at an address, is called.
func (u *Unit) calledAt(rec int32, addr uint64, own Text) (uint32, error) {
	least := uint32(math.MaxUint32)
	for i := rec + 1; int(i) < len(u.Recs) && u.Recs[i].Parent >= rec; i++ {
		if r := &u.Recs[i]; r.Parent != rec || r.Flags&index.Inlined == 0 {
			continue
		}
		e, err := u.Entry(u.Off + uint64(u.Recs[i].Off))
		if err != nil {
			return 0, err
		}
		var pcs dw.PCs
		var call CallPlace
		err = e.Attrs(func(a dw.Attr, v dw.Value) {
			pcs.Take(a, v)
			call.Take(a, v)
		})
		if err != nil {
			return 0, err
		}
		start, live, err := u.Start(&pcs)
		if err != nil {
			return 0, err
		}
		if live && start == addr && u.declarations().at(u, &dw.Row{File: call.File, Line: call.Line, Column: call.Column}) == own {
			least = min(least, call.Line)
		}
	}
	return least, nil
}

// Statements returns how many statements of a record's body begin at an address, in the views from view to view+views-1. The row for the
// beginning of the body itself, which has the place of the function's declaration, is none. A line table without views has all of an
// address's rows in view 0 and the following ones, in order.
func (u *Unit) Statements(rec int32, addr, view, views uint64) (n int, err error) {
	return u.statements(rec, addr, addr+1, func(r *dw.Row) bool { return uint64(r.View) >= view && uint64(r.View)-view < views }, nil)
}

// StatementsBetween returns how many statements of bodies of a record's function begin from one address to another.
func (u *Unit) StatementsBetween(rec int32, from, to uint64) (n int, err error) {
	return u.statements(rec, from, to, func(*dw.Row) bool { return true }, nil)
}

// EachStatement calls f with the place, the address and the view of each statement of a record's function that begins from one address to another, in their order.
func (u *Unit) EachStatement(rec int32, from, to uint64, f func(p Place, addr, view uint64)) error {
	_, err := u.statements(rec, from, to, func(*dw.Row) bool { return true }, func(r *dw.Row) {
		f(Place{File: r.File, Line: r.Line, Column: r.Column}, r.Addr, uint64(r.View))
	})
	return err
}

func (u *Unit) statements(rec int32, from, to uint64, counts func(r *dw.Row) bool, each func(r *dw.Row)) (n int, err error) {
	e, err := u.Entry(u.Off + uint64(u.Recs[rec].Off))
	if err != nil {
		return 0, err
	}
	texts := u.declarations()
	own, err := texts.of(u, rec, e)
	if err != nil || own.File == 0 {
		return 0, err
	}
	rows, err := u.RowsIn(dw.Range{Lo: from, Hi: to})
	if err != nil {
		return 0, err
	}
	i := sort.Search(len(rows), func(i int) bool { return rows[i].Addr >= from })
	for ; i < len(rows) && rows[i].Addr < to; i++ {
		r := &rows[i]
		if r.Stmt && (r.Line != own.Line || r.Column != own.Column) && counts(r) && texts.at(u, r) == own {
			if n++; each != nil {
				each(r)
			}
		}
	}
	return n, nil
}
