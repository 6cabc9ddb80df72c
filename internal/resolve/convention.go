package resolve

import (
	"slices"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// At a function's first instruction the calling convention says where arguments are. It is
// a second opinion for parameters whose location there is doubtful: those in lists without
// views, which tell the value that a parameter has after the body's first assignments
// (clang leaves out entries that cover no code), and those in a stack frame that the
// function has not set up yet.

// Signature says whether a function takes its parameters as they are declared.
type Signature uint8

const (
	// SignatureChanged means no, or that it is not known.
	SignatureChanged Signature = iota
	// SignatureLocal means yes as far as can be seen, but only its unit calls it.
	SignatureLocal
	// SignatureKept means yes.
	SignatureKept
)

// passed is where the calling convention puts the parameters at a site, which is its
// function's first instruction.
type passed struct {
	known     bool // the other fields are set
	signature Signature
	params    []passedParam // those before the first one of which it is not known
	err       error         // from reading that one
}

type passedParam struct {
	root   uint64 // see Var.Ultimate
	loc    loc.Location
	reason loc.Reason
}

// Convention returns where the calling convention puts a parameter at the site, which is its
// function's first instruction. k is SignatureChanged if that is not known: the compiler may
// have changed the signature, or the language has a convention of its own.
func (ev *Evaluator) Convention(x *Var) (l loc.Location, r loc.Reason, k Signature, err error) {
	c := &ev.passed
	if !c.known {
		*c = passed{known: true, params: c.params[:0]}
		c.signature, c.err = ev.spot.passParams(&c.params)
	}
	if c.signature == SignatureChanged {
		return l, r, SignatureChanged, c.err
	}
	root, err := x.Ultimate(nil)
	if err != nil {
		return l, r, SignatureChanged, err
	}
	for i := range c.params {
		if p := &c.params[i]; p.root == root {
			return p.loc, p.reason, c.signature, nil
		}
	}
	return l, r, SignatureChanged, c.err
}

// passParams appends where the parameters are at the site.
func (s *Spot) passParams(to *[]passedParam) (k Signature, err error) {
	u := s.U
	if !dw.IsC(u.Lang) && !dw.IsCPlusPlus(u.Lang) && u.Lang != dw.LangRust {
		return SignatureChanged, nil
	}
	e, err := u.Entry(s.DIE())
	if err != nil {
		return SignatureChanged, err
	}
	if k, err = s.signature(e); err != nil || k == SignatureChanged {
		return SignatureChanged, err
	}
	known, err := u.assign(e, func(f func(d *Var) (bool, error)) error { return s.declaredParams(e, f) },
		func(d *Var, l *loc.Location, r loc.Reason) (bool, error) {
			param := passedParam{loc: *l, reason: r}
			param.root, err = d.Ultimate(nil)
			*to = append(*to, param)
			return err == nil, err
		})
	if !known {
		return SignatureChanged, err
	}
	return k, err // of a parameter that cannot be read: those before it are known
}

// assign calls f with where the calling convention puts parameters of a function, up to one of which that is not known. It calls each for all of
// them, in order. known is false if the convention is not.
func (u *Unit) assign(e dw.Entry, each func(func(d *Var) (more bool, err error)) error, f func(d *Var, l *loc.Location, r loc.Reason) (more bool, err error)) (known bool, err error) {
	a := u.Img.Arch()
	if len(a.Args) == 0 {
		return false, nil
	}
	next := abi.NewAssigner(u.Img.Machine)
	result, err := u.ResultType(e)
	if err != nil {
		return false, err
	}
	variadic, err := IsVariadic(e)
	if err != nil {
		return false, err
	}
	if known, err := next.Result(result, u.Lang, variadic); err != nil || !known {
		return false, err
	}
	return true, each(func(d *Var) (more bool, err error) {
		t, err := d.U.TypeOf(d.Type)
		if err != nil {
			return false, err
		}
		p, known, err := abi.PassingOf(t, u.Lang, u.Img.Machine)
		if err != nil || !known || variadic && p.Vectors > 0 && abi.Of(a).VariadicWords {
			return false, err
		}
		if p.Nothing() {
			return true, nil // nothing is passed
		}
		l, r := next.Next(&p)
		return f(d, &l, r)
	})
}

// declaredParams calls f for each parameter of the site's function, in order: those of its
// abstract entry, if it has one, which describes the function as it was written.
func (s *Spot) declaredParams(e dw.Entry, f func(d *Var) (more bool, err error)) error {
	abs, ok, err := s.Abstract()
	if err != nil {
		return err
	}
	if ok {
		e = abs
	}
	return s.U.Img.EachParam(e, func(d *Var) (bool, error) {
		if err := d.Complete(); err != nil {
			return false, err
		}
		return f(d)
	})
}

// IsVariadic reports whether a function has variable arguments.
func IsVariadic(e dw.Entry) (is bool, err error) {
	err = e.Children(func(c dw.Entry) (bool, error) {
		is = c.Tag() == dw.TagUnspecifiedParams
		return !is, nil
	})
	return is, err
}

// changed are marks in symbols of clones whose parameters or result the compiler may have
// removed: GCC's (interprocedural scalar replacement, constant propagation, partial
// inlining) and LLVM's (function specialization).
var changed = []string{cloneRemoved, cloneOfConstant, ".part.", ".cold", ".specialized.", ".argprom", ".retelim", ".argelim"}

const (
	cloneRemoved    = ".isra."      // without parameters that are not used, or with parts of them
	cloneOfConstant = ".constprop." // for callers that pass one number
)

// Clone returns the mark in the symbol of the site's code that says that the signature may
// have changed, or "".
func (s *Spot) Clone() string {
	if marks := s.cloneMarks(); len(marks) > 0 {
		return marks[0]
	}
	return ""
}

func (s *Spot) cloneMarks() (marks []string) {
	name := s.U.Img.Index.NameOf(s.U.NameRefOf(&s.U.Recs[s.Rec]))
	sym := s.U.Img.File.SymbolAt(s.Addr, name)
	if sym == nil || !strings.Contains(sym.Name, ".") {
		return nil
	}
	for _, c := range changed {
		if strings.Contains(sym.Name, c) {
			marks = append(marks, c)
		}
	}
	return marks
}

// signature returns whether the code of a function takes its parameters as they are declared.
// GCC marks all functions for which that is not so, and LLVM does since version 15 (DW_CC_nocall).
// With older ones, in a function that only its own unit calls, each parameter must at least
// have a whole location: one that is not used any more, or always has the same value, is no
// longer passed, and those after it move up (seen with clang 14).
func (s *Spot) signature(e dw.Entry) (Signature, error) {
	if s.Clone() != "" {
		return SignatureChanged, nil
	}
	nocall, external, err := s.U.Callable(e)
	switch {
	case err != nil || nocall:
		return SignatureChanged, err
	case external || s.U.Body.GNU():
		return SignatureKept, nil
	}
	k := SignatureLocal
	err = s.U.Img.EachParam(e, func(x *Var) (bool, error) {
		if !s.whole(x) {
			k = SignatureChanged
		}
		return k != SignatureChanged, nil
	})
	return k, err
}

// whole reports whether a parameter has a location, which is no constant, and has no part
// that is missing.
func (s *Spot) whole(x *Var) bool {
	if !x.Described() || x.fixed() || x.literal() {
		return false
	}
	expr := x.Location.Bytes()
	if !x.Location.IsBlock() {
		c, err := s.U.Choose(x.Location, x.Views, s.At, true)
		if err != nil {
			return false
		}
		expr = c.Expr
	}
	part := 0
	for at := 0; at < len(expr); {
		o, err := eval.Decode(expr, at, s.U.Encoding())
		if err != nil {
			return false
		}
		if c := op.Opcode(o.Code); c == op.DW_OP_piece || c == op.DW_OP_bit_piece {
			if part == at {
				return false
			}
			part = o.Next
		}
		at = o.Next
	}
	return true
}

// Callable reads from a function's entry, or its origins, whether it is called in a way of
// its own (DW_CC_nocall), and whether other units can call it.
func (u *Unit) Callable(e dw.Entry) (nocall, external bool, err error) {
	_, err = index.EachOrigin(e, func(a dw.Attr, v dw.Value) {
		switch a {
		case dw.AttrCallingConv:
			nocall = nocall || v.U == dw.CallNoCall
		case dw.AttrExternal:
			external = external || v.U != 0
		}
	}, nil)
	return nocall, external, err
}

// second replaces a parameter's location, or the reason why it has none, by the calling
// convention's if the debug information cannot be right at the site.
//
// decided is false if the convention has no opinion.
func (ev *Evaluator) second(v *Answer, x *Var, c *Chosen) (decided bool, err error) {
	s := ev.spot
	if s.Kind != Entry || s.At.Addr != s.Fun.Start || x.Tag != dw.TagFormalParameter || c.Viewed || !doubtful(v) {
		return false, nil
	}
	l, r, k, err := ev.Convention(x)
	if err != nil {
		return false, err
	}
	located := v.Located()
	same := located && k != SignatureChanged && (EqualLocation(&v.Loc, &l) || truth(v, &l))
	late := located && !same && c.Rule == rule.Whole && s.SetFirst(&v.Loc)
	switch {
	case same:
		return true, nil
	case late && (k == SignatureChanged || k == SignatureLocal && !SameRegister(&v.Loc, &l)):
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.Contradictory, Detail: "in a register that the function sets first"}
		return true, nil
	case k == SignatureChanged, k == SignatureLocal && located && !SameRegister(&v.Loc, &l):
		return false, nil
	case located && !late && v.Loc.Kind == loc.KindRegister && !slices.Contains(s.U.Img.Arch().Preserved, uint16(v.Loc.Expr.K)):
		return false, nil // the function may have another convention, such as ms_abi
	case located && !s.U.Body.GNU() && !covers(&v.Loc, v.Type):
		// LLVM drops a part that the function does not use, and lets the callers in its unit pass anything there (DeadArgumentElimination).
		return false, nil
	case r.Code != reasons.None:
		v.Loc, v.Reason = loc.Location{}, r
		return true, nil
	}
	l.Rule = rule.ABI
	// What is a constant is what the body assigns first, or what all callers pass: then they need not set the register. Of an argument
	// without use LLVM has no note, and lets callers in the image pass anything (DeadArgumentElimination).
	unset := located && v.Loc.Kind == loc.KindConstant
	if !s.U.Body.GNU() {
		unset = (unset || !located) && s.U.Img.Code.Called(s.Fun.Start)
	}
	if unset {
		l.Doubt = reasons.Contradictory
	}
	v.Loc, v.Reason = l, loc.Reason{}
	return true, nil
}

