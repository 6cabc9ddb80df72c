package compute

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Mismatch says which step of a path the types do not allow. It depends on the site,
// because functions that match one pattern can have variables of different types.
type Mismatch struct {
	// Expr is the part of the definition's expression whose path has the step; nil for the
	// expression itself.
	Expr     *syntax.Expr
	Step     int      // index in the path
	Msg      string   // what is wrong
	Members  []string // members, or enumerators, that the type does have
	Type     string   // the type that has them
	Declared string   // "file:line" where that type is declared, or ""

	unknown bool // there is no such variable
	real    bool // a floating point number, where an integer is asked for
	wide    bool // an integer of two words, where one of one word is asked for
}

func (m *Mismatch) Error() string { return m.Msg }

// Wrong returns what the types do not allow of a variable that Resolve or Follow returned, or nil.
func Wrong(v *dwarfloc.Variable) *Mismatch {
	if v == nil || v.Wrong == nil {
		return nil
	}
	var m *Mismatch
	if errors.As(v.Wrong, &m) {
		return m
	}
	return &Mismatch{Msg: v.Wrong.Error()}
}

// Follow returns what a path leads to from a variable, as Resolve does.
func Follow(v *dwarfloc.Variable, path []syntax.Step) (*dwarfloc.Variable, error) {
	if v.Site == nil || reasons.Mistaken(v.Reason.Code) {
		return v, nil
	}
	return follow(v.Site, v, path)
}

// follow returns what a path leads to from a variable, as a variable: it has the last
// member's or element's type, and its location at the site.
func follow(s *dwarfloc.Site, v *dwarfloc.Variable, path []syntax.Step) (*dwarfloc.Variable, error) {
	out := new(dwarfloc.Variable)
	*out = *v
	out.Loc, out.Reason = loc.Location{}, loc.Reason{}
	out.Bits, out.Wrong, out.LowBit, out.Reference, out.Elements = 0, nil, false, false, loc.Location{}
	f := follower{s: s, ev: builder(s)}
	o := object{loc: v.Loc, reason: v.Reason, t: v.Type}
	for i := range path {
		err := f.step(&o, &path[i])
		var wrong *Mismatch
		if errors.As(err, &wrong) {
			if wrong.Expr == nil {
				wrong.Step = i
			}
			code := reasons.TypeMismatch
			if wrong.Members != nil {
				code = reasons.NoSuchMember
			}
			out.Wrong, out.Type, out.Reason = wrong, o.t, loc.Reason{Code: code, Detail: wrong.Msg}
			return out, nil
		}
		var damage *image.FormatError
		if errors.As(err, &damage) {
			out.Reason = loc.Reason{Code: reasons.Damaged, Detail: err.Error()}
			return out, nil
		}
		if err != nil {
			return nil, err
		}
	}
	isRef, err := f.referent(&o)
	if err != nil {
		return nil, err
	}
	out.Reference = v.Reference || isRef
	if isRef {
		// LLVM since 19 stores a truth value that it passes by reference as it is in the register, and
		// reads bit 0 alone.
		t, err := o.t.Resolve()
		if err != nil {
			return nil, err
		}
		out.LowBit = t.Kind == types.Bool && t.Size == 1
	}
	out.Loc, out.Type, out.Reason, out.Bits = o.loc, o.t, o.reason, o.bits
	out.Loc.Rule, out.Loc.Doubt, out.Site = v.Loc.Rule, cmp.Or(v.Loc.Doubt, f.doubt), s
	if out.Loc.Doubt == reasons.None && len(path) > 0 {
		unset, err := inside.Unset(s, v, &out.Loc, out.Type)
		if err != nil {
			return nil, err
		}
		if unset {
			out.Loc.Doubt = reasons.Contradictory
		}
	}
	out.OfFunction = out.OfFunction || f.inner && !inner(v)
	if f.elements != nil {
		out.Elements = f.ev.Value(f.elements)
	}
	if out.Reason.Code != reasons.None && out.Loc.Kind != loc.KindImplicitPointer {
		out.Loc = loc.Location{}
	}
	return out, nil
}

// object is where a path has led so far.
type object struct {
	loc    loc.Location
	reason loc.Reason // why loc is not the whole object; parts may still be available
	t      *types.Type
	bits   int // bits of a bit-field, or 0
}

