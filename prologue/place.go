package prologue

import (
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// placed is how an argument gets into its place in a record.
type placed struct {
	// read is what a scalar is computed from, in registers alone; nil when it is
	// computed otherwise.
	read *node
	// addr is the address of bytes that a helper reads there, and bytes how many they
	// are at most.
	addr   *node
	helper asm.BuiltinFunc
	bytes  int
	// words are what is computed instead, 8 bytes of the place each.
	words []*node
}

// comm is the place of a task's name.
var comm = placed{helper: asm.FnGetCurrentComm, bytes: CommSize}

// fetched reports whether there is a way into the place.
func (t *placed) fetched() bool { return t.helper != 0 || t.words != nil }

// lowerPlaced returns how a string or an object gets into its place.
func (p *nodes) lowerPlaced(arg *Arg, o *Options) (placed, dwarfloc.Reason) {
	if arg.Kind == Comm {
		return comm, dwarfloc.Reason{}
	}
	if arg.Loc.Kind == dwarfloc.KindNone {
		_, reason := p.lower(arg, o)
		return placed{}, reason
	}
	l := lowering{arch: o.Arch, be: o.BigEndian, pool: p}
	t, err := l.placed(arg, o)
	if err != nil {
		return placed{}, err.(*refusal).reason
	}
	return t, dwarfloc.Reason{}
}

func (l *lowering) placed(arg *Arg, o *Options) (t placed, err error) {
	reads := o.Reads
	if arg.User || arg.Kind == UserString {
		reads = reads.user()
	}
	// n is how many bytes are known to be there.
	n := arg.Size
	t.helper = helpers[reads]
	if arg.Kind != Object {
		t.helper = stringHelpers[reads]
		if n == 0 && arg.Loc.Kind == dwarfloc.KindBytes {
			n = len(arg.Loc.Bytes)
		}
	}
	t.bytes = n
	switch {
	case arg.Loc.Kind == dwarfloc.KindImplicitPointer:
		return t, &refusal{dwarfloc.Reason{Code: dwarfloc.ImplicitPointer}}
	case arg.Kind == Object && n <= 0:
		return t, &refusal{dwarfloc.Reason{Code: dwarfloc.IncompleteType}}
	case arg.Kind == Object && n > MaxObject:
		return t, refuse(dwarfloc.TooLarge, "%d bytes, a record holds %d", n, MaxObject)
	case arg.Kind != Object && (arg.MaxBytes <= 0 || arg.MaxBytes > MaxObject):
		return t, refuse(dwarfloc.TooLarge, "a string of %d bytes, a record holds from 1 to %d", arg.MaxBytes, MaxObject)
	case arg.Kind != Object && (n == 0 || n >= arg.MaxBytes):
		t.bytes = arg.MaxBytes
	case arg.Kind != Object:
		t.bytes = n + 1 // an array may be full, and the helper needs room for the NUL
	}
	if arg.Loc.Kind == dwarfloc.KindMemory {
		t.addr, err = l.expr(arg.Loc.Expr)
		return t, err
	}
	if arg.Kind != Object {
		// Elsewhere a string's end is not known before it is fetched.
		if k := arg.Loc.Kind; n <= 0 || k != dwarfloc.KindBytes && k != dwarfloc.KindConstant {
			return t, refuse(dwarfloc.Unsupported, "a string that is not in memory")
		}
		n = min(n, arg.MaxBytes-1)
	}
	t.helper = 0
	t.words = make([]*node, arg.room()/8)
	for i := range t.words {
		t.words[i] = l.pool.constant(0)
		if part := min(8, n-8*i); part > 0 {
			if t.words[i], err = l.word(arg, uint64(8*i), uint64(part)); err != nil {
				return t, err
			}
		}
	}
	if arg.Kind != Object {
		l.cut(t.words)
	}
	return t, nil
}

// word takes at most 8 bytes of an object, in the form in which a store of 8 bytes
// puts them first.
func (l *lowering) word(arg *Arg, off, bytes uint64) (v *node, err error) {
	if arg.Loc.Kind == dwarfloc.KindPieces {
		v, err = l.pieces(arg.Loc.Pieces, 8*off, 8*bytes)
	} else {
		v, err = l.bits(&arg.Loc, 8*off, 8*bytes)
	}
	if err != nil || !l.be {
		return v, err
	}
	return l.pool.binaryOp(dwarfloc.OpShl, v, l.pool.constant(64-8*bytes)), nil
}

// cut clears what is after a known string's NUL.
func (l *lowering) cut(words []*node) {
	ended := false
	for i, w := range words {
		var k uint64
		for b := range 8 {
			shift := 8 * b
			if l.be {
				shift = 56 - shift
			}
			c := w.k >> shift & 0xff
			if ended = ended || c == 0; !ended {
				k |= c << shift
			}
		}
		words[i] = l.pool.constant(k)
	}
}
