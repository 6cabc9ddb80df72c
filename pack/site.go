package pack

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/loc"
)

// reader reads what a pack says about sites.
type reader struct {
	img    *dwarfloc.Image
	types  *typeTable
	causes *attachable.Table          // nil if the image is not a kernel's
	before map[uint64]packfile.Before // of a pack, which has no other code: see known
}

// known returns the instructions before ways that a pack has, by address; nil for other images.
func known(img *dwarfloc.Image) (out map[uint64]packfile.Before, err error) {
	if inside.AnsweredBy(img) == "" {
		return nil, nil
	}
	err = inside.File(img).Guard(func() error {
		section, err := packfile.Find(inside.File(img).Contents(), img.Path())
		if err != nil {
			return nil // it has BTF alone
		}
		f, err := packfile.Open(section, img.Path())
		if err != nil {
			return err
		}
		refs, err := f.List(nil)
		if err != nil {
			return err
		}
		out = make(map[uint64]packfile.Before)
		return f.Each(refs, func(_ int, s *packfile.Site) error {
			for i := range s.Ways.In {
				for _, b := range s.Ways.In[i].Before {
					b.Code, b.Symbol = bytes.Clone(b.Code), strings.Clone(b.Symbol)
					out[b.Addr] = b
				}
			}
			return nil
		})
	})
	return out, err
}

// bad returns what is wrong with the instruction at a site of a program, or "".
func (r *reader) bad(s *dwarfloc.Site) (string, error) {
	if r.causes != nil {
		return "", nil
	}
	bad, err := inside.CheckInstructions(r.img, []*dwarfloc.Site{s})
	if err != nil || bad[0] == nil {
		return "", err
	}
	text := strings.TrimPrefix(bad[0].Error(), r.img.Path()+": ")
	return strings.TrimPrefix(text, fmt.Sprintf("%#x: ", s.Addr)), nil
}

// site reads a site into out, whose memory it uses.
func (r *reader) site(s *dwarfloc.Site, w *runs.Ways, out *packfile.Site) (err error) {
	f := out.Function
	if f == nil {
		f = new(packfile.Function)
	}
	*f = packfile.Function{Name: s.Function, Params: f.Params[:0]}
	*out = packfile.Site{
		Function: f, Inline: s.Inlined(), Addr: s.Addr, View: s.View, Symbol: s.Symbol, Offset: s.Offset,
		AfterPrologue: s.AfterPrologue, LocalEntry: s.LocalEntry, CallFile: s.CallFile, CallLine: s.CallLine,
		Callers: out.Callers[:0], Values: packfile.Values{Params: out.Values.Params[:0], Frame: out.Values.Frame, Result: out.Values.Result}, Ways: packfile.Ways{In: out.Ways.In[:0], Out: out.Ways.Out[:0]},
	}
	if f.Qualified, err = s.QualifiedName(); err != nil {
		return err
	}
	if f.DeclFile, f.DeclLine, err = s.Declared(); err != nil {
		return err
	}
	b := inside.Body(s)
	out.In, out.Of, out.Depth = b.In, b.Of, b.Depth
	for i := range s.Callers {
		out.Callers = append(out.Callers, packfile.Caller(s.Callers[i]))
	}
	out.Refused = r.refused(s)
	if out.BadInstruction, err = r.bad(s); err != nil {
		return err
	}
	if err = r.values(s, f, &out.Values); err != nil {
		return err
	}
	if s.AfterPrologue {
		// A return probe is at the first instruction, and there it is known whether the result is used.
		first, ok, err := inside.At(s, 0)
		if err != nil {
			return err
		}
		if ok {
			out.Prologue = s.Addr - first.Addr
			if *out.Values.Result, err = r.result(first); err != nil {
				return err
			}
		}
	}
	return r.ways(s, w, out)
}

// refused returns why no kernel takes a probe at a site's address, or "". A pack has no tables of the kernel, but says it.
func (r *reader) refused(s *dwarfloc.Site) string {
	if cause, known := inside.Refused(s); known {
		return cause
	}
	if r.causes != nil {
		if c := r.causes.At(s.Addr); c != attachable.CauseNone {
			return c.String()
		}
	}
	return ""
}

