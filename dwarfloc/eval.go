package dwarfloc

import (
	"fmt"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/op"
)

// The evaluator turns a DWARF expression (DWARF 5 sections 2.5 and 2.6) into a
// Location. It runs the stack machine on expressions instead of numbers; what
// would need the machine's state becomes a node that a prologue computes.
//
// Two points where DWARF 5 leaves a choice follow GCC, which emits them, and GDB:
// on values without a type, DW_OP_mod is unsigned (GCC expands a signed modulo
// into over over div mul minus) and DW_OP_shr is logical; DW_OP_div and the
// comparisons are signed.

// GNU operations before DWARF 5 took them over, and those it did not.
const (
	opGNUPushTLS       = 0xe0
	opGNUUninit        = 0xf0
	opGNUImplicitPtr   = 0xf2
	opGNUEntryValue    = 0xf3
	opGNUConstType     = 0xf4
	opGNURegvalType    = 0xf5
	opGNUDerefType     = 0xf6
	opGNUConvert       = 0xf7
	opGNUReinterpret   = 0xf9
	opGNUParameterRef  = 0xfa
	opGNUAddrIndex     = 0xfb
	opGNUConstIndex    = 0xfc
	opGNUVariableValue = 0xfd
	opImplicitPointer  = 0xa0
	opAddrx            = 0xa1
	opConstx           = 0xa2
	opEntryValue       = 0xa3
	opConstType        = 0xa4
	opRegvalType       = 0xa5
	opDerefType        = 0xa6
	opXderefType       = 0xa7
	opConvert          = 0xa8
	opReinterpret      = 0xa9
	opBitPiece         = 0x9d
	opImplicitValue    = 0x9e
	opStackValue       = 0x9f
	opFormTLSAddress   = 0x9b
)

// opNames are the operations that delve's table lacks.
var opNames = map[uint8]string{
	opGNUPushTLS: "DW_OP_GNU_push_tls_address", opGNUUninit: "DW_OP_GNU_uninit", 0xf1: "DW_OP_GNU_encoded_addr",
	opGNUImplicitPtr: "DW_OP_GNU_implicit_pointer", opGNUEntryValue: "DW_OP_GNU_entry_value",
	opGNUConstType: "DW_OP_GNU_const_type", opGNURegvalType: "DW_OP_GNU_regval_type",
	opGNUDerefType: "DW_OP_GNU_deref_type", opGNUConvert: "DW_OP_GNU_convert",
	opGNUReinterpret: "DW_OP_GNU_reinterpret", opGNUParameterRef: "DW_OP_GNU_parameter_ref",
	opGNUAddrIndex: "DW_OP_GNU_addr_index", opGNUConstIndex: "DW_OP_GNU_const_index",
	opGNUVariableValue: "DW_OP_GNU_variable_value",
	opImplicitPointer:  "DW_OP_implicit_pointer", opAddrx: "DW_OP_addrx", opConstx: "DW_OP_constx",
	opEntryValue: "DW_OP_entry_value", opConstType: "DW_OP_const_type", opRegvalType: "DW_OP_regval_type",
	opDerefType: "DW_OP_deref_type", opXderefType: "DW_OP_xderef_type", opConvert: "DW_OP_convert",
	opReinterpret: "DW_OP_reinterpret",
}

// opName names an operation for a reason.
func opName(code uint8) string {
	if n, ok := opNames[code]; ok {
		return n
	}
	var b strings.Builder
	op.PrettyPrint(&b, []byte{code}, nil)
	name, _, _ := strings.Cut(b.String(), " ")
	return name
}

// Limits of one expression. The longest of a kernel has some 200 operations; a
// damaged one may loop.
const (
	maxOps      = 4096
	maxStack    = 256
	maxExprSize = 1024 // nodes of the result, shared ones counted each time
	maxNesting  = 16   // entry values and frame bases inside each other
	maxPieces   = 64
)

