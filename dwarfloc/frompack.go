package dwarfloc

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/image"
	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// packTeller answers from a pack.
type packTeller struct {
	img  *Image
	file *packfile.File
	btf  *types.BTF
}

// fromPack makes an image of a file with a pack.
func fromPack(f *image.File, section []byte, o *Options) (*Image, error) {
	t := &packTeller{}
	img := &Image{File: f, told: t}
	if o != nil {
		img.o = *o
	}
	t.img, t.btf = img, img.newBTF()
	err := f.Guard(func() (err error) {
		if t.file, err = packfile.Open(section, f.Path()); err != nil {
			return err
		}
		// The section checks itself, and .BTF. The headers say where code is.
		if err := t.file.CheckRest(f.Contents()); err != nil {
			return err
		}
		types, err := f.SectionContents(".BTF")
		if err != nil {
			return err
		}
		base, err := t.base(img.o.KernelTypes)
		if err != nil {
			return err
		}
		t.btf.Types, err = t.file.BTF(types, base)
		return t.btf.Error(err)
	})
	if err != nil {
		return nil, err
	}
	return img, nil
}

// base returns the types that a pack leaves out, or nil if it has all.
func (t *packTeller) base(read func() ([]byte, error)) (*btf.Types, error) {
	x := t.file.Facts().Types
	if !x.Base {
		return nil, nil
	}
	path := t.img.Path()
	if read == nil {
		return nil, fmt.Errorf("%s: the pack leaves out the types that its kernel has itself, and the kernel's are not given", path)
	}
	d, err := read()
	if err != nil {
		return nil, fmt.Errorf("%s: the pack leaves out the types that its kernel has itself: %w", path, err)
	}
	if sha256.Sum256(d) != x.BaseSum {
		return nil, fmt.Errorf("%s: the pack leaves out the types of its kernel, and these are another's", path)
	}
	return btf.New(d, nil)
}

func (t *packTeller) types() *types.BTF { return t.btf }
func (t *packTeller) what() string      { return "a pack" }

func (t *packTeller) names() ([]string, error)          { return t.file.Names() }
func (t *packTeller) qualifiedNames() ([]string, error) { return t.file.QualifiedNames() }

func (t *packTeller) list(_ context.Context, m Matcher) ([]uint64, error) {
	var refs []packfile.Ref
	var err error
	if m == nil {
		refs, err = t.file.List(nil)
	} else if name, one := m.Literal(); one {
		refs, err = t.file.Of(name)
	} else {
		refs, err = t.file.List(m.Match)
	}
	out := make([]uint64, len(refs))
	for i, r := range refs {
		out[i] = uint64(r.Block)<<32 | uint64(r.Index)
	}
	return out, err
}

func (t *packTeller) sites(numbers []uint64, f func(i int, s *Site, w *Ways) error) error {
	refs := make([]packfile.Ref, len(numbers))
	for i, n := range numbers {
		refs[i] = packfile.Ref{Block: uint32(n >> 32), Index: uint32(n)}
	}
	var s Site
	var w Ways
	return t.file.Each(refs, func(i int, x *packfile.Site) error {
		own := *x
		s, w = Site{}, Ways{}
		t.site(numbers[i], &own, &s, &w)
		return f(i, &s, &w)
	})
}

// site makes s what a pack has about a site.
func (t *packTeller) site(number uint64, x *packfile.Site, s *Site, w *Ways) {
	if x.Inline {
		s.Kind = SiteInline
	}
	s.Addr, s.View, s.DIE = x.Addr, x.View, number
	s.Function, s.Symbol, s.Offset = x.Function.Name, x.Symbol, x.Offset
	s.AfterPrologue, s.LocalEntry = x.AfterPrologue, x.LocalEntry
	s.CallFile, s.CallLine = x.CallFile, x.CallLine
	for i := range x.Callers {
		s.Callers = append(s.Callers, Caller(x.Callers[i]))
	}
	w.Unknown, w.Within, w.NoReturn = x.Ways.Unknown, x.Ways.Within, x.Ways.NoReturn
	w.In, w.Out = packWays(x.Ways.In), packWays(x.Ways.Out)
	if !x.Ways.Known && x.Inline {
		*w = Ways{In: []Way{{Addr: x.Addr, View: x.View, Probe: x.Addr}}, Unknown: "the pack does not say them"}
	}
	start := x.Addr
	if x.AfterPrologue {
		start -= x.Prologue
	}
	f := x.Function
	wayAt := func(probe uint64, ways []packfile.Way) (string, bool) {
		i := slices.IndexFunc(ways, func(w packfile.Way) bool { return w.Probe == probe })
		if i < 0 {
			return "", false
		}
		return ways[i].Refused, true
	}
	s.told = &told{
		qualified: f.Qualified, file: f.DeclFile, line: f.DeclLine, body: Body{In: x.In, Of: x.Of, Depth: x.Depth}, start: start,
		at: packValues{t, x}, addr: x.Addr, looked: t.file.Facts().Kernel, refused: x.Refused,
		wayIn:   func(probe uint64) (string, bool) { return wayAt(probe, x.Ways.In) },
		wayOut:  func(probe uint64) (string, bool) { return wayAt(probe, x.Ways.Out) },
		problem: x.BadInstruction,
	}
}

