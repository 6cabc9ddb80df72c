package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/ktable"
	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// What registers and memory hold on a straight way.
type (
	// Value is a number there.
	Value = symbolic.Value
	// Trace has them.
	Trace = symbolic.Trace
	// Symbol is what a number is made of that is no constant.
	Symbol = symbolic.Symbol
)

// Kinds of symbols.
const (
	FromRegister = symbolic.InputRegister // that it held where the way begins
	FromMemory   = symbolic.Loaded
	ZeroExtended = symbolic.ZeroExtended
	SignExtended = symbolic.SignExtended
)

// Fixed returns a constant.
func Fixed(n uint64) Value { return symbolic.Constant(n) }

// Witness is an instruction of a body, in terms of what registers and memory hold where the body begins.
type Witness struct {
	Addr uint64 // link-time address
	Size int    // bytes
	// Value is the address that the instruction accesses, or what a register holds where it calls.
	Value symbolic.Value
	// Shape is that of an instruction that accesses memory, or the link-time address of the function that is called.
	Shape uint64
	// Register is that of an argument at a Call, by its DWARF number.
	Register uint16
	Call     bool
	// Target is set for a call of which Value is the function that is called.
	Target bool
	// Writes is set if the instruction may write memory.
	Writes bool
	// Loads is set if it loads a register, or compares what is in memory: it may be what the compiler computes an argument with, unless the
	// body says that it reads memory there, as it does with what is volatile.
	Loads bool
}

// Straight is the straight way from where a body begins: instructions that only go on at the next one, and jumps without a condition.
type Straight struct {
	Trace *symbolic.Trace
	Found []Witness
	// Ends is set if the way goes as far as its block: to a condition, to a call, or to where it leaves the function.
	Ends  bool
	code  []byte        // memory for what is read
	edges []ktable.Edge // of that code
	reads int           // of the body's own instructions on the way
}

// Limits of a straight way: in instructions, in bytes of code that are read at once, and in jumps.
const (
	maxStraight      = 24
	maxStraightBytes = 96
	maxJumps         = 2
)

// Begin makes the way ready for a body. ok is false if instructions of the image are not known, or may be others where it runs.
func (w *Straight) Begin(img *Image) (ok bool, err error) {
	arch := insn.For(img.Instructions())
	if arch == nil || img.IsRelocatable() {
		return false, nil
	}
	t, err := img.tables()
	if err != nil || len(t.Unread()) > 0 {
		return false, err
	}
	if w.Found, w.reads = w.Found[:0], 0; w.Trace == nil {
		w.Trace = arch.Begin()
		return true, nil
	}
	w.Trace.Restart()
	return true, nil
}

// Follow follows a body that begins at a link-time address and has code in some ranges, up to what a kernel may replace, a condition, or a call.
// What is of other bodies is followed, and is no witness. args are the registers of arguments.
//
// What GCC computes for an argument at its only use, as EXT4_SB(inode->i_sb), it counts to the body, and the body's own access perhaps to what is
// around it; and just such a parameter is lost where others are known. So these are no witnesses: an instruction that reads memory, or writes it,
// where the body has several that do, and one that writes to the stack. One that loads a register or compares what is in memory has Loads, and
// what it loads is no address on the way. One that tests a bit in memory has not: compilers do not choose it by themselves, so it is the body's own
// assembler statement.
func (w *Straight) Follow(img *Image, at uint64, ranges []dw.Range, args []uint16) error {
	if err := w.follow(img, at, ranges, args); err != nil {
		return err
	}
	if len(w.Found) == 0 {
		return nil
	}
	reads, writes := img.count(ranges)
	loads := 0
	for _, f := range w.Found {
		if f.Loads {
			loads++
		}
	}
	w.Found = slices.DeleteFunc(w.Found, func(f Witness) bool {
		switch {
		case f.Call:
			return false
		case f.Loads:
			return loads > 1 || reads != w.reads
		case f.Writes:
			return writes > 1
		}
		return reads > 1
	})
	return nil
}

