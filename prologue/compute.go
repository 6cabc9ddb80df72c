package prologue

import (
	"math/bits"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
)

// regSet is a set of BPF registers.
type regSet uint16

func setOf(regs ...asm.Register) (s regSet) {
	for _, r := range regs {
		s |= 1 << r
	}
	return s
}

// pick returns the lowest register of the set: registers that a helper call destroys are used
// before those that keep their values.
func (s regSet) pick() asm.Register { return asm.Register(bits.TrailingZeros16(uint16(s))) }

var (
	// R1 is left alone: it is ctx, or takes the buffer of the next read.
	callerSaved = setOf(asm.R0, asm.R2, asm.R3, asm.R4, asm.R5)
	calleeSaved = setOf(asm.R6, asm.R7, asm.R8, asm.R9)
)

// computer writes the instructions that compute expressions.
type computer struct {
	assembler
	o        *Options
	ctx      asm.Register // holds ctx
	stack    int          // bytes in use below R10
	maxStack int
	reads    Reads
	readSlot int    // of intermediate reads, as an offset from R10
	fault    *label // where to go when a read faults or a divisor is 0
}

// push takes bytes of stack, a multiple of 8, and returns their offset from R10.
func (c *computer) push(bytes int) int {
	c.stack += bytes
	c.maxStack = max(c.maxStack, c.stack)
	return -c.stack
}

func (c *computer) pop(bytes int) { c.stack -= bytes }

// compute sets dst to a node's value. It may change the registers of free, which are at least
// two unless the node is a leaf, and, if there is a helper call, those that it destroys.
func (c *computer) compute(n *node, dst asm.Register, free regSet) {
	switch n.op {
	case ops.Const:
		c.constant(dst, n.k)
	case ops.Addr:
		c.address(dst, n.k)
	case ops.Reg:
		c.load(dst, c.ctx, c.registerAt(n.k, c.o.Arch.WordSize), c.o.Arch.WordSize)
	case ops.Deref:
		if c.loads(n) {
			c.follow(n, dst, free)
			break
		}
		c.read(n, c.readSlot, free|setOf(dst))
		c.jumpImm(asm.JNE, asm.R0, 0, c.fault)
		c.loadSlot(dst, c.readSlot, int(n.size))
	case ops.Task:
		c.task(ops.TaskNumber(n.k), dst)
	case ops.Text:
		c.text(n, dst, free)
	case ops.Glob:
		c.globs(n, dst, free)
	case ops.ZExt:
		if size := int(n.size); c.partOfRegister(n) {
			c.load(dst, c.ctx, c.registerAt(n.a.k, size), size)
			break
		}
		c.compute(n.a, dst, free)
		c.zeroExtend(dst, int(n.size))
	case ops.SExt:
		if size := int(n.size); c.o.SignExtends && c.partOfRegister(n) {
			c.loadSigned(dst, c.ctx, c.registerAt(n.a.k, size), size)
			break
		}
		c.compute(n.a, dst, free)
		c.signExtend(dst, int(n.size), c.o.SignExtends)
	case ops.Neg:
		c.compute(n.a, dst, free)
		c.imm(asm.Neg, dst, 0)
	case ops.Not:
		c.compute(n.a, dst, free)
		c.imm(asm.Xor, dst, -1)
	case ops.Clz:
		c.compute(n.a, dst, free)
		c.leadingZeros(dst, free)
	case ops.Caller:
		c.caller(n, dst, free)
	case ops.Select:
		var no, end label
		c.unless(n.a, dst, free, &no)
		c.compute(n.b, dst, free)
		c.jump(&end)
		c.bind(&no)
		c.compute(n.c, dst, free)
		c.bind(&end)
	default:
		if eval.Comparison(n.op) {
			var no, end label
			c.unless(n, dst, free, &no)
			c.imm(asm.Mov, dst, 1)
			c.jump(&end)
			c.bind(&no)
			c.imm(asm.Mov, dst, 0)
			c.bind(&end)
			break
		}
		c.arithmetic(n, dst, free)
	}
}

// leadingZeros counts the zeros above a number's highest bit that is 1, by halves: where a half is 0, they are some more, and the number is moved up.
func (c *computer) leadingZeros(dst asm.Register, free regSet) {
	free &^= setOf(dst)
	count := free.pick()
	upper := (free &^ setOf(count)).pick()
	c.imm(asm.Mov, count, 0)
	for half := int32(32); half > 0; half /= 2 {
		var some label
		c.reg(asm.Mov, upper, dst)
		c.imm(asm.RSh, upper, 64-half)
		c.jumpImm(asm.JNE, upper, 0, &some)
		c.imm(asm.Add, count, half)
		c.imm(asm.LSh, dst, half)
		c.bind(&some)
	}
	var some label
	c.imm(asm.RSh, dst, 63)
	c.jumpImm(asm.JNE, dst, 0, &some)
	c.imm(asm.Add, count, 1)
	c.bind(&some)
	c.reg(asm.Mov, dst, count)
}

