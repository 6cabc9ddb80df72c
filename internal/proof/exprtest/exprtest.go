// Package exprtest computes symbolic expressions as the documentation of package loc
// defines them, for tests to compare with. It shares no code with internal/eval, which
// folds and simplifies expressions, nor with package prologue, which compiles them.
package exprtest

import (
	"fmt"
	"math/bits"

	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Machine is the state that an expression is computed in.
type Machine interface {
	// Register returns a register by its DWARF number. ok is false for one that a probe
	// does not see.
	Register(n uint64) (v uint64, ok bool)
	// Address returns where a link-time address of the image is.
	Address(addr uint64) uint64
	// Load reads a number of size bytes. ok is false for a fault.
	Load(addr uint64, size int) (v uint64, ok bool)
}

// Value computes an expression. ok is false for a fault.
func Value(m Machine, e *loc.Expr) (v uint64, ok bool) {
	switch e.Op {
	case ops.Const:
		return e.K, true
	case ops.Reg:
		return m.Register(e.K)
	case ops.Addr:
		return m.Address(e.K), true
	case ops.Task:
		return m.(Task).Task(ops.TaskNumber(e.K)), true
	case ops.Glob:
		text := []byte(nil)
		if e.A == nil {
			text = []byte(m.(Task).Comm())
		} else {
			a, ok := Value(m, e.A)
			if !ok {
				return 0, false
			}
			most := 63 // as if there were no limit
			if e.K != 0 {
				most = min(most, int(e.K))
			}
			if text, ok = str(m, a, most); !ok {
				return 0, false
			}
		}
		if Match(e.Pattern(), string(text)) {
			return 1, true
		}
		return 0, true
	}
	a, ok := Value(m, e.A)
	if !ok {
		return 0, false
	}
	switch e.Op {
	case ops.Deref:
		return m.Load(a, int(e.Size))
	case ops.ZExt:
		return Extend(a, int(e.Size), false), true
	case ops.SExt:
		return Extend(a, int(e.Size), true), true
	case ops.Text:
		text, ok := str(m, a, 8)
		for at := 0; ok && at < 8; at++ {
			c := uint64(0)
			if at < len(text) {
				c = uint64(text[at])
			}
			shift := 8 * at
			if m.(Task).BigEndian() {
				shift = 56 - shift
			}
			v |= c << shift
		}
		return v, ok
	case ops.Neg:
		return -a, true
	case ops.Not:
		return ^a, true
	case ops.Clz:
		return uint64(bits.LeadingZeros64(a)), true
	case ops.Caller:
		for arm := e.B; arm != nil; arm = arm.B {
			if arm.K == a {
				return Value(m, arm.A)
			}
		}
		return 0, false
	case ops.Select:
		if a != 0 {
			return Value(m, e.B)
		}
		return Value(m, e.C)
	}
	b, ok := Value(m, e.B)
	if !ok {
		return 0, false
	}
	return Operate(e.Op, a, b)
}

// Task is what a Machine has besides, for expressions that ask for it.
type Task interface {
	Task(ops.TaskNumber) uint64
	Comm() string
	BigEndian() bool // for texts as numbers
}

// str returns up to so many bytes of a string, without its NUL. As the kernel does, it reads one byte
// more.
func str(m Machine, addr uint64, most int) (text []byte, ok bool) {
	for i := range most + 1 {
		c, ok := m.Load(addr+uint64(i), 1)
		if !ok || c == 0 {
			return text, ok
		}
		text = append(text, byte(c))
	}
	return text[:most], true
}

// Match reports whether a text matches a pattern, as eval.Glob has them.
func Match(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return Match(pattern[1:], text) || text != "" && Match(pattern, text[1:])
	case text == "":
		return false
	case pattern[0] == '?':
		return Match(pattern[1:], text[1:])
	case pattern[0] == '\\' && len(pattern) > 1:
		pattern = pattern[1:]
	}
	return pattern[0] == text[0] && Match(pattern[1:], text[1:])
}

// Extend returns the low size bytes of v, zero- or sign-extended.
func Extend(v uint64, size int, signed bool) uint64 {
	if size >= 8 {
		return v
	}
	sign := uint64(1) << (8*size - 1)
	v &= sign<<1 - 1
	if signed && v&sign != 0 {
		v |= ^(sign<<1 - 1)
	}
	return v
}

// Operate computes an operation with two operands. ok is false for a division by zero.
func Operate(op loc.Op, a, b uint64) (v uint64, ok bool) {
	sa, sb := int64(a), int64(b)
	var truth bool
	switch op {
	case ops.Div, ops.UDiv, ops.Mod, ops.UMod:
		if b == 0 {
			return 0, false
		}
		switch op {
		case ops.Div:
			return uint64(sa / sb), true
		case ops.UDiv:
			return a / b, true
		case ops.Mod:
			return uint64(sa % sb), true
		}
		return a % b, true
	case ops.Add:
		return a + b, true
	case ops.Sub:
		return a - b, true
	case ops.Mul:
		return a * b, true
	case ops.And:
		return a & b, true
	case ops.Or:
		return a | b, true
	case ops.Xor:
		return a ^ b, true
	case ops.Shl:
		return a << b, true
	case ops.Shr:
		return a >> b, true
	case ops.Shra:
		return uint64(sa >> b), true
	case ops.Eq:
		truth = a == b
	case ops.Ne:
		truth = a != b
	case ops.Lt:
		truth = sa < sb
	case ops.Le:
		truth = sa <= sb
	case ops.Gt:
		truth = sa > sb
	case ops.Ge:
		truth = sa >= sb
	case ops.ULt:
		truth = a < b
	case ops.ULe:
		truth = a <= b
	case ops.UGt:
		truth = a > b
	case ops.UGe:
		truth = a >= b
	default:
		panic(fmt.Sprintf("operation %d has no definition", op))
	}
	if truth {
		return 1, true
	}
	return 0, true
}