// evaluator holds what the expressions of one site have in common. Its memory can
// serve one site after the other.
type evaluator struct {
	u    *unit // that expressions refer to
	site *Site

	chunks [][]Expr // nodes; those of one site are used again for the next
	chunk  int      // the one that nodes are taken from
	used   int      // nodes of it
	stacks [maxNesting + 1][]operand

	cfaExpr *Expr // remembered answers
	fbExpr  *Expr
	ops     int
	depth   int
}

// begin makes the evaluator ready for a site. What it found for the last one is gone.
func (ev *evaluator) begin(s *Site) {
	ev.u, ev.site = s.u, s
	ev.chunk, ev.used = 0, 0
	ev.cfaExpr, ev.fbExpr, ev.ops, ev.depth = nil, nil, 0, 0
}

// atEntry tells that the site is the first instruction of the function whose frame it
// is in.
func (ev *evaluator) atEntry() (bool, *stop) {
	fun, err := ev.site.function()
	if err != nil {
		return false, &stop{err: err}
	}
	return ev.site.Addr == fun.start, nil
}

// stop is how an evaluation ends without a location.
type stop struct {
	reason Reason
	err    error
}

func unsupported(format string, args ...any) *stop {
	return &stop{reason: Reason{Unsupported, fmt.Sprintf(format, args...)}}
}

func (ev *evaluator) node(e Expr) *Expr {
	if ev.chunk < len(ev.chunks) && ev.used == len(ev.chunks[ev.chunk]) {
		ev.chunk, ev.used = ev.chunk+1, 0
	}
	if ev.chunk == len(ev.chunks) {
		// Most sites need two or three nodes, some hundreds.
		n := 4
		if ev.chunk > 0 {
			n = min(2*len(ev.chunks[ev.chunk-1]), 256)
		}
		ev.chunks = append(ev.chunks, make([]Expr, n))
	}
	n := &ev.chunks[ev.chunk][ev.used]
	ev.used++
	*n = e
	return n
}

func (ev *evaluator) constant(v uint64) *Expr { return ev.node(Expr{Op: OpConst, K: v}) }

func (ev *evaluator) register(n uint64, off int64) *Expr {
	r := ev.node(Expr{Op: OpReg, K: n})
	if off == 0 {
		return r
	}
	return ev.node(Expr{Op: OpAdd, A: r, B: ev.constant(uint64(off))})
}

// extend makes a value as wide as size bytes.
func (ev *evaluator) extend(e *Expr, size int, signed bool) *Expr {
	if size >= 8 {
		return e
	}
	if e.Op == OpConst {
		if signed {
			return ev.constant(uint64(signExtend(e.K, size)))
		}
		return ev.constant(zeroExtend(e.K, size))
	}
	if e.Op == OpDeref && int(e.Size) <= size && (!signed || int(e.Size) < size) {
		return e // zero-extended from fewer bytes already
	}
	o := OpZExt
	if signed {
		o = OpSExt
	}
	if e.Op == o && int(e.Size) <= size {
		return e
	}
	return ev.node(Expr{Op: o, Size: uint8(size), A: e})
}

// binary makes a node, computing what is constant.
func (ev *evaluator) binary(o ExprOp, a, b *Expr) *Expr {
	if a.Op == OpConst && b.Op == OpConst {
		if v, ok := Fold(o, a.K, b.K); ok {
			return ev.constant(v)
		}
	}
	switch {
	case o == OpSub && b.Op == OpConst:
		return ev.binary(OpAdd, a, ev.constant(-b.K))
	case o == OpAdd && a.Op == OpConst:
		return ev.binary(OpAdd, b, a)
	case o == OpAdd && b.Op == OpConst:
		if b.K == 0 {
			return a
		}
		switch {
		case a.Op == OpAdd && a.B.Op == OpConst:
			return ev.binary(OpAdd, a.A, ev.constant(a.B.K+b.K))
		case a.Op == OpAddr:
			return ev.node(Expr{Op: OpAddr, K: a.K + b.K})
		}
	}
	return ev.node(Expr{Op: o, A: a, B: b})
}

