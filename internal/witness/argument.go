package witness

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/claim"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// What a body passes on to a body that is inlined into it is known where debug information says what that one's parameter is. Equal values alone do not
// show that a function passes its parameter on: it may pass on another one under a condition, or a part of it, that bodies which know both do not
// have. So it is said of functions of kernels alone whose sources say it (claim.PassesOn), where the inner body begins at the same address, for
// the same parameter of the same functions, called at the same line and column; and if the bodies that know both say so too.

// handed is a parameter of an inner body.
type handed struct {
	kind claim.Kind
	of   argument
	rec  int32  // of the inner body
	name string // of its parameter
}

// argument is what can be compared of a parameter.
type argument struct {
	form  form
	size  int64
	sure  bool
	value body.Value // where the outer body begins
}

// form tells apart what is not passed on as one another.
type form uint8

const (
	noForm  form = iota // is not compared
	pointer             //
	integer             // and enumerations
	whole               // a structure or union as wide as a register
)

// formOf returns the form of a type.
func formOf(t *types.Type, word int) (form, int64) {
	t, err := t.Resolve()
	if err != nil || t.Size <= 0 || t.Size > int64(word) {
		return noForm, 0
	}
	switch t.Kind {
	case types.Pointer:
		return pointer, t.Size
	case types.Int, types.Bool, types.Char, types.Enum:
		return integer, t.Size
	case types.Struct, types.Union:
		if t.Size == int64(word) {
			return whole, t.Size
		}
	}
	return noForm, 0
}

// set sets the value. ok is false if it cannot be compared: what is as wide as a register can be, and small numbers, which are the same whatever
// their width.
func (x *argument) set(t *body.Trace, l *loc.Location, word int) (ok bool) {
	if !x.sure {
		return false
	}
	if x.value, ok = symbolOf(t, l); !ok {
		return false
	}
	if x.form == integer && x.value.IsConstant() {
		return isSmall(x.value.Const, x.size)
	}
	return x.size == int64(word) && (x.form != whole || l.Kind != loc.KindConstant)
}

// isSmall reports whether a number is the same in an integer of some bytes, signed or not, and in a wider one.
func isSmall(n uint64, bytes int64) bool { return n>>(8*min(bytes, 4)-1) == 0 }

// link is a body that is inlined into that of the link before it, and the hash of the way there.
type link struct {
	rec   int32
	shape uint64
}

// mix returns a hash of numbers.
func mix(of ...uint64) uint64 {
	h := fnv.New64a()
	var b [8]byte
	for _, n := range of {
		binary.LittleEndian.PutUint64(b[:], n)
		_, _ = h.Write(b[:])
	}
	return h.Sum64()
}

// takes reports whether a parameter may be what is handed on: the value is one of the parameter's type.
func (p *argument) takes(h *handed) bool {
	if p.form != h.of.form {
		return false
	}
	if p.form == integer && h.of.value.IsConstant() {
		return h.of.size >= p.size && isSmall(h.of.value.Const, p.size)
	}
	return p.size == h.of.size
}
