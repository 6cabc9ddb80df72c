package eval

import (
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// machine is DWARF's stack machine at one point in one expression.
type machine struct {
	ev    *Evaluator
	expr  []byte
	at    int       // offset of the next operation
	o     Operation // the last one decoded
	stack []operand
}

// operand is a value on the stack. typ is nil for DWARF's generic type: an integer
// with the size of an address and unspecified signedness.
type operand struct {
	e   *loc.Expr
	typ *BaseType
}

// wrap truncates and extends a value to its type's width.
func (ev *Evaluator) wrap(e *loc.Expr, t *BaseType) *loc.Expr {
	if t == nil {
		return e
	}
	return ev.extend(e, t, t.Signed)
}

// extend truncates a value to a type's width, and extends it with a sign or without.
func (ev *Evaluator) extend(e *loc.Expr, t *BaseType, signed bool) *loc.Expr {
	if t.Bits == 0 {
		return ev.Extend(e, t.Size, signed)
	}
	mask := uint64(1)<<t.Bits - 1
	for (e.Op == ops.ZExt || e.Op == ops.SExt) && 8*uint64(e.Size) >= t.Bits || e.Op == ops.And && e.B.Op == ops.Const && e.B.K&mask == mask {
		e = e.A // what else that takes away or adds is not left
	}
	if !signed && Comparison(e.Op) {
		return e
	}
	if !signed {
		return ev.Binary(ops.And, e, ev.Const(mask))
	}
	by := ev.Const(64 - t.Bits)
	return ev.Binary(ops.Shra, ev.Binary(ops.Shl, e, by), by)
}

// terminator is what a part of a composite location ends with.
type terminator uint8

const (
	endOfExpr terminator = iota
	endOfPiece
)

// next decodes the next operation into m.o.
func (m *machine) next() *stop {
	switch m.o.decode(m.expr, m.at, &m.ev.Encoding) {
	case nil:
		m.at = m.o.Next
		return nil
	case errUnknownOperation:
		return unsupported("%s", opName(m.o.Code))
	}
	return invalid("an operand of %s is cut short", opName(m.o.Code))
}

// location evaluates to the end of the expression, which is a single location or one
// in pieces.
func (m *machine) location(l *loc.Location) *stop {
	var pieces []loc.Piece
	var lost *stop // of the first piece that has a reason
	for {
		start := m.at
		end, st := m.simple(l)
		if st != nil {
			if !m.skipPart(start, st) {
				return st
			}
			*l, end = loc.Location{}, endOfPiece
			if lost == nil {
				lost = st
			}
		}
		if end == endOfExpr {
			switch {
			case pieces == nil && l.Kind == loc.KindNone:
				return invalid("nothing is left on the stack")
			case pieces == nil:
				return nil
			case l.Kind != loc.KindNone:
				return invalid("a part that is no piece follows pieces")
			}
			return composite(l, pieces, lost)
		}
		p, bad := m.piece(l)
		if bad != nil {
			return bad
		}
		if st != nil {
			p.Reason = st.reason
		}
		if len(pieces) >= maxPieces {
			return unsupported("more than %d pieces", maxPieces)
		}
		pieces = append(pieces, p)
		m.stack = m.stack[:0]
		if m.at == len(m.expr) {
			return composite(l, pieces, lost)
		}
	}
}

// composite makes l the location in pieces. lost is why a piece has no location; if none has
// one, so is the whole.
func composite(l *loc.Location, pieces []loc.Piece, lost *stop) *stop {
	if lost != nil && !slices.ContainsFunc(pieces, func(p loc.Piece) bool { return p.Loc.Kind != loc.KindNone }) {
		return lost
	}
	*l = loc.Location{Kind: loc.KindPieces, Pieces: pieces}
	return nil
}

// skipPart goes on from the start of a part that has no location to the operation that makes
// it a piece, so that the other pieces can be read. It fails after an error, if no such
// operation follows, and where a branch may lead elsewhere.
func (m *machine) skipPart(start int, st *stop) bool {
	if st.err != nil {
		return false
	}
	for m.at = start; ; {
		if end, ok := m.atEnd(); ok {
			return end == endOfPiece
		}
		if m.next() != nil {
			return false
		}
		if c := op.Opcode(m.o.Code); c == op.DW_OP_skip || c == op.DW_OP_bra {
			return false
		}
	}
}

// piece reads the operation that follows a part of a composite location.
func (m *machine) piece(l *loc.Location) (loc.Piece, *stop) {
	const most = 1 << 32 // bits
	if st := m.next(); st != nil {
		return loc.Piece{}, st
	}
	o := &m.o
	p := loc.Piece{BitSize: o.A, BitOffset: o.B, Loc: *l}
	if o.Code == uint8(op.DW_OP_piece) {
		if o.A > most/8 {
			return p, invalid("a piece of absurd size")
		}
		p.BitSize = 8 * o.A
	}
	if p.BitSize == 0 || p.BitSize > most || p.BitOffset > most {
		return p, invalid("a piece of no or absurd size")
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

// finish checks that a part ends here, after an operation that must be its last.
func (m *machine) finish() (terminator, *stop) {
	// DW_OP_GNU_uninit may follow: the variable has a place but no value yet.
	if m.at < len(m.expr) && m.expr[m.at] == opGNUUninit {
		m.at++
	}
	end, ok := m.atEnd()
	if !ok {
		return 0, invalid("%s follows a finished location", opName(m.expr[m.at]))
	}
	return end, nil
}

// simple evaluates one part: to the end of the expression or to a piece.
func (m *machine) simple(l *loc.Location) (terminator, *stop) {
	ev := m.ev
	*l = loc.Location{}
	for {
		if end, ok := m.atEnd(); ok {
			if len(m.stack) > 0 {
				l.Kind, l.Expr = loc.KindMemory, m.stack[len(m.stack)-1].e
			}
			return end, nil
		}
		if ev.ops++; ev.ops > maxOps {
			return 0, unsupported("an expression that runs more than %d operations", maxOps)
		}
		if len(m.stack) > maxStack {
			return 0, unsupported("an expression with more than %d values on its stack", maxStack)
		}
		if st := m.next(); st != nil {
			return 0, st
		}
		o := &m.o
		code := op.Opcode(o.Code)
		switch {
		case code >= op.DW_OP_reg0 && code <= op.DW_OP_reg31, code == op.DW_OP_regx:
			n := uint64(code - op.DW_OP_reg0)
			if code == op.DW_OP_regx {
				n = o.A
			}
			if r := CheckRegister(ev.Arch, n); r.Code != reasons.None {
				return 0, &stop{reason: r}
			}
			l.Kind, l.Expr = loc.KindRegister, ev.Register(n, 0)
			return m.finish()
		case code == op.DW_OP_stack_value:
			if len(m.stack) == 0 {
				return 0, invalid("DW_OP_stack_value on an empty stack")
			}
			top := &m.stack[len(m.stack)-1]
			if *l = ev.Value(top.e); l.Kind == loc.KindValue && top.typ == nil && ev.narrow() {
				l.Size = uint8(ev.Encoding.AddressSize)
			}
			return m.finish()
		case code == op.DW_OP_implicit_value:
			*l = ev.Constant(o.Block)
			return m.finish()
		case code == opImplicitPointer, code == opGNUImplicitPtr:
			l.Kind, l.Target, l.TargetOffset = loc.KindImplicitPointer, o.A, int64(o.B)
			return m.finish()
		case code == op.DW_OP_skip, code == op.DW_OP_bra:
			to := m.at + int(int64(o.A))
			if to < 0 || to > len(m.expr) {
				return 0, invalid("a branch leaves the expression")
			}
			if code == op.DW_OP_skip {
				m.at = to
				continue
			}
			cond, st := m.pop()
			if st != nil {
				return 0, st
			}
			number := cond.e
			if cond.e = ev.unsigned(cond); cond.e.Op == ops.Const {
				if cond.e.K != 0 {
					m.at = to
				}
				continue
			}
			if end, ok := m.zeros(number, to); ok {
				m.at = end
				continue
			}
			return endOfExpr, m.branch(l, cond.e, to)
		default:
			if st := m.run(o); st != nil {
				return 0, st
			}
		}
	}
}

// branch follows both paths of a conditional branch to the end of the expression and
// joins their results.
func (m *machine) branch(l *loc.Location, cond *loc.Expr, to int) *stop {
	ev := m.ev
	if ev.depth++; ev.depth > maxNesting+1 {
		ev.depth--
		return unsupported("more than %d branches", maxNesting)
	}
	defer func() { ev.depth-- }()
	way := func(l *loc.Location, at int) *stop {
		w := machine{ev: ev, expr: m.expr, at: at, stack: append([]operand(nil), m.stack...)}
		end, st := w.simple(l)
		if st == nil && end != endOfExpr {
			st = unsupported("a branch in a location with pieces")
		}
		if st == nil && l.Kind == loc.KindNone {
			st = invalid("nothing is left on the stack")
		}
		return st
	}
	var yes, no loc.Location
	if st := way(&yes, to); st != nil {
		return st
	}
	if st := way(&no, m.at); st != nil {
		return st
	}
	if (yes.Kind == loc.KindMemory) != (no.Kind == loc.KindMemory) || yes.Expr == nil || no.Expr == nil {
		return unsupported("a branch between different kinds of locations")
	}
	l.Kind, l.Size = loc.KindValue, max(yes.Size, no.Size)
	if yes.Kind == loc.KindMemory {
		l.Kind = loc.KindMemory
	}
	l.Expr = ev.Select(cond, yes.Expr, no.Expr)
	return nil
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

// pick pushes a copy of the value n below the top.
func (m *machine) pick(n uint64) *stop {
	if n >= uint64(len(m.stack)) {
		return invalid("the stack is not that deep")
	}
	m.stack = append(m.stack, m.stack[len(m.stack)-1-int(n)])
	return nil
}
