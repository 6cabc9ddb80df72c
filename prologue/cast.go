package prologue

import (
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/ops"
)

// Reads by loads. Since Linux 6.17 references.CastFunction makes a pointer to untyped memory of any address
// (commit f2362a57aeff, "bpf: allow void* cast using bpf_rdonly_cast()"), from which a program
// loads without a helper. It costs a move: the verifier puts one in place of the call
// (bpf_fixup_kfunc_call in kernel/bpf/verifier.c).
//
// A load that faults gives 0, and no error (ex_handler_bpf in arch/x86/net/bpf_jit_comp.c and
// arch/arm64/net/bpf_jit_comp.c). So does one of user memory. Therefore a helper reads again what
// was loaded as 0, and says whether that is its value: also the pointers on the way to a value,
// since at 0 there may be memory, as on s390. The instructions for it follow the load, and are
// jumped over otherwise. So the verifier goes through them first, and finds that what a load gives
// is a case of what a helper gives: it does not go through the rest of the program twice.
//
// Nothing is asked where memory is known to be there: in the stack frame of the site, and where
// Options.Stays says so. What is read there with one pointer comes last, from the pointer into
// the arguments' registers (fetcher.late).

// loads reports whether a read is a load.
func (c *computer) loads(read *node) bool { return c.reads == ReadCast && loadable(int(read.size)) }

// steady reports whether a read is a load that cannot fault.
func (c *computer) steady(read *node) bool {
	if !c.loads(read) {
		return false
	}
	at := placeOf(read)
	if at.base == nil {
		return c.o.Stays != nil && c.o.Stays(uint64(at.off), uint64(read.size))
	}
	return c.inFrame(at.base) && fitsOffset(at.off)
}

// inFrame reports whether an address is that of the site's stack frame.
func (c *computer) inFrame(base *node) bool {
	return base.op == ops.Reg && (base.k == uint64(c.o.Arch.SP) || slices.Contains(c.o.Frame, uint16(base.k)))
}

// fitsOffset reports whether a load can add a number to a pointer.
func fitsOffset(off int64) bool { return off == int64(int16(off)) }

// asked returns how many helpers computing a node calls on the longest path on which no read
// faults.
func (c *computer) asked(n *node) int {
	if n == nil || n.calls == 0 {
		return 0
	}
	switch n.op {
	case ops.Select:
		return c.asked(n.a) + max(c.asked(n.b), c.asked(n.c))
	case ops.Arm:
		return max(c.asked(n.a), c.asked(n.b))
	}
	own := 0
	switch {
	case c.reads == ReadSleep && (n.op == ops.Text || n.op == ops.Glob && n.a != nil):
		own = 2 // see readText
	case n.op == ops.Task, n.op == ops.Text, n.op == ops.Glob, n.op == ops.Deref && !c.steady(n):
		own = 1
	}
	return own + c.asked(n.a) + c.asked(n.b)
}

// sure reports whether computing a node cannot fault.
func (c *computer) sure(n *node) bool { return !n.divides && !c.faults(n) }

// faults reports whether a read on the way to a value may fault.
func (c *computer) faults(n *node) bool {
	if n == nil || n.calls == 0 {
		return false
	}
	return n.op == ops.Text || n.op == ops.Glob && n.a != nil || n.op == ops.Deref && !c.steady(n) || c.faults(n.a) || c.faults(n.b) || c.faults(n.c)
}

// split splits the address of a read into a pointer and what a load adds to it. Machines that load
// only what is aligned want an aligned offset (check_generic_ptr_alignment in kernel/bpf/verifier.c).
func split(read *node) (base *node, off int) {
	at := placeOf(read)
	if at.base == nil || !fitsOffset(at.off) || at.off%int64(read.size) != 0 {
		return read.a, 0
	}
	return at.base, int(at.off)
}

// point makes R0 point to the memory at the address in R1.
func (c *computer) point() {
	c.imm(asm.Mov, asm.R2, 0) // the number of the type: void
	c.cast()
}

// view makes R0 point to the memory of a read, and returns the offset that a load of it adds. If
// ask is set, again can be called.
func (c *computer) view(read *node, free regSet, ask bool) (off, kept int) {
	base, off := split(read)
	c.compute(base, asm.R1, (free|callerSaved)&^setOf(asm.R1))
	if ask && !base.leaf() {
		kept = c.push(8)
		c.store(kept, asm.R1)
	}
	c.point()
	return off, kept
}

// again sets R3 to the address of a read, which view kept if that is not as easily computed.
func (c *computer) again(read *node, kept int) {
	base, off := split(read)
	if base.leaf() {
		c.compute(base, asm.R3, 0)
	} else {
		c.loadSlot(asm.R3, kept, 8)
		c.pop(8)
	}
	if off != 0 {
		c.imm(asm.Add, asm.R3, int32(off))
	}
}