// lost removes the location and records why.
func (o *object) lost(r loc.Reason) {
	o.loc, o.reason = loc.Location{}, r
}

type follower struct {
	s     *dwarfloc.Site
	ev    *eval.Builder
	inner bool           // an index is a variable of the function
	doubt loc.ReasonCode // of an index, or of what a pointer leads to

	elements *loc.Expr // of a range
	length   *loc.Expr // of the slice whose elements a step has led to
}

// narrow leads from an object to its bits [off, off+size) in memory order, where off and
// size are multiples of 8. These may be complete even if the object is not.
func (f *follower) narrow(o *object, off, size uint64) {
	if o.reason.Code != reasons.None && o.loc.Kind != loc.KindPieces {
		o.lost(o.reason)
		return
	}
	o.loc, o.reason = f.ev.Part(&o.loc, off, size)
}

// bitField leads from a structure to one of its bit-fields: size bits from bit off on.
func (f *follower) bitField(o *object, off, size uint64, signed bool) {
	if o.reason.Code != reasons.None && o.loc.Kind != loc.KindPieces {
		o.lost(o.reason)
		return
	}
	if size > 64 {
		o.lost(unsupported("a bit-field of %d bits", size))
		return
	}
	e, r := f.ev.BitField(&o.loc, off, size, signed)
	if r.Code != reasons.None {
		o.lost(r)
		return
	}
	o.loc, o.reason = f.ev.Value(e), loc.Reason{}
}

func wrong(format string, args ...any) error {
	return &Mismatch{Msg: fmt.Sprintf(format, args...)}
}

func (f *follower) step(o *object, p *syntax.Step) error {
	if o.bits != 0 {
		return wrong("a bit-field has no parts")
	}
	if _, err := f.referent(o); err != nil {
		return err
	}
	t, err := o.t.Complete()
	if err != nil {
		return err
	}
	switch p.Kind {
	case syntax.StepArrow:
		if t.Kind != types.Pointer {
			if t.IsRecord() {
				return wrong("%v is not a pointer: its members are reached with \".\"", o.t)
			}
			return wrong("%v is not a pointer to a structure", o.t)
		}
		if err := f.deref(o, t); err != nil {
			return err
		}
		return f.member(o, p.Member)
	case syntax.StepDot:
		if t.Kind == types.Pointer {
			el, err := t.Elem()
			if err == nil {
				el, err = el.Resolve()
			}
			switch {
			case err != nil || !el.IsRecord():
			case ofC(el):
				return wrong("%v is a pointer: its members are reached with \"->\"", o.t)
			default: // Go and Rust have no other way to write it
				if err := f.deref(o, t); err != nil {
					return err
				}
			}
		}
		return f.member(o, p.Member)
	}
	if err := f.element(o, t, p); err != nil || p.Kind != syntax.StepRange {
		return err
	}
	return f.count(o, p)
}

// count finds out how many elements a range has.
func (f *follower) count(o *object, p *syntax.Step) error {
	c := computation{s: f.s, ev: f.ev}
	to, err := c.number(p.To)
	if err != nil {
		return err
	}
	from := c.constant(p.Index)
	if p.IndexBy != nil {
		if from, err = c.number(p.IndexBy); err != nil {
			return err
		}
	}
	f.inner = f.inner || c.inner
	switch {
	case o.reason.Code != reasons.None:
	case to.reason.Code != reasons.None:
		o.lost(loc.Reason{Code: to.reason.Code, Detail: "where the elements end is not located"})
	case from.reason.Code != reasons.None:
		o.lost(from.reason)
	case o.loc.Kind != loc.KindMemory:
		o.lost(unsupported("elements that are not in memory"))
	default:
		if f.length != nil {
			to.e, to.signed = f.ev.Select(f.ev.Binary(ops.ULt, f.length, to.e), f.length, to.e), false
		}
		// If they end before they begin there are none.
		f.elements = f.ev.Select(f.ev.Binary(ops.Gt, to.e, from.e), f.ev.Binary(ops.Sub, to.e, from.e), f.ev.Const(0))
		if p.IndexBy == nil && p.Index == 0 && !to.signed {
			f.elements = to.e
		}
	}
	return nil
}

