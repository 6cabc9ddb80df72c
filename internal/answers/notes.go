package answers

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/sdt"
	"github.com/bpfprologue/bpfprologue/internal/typesource"
	"github.com/bpfprologue/bpfprologue/types"
)

// Notes answers from the notes of a file's statically defined probes: each is a site, whose function is "PROVIDER:NAME".
type Notes struct {
	file  *image.File
	types typesource.BTF[types.Type] // none
	list  []sdt.Note                 // by provider, name and address
}

// NewNotes reads the notes of a file. The error is an *image.FormatError if they are damaged.
func NewNotes(f *image.File) (*Notes, error) {
	t := &Notes{file: f}
	var err error
	if t.types, err = noTypes(f); err != nil {
		return nil, err
	}
	section, err := f.SectionContents(sdt.Section)
	if err != nil {
		return nil, err
	}
	of := sdt.File{Order: binary.LittleEndian, WordSize: f.Arch().WordSize}
	if f.BigEndian() {
		of.Order = binary.BigEndian
	}
	for _, s := range f.Sections() {
		if s.Name == sdt.BaseSection {
			of.Base = s.Addr
		}
	}
	t.list, err = sdt.Read(section, of)
	var damaged *sdt.Error
	if errors.As(err, &damaged) {
		return nil, &image.FormatError{Path: f.Path(), Section: sdt.Section, Offset: damaged.Offset, Msg: damaged.Msg}
	}
	radix.By(t.list, func(a, b *sdt.Note) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Addr, b.Addr))
	})
	return t, err
}

// ByNote is Site.Evidence of a statically defined probe.
const ByNote = "note"

// eventName is what a note's site has as the name of its function.
func eventName(n *sdt.Note) string { return n.Provider + ":" + n.Name }

// List returns numbers of sites.
func (t *Notes) List(m Matcher) (out []uint64, err error) {
	for i := range t.list {
		if m == nil || m.Match(eventName(&t.list[i])) {
			out = append(out, uint64(i))
		}
	}
	return out, nil
}

// Sites calls f for sites.
func (t *Notes) Sites(numbers []uint64, f func(i int, s *Site) error) error {
	for i, number := range numbers {
		n := &t.list[number]
		name := eventName(n)
		s := Site{
			Evidence: ByNote, Number: n.Addr, Addr: n.Addr, Semaphore: n.Semaphore, Function: name, Qualified: name, In: n.Addr, Of: n.Addr,
			Start: n.Addr, Values: noteValues{t, n}, Problem: harm(t.file, n.Addr),
		}
		s.Symbol, s.Offset = s.Values.Symbol(n.Addr)
		if sec := t.file.SectionAt(n.Addr); sec == nil || !sec.Exec {
			s.Problem = refusals.ErrNoFunction.Error() + ": the note's address is not in code"
		}
		if err := f(i, &s); err != nil {
			return err
		}
	}
	return nil
}

// Names returns the names of all places.
func (t *Notes) Names() (out []string, err error) {
	for i := range t.list {
		out = append(out, eventName(&t.list[i]))
	}
	return slices.Compact(out), nil
}

// QualifiedNames is Names.
func (t *Notes) QualifiedNames() ([]string, error) { return t.Names() }

// Types returns none.
func (t *Notes) Types() typesource.BTF[types.Type] { return t.types }

// What returns "the note of a statically defined probe".
func (t *Notes) What() string { return "the note of a statically defined probe" }

// noteValues are the values at a place with a note.
type noteValues struct {
	t *Notes
	n *sdt.Note
}

// Params returns what the note names.
func (v noteValues) Params(Place) (out []Value, err error) {
	f := v.t.file
	args := v.n.Arguments(f.Arch(), f.BigEndian(), func(name string) (uint64, bool) {
		addr, ok, err := f.OnlySymbol(name)
		return addr, ok && err == nil
	})
	for i := range args {
		a := &args[i]
		x := Value{Name: fmt.Sprintf("arg%d", i+1), Entries: 1, Type: typeOf(a, f.Arch().WordSize), Loc: a.Loc, Reason: a.Reason}
		if x.Reason.Code == reasons.None {
			if a.Size == f.Arch().WordSize && !a.Float {
				x.Loc = loaded(x.Loc, a.Size)
			}
			x.Loc.Rule = rule.Note
		}
		out = append(out, x)
	}
	return out, nil
}

// typeOf returns the type of an argument: a number of its size.
func typeOf(a *sdt.Argument, word int) *types.Type {
	t := &types.Type{Kind: types.Int, Size: int64(a.Size), Signed: a.Signed}
	names := map[int]string{1: "char", 2: "short", 4: "int", 8: "long"}
	switch {
	case a.Size == 0:
		return &types.Type{Kind: types.Int, Name: "unsigned long", Size: int64(word)}
	case a.Float && (a.Size == 4 || a.Size == 8):
		t.Kind, t.Name, t.Signed = types.Float, map[int]string{4: "float", 8: "double"}[a.Size], false
	case a.Signed && a.Size == 1:
		t.Name = "signed char"
	case a.Signed:
		t.Name = names[a.Size]
	default:
		t.Name = "unsigned " + names[a.Size]
	}
	if a.Size == 8 && word == 4 && !a.Float {
		t.Name += " long"
	}
	return t
}

// Result returns that there is none.
func (v noteValues) Result(Place) (Value, error) {
	return Value{Type: types.VoidType, Reason: notDescribed("a result of a statically defined probe")}, nil
}

// Frame returns that it is not known.
func (v noteValues) Frame(Place) (Value, error) {
	return Value{Reason: notDescribed("where the frame is at a statically defined probe")}, nil
}

// Pointee returns an error: a note has no implicit pointers.
func (v noteValues) Pointee(Place, uint64) (Value, error) {
	return Value{}, fmt.Errorf("%s: a note has no implicit pointers", eventName(v.n))
}

// Symbol returns the function around the place.
func (v noteValues) Symbol(addr uint64) (string, uint64) {
	if s := v.t.file.SymbolAt(addr, ""); s != nil {
		return s.Name, addr - s.Addr
	}
	return "", 0
}

// Code returns the bytes of the instruction at an address, and some after it.
func (v noteValues) Code(addr uint64) []byte { return codeAt(v.t.file, addr) }