// operand is a value on the stack. typ is nil for DWARF's generic type: an
// integer of the size of an address and unspecified signedness.
type operand struct {
	e   *Expr
	typ *baseType
}

// baseType is an integer base type of a typed operation.
type baseType struct {
	off    uint64
	size   int // bytes
	signed bool
}

func (ev *evaluator) wrap(e *Expr, t *baseType) *Expr {
	if t == nil {
		return e
	}
	return ev.extend(e, t.size, t.signed)
}

// baseType reads the base type that a typed operation names; offset 0 is the
// generic type.
func (ev *evaluator) baseType(rel uint64) (*baseType, *stop) {
	if rel == 0 {
		return nil, nil
	}
	u := ev.u
	off := u.off + rel
	e, err := u.entry(off)
	if err == nil && (e.ab == nil || e.ab.tag != tagBaseType) {
		err = u.img.errorf(".debug_info", off, "a typed operation names an entry that is no base type")
	}
	var size, enc uint64
	if err == nil {
		err = e.attrs(func(a attrName, v value) {
			switch a {
			case attrByteSize:
				size = v.u
			case attrEncoding:
				enc = v.u
			}
		})
	}
	if err != nil {
		return nil, &stop{err: err}
	}
	t := &baseType{off: off, size: int(min(size, 1<<20))}
	switch enc {
	case encSigned, encSignedChar:
		t.signed = true
	case encUnsigned, encUnsignedChar, encBoolean, encAddress, encUTF:
	default:
		return nil, unsupported("a base type of encoding %#x", enc)
	}
	switch t.size {
	case 1, 2, 4, 8:
		return t, nil
	}
	return nil, unsupported("an integer type of %d bytes", t.size)
}

// locate evaluates a location expression.
func (ev *evaluator) locate(expr []byte, sec string, off uint64) (Location, *stop) {
	ev.ops = 0
	if len(expr) == 0 {
		return Location{}, &stop{reason: Reason{Code: OptimizedOut}}
	}
	loc, st := ev.run(expr, sec, off)
	if st != nil {
		return Location{}, st
	}
	if loc.size(maxExprSize+1) > maxExprSize {
		return Location{}, unsupported("an expression of more than %d operations", maxExprSize)
	}
	if st := ev.u.img.moduleAddress(&loc); st != nil {
		return Location{}, st
	}
	return loc, nil
}

// run evaluates an expression with the stack of the evaluator's depth.
func (ev *evaluator) run(expr []byte, sec string, off uint64) (Location, *stop) {
	m := machine{ev: ev, b: buf{d: expr, be: ev.u.img.be}, sec: sec, off: off, stack: ev.stacks[ev.depth][:0]}
	loc, st := m.location()
	ev.stacks[ev.depth] = m.stack[:0]
	return loc, st
}

// size counts the nodes of a location's expressions, and stops counting at limit.
func (l *Location) size(limit int) int {
	n := l.Expr.size(limit)
	for i := range l.Pieces {
		n += l.Pieces[i].Loc.size(limit - n)
	}
	return n
}

// size counts an expression's nodes, and stops counting at limit.
func (e *Expr) size(limit int) int {
	if e == nil || limit <= 0 {
		return 0
	}
	n := 1
	for _, c := range [...]*Expr{e.A, e.B, e.C} {
		n += c.size(limit - n)
	}
	return n
}

