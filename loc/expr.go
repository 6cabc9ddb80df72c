package loc

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/arch"
)

// Op is the operation of one node of an expression. All values are 64 bits wide. Addresses are
// those of the image: where they have 4 bytes, the higher bits of an address do not count, and nor
// do those of a location's address and of a value whose Size is 4.
//
//   - OpConst: K
//   - OpReg: the register with DWARF number K
//   - OpAddr: the link-time address K, which moves with the image
//   - OpDeref: the Size bytes in memory at A, zero-extended
//   - OpZExt: the low Size bytes of A, zero-extended
//   - OpSExt: the low Size bytes of A, sign-extended
//   - OpNeg: -A
//   - OpNot: ^A
//   - OpAdd: A + B
//   - OpSub: A - B
//   - OpMul: A * B
//   - OpDiv: A / B, signed, towards zero; B = 0 is a fault
//   - OpUDiv: A / B, unsigned; B = 0 is a fault
//   - OpMod: A % B, signed, with the sign of A; B = 0 is a fault
//   - OpUMod: A % B, unsigned; B = 0 is a fault
//   - OpAnd: A & B
//   - OpOr: A | B
//   - OpXor: A ^ B
//   - OpShl: A << B, 0 for B of 64 or more
//   - OpShr: A >> B, unsigned, 0 for B of 64 or more
//   - OpShra: A >> B, signed, the sign for B of 64 or more
//   - OpEq: A == B: 1 or 0
//   - OpNe: A != B
//   - OpLt: A < B, signed
//   - OpLe: A <= B, signed
//   - OpGt: A > B, signed
//   - OpGe: A >= B, signed
//   - OpULt: A < B, unsigned
//   - OpULe: A <= B, unsigned
//   - OpUGt: A > B, unsigned
//   - OpUGe: A >= B, unsigned
//   - OpSelect: A != 0 ? B : C; only one of B and C is computed
//   - OpTask: the [Task] with number K: what the kernel knows of the current task
//   - OpText: the first 8 bytes of the string in memory at A as a number, with zeros after its NUL
//   - OpGlob: whether the string of at most K bytes in memory at A, or if A is nil the current task's
//     name, matches [Expr.Pattern]: 1 or 0
type Op uint8

// The operations. Comparisons give 1 or 0. Where B = 0 is a fault, the value does not exist.
const (
	OpConst  Op = iota // K
	OpReg              // the register with DWARF number K
	OpAddr             // the link-time address K, which moves with the image
	OpDeref            // the Size bytes in memory at A, zero-extended
	OpZExt             // the low Size bytes of A, zero-extended
	OpSExt             // the low Size bytes of A, sign-extended
	OpNeg              // -A
	OpNot              // ^A
	OpAdd              // A + B
	OpSub              // A - B
	OpMul              // A * B
	OpDiv              // A / B, signed, towards zero; B = 0 is a fault
	OpUDiv             // A / B, unsigned; B = 0 is a fault
	OpMod              // A % B, signed, with the sign of A; B = 0 is a fault
	OpUMod             // A % B, unsigned; B = 0 is a fault
	OpAnd              // A & B
	OpOr               // A | B
	OpXor              // A ^ B
	OpShl              // A << B, 0 for B of 64 or more
	OpShr              // A >> B, unsigned, 0 for B of 64 or more
	OpShra             // A >> B, signed, the sign for B of 64 or more
	OpEq               // A == B: 1 or 0
	OpNe               // A != B
	OpLt               // A < B, signed
	OpLe               // A <= B, signed
	OpGt               // A > B, signed
	OpGe               // A >= B, signed
	OpULt              // A < B, unsigned
	OpULe              // A <= B, unsigned
	OpUGt              // A > B, unsigned
	OpUGe              // A >= B, unsigned
	OpSelect           // A != 0 ? B : C; only one of B and C is computed
	OpTask             // the Task with number K: what the kernel knows of the current task
	OpText             // the first 8 bytes of the string in memory at A as a number, with zeros after its NUL
	OpGlob             // whether the string of at most K bytes in memory at A, or the task's name, matches Pattern
)

// Task is a number that the kernel knows of the current task. It does not depend on the site.
//
//   - TaskPID: the ID of the process in the initial PID namespace
//   - TaskTID: the ID of the thread there
//   - TaskUID: the real user ID
//   - TaskGID: the real group ID
//   - TaskCPU: the number of the processor
//   - TaskCgroup: the ID of its cgroup (version 2)
//   - TaskTime: nanoseconds since the machine started, not counting suspensions
//   - TaskComm, TaskComm+1: 8 bytes of the name
type Task uint64

