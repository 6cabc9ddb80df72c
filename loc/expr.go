package loc

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/ops"
)

// Op is the operation of one node of an expression. All values are 64 bits wide. Addresses are
// those of the image: where they have 4 bytes, the higher bits of an address do not count, and nor
// do those of a location's address and of a value whose Size is 4. String returns the operation's
// name, by which operations are told apart:
//
//   - const: K
//   - register: the register with DWARF number K
//   - address: the link-time address K, which moves with the image
//   - deref: the Size bytes in memory at A, zero-extended
//   - zext: the low Size bytes of A, zero-extended
//   - sext: the low Size bytes of A, sign-extended
//   - neg: -A
//   - not: ^A
//   - +: A + B
//   - -: A - B
//   - *: A * B
//   - /: A / B, signed, towards zero; B = 0 is a fault
//   - /u: A / B, unsigned; B = 0 is a fault
//   - mod: A % B, signed, with the sign of A; B = 0 is a fault
//   - modu: A % B, unsigned; B = 0 is a fault
//   - &: A & B
//   - |: A | B
//   - ^: A ^ B
//   - <<: A << B, 0 for B of 64 or more
//   - >>u: A >> B, unsigned, 0 for B of 64 or more
//   - >>: A >> B, signed, the sign for B of 64 or more
//   - ==: A == B: 1 or 0
//   - !=: A != B
//   - <: A < B, signed
//   - <=: A <= B, signed
//   - >: A > B, signed
//   - >=: A >= B, signed
//   - <u: A < B, unsigned
//   - <=u: A <= B, unsigned
//   - >u: A > B, unsigned
//   - >=u: A >= B, unsigned
//   - select: A != 0 ? B : C; only one of B and C is computed
//   - caller: what a caller passed. A is the return address less an address of the image, and B the first of the
//     arms, which are for the callers that are known; a return address that no arm is for is a fault
//   - arm: of a caller: the value A, where the caller's A is K, which fits into 31 bits; B is the next arm, with a greater K,
//     or nil
//   - task: what the kernel knows of the current task: $pid, $tid, $uid, $gid, $cpu, $cgroup, $time and
//     the two halves of $comm are the numbers K from 0 to 8
//   - text: the first 8 bytes of the string in memory at A as a number, with zeros after its NUL
//   - glob: whether the string of at most K bytes in memory at A, or if A is nil the current task's
//     name, matches [Expr.Pattern]: 1 or 0
//   - clz: how many bits of A are 0 above the highest that is 1; 64 for 0
type Op = ops.Op

// Expr is a computation over a site's registers, memory and constants. Package prologue
// writes the instructions that perform it.
type Expr struct {
	Op      Op
	Size    uint8  // bytes, for deref, zext and sext
	K       uint64 // for const, register, address, task and glob
	A, B, C *Expr  // operands
}

// Pattern returns the pattern of a glob.
func (e *Expr) Pattern() string {
	var d []byte
	for c := e.B; c != nil && e.Op == ops.Glob; c = c.A {
		d = binary.LittleEndian.AppendUint64(d, c.K)
	}
	return string(bytes.TrimRight(d, "\x00"))
}

// Walk calls f for the node and all nodes below it.
func (e *Expr) Walk(f func(*Expr)) {
	if e == nil {
		return
	}
	f(e)
	e.A.Walk(f)
	e.B.Walk(f)
	e.C.Walk(f)
}

// Text prints an expression with an architecture's register names: "%rsp+6",
// "u64[%rdi+16]", "(%rax << 3) & 255".
func (e *Expr) Text(a *arch.Arch) string {
	var b strings.Builder
	e.write(&b, a, false)
	return b.String()
}

func (e *Expr) write(b *strings.Builder, a *arch.Arch, nested bool) {
	switch e.Op {
	case ops.Const:
		b.WriteString(constText(e.K))
	case ops.Reg:
		b.WriteString(a.RegisterName(e.K))
	case ops.Addr:
		b.WriteString("@0x" + strconv.FormatUint(e.K, 16))
	case ops.Deref:
		b.WriteString("u" + strconv.Itoa(8*int(e.Size)) + "[")
		e.A.write(b, a, false)
		b.WriteByte(']')
	case ops.ZExt, ops.SExt:
		b.WriteByte("us"[e.Op-ops.ZExt])
		b.WriteString(strconv.Itoa(8*int(e.Size)) + "(")
		e.A.write(b, a, false)
		b.WriteByte(')')
	case ops.Task:
		b.WriteString(ops.TaskNumber(e.K).String())
	case ops.Clz:
		b.WriteString("clz(")
		e.A.write(b, a, false)
		b.WriteByte(')')
	case ops.Text:
		b.WriteString("text[")
		e.A.write(b, a, false)
		b.WriteByte(']')
	case ops.Glob:
		b.WriteString("glob[")
		if e.A == nil {
			b.WriteString("$comm")
		} else {
			e.A.write(b, a, false)
		}
		b.WriteString(", " + strconv.Quote(e.Pattern()) + "]")
	case ops.Caller:
		e.writeCaller(b, a)
	case ops.Neg, ops.Not:
		b.WriteByte("-~"[e.Op-ops.Neg])
		if e.A.Op == ops.Add && e.A.B.Op == ops.Const {
			// -(%rax+8) is not (-%rax)+8
			b.WriteByte('(')
			e.A.write(b, a, false)
			b.WriteByte(')')
			return
		}
		e.A.write(b, a, true)
	case ops.Select:
		b.WriteByte('(')
		e.A.write(b, a, true)
		b.WriteString(" ? ")
		e.B.write(b, a, true)
		b.WriteString(" : ")
		e.C.write(b, a, true)
		b.WriteByte(')')
	default:
		if e.Op == ops.Add && e.B.Op == ops.Const {
			// Register plus offset is by far the most common: no parentheses, no spaces.
			e.A.write(b, a, true)
			k := constText(e.B.K)
			if k[0] != '-' {
				b.WriteByte('+')
			}
			b.WriteString(k)
			return
		}
		if nested {
			b.WriteByte('(')
		}
		e.A.write(b, a, true)
		b.WriteString(" " + e.Op.String() + " ")
		e.B.write(b, a, true)
		if nested {
			b.WriteByte(')')
		}
	}
}

// writeCaller writes what is at each return address: "caller(u64[%rsp+8]: @0x401136 5, @0x401150 %rbx)".
func (e *Expr) writeCaller(b *strings.Builder, a *arch.Arch) {
	from, first := e.A, (*Expr)(nil)
	e.A.Walk(func(n *Expr) {
		if n.Op == ops.Sub && n.B.Op == ops.Addr && first == nil {
			from, first = n.A, n.B
		}
	})
	b.WriteString("caller(")
	from.write(b, a, false)
	sep := ": "
	for arm := e.B; arm != nil; arm = arm.B {
		b.WriteString(sep)
		sep = ", "
		if first != nil {
			b.WriteString("@0x" + strconv.FormatUint(first.K+arm.K, 16) + " ")
		} else {
			b.WriteString(constText(arm.K) + " ")
		}
		arm.A.write(b, a, true)
	}
	b.WriteByte(')')
}

// constText prints a number, in decimal if that is easy to read.
func constText(v uint64) string {
	if s := int64(v); s > -65536 && s < 65536 {
		return strconv.FormatInt(s, 10)
	} else if s < 0 && s > -1<<31 {
		return "-0x" + strconv.FormatUint(-v, 16)
	}
	return "0x" + strconv.FormatUint(v, 16)
}