// Called adds the only function that a body calls by itself, if it has one: no call in inner, the code of what is inlined into the body.
func (w *Straight) Called(img *Image, ranges, inner []dw.Range) {
	var found []Witness
	known := img.eachIn(ranges, func(at uint64, in insn.Insn, _ []byte) bool {
		if in.Branches && !img.staysIn(at, in.Target) {
			return false // a jump to another function calls it too
		}
		if !in.Call || dw.Covers(inner, at) {
			return true
		}
		found = append(found, Witness{Addr: at, Size: in.Size, Value: Fixed(at + uint64(in.Target)), Shape: 1, Call: true, Target: true})
		return in.Target != 0
	})
	if known && len(found) == 1 {
		w.Found = append(w.Found, found[0])
	}
}

// staysIn reports whether a branch at an address, to one so many bytes on, leads to code of the same function, or returns by a jump.
func (img *Image) staysIn(at uint64, target int64) bool {
	if target == 0 {
		return false
	}
	to := at + uint64(target)
	if p, err := img.patched(); err == nil && p.returns != 0 && p.returns == to {
		return true
	}
	from, into := img.SymbolAt(at, ""), img.SymbolAt(to, "")
	return from != nil && into != nil && from.Addr == into.Addr
}

// maxCounted is how many bytes a body has at most whose instructions are counted.
const maxCounted = 512

// count returns how many instructions in some ranges read memory, and how many write it; in code that is large or not known, more than there are.
func (img *Image) count(ranges []dw.Range) (reads, writes int) {
	arch := insn.For(img.Instructions())
	known := img.eachIn(ranges, func(_ uint64, _ insn.Insn, code []byte) bool {
		if writing, ok := arch.Touching(code); ok && writing {
			writes++
		} else if ok {
			reads++
		}
		return true
	})
	if !known {
		return maxCounted, maxCounted
	}
	return reads, writes
}

// eachIn calls f for the instructions in some ranges, with the code from each on, as long as it returns true. known is false if it did not, or if the
// code is large or not known.
func (img *Image) eachIn(ranges []dw.Range, f func(at uint64, in insn.Insn, code []byte) bool) (known bool) {
	left := uint64(maxCounted)
	for _, r := range ranges {
		if r.Hi-r.Lo > left {
			return false
		}
		left -= r.Hi - r.Lo
		whole, err := img.each(r, f)
		if err != nil || !whole {
			return false
		}
		known = true
	}
	return known
}

// each calls f for the instructions in a range, with the code from each on, as long as it returns true. whole is false if it did not, or if an instruction is not
// known. The error is that of a file without the code.
func (img *Image) each(r dw.Range, f func(at uint64, in insn.Insn, code []byte) bool) (whole bool, err error) {
	arch := insn.For(img.Instructions())
	err = img.View(r.Lo, r.Hi-r.Lo, func(code []byte) {
		for at := r.Lo; len(code) > 0; {
			in, ok := arch.Next(code)
			if !ok || !f(at, in, code) {
				return
			}
			at += uint64(in.Size)
			code = code[in.Size:]
		}
		whole = true
	})
	return whole, err
}

func (w *Straight) follow(img *Image, at uint64, ranges []dw.Range, args []uint16) error {
	arch := insn.For(img.Instructions())
	loads := false // Found has one
	return w.each(img, at, func(at uint64, in *insn.Insn, code []byte) bool {
		own := dw.Covers(ranges, at)
		if in.Call {
			if own && in.Target != 0 {
				w.call(at, in, args)
			}
			return false
		}
		var m insn.Touch
		ok := own || loads
		if ok {
			m, ok = arch.Touches(w.Trace, code, at)
		}
		reads := ok && !m.Writes
		if own && !ok {
			writing, touches := arch.Touching(code) // no address says where
			reads = touches && !writing
		}
		if own && reads {
			w.reads++
		}
		if ok && loads {
			w.Found = slices.DeleteFunc(w.Found, func(f Witness) bool { return f.Loads && w.Trace.IsFrom(m.At, f.Value) })
		}
		if ok && own && (!m.Writes || !arch.Spills(code)) {
			w.Found = append(w.Found, Witness{
				Addr: at, Size: in.Size, Value: m.At, Shape: m.Shape, Writes: m.Writes, Loads: !m.Writes && (m.Loads || m.Compares),
			})
			loads = loads || !m.Writes
		}
		arch.Follow(w.Trace, code, at)
		return true
	})
}

