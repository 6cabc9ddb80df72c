package dwarfloc

import (
	"math"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/probe"
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
	to     *Type // what an address is of, or nil
	reason loc.Reason
}

// computed resolves an expression that is computed from others, without its path.
func (s *Site) computed(e *probe.Expr) (*Variable, error) {
	c := computation{s: s, ev: s.evaluator()}
	v, err := c.root(e)
	if v != nil && !v.inner() {
		v.OfFunction = c.inner
	}
	if wrong, is := err.(*mismatch); is {
		if wrong.Expr == nil {
			wrong.Expr = e
		}
		code := loc.ReasonTypeMismatch
		switch {
		case wrong.unknown:
			code = loc.ReasonNoSuchVariable
		case wrong.Members != nil:
			code = loc.ReasonNoSuchMember
		}
		return &Variable{Name: e.String(), Role: RoleGiven, Type: voidType, Wrong: (*Mismatch)(wrong), Reason: loc.Reason{Code: code, Detail: wrong.Msg}}, nil
	}
	return v, err
}

// computation computes expressions at one site.
type computation struct {
	s     *Site
	ev    *evaluator
	inner bool // an operand is a variable of the function
}

// wrongAt is wrong for an operand.
func wrongAt(e *probe.Expr, format string, args ...any) error {
	err := wrong(format, args...).(*mismatch)
	err.Expr = e
	return err
}

// variable returns a result.
func (c *computation) variable(e *probe.Expr, t *Type, l loc.Location, r loc.Reason) *Variable {
	v := given(e.String(), l, r)
	v.Type, v.site = t, c.s
	return v
}

func (c *computation) value(e *probe.Expr, n *number) *Variable {
	t := numberType(n.size, n.signed)
	if n.to != nil {
		t = pointerTo(n.to, n.size)
	}
	if n.reason.Code != loc.ReasonNone {
		return c.variable(e, t, loc.Location{}, n.reason)
	}
	return c.variable(e, t, c.ev.Value(n.e), loc.Reason{})
}

// root computes an expression without its path.
func (c *computation) root(e *probe.Expr) (*Variable, error) {
	switch e.Kind {
	case probe.KindUnary:
		switch e.Name {
		case "*":
			return c.pointee(e)
		case "&":
			return c.address(e)
		}
	case probe.KindCast:
		return c.cast(e)
	case probe.KindContainerOf:
		return c.containerOf(e)
	case probe.KindOffset:
		n, err := c.number(e.A)
		if err != nil {
			return nil, err
		}
		l := loc.Location{}
		if n.reason.Code == loc.ReasonNone {
			l = loc.Location{Kind: loc.KindMemory, Expr: c.ev.Binary(loc.OpAdd, n.e, c.ev.Const(e.Number))}
		}
		return c.variable(e, wordType, l, n.reason), nil
	case probe.KindString:
		return nil, wrongAt(e, "a text is compared, with ==, != or ~, and is nothing else")
	}
	n, err := c.compute(e)
	if err != nil {
		return nil, err
	}
	return c.value(e, &n), nil
}

// resolve resolves an operand. What the types do not allow is an error here.
func (c *computation) resolve(e *probe.Expr) (*Variable, error) {
	v, err := c.s.resolve(e)
	if err != nil {
		return nil, err
	}
	c.inner = c.inner || v.inner()
	if !v.Reason.Code.Mistaken() {
		return v, nil
	}
	if v.Wrong != nil {
		w := *v.Wrong
		if w.Expr == nil {
			w.Expr = e
		}
		return nil, (*mismatch)(&w)
	}
	return nil, &mismatch{Expr: e, Msg: v.Reason.String(), unknown: v.Reason.Code == loc.ReasonNoSuchVariable}
}

