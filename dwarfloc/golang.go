package dwarfloc

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/types"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Functions that Go compiled run on stacks that the runtime moves, and the runtime reads the
// return addresses on them (copystack and gentraceback in Go's src/runtime). A return probe
// replaces a return address, and the program ends with "unexpected return pc". So a probe
// of their returns is at their return instructions. C functions in the same image run on
// stacks that are not moved.

// isGo reports whether Go's own compiler or assembler made the unit. gccgo's functions use
// the calling convention of C, on stacks that do not move.
func (u *unit) isGo() bool {
	return u.Lang == dw.LangGo && !u.gnu()
}

// steadyFrame returns what stays the same of a frame when its stack moves: how far it is from the
// stack's end, and the goroutine. Both are in the goroutine's structure, at the address in a
// register of Go's ABI (cmd/compile/abi-internal.md; stack.hi of type g in
// runtime/runtime2.go).
func (ev *evaluator) steadyFrame(cfa *loc.Expr) *loc.Expr {
	r, ok := goroutine[ev.Arch.Name]
	if !ok {
		return cfa
	}
	const stackHi = 8
	end := ev.Deref(ev.Register(r, stackHi), 8)
	// A stack has at most 1 GB (runtime.maxstacksize), and structures of goroutines are
	// hundreds of bytes apart.
	return ev.Binary(loc.OpAdd, ev.Binary(loc.OpShl, ev.Register(r, 0), ev.Const(22)), ev.Binary(loc.OpSub, end, cfa))
}

// goroutine has the DWARF numbers of the registers that point to the current goroutine.
var goroutine = map[string]uint64{"amd64": 14, "arm64": 28}

// ErrMovingStack is wrapped by the error of Returns for a function whose return cannot be
// probed.
var ErrMovingStack = errors.New("a return probe would end the program, because Go moves stacks")

// goReturns is Returns for a function of Go.
func (s *Site) goReturns() (out []*Site, err error) {
	arch := insn.For(s.u.img.Instructions())
	if arch == nil {
		return nil, fmt.Errorf("%v: %w: its return instructions are not known, because those of %s are not decoded", s, ErrMovingStack, s.u.img.Arch().Name)
	}
	ranges, err := s.u.Extent(&s.pcs)
	if err != nil {
		return nil, err
	}
	for _, r := range ranges {
		part := *s
		part.Addr = r.Lo
		f, err := part.code(arch)
		if err != nil {
			return nil, err
		}
		if f.reading == nil {
			return nil, fmt.Errorf("%v: %w: its return instructions are not known: %s", s, ErrMovingStack, f.why)
		}
		if err := f.followRows(s.u, f.hi); err != nil {
			return nil, err
		}
		ends, strange := f.reading.Returns()
		if strange >= 0 {
			why, err := f.strange(s, strange)
			if err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%v: %w: its return instructions are not known: %w", s, ErrMovingStack, why)
		}
		for _, off := range ends {
			ret, err := s.returnAt(f.lo + uint64(off))
			if err != nil {
				return nil, err
			}
			out = append(out, ret)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%v: %w: it has no return instruction", s, ErrMovingStack)
	}
	return out, nil
}

// goResult returns a result of the site's function, by its name, or the first with "". It is
// where Go's calling convention has results when the function returns (Go's
// src/cmd/compile/abi-internal.md). found is false if there is none.
func (s *Site) goResult(name string) (v *Variable, found bool, err error) {
	e, err := s.u.Entry(s.DIE)
	if err != nil {
		return nil, false, err
	}
	params, err := goParameters(e)
	if err != nil {
		return nil, false, err
	}
	a := &goABI{s: s}
	a.begin()
	for _, isResult := range []bool{false, true} {
		for _, p := range params {
			if p.result != isResult {
				continue
			}
			u := s.u.img.of(p.entry.Unit)
			t, err := u.typeOf(p.typ)
			if err != nil {
				return nil, false, err
			}
			text := u.Text(p.name)
			place, reason, err := a.place(t)
			if err != nil {
				return nil, false, err
			}
			if s.Symbol == "" {
				// Only symbols tell assembler's wrappers of Go functions, which return results
				// on the stack, from the functions themselves.
				place, reason = loc.Location{}, loc.Reason{Code: loc.ReasonUnsupported, Detail: "the image has no symbol for the function, which says by which of Go's conventions it returns"}
			}
			if isResult && (name == "" || text == name) {
				return &Variable{Name: "$retval", Role: RoleGiven, Type: t, Loc: place, Reason: reason, Entries: 1}, true, nil
			}
		}
		a.results()
	}
	return nil, false, nil
}

// goParameter is a parameter or a result in a function's entry.
type goParameter struct {
	entry     dw.Entry
	name, typ dw.Value
	result    bool
}

// goParameters returns a function's parameters and results in the order of the source, from
// its own entry or, for a copy of a function that is inlined elsewhere, its origin's, which
// has all of them.
func goParameters(e dw.Entry) (out []goParameter, err error) {
	if e, err = eachOrigin(e, nil, nil); err != nil {
		return nil, err
	}
	err = e.Children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagFormalParameter {
			return true, nil
		}
		p := goParameter{entry: c}
		err := c.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrName:
				p.name = v
			case dw.AttrType:
				p.typ = v
			case dw.AttrVarParameter:
				p.result = v.U != 0
			}
		})
		out = append(out, p)
		return true, err
	})
	return out, err
}