// covers reports whether the parts of a location are as large as a type.
func covers(l *loc.Location, t *types.Type) bool {
	size, err := t.ByteSize()
	if l.Kind != loc.KindPieces || err != nil {
		return true
	}
	bits := uint64(0)
	for i := range l.Pieces {
		bits += l.Pieces[i].BitSize
	}
	return bits >= 8*uint64(size)
}

// SetFirst reports whether a function that LLVM compiled sets a register of a location that is one for its whole scope, before its first
// branch or call. LLVM writes such a location for an argument that the first instructions load from the stack: what they set holds the
// argument from then on, up to the end of the function, and at its first instruction does not (seen with clang 19 and 22). Registers that point
// into the frame are not looked at: spill.go is about what is there.
func (s *Spot) SetFirst(l *loc.Location) bool {
	if s.U.Body.GNU() {
		return false
	}
	frame, framed := s.U.Img.Code.FramePointer()
	var of body.Registers
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) {
			if n.Op == ops.Reg && n.K < 64 && n.K != uint64(s.U.Img.Arch().SP) && (!framed || n.K != frame) {
				of |= 1 << n.K
			}
		})
	})
	return s.U.Img.Code.SetsFirst(s.Fun.Start, of)
}

// SameRegister reports whether a location depends on the register that another one is.
func SameRegister(l, reg *loc.Location) bool {
	found := false
	if reg.Kind == loc.KindRegister {
		l.Exprs(func(e *loc.Expr) {
			e.Walk(func(n *loc.Expr) { found = found || n.Op == ops.Reg && n.K == reg.Expr.K })
		})
	}
	return found
}