// MayFind reports whether the way of Follow has an instruction of the body's that may be a witness.
func (w *Straight) MayFind(img *Image, at uint64, ranges []dw.Range) (may bool, err error) {
	arch := insn.For(img.Instructions())
	err = w.each(img, at, func(at uint64, in *insn.Insn, code []byte) bool {
		if own := dw.Covers(ranges, at); in.Call {
			may = own && in.Target != 0
		} else if own {
			writes, touches := arch.Touching(code)
			may = touches && (!writes || !arch.Spills(code))
		}
		return !may && !in.Call
	})
	return may, err
}

// each calls f for the instructions of the way, with the code from each on, up to a call or until it returns false; not for jumps.
func (w *Straight) each(img *Image, at uint64, f func(at uint64, in *insn.Insn, code []byte) bool) error {
	arch := insn.For(img.Instructions())
	t, err := img.tables()
	if err != nil {
		return err
	}
	var code []byte
	w.Ends = false
	jumps, end := 0, at // code is up to end
	for range maxStraight {
		if end-at < longest {
			sec := img.SectionAt(at)
			if sec == nil {
				return nil
			}
			err := img.View(at, min(maxStraightBytes, sec.Addr+sec.Size-at), func(d []byte) { w.code = append(w.code[:0], d...) })
			if err != nil {
				return nil //nolint:nilerr // a file with debug information only has no code
			}
			code = w.code
			end = at + uint64(len(code))
			if w.edges, err = t.Edges(at, end); err != nil {
				return err
			}
		}
		in, ok := arch.Next(code)
		if !ok || in.Lost {
			return nil
		}
		if in.Leaves || in.Trap || in.Onward == in.Branches {
			w.Ends = true
			return nil
		}
		if slices.ContainsFunc(w.edges, func(e ktable.Edge) bool { return e.From >= at && e.From < at+uint64(in.Size) }) {
			return nil
		}
		if in.Branches && !in.Call {
			if jumps++; jumps > maxJumps {
				return nil
			}
			at += uint64(in.Target)
			end = at
			continue
		}
		if !f(at, &in, code) {
			w.Ends = in.Call
			return nil
		}
		at += uint64(in.Size)
		code = code[in.Size:]
	}
	return nil
}

// call adds what a call passes in registers.
func (w *Straight) call(at uint64, in *insn.Insn, args []uint16) {
	for _, r := range args {
		w.Found = append(w.Found, Witness{Addr: at, Size: in.Size, Value: w.Trace.Regs[r], Shape: at + uint64(in.Target), Register: r, Call: true})
	}
}

// State is what places hold on a path through the code.
type State = symbolic.State

// Number is what a place holds there.
type Number = symbolic.Value

// Part is what a number is of another one.
type Part = symbolic.Part

// Leading returns the link-time address where the straight code begins that leads to an instruction: the beginning of the basic block
// that has the instruction before it. ok is false if that is not known, or if execution may come from elsewhere too.
func (c *Code) Leading(to uint64) (from uint64, ok bool) {
	n, ok := c.leads(to)
	if !ok {
		return 0, false
	}
	return c.Graph.Insns[c.Graph.Blocks[c.Graph.Block(n)].First].Addr, true
}

// leads returns the instruction from which alone execution comes to another.
func (c *Code) leads(to uint64) (before int32, ok bool) {
	if c.Why != "" {
		return 0, false
	}
	at, ok := c.Graph.At(to)
	if !ok {
		return 0, false
	}
	return c.Graph.OnlyBefore(int32(at))
}

// Follow follows the straight code that leads to an instruction, from its beginning. f is called with the state at that instruction, and before at another one on the way. ok is
// false if that is not known.
func (c *Code) Follow(from, to uint64, f func(s *State)) (ok bool) {
	last, ok := c.leads(to)
	if !ok {
		return false
	}
	first, ok := c.Graph.At(from)
	if !ok || int32(first) > last || c.Graph.Block(int32(first)) != c.Graph.Block(last) {
		return false
	}
	s := c.Arch.State()
	for n := c.Graph.Blocks[c.Graph.Block(last)].First; n <= last; n++ {
		if n == int32(first) {
			f(s)
		}
		s.Step(c.Graph.Bytes(n), c.Graph.Insns[n].Addr)
	}
	f(s)
	return true
}
