package prologue

import (
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/bpfstack"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// placed says how an argument gets into its place in a record.
type placed struct {
	// read is the read that a scalar is computed from, using registers only. It is nil for
	// other scalars.
	read *node
	// addr is the address of the bytes that a helper reads there, and bytes is their
	// largest number.
	addr   *node
	length *node // how many bytes, or elements of a slice, if not all
	slice  int   // bytes of an element
	helper asm.BuiltinFunc
	text   Reads // how a string is read; ReadAuto for what is no string
	bytes  int
	// words are computed instead, 8 bytes of the place each.
	words []*node
}

// comm fetches a task's name.
var comm = placed{helper: asm.FnGetCurrentComm, bytes: bpfstack.CommSize}

// fetched reports whether the argument gets into its place.
func (t *placed) fetched() bool { return t.helper != 0 || t.words != nil }

// lowerPlaced returns how a string or an object gets into its place.
func (l *lowering) lowerPlaced(arg *Arg, o *Options) (placed, loc.Reason) {
	if arg.Kind == KindComm {
		return comm, loc.Reason{}
	}
	if arg.Loc.Kind == loc.KindNone {
		_, reason := l.lower(arg)
		return placed{}, reason
	}
	t, err := l.placed(arg, o)
	if err != nil {
		return placed{}, err.(*refusal).reason
	}
	return t, loc.Reason{}
}

func (l *lowering) placed(arg *Arg, o *Options) (t placed, err error) {
	if arg.Kind == KindSlice {
		return l.slice(arg, o)
	}
	reads := o.Reads
	if arg.User || arg.Kind == KindUserString {
		reads = reads.user()
	}
	// n is the number of bytes known to be there.
	n := arg.Size
	t.helper = helpers[reads]
	if arg.Kind != KindObject {
		t.helper, t.text = stringHelpers[reads], reads
		if n == 0 && arg.Loc.Kind == loc.KindBytes {
			n = len(arg.Loc.Bytes)
		}
	}
	t.bytes = n
	switch {
	case arg.Loc.Kind == loc.KindImplicitPointer:
		return t, &refusal{loc.Reason{Code: reasons.ImplicitPointer}}
	case arg.Kind == KindObject && n <= 0:
		return t, &refusal{loc.Reason{Code: reasons.IncompleteType}}
	case arg.Kind == KindObject && n > MaxObject:
		return t, refuse(reasons.TooLarge, "%d bytes, a record holds %d", n, MaxObject)
	case arg.Kind != KindObject && (arg.MaxBytes <= 0 || arg.MaxBytes > MaxObject):
		return t, refuse(reasons.TooLarge, "a string of %d bytes, a record holds from 1 to %d", arg.MaxBytes, MaxObject)
	case arg.Kind != KindObject && (n == 0 || n >= arg.MaxBytes):
		t.bytes = arg.MaxBytes
	case arg.Kind != KindObject:
		t.bytes = n + 1 // an array may be full, and the helper needs room for the NUL
	}
	at, err := l.location(&arg.Loc)
	if err != nil {
		return t, err
	}
	if arg.Length.Kind != loc.KindNone && arg.Kind != KindObject {
		return l.counted(t, &at, arg, helpers[reads])
	}
	if at.Kind == loc.KindMemory {
		t.addr = l.of(at.Expr)
		return t, nil
	}
	if arg.Kind != KindObject {
		// Elsewhere a string's end is not known before it is fetched.
		if k := at.Kind; n <= 0 || k != loc.KindBytes && k != loc.KindConstant {
			return t, refuse(reasons.Unsupported, "a string that is not in memory")
		}
		n = min(n, arg.MaxBytes-1)
	}
	t.helper = 0
	words := make([]*loc.Expr, arg.room()/8)
	for i := range words {
		words[i] = l.b.Const(0)
		if part := min(8, n-8*i); part > 0 {
			if words[i], err = l.word(&at, uint64(8*i), uint64(part)); err != nil {
				return t, err
			}
		}
	}
	if arg.Kind != KindObject {
		l.cut(words)
	}
	t.words = make([]*node, len(words))
	for i, w := range words {
		t.words[i] = l.of(w)
	}
	return t, nil
}

// word returns at most 8 bytes of an object, in the form in which a store of 8 bytes puts
// them first.
func (l *lowering) word(at *loc.Location, off, bytes uint64) (*loc.Expr, error) {
	v, r := l.b.Bits(at, 8*off, 8*bytes)
	if r.Code != reasons.None || !l.b.BigEndian {
		return v, refused(r)
	}
	return l.b.Binary(ops.Shl, v, l.b.Const(64-8*bytes)), nil
}

// cut clears what follows a known string's NUL.
func (l *lowering) cut(words []*loc.Expr) {
	ended := false
	for i, w := range words {
		var k uint64
		for b := range 8 {
			shift := 8 * b
			if l.b.BigEndian {
				shift = 56 - shift
			}
			c := w.K >> shift & 0xff
			if ended = ended || c == 0; !ended {
				k |= c << shift
			}
		}
		words[i] = l.b.Const(k)
	}
}

// counted is placed for a string with a length.
func (l *lowering) counted(t placed, at *loc.Location, arg *Arg, helper asm.BuiltinFunc) (placed, error) {
	if at.Kind != loc.KindMemory {
		return t, refuse(reasons.Unsupported, "a string that is not in memory")
	}
	if arg.MaxBytes < 2 {
		return t, refuse(reasons.TooLarge, "a string of %d bytes, a record holds from 2 to %d", arg.MaxBytes, MaxObject)
	}
	n, err := l.number(&arg.Length)
	if err != nil {
		return t, err
	}
	t.addr, t.length = l.of(at.Expr), l.of(n)
	t.helper, t.text, t.bytes = helper, ReadAuto, arg.MaxBytes-1
	return t, nil
}

// number returns a number of 8 bytes.
func (l *lowering) number(at *loc.Location) (*loc.Expr, error) {
	length, err := l.location(at)
	if err != nil {
		return nil, err
	}
	n, r := l.b.Bits(&length, 0, 64)
	return n, refused(r)
}

// slice is placed for a slice.
func (l *lowering) slice(arg *Arg, o *Options) (t placed, err error) {
	switch {
	case arg.Loc.Kind != loc.KindMemory:
		return t, refuse(reasons.Unsupported, "elements that are not in memory")
	case arg.Size <= 0 || arg.Size > arg.MaxBytes || arg.MaxBytes > MaxObject-8:
		return t, refuse(reasons.TooLarge, "elements of %d bytes, and a room of %d", arg.Size, arg.MaxBytes)
	}
	at, err := l.location(&arg.Loc)
	if err != nil {
		return t, err
	}
	n, err := l.number(&arg.Length)
	if err != nil {
		return t, err
	}
	reads := o.Reads
	if arg.User {
		reads = reads.user()
	}
	t.addr, t.length, t.slice = l.of(at.Expr), l.of(n), arg.Size
	t.helper, t.bytes = helpers[reads], arg.MaxBytes/arg.Size*arg.Size
	return t, nil
}
