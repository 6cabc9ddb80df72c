package resolve

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/convention"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/judge"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/witness"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Evaluator evaluates the expressions of one site. It is its own eval.Context, and its
// memory can be reused for the next site.
type Evaluator struct {
	eval.Evaluator
	u    *entries.Unit // the unit that expressions refer to
	spot *entries.Spot

	nested  int       // how many frames above that which is asked about this one is
	cfaExpr *loc.Expr // cached results
	fbExpr  *loc.Expr
	passed  convention.Passed

	callers     []placedVariable // see evidence.PassedOn
	callersRead bool
	midway      bool // see evidence.Midway
	midwayRead  bool
	choice      choice // see evidence.chosenFor
	choiceRead  bool
	marked      bool // what evidence.marked found of markedOf
	markedOf    markedOf
	witness     *witness.Body // once it is needed
	said        said
	shared      *Shared // see memory

	movedBits uint8 // so many lower bits of what heldStill returned for an expression are what was passed; 0 if it was not asked

	unclaimed bool           // only debug information is asked
	plain     bool           // it lacks nothing: see entries.Unit.Plain
	lacked    bool           // it lacks something, as has turned out
	pointed   string         // why loc.Location.Pointee is set
	chosen    entries.Chosen // memory of settle
	evidence  evidence
	candidate judge.Candidate
}

// At returns an evaluator for a spot.
func At(s *entries.Spot) *Evaluator {
	ev := &Evaluator{}
	ev.Begin(s)
	return ev
}

// Begin prepares the evaluator for a spot. What it returned for the last one becomes
// invalid.
func (ev *Evaluator) Begin(s *entries.Spot) {
	ev.Reset()
	ev.Context = ev
	ev.Arch = s.U.Img.Arch()
	ev.BigEndian = s.U.Img.File.BigEndian()
	ev.RegisterBytes = ev.Arch.WordSize
	ev.spot = s
	ev.cfaExpr, ev.fbExpr, ev.callersRead, ev.midwayRead, ev.choiceRead = nil, nil, false, false, false
	ev.passed.Forget()
	ev.said.asked, ev.said.known, ev.said.claims = 0, false, ev.said.claims[:0]
	if ev.witness != nil {
		ev.witness.Forget()
	}
	ev.use(s.U)
}

// use makes the evaluator resolve what expressions refer to in a unit.
func (ev *Evaluator) use(u *entries.Unit) {
	ev.u = u
	ev.Encoding = u.Encoding()
}

// Locate evaluates an expression, found at an offset in a section, into l. If the result
// needs an address in a relocatable file, it returns a reason: nothing says where the
// kernel will load that.
func (ev *Evaluator) Locate(expr []byte, sec string, off uint64, l *loc.Location) (loc.Reason, error) {
	r, err := ev.evaluate(expr, sec, off, l)
	if err == nil && r.Code == reasons.None && ev.u.Version < 4 && !ev.u.Body.GNU() {
		constantOf(l)
		for i := range l.Pieces {
			constantOf(&l.Pieces[i].Loc)
		}
	}
	if err == nil && r.Code == reasons.None {
		ev.spot.U.Img.Relocate(l)
	}
	if err == nil && r.Code == reasons.None && ev.u.Img.File.IsRelocatable() {
		if r = moduleAddress(ev.u.Img, l); r.Code != reasons.None {
			*l = loc.Location{}
		}
	}
	return r, err
}

// evaluate is Evaluate, but its errors say where the expression is.
func (ev *Evaluator) evaluate(expr []byte, sec string, off uint64, l *loc.Location) (loc.Reason, error) {
	r, err := ev.Evaluate(expr, l)
	if err != nil && errors.Is(err, eval.ErrInvalidExpression) {
		err = ev.u.Data.Errorf(sec, off, "%v", err)
	}
	if from := ev.u.From; from != 0 {
		targetsFrom(l, from)
	}
	return r, err
}

// targetsFrom makes the targets of implicit pointers, which count from where a file's entries begin, count
// from where all do.
func targetsFrom(l *loc.Location, from uint64) {
	if l.Kind == loc.KindImplicitPointer {
		l.Target += from
	}
	for i := range l.Pieces {
		targetsFrom(&l.Pieces[i].Loc, from)
	}
}

// moduleAddress returns the reason for a location that needs an address in the image,
// if that is a relocatable file.
func moduleAddress(img *entries.Image, l *loc.Location) loc.Reason {
	var addr *loc.Expr
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) {
			if n.Op == ops.Addr && addr == nil {
				addr = n
			}
		})
	})
	if addr == nil {
		return loc.Reason{}
	}
	detail := "outside the file"
	if s := img.File.SectionAt(addr.K); s != nil {
		detail = fmt.Sprintf("%s+%#x", s.Name, addr.K-s.Addr)
	}
	return loc.Reason{Code: reasons.ModuleAddress, Detail: detail}
}