// goABI assigns parameters and then results to registers and the stack.
type goABI struct {
	s            *Site
	ints, floats []uint16 // registers that are left, by their DWARF numbers
	stack        int64    // bytes that are used on the stack

	// What the current value has.
	pieces  []loc.Piece
	bits    uint64 // of pieces
	vectors bool   // some pieces are in vector registers
}

// goRegisters has the registers of Go's ABIInternal by architecture: R0 to R15 on arm64, RAX,
// RBX, RCX, RDI, RSI, R8 to R11 on amd64, and as many vector registers.
var goRegisters = map[string]struct{ ints, floats []uint16 }{
	"amd64": {[]uint16{0, 3, 2, 5, 4, 8, 9, 10, 11}, sequence(17, 15)},
	"arm64": {sequence(0, 16), sequence(64, 16)},
}

func sequence(from uint16, n int) []uint16 {
	out := make([]uint16, n)
	for i := range out {
		out[i] = from + uint16(i)
	}
	return out
}

// begin makes all registers free. Before Go 1.17, and in assembler code and what it calls
// (ABI0), none is used.
func (a *goABI) begin() {
	a.ints, a.floats = nil, nil
	if strings.Contains(a.s.u.Producer(), "regabi") && !strings.HasSuffix(a.s.Symbol, ".abi0") {
		r := goRegisters[a.s.u.img.Arch().Name]
		a.ints, a.floats = r.ints, r.floats
	}
}

// results begins with the results: all registers are free again, and those on the stack are
// aligned.
func (a *goABI) results() {
	a.begin()
	a.align(int64(a.s.u.img.Arch().WordSize))
}

func (a *goABI) align(n int64) {
	if n > 1 {
		a.stack = (a.stack + n - 1) / n * n
	}
}

// place assigns the next value: all of it to registers, if there are enough, or else to
// the stack.
func (a *goABI) place(t *types.Type) (l loc.Location, r loc.Reason, err error) {
	size, err := t.ByteSize()
	if err != nil {
		return l, r, err
	}
	if f, err := t.Resolve(); err == nil && f.Kind == types.Func {
		size = int64(a.s.u.img.Arch().WordSize) // a pointer to a closure
	}
	ints, floats := a.ints, a.floats
	a.pieces, a.bits, a.vectors = nil, 0, false
	fits, err := a.registers(t, 0, 0)
	if err != nil || size < 0 {
		return l, loc.Reason{Code: loc.ReasonIncompleteType}, err
	}
	if fits {
		l, r := a.inRegisters(uint64(size))
		return l, r, nil
	}
	a.ints, a.floats = ints, floats
	align, err := goAlign(t, 0)
	if err != nil {
		return l, r, err
	}
	a.align(align)
	// The first argument is after the return address, which arm64 leaves room for too.
	arch := a.s.u.img.Arch()
	l = loc.Location{Kind: loc.KindMemory, Rule: loc.RuleABI, Expr: register(arch.SP, uint64(int64(arch.WordSize)+a.stack))}
	a.stack += size
	return l, loc.Reason{}, nil
}

