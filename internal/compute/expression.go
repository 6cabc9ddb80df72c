package compute

import (
	"cmp"
	"errors"
	"math"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Expressions of a definition that compute something are C's, with C's types: operands are promoted
// to int, and to the wider or unsigned type of both (ISO C11 6.3.1.8). They become one location, a
// value, which a program computes when the probe fires. What && and || do not need is not computed, so
// "p && p->x" reads no memory at 0.

// number is an operand: a number or an address.
type number struct {
	e      *loc.Expr // extended to 64 bits by its type; nil if there is a reason
	size   int       // bytes of its type: 4 or 8 after promotion
	signed bool
	to     *types.Type // what an address is of, or nil
	reason loc.Reason
}

// computed resolves an expression that is computed from others, without its path.
func computed(s *dwarfloc.Site, e *syntax.Expr) (*dwarfloc.Variable, error) {
	c := computation{s: s, ev: builder(s)}
	v, err := c.root(e)
	if v != nil && !inner(v) {
		v.OfFunction = c.inner
	}
	if v != nil && v.Located() && v.Loc.Doubt == reasons.None {
		v.Loc.Doubt = c.doubt
	}
	if wrong, is := err.(*Mismatch); is {
		if wrong.Expr == nil {
			wrong.Expr = e
		}
		code := reasons.TypeMismatch
		switch {
		case wrong.unknown:
			code = reasons.NoSuchVariable
		case wrong.Members != nil:
			code = reasons.NoSuchMember
		}
		return &dwarfloc.Variable{Name: e.String(), Role: dwarfloc.RoleGiven, Type: types.VoidType, Wrong: wrong, Reason: loc.Reason{Code: code, Detail: wrong.Msg}}, nil
	}
	return v, err
}

// computation computes expressions at one site.
type computation struct {
	s     *dwarfloc.Site
	ev    *eval.Builder
	inner bool           // an operand is a variable of the function
	doubt loc.ReasonCode // of an operand
}

// wrongAt is wrong for an operand.
func wrongAt(e *syntax.Expr, format string, args ...any) error {
	err := wrong(format, args...).(*Mismatch)
	err.Expr = e
	return err
}

// variable returns a result.
func (c *computation) variable(e *syntax.Expr, t *types.Type, l loc.Location, r loc.Reason) *dwarfloc.Variable {
	v := given(c.s, e.String(), l, r)
	v.Type = t
	return v
}

func (c *computation) value(e *syntax.Expr, n *number) *dwarfloc.Variable {
	t := numberType(n.size, n.signed)
	if n.to != nil {
		t = types.PointerTo(n.to, n.size)
	}
	if n.reason.Code != reasons.None {
		return c.variable(e, t, loc.Location{}, n.reason)
	}
	return c.variable(e, t, c.ev.Value(n.e), loc.Reason{})
}

// root computes an expression without its path.
func (c *computation) root(e *syntax.Expr) (*dwarfloc.Variable, error) {
	switch e.Kind {
	case syntax.KindUnary:
		switch e.Name {
		case "*":
			return c.pointee(e)
		case "&":
			return c.address(e)
		}
	case syntax.KindCast:
		return c.cast(e)
	case syntax.KindContainerOf:
		return c.containerOf(e)
	case syntax.KindOffset:
		n, err := c.number(e.A)
		if err != nil {
			return nil, err
		}
		l := loc.Location{}
		if n.reason.Code == reasons.None {
			l = loc.Location{Kind: loc.KindMemory, Expr: c.ev.Binary(ops.Add, n.e, c.ev.Const(e.Number))}
		}
		return c.variable(e, types.WordType, l, n.reason), nil
	case syntax.KindString:
		return nil, wrongAt(e, "a string can only be compared (==, !=, ~)")
	case syntax.KindFloat:
		return nil, wrongAt(e, "a number with a point can only be compared")
	case syntax.KindWide:
		wrong := wrongAt(e, "a number of more than 64 bits can only be compared").(*Mismatch)
		wrong.wide = true
		return nil, wrong
	}
	n, err := c.compute(e)
	if err != nil {
		return nil, err
	}
	return c.value(e, &n), nil
}

// resolve resolves an operand. What the types do not allow is an error here.
func (c *computation) resolve(e *syntax.Expr) (*dwarfloc.Variable, error) {
	v, err := Resolve(c.s, e)
	if err != nil {
		return nil, err
	}
	c.inner = c.inner || inner(v)
	c.doubt = cmp.Or(c.doubt, v.Loc.Doubt, v.Loc.Pointee)
	if !reasons.Mistaken(v.Reason.Code) {
		return v, nil
	}
	if wrong := Wrong(v); wrong != nil {
		w := *wrong
		if w.Expr == nil {
			w.Expr = e
		}
		return nil, &w
	}
	return nil, &Mismatch{Expr: e, Msg: v.Reason.String(), unknown: v.Reason.Code == reasons.NoSuchVariable}
}

// number resolves an operand that is a number or an address.
func (c *computation) number(e *syntax.Expr) (n number, err error) {
	if len(e.Path) == 0 {
		switch e.Kind {
		case syntax.KindNumber, syntax.KindSizeof, syntax.KindBinary, syntax.KindTask:
			return c.compute(e)
		case syntax.KindUnary:
			if e.Name != "*" && e.Name != "&" {
				return c.compute(e)
			}
		case syntax.KindVariable:
			if k, found, err := inside.Enumerator(c.s, e.Name); found || err != nil {
				return c.constant(k), err
			}
		}
	}
	v, err := c.resolve(e)
	if err != nil {
		if k, is := c.word(e); is {
			return c.constant(k), nil
		}
		return n, err
	}
	return c.numberOf(e, v)
}

// constants are words of languages for numbers, where nothing else has their names.
var constants = map[string]int64{"true": 1, "false": 0, "NULL": 0, "nullptr": 0, "nil": 0}

// word returns the number that a word stands for, if nothing else has its name.
func (c *computation) word(e *syntax.Expr) (k int64, is bool) {
	if k, is = constants[e.Name]; !is || e.Kind != syntax.KindVariable || len(e.Path) > 0 {
		return 0, false
	}
	_, err := c.resolve(e)
	wrong := (*Mismatch)(nil)
	return k, errors.As(err, &wrong) && wrong.unknown
}

// constant returns a number of C's type for it.
func (c *computation) constant(k int64) number {
	size := 4
	if k != int64(int32(k)) {
		size = 8
	}
	return number{e: c.ev.Const(uint64(k)), size: size, signed: true}
}

// literal returns a number in a definition, of the first type that can have it: int, unsigned int if it
// is hexadecimal, long, unsigned long (ISO C11 6.4.4.1).
func (c *computation) literal(e *syntax.Expr) number {
	n := c.constant(int64(e.Number))
	switch hex := strings.HasPrefix(e.Name, "0x"); {
	case int64(e.Number) < 0:
		n.signed = false
	case n.size == 8 && hex && e.Number <= math.MaxUint32:
		n.size, n.signed = 4, false
	}
	return n
}

// numberOf returns the number that a variable is.
func (c *computation) numberOf(e *syntax.Expr, v *dwarfloc.Variable) (n number, err error) {
	t, err := v.Type.Resolve()
	if err != nil {
		return n, err
	}
	n.size, n.signed, n.reason = int(t.Size), t.Signed, v.Reason
	switch t.Kind {
	case types.Int, types.Char, types.Bool, types.Enum:
		if v.Bits > 0 && v.Bits < 32 && n.size == 4 {
			n.signed = true // a bit-field of which int has all values becomes one
		}
	case types.Pointer:
		if n.to, err = t.Elem(); err != nil {
			return n, err
		}
	case types.Array:
		if n.to, _, err = t.Count(); err != nil {
			return n, err
		}
		n.size = c.s.Image.Arch().WordSize
		switch {
		case n.reason.Code != reasons.None:
		case v.Loc.Kind == loc.KindMemory:
			n.e = v.Loc.Expr
		default:
			n.reason = unsupported("the address of an array that is not in memory")
		}
		return n, nil
	case types.Float:
		wrong := wrongAt(e, "%v can only be compared, with another one or a constant", v.Type).(*Mismatch)
		wrong.real = true
		return n, wrong
	default:
		return n, wrongAt(e, "%v is no number", v.Type)
	}
	if n.size <= 0 || n.size > 8 {
		wrong := wrongAt(e, "%v is no number of up to 8 bytes", v.Type).(*Mismatch)
		wrong.wide = t.Kind == types.Int && t.Size == wideBytes
		return n, wrong
	}
	if n.reason.Code != reasons.None {
		return c.promote(n), nil
	}
	if v.Loc.Kind == loc.KindImplicitPointer {
		n.reason = loc.Reason{Code: reasons.ImplicitPointer}
		return n, nil
	}
	bits, r := c.ev.Bits(&v.Loc, 0, 8*uint64(n.size))
	if n.reason = r; r.Code != reasons.None {
		return c.promote(n), nil
	}
	if bits.Op == ops.ZExt && int(bits.Size) == n.size && n.signed {
		bits = bits.A // without the extension that Bits has added
	}
	n.e = c.ev.Extend(bits, n.size, n.signed)
	if v.LowBit {
		n.e = c.ev.Binary(ops.And, n.e, c.ev.Const(1))
	}
	return c.promote(n), nil
}

// promote makes a number of a smaller type an int, which has all its values.
func (c *computation) promote(n number) number {
	if n.size < 4 {
		n.size, n.signed = 4, true
	}
	return n
}

// fault returns an expression that faults: what is missing where && or || need it.
func (c *computation) fault() *loc.Expr {
	return c.ev.Binary(ops.UDiv, c.ev.Const(1), c.ev.Const(0))
}

// truth returns whether a number is not 0.
func (c *computation) truth(n *number) *loc.Expr {
	if n.e == nil {
		return c.fault()
	}
	if eval.Comparison(n.e.Op) {
		return n.e
	}
	return c.ev.Binary(ops.Ne, n.e, c.ev.Const(0))
}

// operators are C's, with the operation for signed and for unsigned operands.
var operators = map[string]struct {
	signed, unsigned loc.Op
	compares, shifts bool
}{
	"+": {ops.Add, ops.Add, false, false}, "-": {ops.Sub, ops.Sub, false, false}, "*": {ops.Mul, ops.Mul, false, false},
	"/": {ops.Div, ops.UDiv, false, false}, "%": {ops.Mod, ops.UMod, false, false},
	"&": {ops.And, ops.And, false, false}, "|": {ops.Or, ops.Or, false, false}, "^": {ops.Xor, ops.Xor, false, false},
	"<<": {ops.Shl, ops.Shl, false, true}, ">>": {ops.Shra, ops.Shr, false, true},
	"==": {ops.Eq, ops.Eq, true, false}, "!=": {ops.Ne, ops.Ne, true, false},
	"<": {ops.Lt, ops.ULt, true, false}, "<=": {ops.Le, ops.ULe, true, false},
	">": {ops.Gt, ops.UGt, true, false}, ">=": {ops.Ge, ops.UGe, true, false},
}

// tasks are the numbers of KindTask.
var tasks = map[string]struct {
	task ops.TaskNumber
	size int
}{
	"pid": {ops.TaskPID, 4}, "tid": {ops.TaskTID, 4}, "uid": {ops.TaskUID, 4}, "gid": {ops.TaskGID, 4}, "cpu": {ops.TaskCPU, 4},
	"cgroup": {ops.TaskCgroup, 8}, "time": {ops.TaskTime, 8},
}

// compute computes a number.
func (c *computation) compute(e *syntax.Expr) (n number, err error) {
	switch e.Kind {
	case syntax.KindNumber:
		return c.literal(e), nil
	case syntax.KindTask:
		t := tasks[e.Name]
		return number{e: c.ev.Task(t.task), size: t.size}, nil
	case syntax.KindSizeof:
		t, err := typeNamed(c.s, &e.Type)
		if err != nil {
			return n, err
		}
		size, err := t.ByteSize()
		if err != nil {
			return n, err
		}
		if size < 0 {
			return n, wrongAt(e, "the size of %v is not known", t)
		}
		return number{e: c.ev.Const(uint64(size)), size: 8}, nil
	case syntax.KindUnary:
		if n, err = c.number(e.A); err != nil {
			return n, err
		}
		return c.unary(e.Name, n), nil
	}
	if e.Name == "~" || isText(e.A) || isText(e.B) {
		return c.compareText(e)
	}
	compares := operators[e.Name].compares
	if compares && (isReal(e.A) || isReal(e.B)) {
		return c.compareReals(e, nil)
	}
	a, err := c.number(e.A)
	var b number
	if err == nil {
		b, err = c.number(e.B)
	}
	if wrong := (*Mismatch)(nil); compares && errors.As(err, &wrong) && (wrong.Expr == withoutSign(e.A) || wrong.Expr == withoutSign(e.B)) {
		switch {
		case wrong.real:
			return c.compareReals(e, err)
		case wrong.wide:
			return c.compareWide(e)
		case wrong.unknown && wrong.Expr == e.A:
			wrong.Members, wrong.Type = c.enumerators(e.B)
		case wrong.unknown:
			wrong.Members, wrong.Type = c.enumerators(e.A)
		}
	}
	if err != nil {
		return n, err
	}
	switch e.Name {
	case "&&", "||":
		n = number{size: 4, signed: true, reason: a.reason}
		if a.e == nil {
			return n, nil
		}
		one, zero := c.ev.Const(1), c.ev.Const(0)
		if e.Name == "&&" {
			n.e = c.ev.Select(c.truth(&a), c.truth(&b), zero)
		} else {
			n.e = c.ev.Select(c.truth(&a), one, c.truth(&b))
		}
		return n, nil
	}
	return c.binary(e, a, b)
}

func (c *computation) unary(op string, n number) number {
	if op == "!" {
		switch {
		case n.e == nil:
		case eval.Comparison(n.e.Op):
			n.e = c.ev.Binary(eval.Inverse(n.e.Op), n.e.A, n.e.B)
		default:
			n.e = c.ev.Binary(ops.Eq, n.e, c.ev.Const(0))
		}
		return number{e: n.e, size: 4, signed: true, reason: n.reason}
	}
	if n.e != nil {
		which := ops.Neg
		if op == "~" {
			which = ops.Not
		}
		n.e = c.ev.Extend(c.ev.Unary(which, n.e), n.size, n.signed)
	}
	n.to = nil
	return n
}

// binary computes an operation with two numbers, or with addresses.
func (c *computation) binary(e *syntax.Expr, a, b number) (n number, err error) {
	op := operators[e.Name]
	scale := int64(1)
	switch {
	case a.to == nil && b.to == nil, op.compares:
	case e.Name == "+" && b.to == nil, e.Name == "-" && b.to == nil:
		if scale, err = elementSize(e, a.to); err != nil {
			return n, err
		}
		n.to = a.to
	case e.Name == "+" && a.to == nil:
		a, b = b, a
		if scale, err = elementSize(e, a.to); err != nil {
			return n, err
		}
		n.to = a.to
	case e.Name == "-":
		if scale, err = elementSize(e, a.to); err != nil {
			return n, err
		}
	default:
		return n, wrongAt(e, "an address has no %q: cast it to a number first", e.Name)
	}
	n.size, n.signed = max(a.size, b.size), a.signed && b.signed
	switch {
	case op.shifts:
		n.size, n.signed = a.size, a.signed
	case a.size != b.size:
		// The wider type has all values of the other one, or is the one that counts.
		n.signed = a.signed
		if b.size > a.size {
			n.signed = b.signed
		}
	}
	for _, x := range []*number{&a, &b} {
		if x.reason.Code != reasons.None && n.reason.Code == reasons.None {
			n.reason = x.reason
		}
	}
	which := op.unsigned
	if n.signed {
		which = op.signed
	}
	if n.reason.Code == reasons.None {
		x, y := a.e, b.e
		if !op.shifts {
			x, y = c.convert(&a, &n), c.convert(&b, &n)
		}
		if n.to != nil && scale != 1 {
			y = c.ev.Binary(ops.Mul, y, c.ev.Const(uint64(scale)))
		}
		n.e = c.ev.Binary(which, x, y)
		if a.to != nil && b.to != nil && e.Name == "-" {
			n.e, n.signed = c.ev.Binary(ops.Div, n.e, c.ev.Const(uint64(scale))), true
		}
		if !op.compares {
			n.e = c.ev.Extend(n.e, n.size, n.signed)
		}
	}
	if op.compares {
		n.size, n.signed = 4, true
	}
	return n, nil
}

// convert returns a number as one of another's type, which is as wide.
func (c *computation) convert(from, to *number) *loc.Expr {
	if from.size == to.size && from.signed != to.signed {
		return c.ev.Extend(from.e, to.size, to.signed)
	}
	return from.e
}

// elementSize returns by how many bytes an address changes when 1 is added.
func elementSize(e *syntax.Expr, t *types.Type) (int64, error) {
	size, err := t.ByteSize()
	if err != nil {
		return 0, err
	}
	if size < 0 {
		r, err := t.Resolve()
		if err != nil {
			return 0, err
		}
		if r.Kind == types.Void {
			return 1, nil // as GCC does
		}
	}
	if size <= 0 {
		return 0, wrongAt(e, "the size of %v, to which the address leads, is not known", t)
	}
	return size, nil
}