// referent leads from a C++ reference to what it refers to; other objects stay.
func (f *follower) referent(o *object) (is bool, err error) {
	t, is, err := o.t.Reference()
	if err != nil || !is || o.bits != 0 {
		return false, err
	}
	return true, f.deref(o, t)
}

// Referent returns what a variable refers to if it is a C++ reference, which in C++ stands
// for that object; otherwise it returns the variable itself.
func Referent(v *dwarfloc.Variable) (*dwarfloc.Variable, error) {
	_, is, err := v.Type.Reference()
	if err != nil || !is || v.Site == nil {
		return v, err
	}
	return Follow(v, nil)
}

// deref leads to what a pointer of type t points to.
func (f *follower) deref(o *object, t *types.Type) error {
	el, err := t.Elem()
	if err != nil {
		return err
	}
	o.t = el
	if o.loc.Kind == loc.KindImplicitPointer {
		size, err := el.ByteSize()
		if err != nil {
			return err
		}
		return f.pointee(o, 0, size)
	}
	if o.reason.Code != reasons.None {
		o.lost(o.reason)
		return nil
	}
	f.doubt = cmp.Or(f.doubt, o.loc.Pointee)
	value, r := f.ev.Bits(&o.loc, 0, 8*uint64(f.s.Image.Arch().WordSize))
	if r.Code != reasons.None {
		o.lost(r)
		return nil
	}
	o.loc, o.reason = loc.Location{Kind: loc.KindMemory, Expr: value}, loc.Reason{}
	return nil
}

// member leads to a member of a structure or union.
func (f *follower) member(o *object, name string) error {
	t, err := o.t.Complete()
	if err != nil {
		return err
	}
	if !t.IsRecord() {
		return wrong("%v has no members: it is no structure or union", o.t)
	}
	if t.Size < 0 {
		return wrong("%v is only declared: no unit of the image defines it, or several do, and differently", t)
	}
	m, ok, err := t.Find(name)
	if err != nil {
		return err
	}
	if !ok {
		names, err := t.MemberNames()
		if err != nil {
			return err
		}
		e := &Mismatch{Msg: fmt.Sprintf("%v has no member %q", t, name), Members: names, Type: t.String()}
		if e.Members == nil {
			e.Members = []string{}
		}
		if file, line, err := t.Declared(); err == nil && file != "" {
			e.Declared = fmt.Sprintf("%s:%d", file, line)
		}
		return e
	}
	o.t = m.Type
	if m.BitSize != 0 {
		signed := false
		if r, err := m.Type.Resolve(); err == nil {
			signed = r.Signed
		}
		o.bits = int(m.BitSize)
		f.bitField(o, m.BitOffset, m.BitSize, signed)
		return nil
	}
	size, err := m.Type.ByteSize()
	if err != nil {
		return err
	}
	f.narrow(o, m.BitOffset, 8*uint64(max(size, 0)))
	return nil
}

// ofC reports whether a structure or union is one of C, which spells it with its keyword.
func ofC(t *types.Type) bool {
	text := t.String()
	return strings.HasPrefix(text, "struct ") || strings.HasPrefix(text, "union ")
}

// slice leads from a slice to the pointer to its elements; other objects stay.
func (f *follower) slice(o *object, t *types.Type) (*types.Type, error) {
	if !isRecord(t) {
		return t, nil
	}
	v := given(f.s, "", o.loc, o.reason)
	v.Type = o.t
	first, length, el, err := SliceOf(v, t)
	if err != nil || el == nil {
		return t, err
	}
	o.loc, o.reason, o.t = first.Loc, first.Reason, types.PointerTo(el, f.s.Image.Arch().WordSize)
	f.length = f.ev.Const(0)
	r := length.Reason
	if length.Located() {
		f.length, r = f.ev.Bits(&length.Loc, 0, 8*uint64(f.s.Image.Arch().WordSize))
	}
	if r.Code != reasons.None {
		o.lost(loc.Reason{Code: r.Code, Detail: "the number of elements is not located"})
	}
	return o.t, nil
}

// within makes memory that is not where an element of a slice is, as its number is beyond the last one, memory that cannot be read.
func (f *follower) within(o *object, index *loc.Expr) {
	if f.length != nil && o.reason.Code == reasons.None && o.loc.Kind == loc.KindMemory {
		o.loc.Expr = f.ev.Select(f.ev.Binary(ops.ULt, index, f.length), o.loc.Expr, f.ev.Const(0))
	}
}