// AtEntry reports whether the site is the first instruction of the out-of-line function
// that its code belongs to.
func (ev *Evaluator) AtEntry() (bool, error) {
	fun, err := ev.spot.Function()
	if err != nil {
		return false, err
	}
	return ev.spot.At.Addr == fun.Start, nil
}

// Address returns an entry of .debug_addr.
func (ev *Evaluator) Address(index uint64) (uint64, error) { return ev.u.Addrx(index) }

// BaseType returns the base type at an offset from the start of the unit.
func (ev *Evaluator) BaseType(rel uint64) (t eval.BaseType, r loc.Reason, err error) {
	u := ev.u
	off := u.Off + rel
	e, err := u.Entry(off)
	if err == nil && (e.IsEnd() || e.Tag() != dw.TagBaseType) {
		err = u.Data.Errorf(".debug_info", off, "a typed operation names an entry that is no base type")
	}
	var size, enc uint64
	var name dw.Value
	if err == nil {
		err = e.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrName:
				name = v
			case dw.AttrByteSize:
				size = v.U
			case dw.AttrEncoding:
				enc = v.U
			}
		})
	}
	if err != nil {
		return t, r, err
	}
	t.Size = int(min(size, 1<<20))
	switch enc {
	case dw.EncSigned, dw.EncSignedChar:
		t.Signed = true
	case dw.EncUnsigned, dw.EncUnsignedChar, dw.EncBoolean, dw.EncAddress, dw.EncUTF:
	default:
		return t, unsupported("a base type of encoding %#x", enc), nil
	}
	if 0 < t.Size && t.Size <= 8 { // LLVM writes types of 3, 5, 6 and 7 bytes for padding between a structure's members
		t.Bits, err = bitsByName(u, name, t.Size)
		return t, r, err
	}
	return t, unsupported("an integer type of %d bytes", t.Size), nil
}

// bitsByName returns how many bits a type has that LLVM made for a conversion, or 0 if as many as its bytes. The size is rounded up to bytes, and the name alone says the
// number: "DW_ATE_unsigned_1" is a truth value of one byte of which the lowest bit counts (llvm/lib/CodeGen/AsmPrinter/DwarfCompileUnit.cpp, createBaseTypeDIEs).
func bitsByName(u *entries.Unit, name dw.Value, size int) (bits uint64, err error) {
	s, err := u.StringValue(name)
	if rest, ok := strings.CutPrefix(s, "DW_ATE_"); err == nil && ok {
		_, rest, _ = strings.Cut(rest, "_")
		if n, e := strconv.ParseUint(rest, 10, 8); e == nil && 0 < n && n < 8*uint64(size) {
			bits = n
		}
	}
	return bits, err
}

func unsupported(format string, args ...any) loc.Reason {
	return loc.Reason{Code: reasons.Unsupported, Detail: fmt.Sprintf(format, args...)}
}

// CallFrame returns the canonical frame address at the site, for DW_OP_call_frame_cfa.
func (ev *Evaluator) CallFrame() (*loc.Expr, loc.Reason, error) {
	if ev.cfaExpr != nil {
		return ev.cfaExpr, loc.Reason{}, nil
	}
	rule, ok, err := ev.frameRule()
	switch {
	case err != nil:
		return nil, loc.Reason{}, err
	case !ok:
		return nil, loc.Reason{Code: reasons.NoFrameInfo}, nil
	case rule.Expr != nil:
		var l loc.Location
		r, err := ev.evaluate(rule.Expr, ".debug_frame", 0, &l)
		if err != nil || r.Code != reasons.None {
			return nil, r, err
		}
		if l.Kind != loc.KindMemory {
			return nil, unsupported("a call frame address that is %v", l.Kind), nil
		}
		ev.cfaExpr = l.Expr
	default:
		if r := eval.CheckRegister(ev.Arch, rule.Reg); r.Code != reasons.None {
			return nil, r, nil
		}
		ev.cfaExpr = ev.Register(rule.Reg, rule.Off)
	}
	return ev.cfaExpr, loc.Reason{}, nil
}

// frameRule returns the rule for the canonical frame address at the site.
func (ev *Evaluator) frameRule() (dw.CFARule, bool, error) {
	if ev.shared == nil {
		return ev.u.Img.Data.CFA(ev.spot.At.Addr)
	}
	return ev.shared.frames.At(ev.u.Img.Data, ev.spot.At.Addr)
}

// constantOf mends LLVM's constants in DWARF 2 and 3, which have no DW_OP_stack_value: the number is the value.
func constantOf(l *loc.Location) {
	if l.Kind == loc.KindMemory && l.Expr.Op == ops.Const {
		*l = loc.Location{Kind: loc.KindConstant, Expr: l.Expr}
	}
}