// values reads the values of the site's function into out, whose memory it uses, and into f, if it is not nil, its parameters.
func (r *reader) values(s *dwarfloc.Site, f *packfile.Function, out *packfile.Values) error {
	params, err := s.Params()
	if err != nil {
		return err
	}
	for _, v := range params {
		typ, err := r.types.of(v.Type)
		if err != nil {
			return err
		}
		if f != nil {
			f.Params = append(f.Params, packfile.Param{Name: v.Name, Type: typ})
		}
		x, err := r.value(v)
		if err != nil {
			return err
		}
		out.Params = append(out.Params, x)
	}
	frame, err := inside.Frame(s)
	if err != nil {
		return err
	}
	if out.Frame == nil {
		out.Frame, out.Result = new(packfile.Value), new(packfile.Value)
	}
	if *out.Frame, err = r.value(frame); err != nil {
		return err
	}
	*out.Result, err = r.result(s)
	return err
}

// result reads $retval at a site.
func (r *reader) result(s *dwarfloc.Site) (out packfile.Value, err error) {
	v, err := inside.Result(s)
	if err != nil {
		return out, err
	}
	if out, err = r.value(v); err != nil {
		return out, err
	}
	out.Own = true
	out.Type, err = r.types.of(v.Type)
	return out, err
}

func (r *reader) value(v *dwarfloc.Variable) (packfile.Value, error) {
	x := packfile.Value{Loc: v.Loc, Reason: r.reason(v.Reason), Entries: v.Entries, LowBit: v.LowBit}
	if v.Loc.Kind != loc.KindImplicitPointer {
		return x, nil
	}
	p, err := r.pointee(v, 0)
	x.Pointee = p
	return x, err
}

// reason returns a reason as a pack has it: what is damaged is said without the file's path, which differs.
func (r *reader) reason(x loc.Reason) loc.Reason {
	if x.Code == reasons.Damaged {
		for _, path := range []string{r.img.Path(), inside.File(r.img).DebugPath()} {
			x.Detail = strings.TrimPrefix(x.Detail, path+": ")
		}
	}
	return x
}

// maxPointees bounds chains of implicit pointers.
const maxPointees = 8

// pointee reads what an implicit pointer points to: the whole object, wherever in it the pointer points.
func (r *reader) pointee(v *dwarfloc.Variable, depth int) (*packfile.Pointee, error) {
	whole := *v
	whole.Loc.TargetOffset = 0
	to, err := compute.Pointee(&whole)
	if err != nil {
		return nil, err
	}
	typ, err := r.types.of(to.Type)
	if err != nil {
		return nil, err
	}
	p := &packfile.Pointee{Name: to.Name, Type: typ, Loc: to.Loc, Reason: r.reason(to.Reason)}
	if to.Loc.Kind == loc.KindImplicitPointer && depth < maxPointees {
		p.Pointee, err = r.pointee(to, depth+1)
	}
	return p, err
}

// ways reads the ways into and out of an inlined instance.
func (r *reader) ways(s *dwarfloc.Site, w *runs.Ways, out *packfile.Site) error {
	if !out.Inline {
		begun, within, err := inside.Once(s)
		if err != nil {
			return err
		}
		out.Ways.Known, out.Ways.Again, out.Ways.Folded, out.Ways.Within = begun.Way.Again, begun.Way.Again, begun.Way.Shared, within
		return r.leaves(s, out)
	}
	if w == nil {
		return nil
	}
	o := &out.Ways
	o.Known, o.Unknown, o.Within, o.Folded, o.NoReturn = true, w.Unknown, w.Within, w.Folded, w.NoReturn
	in := inside.WaysIn(s, w, false)
	for i := range w.In {
		x := way(&w.In[i])
		x.Symbol, x.Offset = in[i].Symbol, in[i].Offset
		if x.Addr != s.Addr || x.View != s.View || x.Probe != s.Addr {
			v := new(packfile.Values)
			if err := r.values(in[i], nil, v); err != nil {
				return err
			}
			if !sameValues(v, &out.Values) {
				x.Values = v
			}
		}
		if x.Probe != s.Addr {
			var err error
			if x.Refused, err = r.bad(in[i]); err != nil {
				return err
			} else if x.Refused == "" {
				x.Refused = r.refused(in[i])
			}
		}
		for _, addr := range w.In[i].Before {
			b, err := r.instruction(addr, s)
			if err != nil {
				return err
			}
			x.Before = append(x.Before, b)
		}
		o.In = append(o.In, x)
	}
	for i, at := range inside.WaysOut(s, w) {
		x := way(&w.Out[i])
		x.Symbol, x.Offset = at.Symbol, at.Offset
		var err error
		if x.Refused, err = r.bad(at); err != nil {
			return err
		}
		o.Out = append(o.Out, x)
	}
	return nil
}