// frameBase is the value of DW_OP_fbreg's base: the function's DW_AT_frame_base,
// usually DW_OP_call_frame_cfa.
func (ev *evaluator) frameBase() (*Expr, *stop) {
	if ev.fbExpr != nil {
		return ev.fbExpr, nil
	}
	fun, err := ev.site.function()
	if err != nil {
		return nil, &stop{err: err}
	}
	frame := fun.frame
	if frame.form == 0 {
		return nil, &stop{reason: Reason{NoFrameInfo, "the function has no DW_AT_frame_base"}}
	}
	if frame.inRegister() {
		if st := ev.frameIsSet(); st != nil {
			return nil, st
		}
	}
	expr, sec, off := frame.bytes(), ".debug_info", ev.u.off
	if !frame.isBlock() {
		c, err := ev.u.choose(frame, value{}, ev.site.Addr, ev.site.View)
		if err != nil {
			return nil, &stop{err: err}
		}
		if c.rule == RuleNone {
			return nil, &stop{reason: Reason{NoFrameInfo, "the list at DW_AT_frame_base does not cover the site"}}
		}
		expr, sec, off = c.expr, c.sec, c.off
	}
	loc, st := ev.nested(expr, sec, off)
	if st != nil {
		return nil, st
	}
	switch loc.Kind {
	case KindRegister:
		// A frame pointer is set up by the prologue: at the function's entry it is
		// still the caller's. Only the stack pointer is right from the start.
		if a := ev.u.img.arch; ev.site.Addr == fun.start && loc.Expr.K != uint64(a.SP) {
			return nil, &stop{reason: Reason{NotAtSite, a.RegisterName(loc.Expr.K) + " is not set up yet at the function's entry"}}
		}
		ev.fbExpr = loc.Expr
		return loc.Expr, nil
	case KindMemory, KindValue:
		// A register stands for its contents here, and a bare expression for its
		// value (DWARF 5 section 3.3.5).
		ev.fbExpr = loc.Expr
		return loc.Expr, nil
	}
	return nil, unsupported("a DW_AT_frame_base that is %v", loc.Kind)
}

// frameIsSet refuses what is relative to the stack or frame pointer at the entry of
// a function whose prologue has yet to set it. Compilers that describe a slot so for
// a whole scope mean the code behind the prologue (clang; GCC without optimisation).
func (ev *evaluator) frameIsSet() *stop {
	if at, st := ev.atEntry(); st != nil || !at {
		return st
	}
	steady, err := ev.u.img.steadyFrame(ev.site.Addr)
	switch {
	case err != nil:
		return &stop{err: err}
	case !steady:
		return &stop{reason: Reason{NotAtSite, "it is relative to a stack frame that the function has not set up yet"}}
	}
	return nil
}

// cfa is the value of DW_OP_call_frame_cfa.
func (ev *evaluator) cfa() (*Expr, *stop) {
	if ev.cfaExpr != nil {
		return ev.cfaExpr, nil
	}
	rule, ok, err := ev.u.img.cfa(ev.site.Addr)
	switch {
	case err != nil:
		return nil, &stop{err: err}
	case !ok:
		return nil, &stop{reason: Reason{Code: NoFrameInfo}}
	case rule.expr != nil:
		loc, st := ev.nested(rule.expr, ".debug_frame", 0)
		if st != nil {
			return nil, st
		}
		if loc.Kind != KindMemory {
			return nil, unsupported("a call frame address that is %v", loc.Kind)
		}
		ev.cfaExpr = loc.Expr
	default:
		if st := ev.checkRegister(rule.reg); st != nil {
			return nil, st
		}
		ev.cfaExpr = ev.register(rule.reg, rule.off)
	}
	return ev.cfaExpr, nil
}

// nested evaluates an expression inside another one.
func (ev *evaluator) nested(expr []byte, sec string, off uint64) (Location, *stop) {
	if ev.depth == maxNesting {
		return Location{}, unsupported("expressions nested more than %d deep", maxNesting)
	}
	ev.depth++
	loc, st := ev.run(expr, sec, off)
	ev.depth--
	return loc, st
}

// checkRegister refuses registers that a probe does not see.
func (ev *evaluator) checkRegister(n uint64) *stop {
	a := ev.u.img.arch
	r := a.Register(n)
	switch {
	case r == nil:
		return &stop{reason: Reason{NoRegister, fmt.Sprintf("DWARF register %d", n)}}
	case r.Class == 1:
		return &stop{reason: Reason{VectorRegister, a.RegisterName(n)}}
	case r.Offset < 0:
		return &stop{reason: Reason{NoRegister, a.RegisterName(n)}}
	}
	return nil
}
