package dwarfloc

import (
	"slices"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// At a function's first instruction the calling convention says where arguments are. It is
// a second opinion for parameters whose location there is doubtful: those in lists without
// views, which tell the value that a parameter has after the body's first assignments
// (clang leaves out entries that cover no code), and those in a stack frame that the
// function has not set up yet.

// signature says whether a function takes its parameters as they are declared.
type signature uint8

const (
	signatureChanged signature = iota // no, or it is not known
	signatureLocal                    // as far as can be seen, but only its unit calls it
	signatureKept                     // yes
)

// passed is where the calling convention puts the parameters at a site, which is its
// function's first instruction.
type passed struct {
	known bool // the other fields are set
	signature
	params []passedParam // those before the first one of which it is not known
	err    error         // from reading that one
}

type passedParam struct {
	root   uint64 // see varEntry.ultimate
	loc    loc.Location
	reason loc.Reason
}

// convention returns where the calling convention puts a parameter at the site, which is its
// function's first instruction. k is signatureChanged if that is not known: the compiler may
// have changed the signature, or the language has a convention of its own.
func (ev *evaluator) convention(x *varEntry) (l loc.Location, r loc.Reason, k signature, err error) {
	c := &ev.passed
	if !c.known {
		*c = passed{known: true, params: c.params[:0]}
		c.signature, c.err = ev.site.passParams(&c.params)
	}
	if c.signature == signatureChanged {
		return l, r, signatureChanged, c.err
	}
	root, err := x.ultimate(nil)
	if err != nil {
		return l, r, signatureChanged, err
	}
	for i := range c.params {
		if p := &c.params[i]; p.root == root {
			return p.loc, p.reason, c.signature, nil
		}
	}
	return l, r, signatureChanged, c.err
}

// passParams appends where the parameters are at the site.
func (s *Site) passParams(to *[]passedParam) (k signature, err error) {
	u := s.u
	if !dw.IsC(u.Lang) && !dw.IsCPlusPlus(u.Lang) && u.Lang != dw.LangRust {
		return signatureChanged, nil
	}
	e, err := u.Entry(s.DIE)
	if err != nil {
		return signatureChanged, err
	}
	if k, err = s.signature(e); err != nil || k == signatureChanged {
		return signatureChanged, err
	}
	a := u.img.Arch()
	if len(a.Args) == 0 {
		return signatureChanged, nil
	}
	next := abi.NewAssigner(s.Image.machine())
	result, err := u.resultType(e)
	if err != nil {
		return signatureChanged, err
	}
	variadic, err := isVariadic(e)
	if err != nil {
		return signatureChanged, err
	}
	if known, err := next.Result(result, u.Lang, variadic); err != nil || !known {
		return signatureChanged, err
	}
	return k, s.declaredParams(e, func(d *varEntry) (more bool, err error) {
		t, err := d.u.typeOf(d.typ)
		if err != nil {
			return false, err
		}
		p, known, err := abi.PassingOf(t, u.Lang, s.Image.machine())
		if err != nil || !known || variadic && p.Vectors > 0 && abi.Of(a).VariadicWords {
			return false, err
		}
		if p.Nothing() {
			return true, nil // nothing is passed
		}
		param := passedParam{}
		if param.root, err = d.ultimate(nil); err != nil {
			return false, err
		}
		param.loc, param.reason = next.Next(&p)
		*to = append(*to, param)
		return true, nil
	})
}

// declaredParams calls f for each parameter of the site's function, in order: those of its
// abstract entry, if it has one, which describes the function as it was written.
func (s *Site) declaredParams(e dw.Entry, f func(d *varEntry) (more bool, err error)) error {
	abs, ok, err := s.abstract()
	if err != nil {
		return err
	}
	if ok {
		e = abs
	}
	return s.u.img.eachParam(e, func(d *varEntry) (bool, error) {
		if err := d.complete(); err != nil {
			return false, err
		}
		return f(d)
	})
}

// isVariadic reports whether a function has variable arguments.
func isVariadic(e dw.Entry) (is bool, err error) {
	err = e.Children(func(c dw.Entry) (bool, error) {
		is = c.Tag() == dw.TagUnspecifiedParams
		return !is, nil
	})
	return is, err
}

// changed are marks in symbols of clones whose parameters or result the compiler may have
// removed: GCC's (interprocedural scalar replacement, constant propagation, partial
// inlining) and LLVM's (function specialization).
var changed = []string{".isra.", ".constprop.", ".part.", ".cold", ".specialized.", ".argprom", ".retelim", ".argelim"}

// clone returns the mark in the symbol of the site's code that says that the signature may
// have changed, or "".
func (s *Site) clone() string {
	name := s.u.img.index.NameOf(s.u.NameRefOf(&s.u.Recs[s.rec]))
	sym := s.u.img.File.SymbolAt(s.Addr, name)
	if sym == nil {
		return ""
	}
	for _, c := range changed {
		if strings.Contains(sym.Name, c) {
			return c
		}
	}
	return ""
}

// signature returns whether the code of a function takes its parameters as they are declared.
// GCC marks all functions for which that is not so, and LLVM does since version 15 (DW_CC_nocall).
// With older ones, in a function that only its own unit calls, each parameter must at least
// have a whole location: one that is not used any more, or always has the same value, is no
// longer passed, and those after it move up (seen with clang 14).
func (s *Site) signature(e dw.Entry) (signature, error) {
	if s.clone() != "" {
		return signatureChanged, nil
	}
	nocall, external, err := s.u.callable(e)
	switch {
	case err != nil || nocall:
		return signatureChanged, err
	case external || s.u.code.GNU():
		return signatureKept, nil
	}
	k := signatureLocal
	err = s.u.img.eachParam(e, func(x *varEntry) (bool, error) {
		if !s.whole(x) {
			k = signatureChanged
		}
		return k != signatureChanged, nil
	})
	return k, err
}

// whole reports whether a parameter has a location, which is no constant, and has no part
// that is missing.
func (s *Site) whole(x *varEntry) bool {
	if !x.described() || x.fixed() || x.literal() {
		return false
	}
	expr := x.location.Bytes()
	if !x.location.IsBlock() {
		c, err := s.u.choose(x.location, x.views, s.here(), true)
		if err != nil {
			return false
		}
		expr = c.expr
	}
	part := 0
	for at := 0; at < len(expr); {
		o, err := eval.Decode(expr, at, s.u.encoding())
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

// callable reads from a function's entry, or its origins, whether it is called in a way of
// its own (DW_CC_nocall), and whether other units can call it.
func (u *unit) callable(e dw.Entry) (nocall, external bool, err error) {
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
func (s *Site) second(v *Variable, x *varEntry, ev *evaluator, c *chosen) (decided bool, err error) {
	if s.Kind != SiteEntry || s.here().addr != s.fun.start || x.tag != dw.TagFormalParameter || c.viewed || !doubtful(v) {
		return false, nil
	}
	l, r, k, err := ev.convention(x)
	if err != nil {
		return false, err
	}
	located := v.Located()
	same := located && k != signatureChanged && (equalLocation(&v.Loc, &l) || truth(v, &l))
	late := located && !same && c.rule == rule.Whole && s.setFirst(&v.Loc)
	switch {
	case same:
		return true, nil
	case late && (k == signatureChanged || k == signatureLocal && !sameRegister(&v.Loc, &l)):
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: loc.ReasonContradictory, Detail: "in a register that the function sets first"}
		return true, nil
	case k == signatureChanged, k == signatureLocal && located && !sameRegister(&v.Loc, &l):
		return false, nil
	case located && !late && v.Loc.Kind == loc.KindRegister && !slices.Contains(s.u.img.Arch().Preserved, uint16(v.Loc.Expr.K)):
		return false, nil // the function may have another convention, such as ms_abi
	case located && !s.u.code.GNU() && !covers(&v.Loc, v.Type):
		// LLVM drops a part that the function does not use, and lets the callers in its unit pass anything there (DeadArgumentElimination).
		return false, nil
	case r.Code != loc.ReasonNone:
		v.Loc, v.Reason = loc.Location{}, r
		return true, nil
	case located && v.Loc.Kind == loc.KindConstant:
		// The value that the body assigns first, or the one that all callers pass: then
		// they need not set the register.
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: loc.ReasonContradictory, Detail: "a constant, and an argument is passed"}
		return true, nil
	}
	l.Rule = rule.ABI
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

// setFirst reports whether a function that LLVM compiled sets a register of a location that is one for its whole scope, before its first
// branch or call. LLVM writes such a location for an argument that the first instructions load from the stack: what they set holds the
// argument from then on, up to the end of the function, and at its first instruction does not (seen with clang 19 and 22). Registers that point
// into the frame are not looked at: spill.go is about what is there.
func (s *Site) setFirst(l *loc.Location) bool {
	if s.u.code.GNU() {
		return false
	}
	frame, framed := s.u.img.code.FramePointer()
	var of body.Registers
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) {
			if n.Op == loc.OpReg && n.K < 64 && n.K != uint64(s.u.img.Arch().SP) && (!framed || n.K != frame) {
				of |= 1 << n.K
			}
		})
	})
	return s.u.img.code.SetsFirst(s.fun.start, of)
}