// leaves reads where a function of a program is left, if a return probe could harm the program.
func (r *reader) leaves(s *dwarfloc.Site, out *packfile.Site) error {
	if r.causes != nil {
		return nil
	}
	at, moved, err := inside.Returns(s, false)
	switch {
	case errors.Is(err, refusals.ErrUnwinding), errors.Is(err, refusals.ErrMovingStack), errors.Is(err, refusals.ErrNotCalled):
		text := err.Error()
		out.Ways.Known, out.Ways.Unknown = true, text[strings.Index(text, ": ")+2:]
		return nil
	case err != nil || !moved:
		return err
	}
	out.Ways.Known = true
	for _, end := range at {
		v := new(packfile.Values)
		if err := r.values(end, nil, v); err != nil {
			return err
		}
		bad, err := r.bad(end)
		if err != nil {
			return err
		}
		out.Ways.In = append(out.Ways.In, packfile.Way{Addr: end.Addr, Probe: end.Addr, Symbol: end.Symbol, Offset: end.Offset, Again: inside.Jumps(end), Refused: bad, Values: v})
	}
	return nil
}

func way(w *runs.Way) packfile.Way {
	return packfile.Way{Addr: w.Addr, View: w.View, Probe: w.Probe, Again: w.Again}
}

// codeSize is how much code is kept of an instruction: the longest has 15 bytes.
const codeSize = 16

// instruction reads an instruction before a way into an instance.
func (r *reader) instruction(addr uint64, s *dwarfloc.Site) (packfile.Before, error) {
	if b, ok := r.before[addr]; ok {
		return b, nil
	}
	b := packfile.Before{Addr: addr}
	sec := inside.File(r.img).SectionAt(addr)
	if sec == nil {
		return b, fmt.Errorf("%s: an instruction at %#x is in no section", r.img.Path(), addr)
	}
	var err error
	if b.Code, err = inside.File(r.img).Bytes(addr, min(codeSize, sec.Addr+sec.Size-addr)); err != nil {
		return b, err
	}
	want := s.Function
	if n := len(s.Callers); n > 0 {
		want = s.Callers[n-1].Function
	}
	if sym := inside.File(r.img).SymbolAt(addr, want); sym != nil {
		b.Symbol, b.Offset = sym.Name, addr-sym.Addr
	}
	return b, nil
}

// sameValues reports whether values are where others are.
func sameValues(a, b *packfile.Values) bool {
	return slices.EqualFunc(a.Params, b.Params, sameValue) && sameValue(*a.Frame, *b.Frame) && sameValue(*a.Result, *b.Result)
}

func sameValue(a, b packfile.Value) bool {
	if a.Absent != b.Absent || a.Reason != b.Reason || a.Entries != b.Entries || a.LowBit != b.LowBit || a.Own != b.Own || a.Type != b.Type || !sameLoc(&a.Loc, &b.Loc) {
		return false
	}
	p, q := a.Pointee, b.Pointee
	for ; p != nil && q != nil; p, q = p.Pointee, q.Pointee {
		if p.Name != q.Name || p.Type != q.Type || p.Reason != q.Reason || !sameLoc(&p.Loc, &q.Loc) {
			return false
		}
	}
	return p == nil && q == nil
}

func sameLoc(a, b *loc.Location) bool {
	return a.Kind == b.Kind && a.Rule == b.Rule && a.Doubt == b.Doubt && (a.Doubt != reasons.None || a.Pointee == b.Pointee) && a.Size == b.Size && a.Target == b.Target && a.TargetOffset == b.TargetOffset &&
		string(a.Bytes) == string(b.Bytes) && sameExpr(a.Expr, b.Expr) &&
		slices.EqualFunc(a.Pieces, b.Pieces, func(p, q loc.Piece) bool {
			return p.BitSize == q.BitSize && p.BitOffset == q.BitOffset && p.Reason == q.Reason && sameLoc(&p.Loc, &q.Loc)
		})
}

func sameExpr(a, b *loc.Expr) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Op == b.Op && a.Size == b.Size && a.K == b.K && sameExpr(a.A, b.A) && sameExpr(a.B, b.B) && sameExpr(a.C, b.C)
}
