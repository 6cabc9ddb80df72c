package answers

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/internal/typesource"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Pack answers from a pack.
type Pack struct {
	path  string
	arch  *arch.Arch
	file  *packfile.File
	btf   *typesource.Section
	types typesource.BTF[types.Type]
}

// OpenPack returns what a file with a pack answers. kernelTypes, if not nil, returns the BTF of the kernel that the pack is of.
func OpenPack(f *image.File, section []byte, kernelTypes func() ([]byte, error)) (*Pack, error) {
	t := &Pack{path: f.Path(), arch: f.Arch()}
	t.btf = &typesource.Section{Name: ".BTF", Errorf: errorf(f), WordSize: f.Arch().WordSize, Guard: f.Guard}
	t.types = typesource.NewBTF[types.Type](t.btf)
	err := f.Guard(func() (err error) {
		if t.file, err = packfile.Open(section, f.Path()); err != nil {
			return err
		}
		t.file.Guard = f.Guard
		// The section checks itself, and .BTF. The headers say where code is.
		if err := t.file.CheckRest(f.Contents()); err != nil {
			return err
		}
		types, err := f.SectionContents(".BTF")
		if err != nil {
			return err
		}
		base, err := t.base(kernelTypes)
		if err != nil {
			return err
		}
		t.btf.Types, err = t.file.BTF(types, base)
		return t.btf.Error(err)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// base returns the types that a pack leaves out, or nil if it has all.
func (t *Pack) base(read func() ([]byte, error)) (*btf.Types, error) {
	x := t.file.Facts().Types
	if !x.Base {
		return nil, nil
	}
	path := t.path
	if read == nil {
		return nil, fmt.Errorf("%s: the pack was written without types, and the kernel's BTF was not given", path)
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

// Types returns the types.
func (t *Pack) Types() typesource.BTF[types.Type] { return t.types }

// What returns "a pack".
func (t *Pack) What() string { return "a pack" }

// Names returns the names of all functions.
func (t *Pack) Names() ([]string, error) { return t.file.Names() }

// QualifiedNames returns them with namespaces and classes.
func (t *Pack) QualifiedNames() ([]string, error) { return t.file.QualifiedNames() }

// List returns numbers of sites.
func (t *Pack) List(m Matcher) ([]uint64, error) {
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

// Sites calls f for sites.
func (t *Pack) Sites(numbers []uint64, f func(i int, s *Site) error) error {
	refs := make([]packfile.Ref, len(numbers))
	for i, n := range numbers {
		refs[i] = packfile.Ref{Block: uint32(n >> 32), Index: uint32(n)}
	}
	var s Site
	return t.file.Each(refs, func(i int, x *packfile.Site) error {
		own := *x
		s = t.site(numbers[i], &own)
		return f(i, &s)
	})
}

// site returns what a pack has about a site.
func (t *Pack) site(number uint64, x *packfile.Site) Site {
	f := x.Function
	s := Site{
		Inline: x.Inline, Number: number, Addr: x.Addr, View: x.View,
		Function: f.Name, Qualified: f.Qualified, DeclFile: f.DeclFile, DeclLine: f.DeclLine,
		Symbol: x.Symbol, Offset: x.Offset, AfterPrologue: x.AfterPrologue, LocalEntry: x.LocalEntry,
		CallFile: x.CallFile, CallLine: x.CallLine, Callers: x.Callers, In: x.In, Of: x.Of, Depth: x.Depth,
		Start: x.Addr, Values: packValues{t, x}, Looked: t.file.Facts().Kernel, Refused: x.Refused, Problem: x.BadInstruction,
	}
	if x.Inline {
		s.Ways = runs.Ways{Unknown: x.Ways.Unknown, Within: x.Ways.Within, NoReturn: x.Ways.NoReturn, Folded: x.Ways.Folded, In: packWays(x.Ways.In), Out: packWays(x.Ways.Out)}
	} else {
		s.Kept = x.Ways.Unknown
		for i := range x.Ways.In {
			s.Leaves = append(s.Leaves, body.Leave{Addr: x.Ways.In[i].Addr, Jumps: x.Ways.In[i].Again})
		}
		if x.Ways.Again {
			s.Begun = func() Begin { return Begin{Addr: x.Addr, Again: true, Within: x.Ways.Within, Folded: x.Ways.Folded} }
		}
	}
	if !x.Ways.Known && x.Inline {
		s.Ways = runs.Ways{In: []runs.Way{{Addr: x.Addr, View: x.View, Probe: x.Addr}}, Unknown: "the pack does not say them"}
	}
	if x.AfterPrologue {
		s.Start -= x.Prologue
	}
	wayAt := func(probe uint64, ways []packfile.Way) (string, bool) {
		i := slices.IndexFunc(ways, func(w packfile.Way) bool { return w.Probe == probe })
		if i < 0 {
			return "", false
		}
		return ways[i].Refused, true
	}
	s.WayIn = func(probe uint64) (string, bool) { return wayAt(probe, x.Ways.In) }
	s.WayOut = func(probe uint64) (string, bool) { return wayAt(probe, x.Ways.Out) }
	return s
}

func packWays(ways []packfile.Way) []runs.Way {
	if len(ways) == 0 {
		return nil
	}
	out := make([]runs.Way, 0, len(ways))
	for i := range ways {
		x := &ways[i]
		w := runs.Way{Addr: x.Addr, View: x.View, Probe: x.Probe, Again: x.Again}
		for j := range x.Before {
			w.Before = append(w.Before, x.Before[j].Addr)
		}
		out = append(out, w)
	}
	return out
}

// packValues are the values at a site of a pack.
type packValues struct {
	t *Pack
	x *packfile.Site
}

// at returns the values at a place of the site, or nil if the pack does not have them.
func (p packValues) at(here Place) *packfile.Values {
	x := p.x
	if here.Exit {
		return nil
	}
	if here.Addr == x.Addr && here.View == x.View && !here.Return {
		return &x.Values
	}
	for i := range x.Ways.In {
		w := &x.Ways.In[i]
		switch {
		case here.Addr != w.Addr || here.View != w.View:
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

// Params returns the parameters.
func (p packValues) Params(here Place) ([]Value, error) {
	values := p.at(here)
	out := make([]Value, 0, len(p.x.Function.Params))
	for i := range p.x.Function.Params {
		x, there, err := p.param(values, i)
		if err != nil {
			return nil, err
		}
		if there {
			out = append(out, x)
		}
	}
	return out, nil
}

// Param returns a parameter.
func (p packValues) Param(here Place, name string) (Value, bool, error) {
	values := p.at(here)
	for i := range p.x.Function.Params {
		if p.x.Function.Params[i].Name != name {
			continue
		}
		if x, there, err := p.param(values, i); there || err != nil {
			return x, there, err
		}
	}
	return Value{}, false, nil
}

// param returns a parameter of the function among values, or where there are none, and whether it is there.
func (p packValues) param(values *packfile.Values, i int) (Value, bool, error) {
	v := packfile.Value{Entries: 1, Reason: notDescribed(elsewhere)}
	if values != nil {
		if i >= len(values.Params) {
			return Value{}, false, nil
		}
		v = values.Params[i]
	}
	if v.Absent {
		return Value{}, false, nil
	}
	declared := &p.x.Function.Params[i]
	if !v.Own {
		v.Type = declared.Type
	}
	x, err := p.value(&v)
	x.Name = declared.Name
	return x, err == nil, err
}

func (p packValues) value(v *packfile.Value) (Value, error) {
	t, err := p.t.types.At(btf.ID(v.Type))
	return Value{Type: t, Loc: v.Loc, Reason: v.Reason, Entries: v.Entries, LowBit: v.LowBit}, err
}

// Result returns $retval.
func (p packValues) Result(here Place) (Value, error) {
	values := p.at(here)
	if values == nil {
		values = &p.x.Values
	}
	return p.value(values.Result)
}

// Frame returns $frame.
func (p packValues) Frame(here Place) (Value, error) {
	values := p.at(here)
	start := p.x.Addr
	if p.x.AfterPrologue {
		start -= p.x.Prologue
	}
	switch {
	case values != nil:
		return p.value(values.Frame)
	case here.Entry && here.Addr == start:
		return entryFrame(p.t.arch), nil
	}
	return Value{Reason: notDescribed(elsewhere)}, nil
}

// Pointee returns the object of an implicit pointer.
func (p packValues) Pointee(here Place, target uint64) (Value, error) {
	var found *packfile.Pointee
	if values := p.at(here); values != nil {
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
		return Value{}, fmt.Errorf("%s: the pack does not have what the implicit pointer to .debug_info+%#x points to", p.t.path, target)
	}
	v, err := p.value(&packfile.Value{Type: found.Type, Loc: found.Loc, Reason: found.Reason, Entries: 1})
	v.Name = found.Name
	return v, err
}

// Symbol returns the symbol of an address.
func (p packValues) Symbol(addr uint64) (string, uint64) {
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

// Code returns the bytes of an instruction before a way.
func (p packValues) Code(addr uint64) []byte {
	for i := range p.x.Ways.In {
		for j := range p.x.Ways.In[i].Before {
			if b := &p.x.Ways.In[i].Before[j]; b.Addr == addr {
				return b.Code
			}
		}
	}
	return nil
}