// number resolves an operand that is a number or an address.
func (c *computation) number(e *probe.Expr) (n number, err error) {
	if len(e.Path) == 0 {
		switch e.Kind {
		case probe.KindNumber, probe.KindSizeof, probe.KindBinary, probe.KindTask:
			return c.compute(e)
		case probe.KindUnary:
			if e.Name != "*" && e.Name != "&" {
				return c.compute(e)
			}
		case probe.KindVariable:
			if k, found, err := c.s.enumerator(e.Name); found || err != nil {
				return c.constant(k), err
			}
		}
	}
	v, err := c.resolve(e)
	if err != nil {
		return n, err
	}
	return c.numberOf(e, v)
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
func (c *computation) literal(e *probe.Expr) number {
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
func (c *computation) numberOf(e *probe.Expr, v *Variable) (n number, err error) {
	t, err := v.Type.resolve(0)
	if err != nil {
		return n, err
	}
	n.size, n.signed, n.reason = int(t.Size), t.Signed, v.Reason
	switch t.Kind {
	case TypeInt, TypeChar, TypeBool, TypeEnum:
		if v.Bits > 0 && v.Bits < 32 && n.size == 4 {
			n.signed = true // a bit-field of which int has all values becomes one
		}
	case TypePointer:
		if n.to, err = t.Elem(); err != nil {
			return n, err
		}
	case TypeArray:
		if n.to, _, err = t.Count(); err != nil {
			return n, err
		}
		n.size = c.ev.Arch.WordSize
		switch {
		case n.reason.Code != loc.ReasonNone:
		case v.Loc.Kind == loc.KindMemory:
			n.e = v.Loc.Expr
		default:
			n.reason = unsupported("the address of an array that is not in memory")
		}
		return n, nil
	default:
		return n, wrongAt(e, "%v is no number", v.Type)
	}
	if n.size <= 0 || n.size > 8 {
		return n, wrongAt(e, "%v is no number of up to 8 bytes", v.Type)
	}
	if n.reason.Code != loc.ReasonNone {
		return c.promote(n), nil
	}
	if v.Loc.Kind == loc.KindImplicitPointer {
		n.reason = loc.Reason{Code: loc.ReasonImplicitPointer}
		return n, nil
	}
	bits, r := c.ev.Bits(&v.Loc, 0, 8*uint64(n.size))
	if n.reason = r; r.Code != loc.ReasonNone {
		return c.promote(n), nil
	}
	if bits.Op == loc.OpZExt && int(bits.Size) == n.size && n.signed {
		bits = bits.A // without the extension that Bits has added
	}
	n.e = c.ev.Extend(bits, n.size, n.signed)
	if v.LowBit {
		n.e = c.ev.Binary(loc.OpAnd, n.e, c.ev.Const(1))
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
	return c.ev.Binary(loc.OpUDiv, c.ev.Const(1), c.ev.Const(0))
}

// truth returns whether a number is not 0.
func (c *computation) truth(n *number) *loc.Expr {
	if n.e == nil {
		return c.fault()
	}
	if comparison(n.e) {
		return n.e
	}
	return c.ev.Binary(loc.OpNe, n.e, c.ev.Const(0))
}

func comparison(e *loc.Expr) bool { return e.Op >= loc.OpEq && e.Op <= loc.OpUGe }

// inverse are the comparisons that hold where others do not.
var inverse = map[loc.Op]loc.Op{
	loc.OpEq: loc.OpNe, loc.OpNe: loc.OpEq, loc.OpLt: loc.OpGe, loc.OpGe: loc.OpLt, loc.OpLe: loc.OpGt, loc.OpGt: loc.OpLe,
	loc.OpULt: loc.OpUGe, loc.OpUGe: loc.OpULt, loc.OpULe: loc.OpUGt, loc.OpUGt: loc.OpULe,
}

// operators are C's, with the operation for signed and for unsigned operands.
var operators = map[string]struct {
	signed, unsigned loc.Op
	compares, shifts bool
}{
	"+": {loc.OpAdd, loc.OpAdd, false, false}, "-": {loc.OpSub, loc.OpSub, false, false}, "*": {loc.OpMul, loc.OpMul, false, false},
	"/": {loc.OpDiv, loc.OpUDiv, false, false}, "%": {loc.OpMod, loc.OpUMod, false, false},
	"&": {loc.OpAnd, loc.OpAnd, false, false}, "|": {loc.OpOr, loc.OpOr, false, false}, "^": {loc.OpXor, loc.OpXor, false, false},
	"<<": {loc.OpShl, loc.OpShl, false, true}, ">>": {loc.OpShra, loc.OpShr, false, true},
	"==": {loc.OpEq, loc.OpEq, true, false}, "!=": {loc.OpNe, loc.OpNe, true, false},
	"<": {loc.OpLt, loc.OpULt, true, false}, "<=": {loc.OpLe, loc.OpULe, true, false},
	">": {loc.OpGt, loc.OpUGt, true, false}, ">=": {loc.OpGe, loc.OpUGe, true, false},
}

// tasks are the numbers of KindTask.
var tasks = map[string]struct {
	task loc.Task
	size int
}{
	"pid": {loc.TaskPID, 4}, "tid": {loc.TaskTID, 4}, "uid": {loc.TaskUID, 4}, "gid": {loc.TaskGID, 4}, "cpu": {loc.TaskCPU, 4},
	"cgroup": {loc.TaskCgroup, 8}, "time": {loc.TaskTime, 8},
}

// compute computes a number.
func (c *computation) compute(e *probe.Expr) (n number, err error) {
	switch e.Kind {
	case probe.KindNumber:
		return c.literal(e), nil
	case probe.KindTask:
		t := tasks[e.Name]
		return number{e: c.ev.Task(t.task), size: t.size}, nil
	case probe.KindSizeof:
		t, err := c.s.typeNamed(&e.Type)
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
	case probe.KindUnary:
		if n, err = c.number(e.A); err != nil {
			return n, err
		}
		return c.unary(e.Name, n), nil
	}
	if e.Name == "~" || isText(e.A) || isText(e.B) {
		return c.compareText(e)
	}
	a, err := c.number(e.A)
	if err != nil {
		return n, err
	}
	b, err := c.number(e.B)
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
		case comparison(n.e):
			n.e = c.ev.Binary(inverse[n.e.Op], n.e.A, n.e.B)
		default:
			n.e = c.ev.Binary(loc.OpEq, n.e, c.ev.Const(0))
		}
		return number{e: n.e, size: 4, signed: true, reason: n.reason}
	}
	if n.e != nil {
		which := loc.OpNeg
		if op == "~" {
			which = loc.OpNot
		}
		n.e = c.ev.Extend(c.ev.Unary(which, n.e), n.size, n.signed)
	}
	n.to = nil
	return n
}

// binary computes an operation with two numbers, or with addresses.
func (c *computation) binary(e *probe.Expr, a, b number) (n number, err error) {
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
		if x.reason.Code != loc.ReasonNone && n.reason.Code == loc.ReasonNone {
			n.reason = x.reason
		}
	}
	which := op.unsigned
	if n.signed {
		which = op.signed
	}
	if n.reason.Code == loc.ReasonNone {
		x, y := a.e, b.e
		if !op.shifts {
			x, y = c.convert(&a, &n), c.convert(&b, &n)
		}
		if n.to != nil && scale != 1 {
			y = c.ev.Binary(loc.OpMul, y, c.ev.Const(uint64(scale)))
		}
		n.e = c.ev.Binary(which, x, y)
		if a.to != nil && b.to != nil && e.Name == "-" {
			n.e, n.signed = c.ev.Binary(loc.OpDiv, n.e, c.ev.Const(uint64(scale))), true
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
func elementSize(e *probe.Expr, t *Type) (int64, error) {
	size, err := t.ByteSize()
	if err != nil {
		return 0, err
	}
	if size < 0 {
		r, err := t.resolve(0)
		if err != nil {
			return 0, err
		}
		if r.Kind == TypeVoid {
			return 1, nil // as GCC does
		}
		if r, err = r.complete(); err != nil {
			return 0, err
		}
		size = r.Size
	}
	if size <= 0 {
		return 0, wrongAt(e, "the size of %v, to which the address leads, is not known", t)
	}
	return size, nil
}

// pointee resolves *A.
func (c *computation) pointee(e *probe.Expr) (*Variable, error) {
	v, err := c.resolve(e.A)
	if err != nil {
		return nil, err
	}
	out, err := c.s.follow(v, []probe.Step{{Kind: probe.StepIndex, Pos: e.Pos}})
	if err == nil && out.Wrong != nil {
		out.Wrong.Expr = e
		return nil, (*mismatch)(out.Wrong)
	}
	return out, err
}

// address resolves &A.
func (c *computation) address(e *probe.Expr) (*Variable, error) {
	v, err := c.resolve(e.A)
	if err != nil {
		return nil, err
	}
	if v.Bits != 0 {
		return nil, wrongAt(e, "a bit-field has no address")
	}
	n := number{size: c.ev.Arch.WordSize, to: v.Type, reason: v.Reason}
	switch {
	case n.reason.Code != loc.ReasonNone:
	case v.Loc.Kind == loc.KindMemory:
		n.e = v.Loc.Expr
	default:
		n.reason = unsupported("the address of what is not in memory")
	}
	return c.value(e, &n), nil
}

// cast resolves (TYPE)A. As in C, what is cast is A with its path; but where A has no members at all,
// as a void * or a number, it is A, and the path is that of the result.
func (c *computation) cast(e *probe.Expr) (*Variable, error) {
	t, err := c.s.typeNamed(&e.Type)
	if err != nil {
		return nil, err
	}
	a, path := e.A, []probe.Step(nil)
	if len(a.Path) > 0 {
		root := *a
		root.Path = nil
		v, err := c.s.root(&root)
		if err != nil {
			return nil, err
		}
		if !v.Reason.Code.Mistaken() {
			if bare, err := hasNoParts(v.Type); err != nil {
				return nil, err
			} else if bare {
				a, path = &root, e.A.Path
			}
		}
	}
	v, err := c.castTo(e, a, t)
	if err != nil || len(path) == 0 {
		return v, err
	}
	out, err := c.s.follow(v, path)
	if err == nil && out.Wrong != nil && out.Wrong.Expr == nil {
		out.Wrong.Expr = e.A
		return nil, (*mismatch)(out.Wrong)
	}
	return out, err
}

// hasNoParts reports whether a type is a number or the address of something unknown.
func hasNoParts(t *Type) (bool, error) {
	r, err := t.resolve(0)
	if err != nil {
		return false, err
	}
	switch r.Kind {
	case TypeInt, TypeChar, TypeBool, TypeEnum:
		return true, nil
	case TypePointer:
		el, err := r.Elem()
		if err != nil {
			return false, err
		}
		el, err = el.resolve(0)
		return err == nil && el.Kind == TypeVoid, err
	}
	return false, nil
}

func (c *computation) castTo(e, a *probe.Expr, t *Type) (*Variable, error) {
	r, err := t.resolve(0)
	if err != nil {
		return nil, err
	}
	switch r.Kind {
	case TypeInt, TypeChar, TypeBool, TypeEnum, TypePointer:
	case TypeStruct, TypeUnion, TypeClass:
		// Memory that has no type of its own can have any.
		v, err := c.resolve(a)
		if err != nil {
			return nil, err
		}
		if v.Role == RoleGiven && v.Loc.Kind == loc.KindMemory && v.Type == wordType {
			return c.variable(e, t, v.Loc, v.Reason), nil
		}
		return nil, wrongAt(e, "%v cannot be cast to %v", v.Type, t)
	default:
		return nil, wrongAt(e, "nothing is cast to %v: it is no number and no pointer", t)
	}
	if r.Kind == TypePointer && a.Kind != probe.KindNumber {
		// A pointer that was optimized away still has its object.
		v, err := c.resolve(a)
		if err != nil {
			return nil, err
		}
		if v.Loc.Kind == loc.KindImplicitPointer {
			out := *v
			out.Type = t
			return &out, nil
		}
	}
	n, err := c.number(a)
	if err != nil {
		return nil, err
	}
	if n.reason.Code != loc.ReasonNone {
		return c.variable(e, t, loc.Location{}, n.reason), nil
	}
	size := int(r.Size)
	if size <= 0 || size > 8 {
		return nil, wrongAt(e, "nothing is cast to %v: it has %d bytes", t, r.Size)
	}
	x := c.ev.Extend(n.e, size, r.Signed)
	if r.Kind == TypeBool {
		x = c.truth(&n)
	}
	return c.variable(e, t, c.ev.Value(x), loc.Reason{}), nil
}

// containerOf resolves container_of(A, TYPE, MEMBER).
func (c *computation) containerOf(e *probe.Expr) (*Variable, error) {
	t, err := c.s.typeNamed(&e.Type)
	if err != nil {
		return nil, err
	}
	n, err := c.number(e.A)
	if err != nil {
		return nil, err
	}
	if n.to == nil && n.size < c.ev.Arch.WordSize {
		return nil, wrongAt(e.A, "%s is no pointer", e.A)
	}
	at := &Variable{Name: e.Type.Name, Type: t, Loc: loc.Location{Kind: loc.KindMemory, Expr: c.ev.Const(0)}}
	m, err := c.s.follow(at, e.Member)
	if err != nil {
		return nil, err
	}
	if m.Wrong != nil {
		m.Wrong.Expr = &probe.Expr{Path: e.Member}
		return nil, (*mismatch)(m.Wrong)
	}
	if m.Bits != 0 || m.Loc.Kind != loc.KindMemory || m.Loc.Expr.Op != loc.OpConst {
		return nil, wrongAt(e, "%s is no part of %v with a fixed place", m.Name, t)
	}
	if n.reason.Code == loc.ReasonNone {
		n.e = c.ev.Binary(loc.OpSub, n.e, m.Loc.Expr)
	}
	n.to, n.size, n.signed = t, c.ev.Arch.WordSize, false
	return c.value(e, &n), nil
}

// caller returns the address to which the site's function returns ($caller): where it is called, or
// inlined.
func (s *Site) caller() (*Variable, error) {
	if s.Inlined() {
		v := s.u.img.memory("caller", s.Addr)
		if v.Reason.Code == loc.ReasonNone {
			v.Loc.Kind = loc.KindValue
		}
		return v, nil
	}
	ev := s.evaluator()
	a := ev.Arch
	switch {
	case a.StackArgs > 0:
		cfa, r, err := ev.CallFrame()
		if err != nil || r.Code != loc.ReasonNone {
			return given("caller", loc.Location{}, r), err
		}
		at := ev.Binary(loc.OpAdd, cfa, ev.Const(-uint64(a.StackArgs)))
		v := given("caller", loc.Location{Kind: loc.KindMemory, Expr: at}, loc.Reason{})
		v.OfFunction = true
		return v, nil
	case s.Kind == SiteEntry && a.Link != 0:
		v := given("caller", loc.Location{Kind: loc.KindRegister, Expr: ev.Register(uint64(a.Link), 0)}, loc.Reason{})
		v.OfFunction = true
		return v, nil
	}
	return given("caller", loc.Location{}, unsupported("the return address, which is in no fixed place behind the function's entry")), nil
}

// isText reports whether an operand is a text.
func isText(e *probe.Expr) bool { return e != nil && e.Kind == probe.KindString }

// textWord returns up to 8 bytes of a text as the number that memory with them and zeros is.
func (c *computation) textWord(text string) uint64 {
	var d [8]byte
	copy(d[:], text)
	return bin.Uint(d[:], c.ev.BigEndian)
}

// byteAt returns byte k of a number that is 8 bytes of memory.
func (c *computation) byteAt(w *loc.Expr, k int) *loc.Expr {
	if c.ev.BigEndian {
		k = 7 - k
	}
	return c.ev.Binary(loc.OpAnd, c.ev.Binary(loc.OpShr, w, c.ev.Const(uint64(8*k))), c.ev.Const(0xff))
}

// pattern is a text to compare with: characters, of which some can be any.
type pattern struct {
	text string
	any  []bool // of each byte: "?"
	open bool   // more may follow
	glob string // the pattern itself, if that is not all
}

// readPattern reads the right side of a comparison with ~.
func readPattern(e *probe.Expr) (p pattern, err error) {
	var text []byte
	for i := 0; i < len(e.Name); i++ {
		b, any := e.Name[i], false
		switch b {
		case '\\':
			if i++; i == len(e.Name) {
				return p, wrongAt(e, "a pattern does not end with a backslash")
			}
			b = e.Name[i]
		case '?':
			any = true
		case '*':
			if i < len(e.Name)-1 {
				return pattern{glob: e.Name}, nil
			}
			p.open = true
			continue
		}
		text, p.any = append(text, b), append(p.any, any)
	}
	p.text = string(text)
	return p, nil
}

// compareText computes A == "TEXT", A != "TEXT" and A ~ "PATTERN".
func (c *computation) compareText(e *probe.Expr) (n number, err error) {
	of, with := e.A, e.B
	if isText(of) && e.Name != "~" {
		of, with = with, of
	}
	if !isText(with) || isText(of) || e.Name != "==" && e.Name != "!=" && e.Name != "~" {
		return n, wrongAt(e, "a text is compared with ==, != or ~, and with a char *, an array of char or $comm")
	}
	p := pattern{text: with.Name, any: make([]bool, len(with.Name))}
	if e.Name == "~" {
		if p, err = readPattern(with); err != nil {
			return n, err
		}
	}
	n = number{size: 4, signed: true}
	if of.Kind == probe.KindComm && len(of.Path) == 0 {
		if p.glob != "" {
			n.e = loc.Glob(nil, commSize, p.glob)
			return n, nil
		}
		n.e = c.match(&p, commSize, func(i int) *loc.Expr {
			return c.ev.Task(loc.TaskComm + loc.Task(i))
		})
	} else {
		at, most, reason, err := c.text(of)
		if err != nil {
			return n, err
		}
		if n.reason = reason; reason.Code != loc.ReasonNone {
			return n, nil
		}
		if p.glob != "" {
			n.e = loc.Glob(at, most, p.glob)
			return n, nil
		}
		n.e = c.match(&p, most, func(i int) *loc.Expr {
			return c.ev.Text(c.ev.Binary(loc.OpAdd, at, c.ev.Const(uint64(8*i))))
		})
	}
	if e.Name == "!=" {
		n.e = c.ev.Binary(loc.OpEq, n.e, c.ev.Const(0))
	}
	return n, nil
}

// commSize is the size in bytes of a task's name, its NUL included (TASK_COMM_LEN in the kernel's
// include/linux/sched.h).
const commSize = 16

// text returns the address of a string, and how many bytes it can have, or 0.
func (c *computation) text(e *probe.Expr) (at *loc.Expr, most int, r loc.Reason, err error) {
	v, err := c.resolve(e)
	if err != nil {
		return nil, 0, r, err
	}
	t, err := v.Type.resolve(0)
	if err != nil {
		return nil, 0, r, err
	}
	if t.Kind == TypePointer || t.Kind == TypeArray {
		el, err := t.Elem()
		if err != nil {
			return nil, 0, r, err
		}
		if el, err = el.resolve(0); err != nil {
			return nil, 0, r, err
		}
		void := t.Kind == TypePointer && el.Kind == TypeVoid
		if !void && (el.Size != 1 || el.Kind != TypeChar && el.Kind != TypeInt) {
			return nil, 0, r, wrongAt(e, "%v is no string", v.Type)
		}
	} else if v.Role != RoleGiven {
		return nil, 0, r, wrongAt(e, "%v is no string", v.Type)
	}
	if v.Role == RoleGiven && v.Type == wordType && v.Loc.Kind == loc.KindMemory {
		return v.Loc.Expr, 0, v.Reason, nil // as @symbol and +8(%di) are
	}
	n, err := c.numberOf(e, v)
	if t.Kind == TypeArray {
		most = int(max(t.Size, 0))
	}
	return n.e, most, n.reason, err
}

// match returns whether a string of at most so many bytes, or any number, matches. word returns
// 8 bytes of it, zeros after its NUL.
func (c *computation) match(p *pattern, most int, word func(i int) *loc.Expr) *loc.Expr {
	length := len(p.text)
	end := !p.open && (most == 0 || length < most) // its NUL is compared too
	if most > 0 && length > most {
		return c.ev.Const(0)
	}
	if end {
		length++
	}
	result := c.ev.Const(1)
	for i := (length - 1) / 8; i >= 0 && length > 0; i-- {
		from, to := 8*i, min(8*i+8, length)
		var mask [8]byte
		text := make([]byte, 8)
		result = func() *loc.Expr {
			w := word(i)
			all := true
			rest := result
			for k := from; k < to; k++ {
				if k < len(p.text) && p.any[k] {
					all = false
					rest = c.ev.Select(c.ev.Binary(loc.OpNe, c.byteAt(w, k-from), c.ev.Const(0)), rest, c.ev.Const(0))
					continue
				}
				mask[k-from] = 0xff
				if k < len(p.text) {
					text[k-from] = p.text[k]
				}
			}
			x := w
			if !all || to-from < 8 {
				x = c.ev.Binary(loc.OpAnd, w, c.ev.Const(bin.Uint(mask[:], c.ev.BigEndian)))
			}
			return c.ev.Select(c.ev.Binary(loc.OpEq, x, c.ev.Const(c.textWord(string(text)))), rest, c.ev.Const(0))
		}()
	}
	return result
}