// element leads to an element of an array, of a slice, or of what a pointer points to.
func (f *follower) element(o *object, t *types.Type, p *syntax.Step) error {
	var el *types.Type
	var err error
	f.length = nil
	if t, err = f.slice(o, t); err != nil {
		return err
	}
	switch t.Kind {
	case types.Array:
		var n int64
		if el, n, err = t.Count(); err != nil {
			return err
		}
		if p.IndexBy == nil && p.Kind != syntax.StepRange && (p.Index < 0 || n >= 0 && p.Index >= n) {
			if n < 0 {
				return wrong("index %d is before the beginning of %v", p.Index, o.t)
			}
			return wrong("index %d is outside %v, which has elements 0 to %d", p.Index, o.t, n-1)
		}
	case types.Pointer:
		if el, err = t.Elem(); err != nil {
			return err
		}
	default:
		return wrong("%v is neither an array nor a pointer: it has no elements", o.t)
	}
	size, err := el.ByteSize()
	if err != nil {
		return err
	}
	if size <= 0 {
		return wrong("the elements of %v have no size", o.t)
	}
	implicit := o.loc.Kind == loc.KindImplicitPointer && t.Kind == types.Pointer
	if implicit && p.IndexBy == nil {
		o.t = el
		return f.pointee(o, p.Index*size, size)
	}
	if t.Kind == types.Pointer {
		if err := f.deref(o, t); err != nil {
			return err
		}
	}
	o.t = el
	if p.IndexBy == nil {
		if t.Kind == types.Pointer && o.loc.Kind == loc.KindMemory {
			if o.reason.Code == reasons.None {
				o.loc.Expr = f.ev.Binary(ops.Add, o.loc.Expr, f.ev.Const(uint64(p.Index*size)))
			}
			if p.Kind != syntax.StepRange {
				f.within(o, f.ev.Const(uint64(p.Index)))
			}
			return nil
		}
		f.narrow(o, 8*uint64(p.Index*size), 8*uint64(size))
		return nil
	}
	by, err := Resolve(f.s, p.IndexBy)
	if err != nil {
		return err
	}
	switch {
	case by.Reason.Code == reasons.NoSuchVariable && by.Wrong == nil:
		return wrong("no variable %q to index by", p.IndexBy.Name)
	case reasons.Mistaken(by.Reason.Code):
		return wrong("the index %s: %s", p.IndexBy, by.Reason.Detail)
	}
	f.inner = f.inner || inner(by)
	f.doubt = cmp.Or(f.doubt, by.Loc.Doubt)
	return f.indexBy(o, by, size, p.Kind)
}

// indexBy leads to the element whose index is another variable's value.
func (f *follower) indexBy(o *object, by *dwarfloc.Variable, size int64, kind syntax.StepKind) error {
	t, err := by.Type.Resolve()
	if err != nil {
		return err
	}
	switch t.Kind {
	case types.Int, types.Char, types.Bool, types.Enum:
	default:
		return wrong("an index is a number, and %s is %v", by.Name, by.Type)
	}
	switch {
	case o.reason.Code != reasons.None:
		return nil
	case !by.Located():
		o.lost(loc.Reason{Code: by.Reason.Code, Detail: "the index " + by.Name + " is not located"})
		return nil
	case o.loc.Kind != loc.KindMemory:
		o.lost(loc.Reason{Code: reasons.Unsupported, Detail: "an index by variable into what is not in memory"})
		return nil
	}
	n, r := f.ev.Bits(&by.Loc, 0, 8*uint64(t.Size))
	if r.Code != reasons.None {
		o.lost(r)
		return nil
	}
	if n.Op == ops.ZExt && int64(n.Size) == t.Size && t.Signed {
		n = n.A // without the extension that Bits has added
	}
	n = f.ev.Extend(n, int(t.Size), t.Signed)
	o.loc.Expr = f.ev.Binary(ops.Add, o.loc.Expr, f.ev.Binary(ops.Mul, n, f.ev.Const(uint64(size))))
	if kind != syntax.StepRange {
		f.within(o, n)
	}
	return nil
}