// partOfRegister reports whether a node extends a part of one of the site's registers that one
// load fetches.
func (c *computer) partOfRegister(n *node) bool {
	return n.a.op == ops.Reg && loadable(int(n.size)) && int(n.size) < c.o.Arch.WordSize
}

// registerAt returns the offset in ctx of the low size bytes of one of the site's registers.
// Kernels take loads from ctx of 1, 2, 4 and 8 bytes that are aligned and inside, since Linux
// 4.1 (kprobe_prog_is_valid_access in kernel/trace/bpf_trace.c); the low bytes are the first ones
// of the slot, or on a big-endian machine the last ones.
func (c *computer) registerAt(dwarf uint64, size int) int {
	off := c.o.Arch.Register(dwarf).Offset
	if c.o.BigEndian {
		off += c.o.Arch.WordSize - size
	}
	return off
}

// read calls the helper that reads the memory of a deref into a slot of the stack. It
// leaves 0 in R0, or a negative number if the read faulted. Then the bytes that were to be
// read are 0, since the helpers clear them (memset in bpf_probe_read
// of Linux 4.19, in bpf_probe_read_kernel_common and bpf_probe_read_user_common
// since 5.5, all in kernel/trace/bpf_trace.c).
func (c *computer) read(n *node, slot int, free regSet) {
	if !loadable(int(n.size)) {
		c.readPart(n, slot, free)
		return
	}
	c.compute(n.a, asm.R3, (free|callerSaved)&^setOf(asm.R3))
	c.callRead(slot, int(n.size))
}

// readPart is read for fewer than 8 bytes: in a slot of zeros they are a number of 64 bits.
func (c *computer) readPart(n *node, slot int, free regSet) {
	c.compute(n.a, asm.R3, (free|callerSaved)&^setOf(asm.R3))
	c.clearSlot(slot)
	if c.o.BigEndian {
		slot += 8 - int(n.size)
	}
	c.callRead(slot, int(n.size))
}

// addConst adds a number to a register. For a large number it uses R0.
func (c *computer) addConst(dst asm.Register, k uint64) {
	if fitsImm(k) {
		c.imm(asm.Add, dst, int32(k))
		return
	}
	c.constant(asm.R0, k)
	c.reg(asm.Add, dst, asm.R0)
}

// call calls a helper. The address in R3 of one that reads memory is reduced to the size of the image's
// addresses, which arithmetic may have left.
func (c *computer) call(helper asm.BuiltinFunc) {
	if c.o.Arch.WordSize < 8 && (slices.Contains(helpers[:], helper) || slices.Contains(stringHelpers[:], helper)) {
		c.zeroExtend(asm.R3, c.o.Arch.WordSize)
	}
	c.assembler.call(helper)
}

// callRead calls the helper for the address in R3.
func (c *computer) callRead(slot, size int) {
	c.callInto(helpers[c.reads], slot, size)
}

// callInto calls a helper that fills bytes of the stack.
func (c *computer) callInto(helper asm.BuiltinFunc, slot, size int) {
	c.pointTo(slot)
	c.imm(asm.Mov, asm.R2, int32(size))
	c.call(helper)
}

// pointTo sets R1 to the address of a slot.
func (c *computer) pointTo(slot int) {
	base, off := slotAt(slot)
	c.reg(asm.Mov, asm.R1, base)
	if off != 0 {
		c.imm(asm.Add, asm.R1, int32(off))
	}
}

// loadSlot loads size bytes that a read left in its slot.
func (c *computer) loadSlot(dst asm.Register, slot, size int) {
	base, off := slotAt(slot)
	c.load(dst, base, off, size)
}

// operands computes both operands of an operation into registers of dst and
// free, and returns the registers that are left. The one that calls helpers, or needs
// more registers, is computed first.
func (c *computer) operands(a, b *node, dst asm.Register, free regSet) (ra, rb asm.Register, left regSet) {
	if a.calls+b.calls > 0 {
		free |= callerSaved &^ setOf(dst)
	}
	all := free | setOf(dst)
	first, second := a, b
	turned := b.calls > 0 && a.calls == 0 || (b.calls > 0) == (a.calls > 0) && b.needs > a.needs
	if turned {
		first, second = b, a
	}
	var r1, r2 asm.Register
	if second.calls > 0 && all&calleeSaved != 0 {
		r1 = (all & calleeSaved).pick()
		r2 = dst
		if r1 == dst {
			r2 = free.pick()
		}
		c.compute(first, r1, all&^setOf(r1))
		c.compute(second, r2, all&^setOf(r1, r2))
	} else {
		r1, r2 = dst, free.pick()
		c.compute(first, r1, free)
		if left := free &^ setOf(r2); second.calls == 0 && (second.leaf() || bits.OnesCount16(uint16(left)) >= 2) {
			c.compute(second, r2, left)
		} else {
			slot := c.push(8)
			c.store(slot, r1)
			c.compute(second, r2, all&^setOf(r2))
			c.loadSlot(r1, slot, 8)
			c.pop(8)
		}
	}
	left = all &^ setOf(r1, r2)
	if turned {
		return r2, r1, left
	}
	return r1, r2, left
}