// follow loads what dst needs on the way to a value.
func (c *computer) follow(n *node, dst asm.Register, free regSet) {
	ask, size := !c.steady(n), int(n.size)
	off, kept := c.view(n, free|setOf(dst), ask)
	c.load(dst, asm.R0, off, size)
	if !ask {
		return
	}
	var got label
	c.jumpImm(asm.JNE, dst, 0, &got)
	from := c.count
	c.again(n, kept)
	c.callRead(c.readSlot, size)
	c.jumpImm(asm.JNE, asm.R0, 0, c.fault)
	c.loadSlot(dst, c.readSlot, size)
	c.rare += c.count - from
	c.bind(&got)
}

// loadUnit fetches what a unit of one argument reads: into its register if that is to be kept, or
// else into its slot, as a number of 64 bits if number is set.
func (f *fetcher) loadUnit(u *unit, number bool) {
	t := u.fetches[0]
	ask, size := !f.steady(u.read), int(u.read.size)
	off, kept := f.view(u.read, f.scratch(), ask)
	slot, got := t.slot, asm.R1
	// All bytes are loaded, also if the argument is some of them, if the others could fault.
	extend := t.extend
	if extend != nil && (!ask || int(extend.size) >= size) {
		extend = nil
	}
	load := func(base asm.Register, off int) {
		if extend == nil {
			f.loadRead(t, got, base, off)
		} else {
			f.load(got, base, off, size)
		}
	}
	if t.inPlace {
		got = t.register()
		load(asm.R0, off)
	} else {
		f.load(got, asm.R0, off, size)
		width := size
		if number {
			width = 8
			if f.o.BigEndian {
				slot += 8 - size
			}
		}
		f.storePart(t.slot, got, width)
	}
	if !ask {
		return
	}
	if !f.hasErr {
		f.imm(asm.Mov, f.err, 0)
	}
	f.jumpImm(asm.JNE, got, 0, &f.end)
	from := f.count
	// A helper that faults leaves zeros, and so what it does not write are zeros too.
	f.again(u.read, kept)
	f.callRead(slot, size)
	f.bind(&f.done)
	f.collect(u.mask())
	if t.inPlace {
		load(asm.R10, t.slot)
	}
	f.rare += f.count - from
	f.bind(&f.end)
	if t.inPlace && extend != nil {
		f.extend(extend, got)
	}
}

// glance loads the arguments of a unit into their slots, from memory at base plus their offsets,
// which R1 is. If ask is set it goes to found if none of them is 0.
func (f *fetcher) glance(u *unit, from int64, ask bool, found *label) {
	f.point()
	var zero label
	var last *fetch
	for i, t := range u.fetches[:u.n] {
		if slices.ContainsFunc(u.fetches[:i], func(s *fetch) bool { return s.slot == t.slot && s.size == t.size }) {
			continue
		}
		if ask && last != nil {
			f.jumpImm(asm.JEq, asm.R1, 0, &zero)
		}
		f.load(asm.R1, asm.R0, int(t.at.off-from), t.size)
		f.storePart(t.slot, asm.R1, t.size)
		last = t
	}
	if ask {
		f.jumpImm(asm.JNE, asm.R1, 0, found)
	}
	f.bind(&zero)
}

// origin returns the address that memory is loaded from with offsets, near an argument's.
func origin(t *fetch) (base *node, from int64) {
	if t.at.base == nil {
		return &node{op: ops.Addr, k: uint64(t.at.off &^ 7), needs: 1}, t.at.off &^ 7
	}
	return t.at.base, 0
}

// within reports whether loads reach all arguments of a group from the origin of the first.
func (f *fetcher) within(group []*fetch) bool {
	_, from := origin(group[0])
	return !slices.ContainsFunc(group, func(t *fetch) bool {
		return f.readsOf(t) != ReadCast || !fitsOffset(t.at.off-from) || !loadable(t.size)
	})
}

// planLate takes the units that can be loaded last, without a slot and without a doubt.
func (f *fetcher) planLate() {
	f.late = f.late[:0]
	for i := range f.fetches {
		t := &f.fetches[i]
		if t.unit == nil || t.unit.read == nil {
			continue
		}
		f.reads = f.readsOf(t)
		if t.at = placeOf(t.unit.read); !f.steady(t.unit.read) || t.at.off%int64(t.size) != 0 {
			continue
		}
		if len(f.late) > 0 && (!same(t.at.base, f.late[0].at.base) || !f.within([]*fetch{f.late[0], t})) {
			continue
		}
		f.late = append(f.late, t)
		f.drop(t.unit)
	}
}

// emitLate makes R0 point to what deliver loads.
func (f *fetcher) emitLate() {
	base, from := origin(f.late[0])
	f.lateFrom = from
	f.compute(base, asm.R1, 0)
	f.point()
}