// The numbers of the current task.
const (
	TaskPID    Task = iota // the ID of the process in the initial PID namespace
	TaskTID                // the ID of the thread there
	TaskUID                // the real user ID
	TaskGID                // the real group ID
	TaskCPU                // the number of the processor
	TaskCgroup             // the ID of its cgroup (version 2)
	TaskTime               // nanoseconds since the machine started, not counting suspensions
	TaskComm               // the first 8 bytes of the name; the next number is the others
	tasks      = TaskComm + 2
)

// text returns the name as definitions write it: "$pid". Of the name it says which bytes.
func (t Task) text() string {
	if names := [...]string{"$pid", "$tid", "$uid", "$gid", "$cpu", "$cgroup", "$time", "$comm[0:8]", "$comm[8:16]"}; t < tasks {
		return names[t]
	}
	return "$task" + strconv.FormatUint(uint64(t), 10)
}

var exprSign = [...]string{
	OpAdd: "+", OpSub: "-", OpMul: "*", OpDiv: "/", OpUDiv: "/u", OpMod: "mod", OpUMod: "modu",
	OpAnd: "&", OpOr: "|", OpXor: "^", OpShl: "<<", OpShr: ">>u", OpShra: ">>",
	OpEq: "==", OpNe: "!=", OpLt: "<", OpLe: "<=", OpGt: ">", OpGe: ">=",
	OpULt: "<u", OpULe: "<=u", OpUGt: ">u", OpUGe: ">=u",
}

// Expr is a computation over a site's registers, memory and constants. Package prologue
// writes the instructions that perform it.
type Expr struct {
	Op      Op
	Size    uint8  // bytes, for OpDeref, OpZExt and OpSExt
	K       uint64 // for OpConst, OpReg and OpAddr
	A, B, C *Expr  // operands
}

// Glob returns an OpGlob. A string at an address has at most so many bytes, or any number if that is 0,
// and of longer ones than 63 bytes the first 63 are compared. In the pattern * is any text, ? any character, and a backslash makes the next
// character stand for itself.
func Glob(at *Expr, most int, pattern string) *Expr {
	e := &Expr{Op: OpGlob, A: at, K: uint64(most)}
	// The pattern is in constants: few expressions have one, and all would be larger.
	for i := (len(pattern) - 1) / 8 * 8; i >= 0 && pattern != ""; i -= 8 {
		var d [8]byte
		copy(d[:], pattern[i:])
		e.B = &Expr{Op: OpConst, K: binary.LittleEndian.Uint64(d[:]), A: e.B}
	}
	return e
}

// Pattern returns the pattern of an OpGlob.
func (e *Expr) Pattern() string {
	var d []byte
	for c := e.B; c != nil && e.Op == OpGlob; c = c.A {
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
	case OpConst:
		b.WriteString(constText(e.K))
	case OpReg:
		b.WriteString(a.RegisterName(e.K))
	case OpAddr:
		b.WriteString("@0x" + strconv.FormatUint(e.K, 16))
	case OpDeref:
		b.WriteString("u" + strconv.Itoa(8*int(e.Size)) + "[")
		e.A.write(b, a, false)
		b.WriteByte(']')
	case OpZExt, OpSExt:
		b.WriteByte("us"[e.Op-OpZExt])
		b.WriteString(strconv.Itoa(8*int(e.Size)) + "(")
		e.A.write(b, a, false)
		b.WriteByte(')')
	case OpTask:
		b.WriteString(Task(e.K).text())
	case OpText:
		b.WriteString("text[")
		e.A.write(b, a, false)
		b.WriteByte(']')
	case OpGlob:
		b.WriteString("glob[")
		if e.A == nil {
			b.WriteString("$comm")
		} else {
			e.A.write(b, a, false)
		}
		b.WriteString(", " + strconv.Quote(e.Pattern()) + "]")
	case OpNeg, OpNot:
		b.WriteByte("-~"[e.Op-OpNeg])
		if e.A.Op == OpAdd && e.A.B.Op == OpConst {
			// -(%rax+8) is not (-%rax)+8
			b.WriteByte('(')
			e.A.write(b, a, false)
			b.WriteByte(')')
			return
		}
		e.A.write(b, a, true)
	case OpSelect:
		b.WriteByte('(')
		e.A.write(b, a, true)
		b.WriteString(" ? ")
		e.B.write(b, a, true)
		b.WriteString(" : ")
		e.C.write(b, a, true)
		b.WriteByte(')')
	default:
		if e.Op == OpAdd && e.B.Op == OpConst {
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
		b.WriteString(" " + exprSign[e.Op] + " ")
		e.B.write(b, a, true)
		if nested {
			b.WriteByte(')')
		}
	}
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
