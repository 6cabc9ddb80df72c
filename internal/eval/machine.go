package eval

import (
	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/loc"
)

// machine is DWARF's stack machine at one point of one expression.
type machine struct {
	ev    *Evaluator
	expr  []byte
	at    int // offset of the next operation
	stack []operand
}

// operand is a value on the stack. typ is nil for DWARF's generic type: an
// integer of the size of an address and unspecified signedness.
type operand struct {
	e   *loc.Expr
	typ *BaseType
}

// wrap makes a value as wide as its type.
func (ev *Evaluator) wrap(e *loc.Expr, t *BaseType) *loc.Expr {
	if t == nil {
		return e
	}
	return ev.Extend(e, t.Size, t.Signed)
}

// terminator is what a part of a composite location ends with.
type terminator uint8

const (
	endOfExpr terminator = iota
	endOfPiece
)

// next decodes the next operation.
func (m *machine) next() (Operation, *stop) {
	o, err := Decode(m.expr, m.at, m.ev.Encoding)
	switch err {
	case nil:
		m.at = o.Next
		return o, nil
	case errUnknownOperation:
		return o, unsupported("%s", opName(o.Code))
	}
	return o, invalid("an operand of %s is cut short", opName(o.Code))
}

// location evaluates to the end of the expression: a single location, or one that
// is put together from pieces.
func (m *machine) location() (loc.Location, *stop) {
	var pieces []loc.Piece
	for {
		l, end, st := m.simple()
		if st != nil {
			return loc.Location{}, st
		}
		if end == endOfExpr {
			if pieces == nil {
				if l.Kind == loc.KindNone {
					return l, invalid("nothing is left on the stack")
				}
				return l, nil
			}
			if l.Kind != loc.KindNone {
				return l, invalid("a part that is no piece follows pieces")
			}
			return loc.Location{Kind: loc.KindPieces, Pieces: pieces}, nil
		}
		p, st := m.piece(l)
		if st != nil {
			return loc.Location{}, st
		}
		if len(pieces) >= maxPieces {
			return loc.Location{}, unsupported("more than %d pieces", maxPieces)
		}
		pieces = append(pieces, p)
		m.stack = m.stack[:0]
		if m.at == len(m.expr) {
			return loc.Location{Kind: loc.KindPieces, Pieces: pieces}, nil
		}
	}
}

// piece reads the operation that follows a part of a composite location.
func (m *machine) piece(l loc.Location) (loc.Piece, *stop) {
	const most = 1 << 32 // bits
	o, st := m.next()
	if st != nil {
		return loc.Piece{}, st
	}
	p := loc.Piece{BitSize: o.A, BitOffset: o.B, Loc: l}
	if o.Code == uint8(op.DW_OP_piece) {
		if o.A > most/8 {
			return loc.Piece{}, invalid("a piece of absurd size")
		}
		p.BitSize = 8 * o.A
	}
	if p.BitSize == 0 || p.BitSize > most || p.BitOffset > most {
		return loc.Piece{}, invalid("a piece of no or absurd size")
	}
	return p, nil
}

// atEnd reports whether a part of the location ends here, and how.
func (m *machine) atEnd() (terminator, bool) {
	if m.at >= len(m.expr) {
		return endOfExpr, true
	}
	switch m.expr[m.at] {
	case uint8(op.DW_OP_bit_piece), uint8(op.DW_OP_piece):
		return endOfPiece, true
	}
	return 0, false
}

// finish is for operations that must be the last of a part.
func (m *machine) finish(l loc.Location) (loc.Location, terminator, *stop) {
	// DW_OP_GNU_uninit may follow: the variable has no value yet, its place is known.
	if m.at < len(m.expr) && m.expr[m.at] == opGNUUninit {
		m.at++
	}
	end, ok := m.atEnd()
	if !ok {
		return l, 0, invalid("%s follows a finished location", opName(m.expr[m.at]))
	}
	return l, end, nil
}