// sameRegister reports whether a location depends on the register that another one is.
func sameRegister(l, reg *loc.Location) bool {
	found := false
	if reg.Kind == loc.KindRegister {
		l.Exprs(func(e *loc.Expr) {
			e.Walk(func(n *loc.Expr) { found = found || n.Op == loc.OpReg && n.K == reg.Expr.K })
		})
	}
	return found
}

// truth reports whether a location is the low bit of another one, for a truth value.
func truth(v *Variable, l *loc.Location) bool {
	if v.Loc.Kind != loc.KindValue || v.Loc.Expr.Op != loc.OpAnd {
		return false
	}
	t, err := v.Type.Resolve()
	if err != nil || t.Kind != types.Bool {
		return false
	}
	e := v.Loc.Expr
	return e.B.Op == loc.OpConst && e.B.K == 1 && equalLocation(&loc.Location{Kind: loc.KindValue, Expr: e.A}, l)
}

// doubtful reports whether a location at a function's first instruction may be that of a
// value assigned later: most are the plain register in which the argument was passed. Of the
// reasons, those about a stack frame that is not set up are.
func doubtful(v *Variable) bool {
	switch v.Reason.Code {
	case loc.ReasonNone:
		return v.Loc.Kind != loc.KindImplicitPointer && v.Loc.Kind != loc.KindBytes
	case loc.ReasonNotAtSite, loc.ReasonNotStoredYet, loc.ReasonContradictory, loc.ReasonEntryValueOnly:
		return true
	}
	return false
}

// equalLocation reports whether two locations are the same but for extensions of values,
// which the type repeats.
func equalLocation(a, b *loc.Location) bool {
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
		if a.Pieces[i].BitSize != b.Pieces[i].BitSize || !equalLocation(&a.Pieces[i].Loc, &b.Pieces[i].Loc) {
			return false
		}
	}
	return equalExpr(unextended(a.Expr), unextended(b.Expr))
}

// unextended returns an expression without extensions and masks of whole bytes around it.
func unextended(e *loc.Expr) *loc.Expr {
	for e != nil {
		switch {
		case e.Op == loc.OpZExt || e.Op == loc.OpSExt:
			e = e.A
		case e.Op == loc.OpAnd && e.B.Op == loc.OpConst && (e.B.K == 0xff || e.B.K == 0xffff || e.B.K == 0xffffffff):
			e = e.A
		default:
			return e
		}
	}
	return nil
}

func equalExpr(a, b *loc.Expr) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Op == b.Op && a.Size == b.Size && a.K == b.K && equalExpr(a.A, b.A) && equalExpr(a.B, b.B) && equalExpr(a.C, b.C)
}