func packWays(ways []packfile.Way) (out []Way) {
	for i := range ways {
		x := &ways[i]
		w := Way{Addr: x.Addr, View: x.View, Probe: x.Probe, Again: x.Again}
		for j := range x.Before {
			w.Before = append(w.Before, x.Before[j].Addr)
		}
		out = append(out, w)
	}
	return out
}

// packValues are the values at a site of a pack.
type packValues struct {
	t *packTeller
	x *packfile.Site
}

// at returns the values at a copy of the site, or nil if the pack does not have them.
func (p packValues) at(s *Site) *packfile.Values {
	x, here := p.x, s.here()
	if s.Kind == SiteExit {
		return nil
	}
	if here == (place{x.Addr, x.View}) {
		return &x.Values
	}
	for i := range x.Ways.In {
		w := &x.Ways.In[i]
		switch {
		case here != place{w.Addr, w.View}:
		case w.Values == nil:
			return &x.Values
		default:
			return w.Values
		}
	}
	return nil
}

// elsewhere is the reason where a pack does not have the values.
const elsewhere = "the pack has the values where bodies begin"

func (p packValues) params(s *Site) ([]*Variable, error) {
	values := p.at(s)
	declared := p.x.Function.Params
	out := make([]*Variable, 0, len(declared))
	for i := range declared {
		v := packfile.Value{Entries: 1, Reason: notDescribed(elsewhere)}
		if values != nil {
			if i >= len(values.Params) {
				break
			}
			v = values.Params[i]
		}
		if v.Absent {
			continue
		}
		if !v.Own {
			v.Type = declared[i].Type
		}
		x, err := p.variable(s, &v)
		if err != nil {
			return nil, err
		}
		x.Name, x.Role = declared[i].Name, RoleParameter
		out = append(out, x)
	}
	return out, nil
}

func (p packValues) variable(s *Site, v *packfile.Value) (*Variable, error) {
	t, err := p.t.btf.At(btf.ID(v.Type))
	return &Variable{Type: t, Loc: v.Loc, Reason: v.Reason, Entries: v.Entries, LowBit: v.LowBit, Site: s}, err
}

func (p packValues) result(s *Site) (*Variable, error) {
	values := p.at(s)
	if values == nil {
		values = &p.x.Values
	}
	return p.variable(s, &values.Result)
}

func (p packValues) frame(s *Site) (*Variable, error) {
	values := p.at(s)
	switch {
	case values != nil:
		return p.variable(s, &values.Frame)
	case s.Kind == SiteEntry && s.Addr == s.told.start:
		return entryFrame(s), nil
	}
	return &Variable{Reason: notDescribed(elsewhere)}, nil
}

func (p packValues) pointee(s *Site, target uint64) (*Variable, error) {
	var found *packfile.Pointee
	if values := p.at(s); values != nil {
		for i := range values.Params {
			v := &values.Params[i]
			l := &v.Loc
			for to := v.Pointee; to != nil && found == nil; to = to.Pointee {
				if l.Kind == loc.KindImplicitPointer && l.Target == target {
					found = to
				}
				l = &to.Loc
			}
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%s: the pack does not have what the implicit pointer to .debug_info+%#x points to", s.Image.Path(), target)
	}
	v, err := p.variable(s, &packfile.Value{Type: found.Type, Loc: found.Loc, Reason: found.Reason, Entries: 1})
	if err != nil {
		return nil, err
	}
	v.Name, v.Role = found.Name, RoleLocal
	return v, nil
}

func (p packValues) symbol(addr uint64) (string, uint64) {
	for _, ways := range [][]packfile.Way{p.x.Ways.In, p.x.Ways.Out} {
		for i := range ways {
			w := &ways[i]
			if w.Probe == addr {
				return w.Symbol, w.Offset
			}
			for j := range w.Before {
				if b := &w.Before[j]; b.Addr == addr {
					return b.Symbol, b.Offset
				}
			}
		}
	}
	if begin := p.x.Addr - p.x.Offset; addr >= begin {
		return p.x.Symbol, addr - begin
	}
	return p.x.Function.Name, 0 // the function begins before a label
}

func (p packValues) code(addr uint64) []byte {
	for i := range p.x.Ways.In {
		for j := range p.x.Ways.In[i].Before {
			if b := &p.x.Ways.In[i].Before[j]; b.Addr == addr {
				return b.Code
			}
		}
	}
	return nil
}