// inRegisters returns the location that the pieces make. Of a structure with a number in a
// vector register the rest can still be read.
func (a *goABI) inRegisters(size uint64) (l loc.Location, r loc.Reason) {
	if a.vectors {
		r.Code = loc.ReasonVectorRegister
		if !slices.ContainsFunc(a.pieces, func(p loc.Piece) bool { return p.Loc.Kind != loc.KindNone }) {
			return l, r
		}
	}
	a.fill(8 * size)
	if len(a.pieces) == 1 && a.pieces[0].Loc.Kind == loc.KindRegister {
		l = a.pieces[0].Loc
	} else {
		l = loc.Location{Kind: loc.KindPieces, Pieces: a.pieces}
	}
	l.Rule = loc.RuleABI
	return l, r
}

// fill makes the pieces end at a bit: what is between two members is in no register.
func (a *goABI) fill(to uint64) {
	if to > a.bits {
		a.pieces = append(a.pieces, loc.Piece{BitSize: to - a.bits})
		a.bits = to
	}
}

// registers assigns a value of a type, off bytes from the beginning of the whole.
func (a *goABI) registers(t *types.Type, off uint64, depth int) (fits bool, err error) {
	r, err := t.Resolve()
	if err != nil || depth > types.MaxDepth {
		return false, err
	}
	switch r.Kind {
	case types.Float:
		return a.vector(off, uint64(max(r.Size, 0))), nil
	case types.Complex:
		half := uint64(max(r.Size, 0)) / 2
		return a.vector(off, half) && a.vector(off+half, half), nil
	case types.Struct:
		members, err := r.Members()
		if err != nil {
			return false, err
		}
		for i := range members {
			m := &members[i]
			if fits, err := a.registers(m.Type, off+m.BitOffset/8, depth+1); err != nil || !fits {
				return false, err
			}
		}
		return true, nil
	case types.Array:
		el, n, err := r.Count()
		if err != nil || n > 1 || n < 0 {
			return false, err
		}
		if n == 0 {
			return true, nil
		}
		return a.registers(el, off, depth+1)
	case types.Func:
		return a.integer(off, uint64(a.s.u.img.Arch().WordSize)), nil
	}
	if r.Size < 0 || r.Size > int64(a.s.u.img.Arch().WordSize) {
		return false, nil
	}
	return a.integer(off, uint64(r.Size)), nil
}

func (a *goABI) integer(off, size uint64) bool {
	if len(a.ints) == 0 {
		return false
	}
	a.add(off, size, loc.Location{Kind: loc.KindRegister, Expr: register(a.ints[0], 0)})
	a.ints = a.ints[1:]
	return true
}

func (a *goABI) vector(off, size uint64) bool {
	if len(a.floats) == 0 {
		return false
	}
	a.add(off, size, loc.Location{})
	a.pieces[len(a.pieces)-1].Reason.Code = loc.ReasonVectorRegister
	a.floats, a.vectors = a.floats[1:], true
	return true
}

func (a *goABI) add(off, size uint64, l loc.Location) {
	a.fill(8 * off)
	a.pieces = append(a.pieces, loc.Piece{BitSize: 8 * size, Loc: l})
	a.bits += 8 * size
}

// goAlign returns the alignment in bytes of a type on the stack: that of its largest scalar.
func goAlign(t *types.Type, depth int) (int64, error) {
	r, err := t.Resolve()
	if err != nil || depth > types.MaxDepth {
		return 1, err
	}
	align := int64(1)
	switch r.Kind {
	case types.Struct:
		members, err := r.Members()
		if err != nil {
			return 1, err
		}
		for i := range members {
			n, err := goAlign(members[i].Type, depth+1)
			if err != nil {
				return 1, err
			}
			align = max(align, n)
		}
	case types.Array:
		el, _, err := r.Count()
		if err != nil {
			return 1, err
		}
		return goAlign(el, depth+1)
	case types.Complex:
		align = r.Size / 2
	default:
		align = r.Size
	}
	return max(1, min(align, 8)), nil
}