// simple evaluates one part: to the end of the expression or to a piece.
func (m *machine) simple() (loc.Location, terminator, *stop) {
	ev := m.ev
	for {
		if end, ok := m.atEnd(); ok {
			if len(m.stack) == 0 {
				return loc.Location{}, end, nil
			}
			return loc.Location{Kind: loc.KindMemory, Expr: m.stack[len(m.stack)-1].e}, end, nil
		}
		if ev.ops++; ev.ops > maxOps {
			return loc.Location{}, 0, unsupported("an expression that runs more than %d operations", maxOps)
		}
		if len(m.stack) > maxStack {
			return loc.Location{}, 0, unsupported("an expression with more than %d values on its stack", maxStack)
		}
		o, st := m.next()
		if st != nil {
			return loc.Location{}, 0, st
		}
		code := op.Opcode(o.Code)
		switch {
		case code >= op.DW_OP_reg0 && code <= op.DW_OP_reg31:
			return m.register(uint64(code - op.DW_OP_reg0))
		case code == op.DW_OP_regx:
			return m.register(o.A)
		case code == op.DW_OP_stack_value:
			if len(m.stack) == 0 {
				return loc.Location{}, 0, invalid("DW_OP_stack_value on an empty stack")
			}
			return m.finish(ev.Value(m.stack[len(m.stack)-1].e))
		case code == op.DW_OP_implicit_value:
			return m.finish(ev.Constant(o.Block))
		case code == opImplicitPointer, code == opGNUImplicitPtr:
			return m.finish(loc.Location{Kind: loc.KindImplicitPointer, Target: o.A, TargetOffset: int64(o.B)})
		case code == op.DW_OP_skip, code == op.DW_OP_bra:
			to := m.at + int(int64(o.A))
			if to < 0 || to > len(m.expr) {
				return loc.Location{}, 0, invalid("a branch leaves the expression")
			}
			if code == op.DW_OP_skip {
				m.at = to
				continue
			}
			cond, st := m.pop()
			if st != nil {
				return loc.Location{}, 0, st
			}
			if cond.e.Op == loc.OpConst {
				if cond.e.K != 0 {
					m.at = to
				}
				continue
			}
			l, st := m.branch(cond.e, to)
			return l, endOfExpr, st
		default:
			if st := m.run(&o); st != nil {
				return loc.Location{}, 0, st
			}
		}
	}
}

func (m *machine) register(n uint64) (loc.Location, terminator, *stop) {
	if r := CheckRegister(m.ev.Arch, n); r.Code != loc.ReasonNone {
		return loc.Location{}, 0, &stop{reason: r}
	}
	return m.finish(loc.Location{Kind: loc.KindRegister, Expr: m.ev.Register(n, 0)})
}

// branch follows both ways of a conditional branch to the end of the expression
// and joins what they found.
func (m *machine) branch(cond *loc.Expr, to int) (loc.Location, *stop) {
	ev := m.ev
	if ev.depth++; ev.depth > maxNesting+1 {
		ev.depth--
		return loc.Location{}, unsupported("more than %d branches", maxNesting)
	}
	defer func() { ev.depth-- }()
	way := func(at int) (loc.Location, *stop) {
		w := machine{ev: ev, expr: m.expr, at: at, stack: append([]operand(nil), m.stack...)}
		l, end, st := w.simple()
		if st == nil && end != endOfExpr {
			st = unsupported("a branch in a location with pieces")
		}
		if st == nil && l.Kind == loc.KindNone {
			st = invalid("nothing is left on the stack")
		}
		return l, st
	}
	yes, st := way(to)
	if st != nil {
		return loc.Location{}, st
	}
	no, st := way(m.at)
	if st != nil {
		return loc.Location{}, st
	}
	if (yes.Kind == loc.KindMemory) != (no.Kind == loc.KindMemory) || yes.Expr == nil || no.Expr == nil {
		return loc.Location{}, unsupported("a branch between different kinds of locations")
	}
	kind := loc.KindValue
	if yes.Kind == loc.KindMemory {
		kind = loc.KindMemory
	}
	return loc.Location{Kind: kind, Expr: ev.Select(cond, yes.Expr, no.Expr)}, nil
}

func (m *machine) push(e *loc.Expr, t *BaseType) { m.stack = append(m.stack, operand{e, t}) }

func (m *machine) pop() (operand, *stop) {
	if len(m.stack) == 0 {
		return operand{}, invalid("the stack is empty")
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

// pick copies the value n below the top.
func (m *machine) pick(n uint64) *stop {
	if n >= uint64(len(m.stack)) {
		return invalid("the stack is not that deep")
	}
	m.stack = append(m.stack, m.stack[len(m.stack)-1-int(n)])
	return nil
}