// truth reports whether a location is the low bit of another one, for a truth value.
func truth(v *Answer, l *loc.Location) bool {
	if v.Loc.Kind != loc.KindValue || v.Loc.Expr.Op != ops.And {
		return false
	}
	t, err := v.Type.Resolve()
	if err != nil || t.Kind != types.Bool {
		return false
	}
	e := v.Loc.Expr
	return e.B.Op == ops.Const && e.B.K == 1 && EqualLocation(&loc.Location{Kind: loc.KindValue, Expr: e.A}, l)
}

// doubtful reports whether a location at a function's first instruction may be that of a
// value assigned later: most are the plain register in which the argument was passed. Of the
// reasons, those about a stack frame that is not set up are.
func doubtful(v *Answer) bool {
	switch v.Reason.Code {
	case reasons.None:
		return v.Loc.Kind != loc.KindImplicitPointer && v.Loc.Kind != loc.KindBytes
	case reasons.NotAtSite, reasons.NotStoredYet, reasons.Contradictory, reasons.EntryValueOnly:
		return true
	}
	return false
}

// EqualLocation reports whether two locations are the same but for extensions of values,
// which the type repeats.
func EqualLocation(a, b *loc.Location) bool {
	ka, kb := a.Kind, b.Kind
	if ka == loc.KindValue {
		ka = loc.KindRegister
	}
	if kb == loc.KindValue {
		kb = loc.KindRegister
	}
	if ka != kb || len(a.Pieces) != len(b.Pieces) {
		return false
	}
	for i := range a.Pieces {
		if a.Pieces[i].BitSize != b.Pieces[i].BitSize || !EqualLocation(&a.Pieces[i].Loc, &b.Pieces[i].Loc) {
			return false
		}
	}
	return EqualExpr(unextended(a.Expr), unextended(b.Expr))
}

// unextended returns an expression without extensions and masks of whole bytes around it.
func unextended(e *loc.Expr) *loc.Expr {
	for e != nil {
		switch {
		case e.Op == ops.ZExt || e.Op == ops.SExt:
			e = e.A
		case e.Op == ops.And && e.B.Op == ops.Const && (e.B.K == 0xff || e.B.K == 0xffff || e.B.K == 0xffffffff):
			e = e.A
		default:
			return e
		}
	}
	return nil
}

// EqualExpr reports whether two expressions are the same.
func EqualExpr(a, b *loc.Expr) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Op == b.Op && a.Size == b.Size && a.K == b.K && EqualExpr(a.A, b.A) && EqualExpr(a.B, b.B) && EqualExpr(a.C, b.C)
}
