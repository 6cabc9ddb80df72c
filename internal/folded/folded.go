// Package folded finds the functions that GCC has made one of several (-fipa-icf, part of -O2): functions that do the same.
//
// All calls of theirs then call one of them, and it is that one's name that bodies have where the call is inlined: of a run there the debug
// information does not say whose it is. What is left of the other one is its entry in the debug information, which says that its
// source was compiled, but not where its code is; and, if another file or a pointer may call it, a symbol:
//
//   - at the address of the one whose code it has,
//   - of a jump or a call that leads there, or
//   - of a copy of that code, where GCC has inlined the call again.
//
// Functions that are declared as another name of one (__attribute__((alias))) have no entry of their own.
package folded

import (
	"encoding/binary"
	"maps"
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// function is a function of a unit that has code.
type function struct {
	rec    int32
	ranges []dw.Range
}

// absent is a function of which a unit has the source alone.
type absent struct {
	entry dw.Entry
	line  uint64 // where it is declared
}

// Functions are those of a unit that have the code of another one too, by the records that have their names, or by linkedRec.
type Functions map[int32]bool

// Pack returns functions in a form for Unpack.
func (f Functions) Pack() []byte {
	b := binary.AppendUvarint(nil, uint64(len(f)))
	for _, rec := range slices.Sorted(maps.Keys(f)) {
		b = binary.AppendUvarint(b, uint64(rec))
	}
	return b
}

// Unpack returns what was packed. ok is false for other bytes.
func Unpack(packed []byte) (f Functions, ok bool) {
	b := bin.Reader{D: packed}
	f = make(Functions)
	for range min(b.ULEB(), uint64(len(packed))) {
		f[int32(b.ULEB())] = true
	}
	return f, !b.Bad && b.P == len(packed) && len(packed) > 0
}

// In returns the functions of a unit that have the code of another one too.
func In(of *entries.Unit) (Functions, error) {
	u := &of.Body
	arch, folds := insn.For(u.Image.Instructions()), folds(of.Img)
	if arch == nil || !u.GNU() && !folds || u.IsGo() || u.Image.IsRelocatable() {
		return nil, nil
	}
	have, err := functions(u)
	if err != nil || len(have) == 0 {
		return nil, err
	}
	out := make(Functions)
	if folds {
		if err := linked(of, have, out); err != nil {
			return nil, err
		}
	}
	if u.GNU() {
		err = merged(u, arch, have, out)
	}
	return out, err
}

// May reports whether In can return what Has finds of a record: without a linker that makes functions one, its function must have code of its own in the unit.
func May(of *entries.Unit, rec int32) bool {
	recs := of.Body.Recs
	root := recs[rec].Root
	if root < 0 || folds(of.Img) {
		return true
	}
	type key struct{}
	own, err := entries.Remembered(&of.Derived, key{}, func() ([]bool, error) {
		return present(recs), nil
	})
	return err != nil || own[root]
}

// present returns, by the records that have their names, which functions of a unit have code of their own in it.
func present(recs []index.Rec) []bool {
	out := make([]bool, len(recs))
	for i := range recs {
		if r := &recs[i]; r.Flags == index.HasPC && r.Root >= 0 {
			out[r.Root] = true
		}
	}
	return out
}

// merged adds the functions of a unit that GCC has made one with others.
func merged(u *body.Unit, arch *insn.Arch, have []function, out Functions) error {
	symbols, err := unexplained(u, have)
	if err != nil || len(symbols) == 0 {
		return err
	}
	names := make(map[string]bool, len(symbols))
	for i := range symbols {
		names[symbols[i].Name] = true
	}
	lost, err := absents(u, names)
	if err != nil || len(lost) == 0 {
		return err
	}
	for i := range symbols {
		s := &symbols[i]
		a, ok := lost[s.Name]
		if !ok {
			continue
		}
		rec, err := codeOf(u, arch, &a, s, have)
		if err != nil {
			return err
		}
		if rec >= 0 {
			out[u.Recs[rec].Root] = true
		}
	}
	return nil
}

// functions returns the functions of a unit that have code. Link-time optimization leaves their names in other units, which are not looked at.
func functions(u *body.Unit) (out []function, err error) {
	for i := range u.Recs {
		r := &u.Recs[i]
		if r.Flags != index.HasPC || r.Root < 0 {
			continue
		}
		ranges, err := u.OutermostRanges(int32(i))
		if err != nil {
			return nil, err
		}
		if len(ranges) > 0 {
			out = append(out, function{int32(i), ranges})
		}
	}
	return out, nil
}

// unexplained returns the symbols in a unit's code at which none of its functions begins, or one that has another symbol too.
func unexplained(u *body.Unit, have []function) (out []image.Symbol, err error) {
	begins := make(map[uint64]int)
	for i := range have {
		for _, r := range have[i].ranges {
			begins[r.Lo]++
		}
	}
	ranges, _, err := u.Unit.Code()
	if err != nil {
		return nil, err
	}
	for _, r := range ranges {
		symbols := u.Image.FunctionSymbols(r.Lo, r.Hi)
		for i := range symbols {
			s := &symbols[i]
			again := i > 0 && symbols[i-1].Addr == s.Addr || i+1 < len(symbols) && symbols[i+1].Addr == s.Addr
			if begins[s.Addr] == 0 || again {
				out = append(out, *s)
			}
		}
	}
	return out, nil
}

// absents returns the functions of a unit without code, by some names of symbols, that would have some if they had not been made one with others,
// or inlined.
func absents(u *body.Unit, names map[string]bool) (map[string]absent, error) {
	own := present(u.Recs)
	inC := dw.IsC(u.Lang)
	out := make(map[string]absent)
	for i := range u.Recs {
		r := &u.Recs[i]
		if r.Flags != 0 || r.Root < 0 || own[r.Root] || inC && !names[u.Index.NameOf(u.NameRefOf(r))] {
			continue
		}
		e, err := u.Entry(u.Off + uint64(r.Off))
		if err != nil {
			return nil, err
		}
		if e.Has(dw.AttrDeclaration) {
			continue
		}
		var name, linkage string
		var line, inlined uint64
		_, err = index.EachOrigin(e, func(a dw.Attr, v dw.Value) {
			switch {
			case a == dw.AttrInline:
				inlined = v.U
			case a == dw.AttrLinkageName && linkage == "":
				linkage = u.Text(v)
			case a == dw.AttrName && name == "":
				name = u.Text(v)
			case a == dw.AttrDeclLine && line == 0:
				line = v.U
			}
		}, nil)
		if err != nil {
			return nil, err
		}
		if linkage != "" {
			name = linkage
		}
		// What is declared inline has code only where it is needed, and other units have it too.
		if names[name] && inlined < declaredInline {
			out[name] = absent{e, line}
		}
	}
	return out, nil
}

// declaredInline is the least DW_AT_inline of functions that are declared so (DWARF 5, table 3.4).
const declaredInline = 2

// codeOf returns the record of the function to whose code the symbol of one without leads, or -1.
func codeOf(u *body.Unit, arch *insn.Arch, a *absent, s *image.Symbol, have []function) (int32, error) {
	for i := range have {
		f := &have[i]
		switch {
		case f.ranges[0].Lo == s.Addr:
			return f.rec, nil
		case dw.Covers(f.ranges, s.Addr):
			return -1, nil
		}
	}
	if without, err := withoutSource(u, a, s); err != nil || !without {
		return -1, err
	}
	own, err := signatureOf(a.entry)
	if err != nil {
		return -1, err
	}
	code := dw.Range{Lo: s.Addr, Hi: s.Addr + s.Size}
	to := leads(u.Image.File, arch, code)
	for i := range have {
		f := &have[i]
		if f.ranges[0].Lo != to && (len(f.ranges) > 1 || !equal(u.Image.File, arch, code, f.ranges[0])) {
			continue
		}
		e, err := u.Entry(u.Off + uint64(u.Recs[f.rec].Off))
		if err != nil {
			return -1, err
		}
		if its, err := signatureOf(e); err != nil || its == own {
			return f.rec, err
		}
	}
	return -1, nil
}

// withoutSource reports whether all that the unit's line table says of a symbol's code is where its function is declared.
func withoutSource(u *body.Unit, a *absent, s *image.Symbol) (bool, error) {
	rows, err := u.RowsIn(dw.Range{Lo: s.Addr, Hi: s.Addr + s.Size})
	if err != nil {
		return false, err
	}
	i := sort.Search(len(rows), func(i int) bool { return rows[i].Addr >= s.Addr })
	known := false
	for ; i < len(rows) && rows[i].Addr < s.Addr+s.Size; i++ {
		r := &rows[i]
		if !r.End && uint64(r.Line) != a.line {
			return false, nil
		}
		known = known || !r.End && r.Addr == s.Addr
	}
	return known, nil
}

// signature is what functions have in common that are made one.
type signature struct {
	params  int
	returns bool
}

// signatureOf returns what a function's entry says of its signature.
func signatureOf(e dw.Entry) (s signature, err error) {
	if _, err = index.EachOrigin(e, func(a dw.Attr, _ dw.Value) { s.returns = s.returns || a == dw.AttrType }, nil); err != nil {
		return s, err
	}
	err = e.Children(func(c dw.Entry) (bool, error) {
		if c.Tag() == dw.TagFormalParameter {
			s.params++
		}
		return true, nil
	})
	return s, err
}
