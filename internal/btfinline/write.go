package btfinline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/pack"
)

// Written counts what a section .BTF.inline says, and what it cannot say.
type Written struct {
	Functions int            `json:"functions"` // with their parameters: a name can have several
	Instances int            `json:"instances"`
	Located   int            `json:"located"` // parameters of these
	LeftOut   map[string]int `json:"left_out"`
	Bytes     int            `json:"bytes"`
}

// Why a parameter is not in the section.
const (
	leftReason   = "not located"
	leftDoubt    = "doubtful"
	leftAddress  = "an address of the image"
	leftCompute  = "arithmetic"
	leftPieces   = "in several pieces"
	leftConstant = "bytes"
	leftImplicit = "what a pointer would point to"
	leftType     = "of another type than it is declared with"
)

// Of returns the contents of a section .BTF.inline for an image: with debug information, or a pack, for which kernelTypes returns the BTF of
// its kernel.
func Of(ctx context.Context, img *dwarfloc.Image, kernelTypes func() ([]byte, error), progress func(done, total int)) ([]byte, *Written, error) {
	f := inside.File(img)
	if inside.AnsweredBy(img) == "a pack" {
		types, err := kernelTypes()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: .BTF.inline builds on the kernel's BTF: %w", img.Path(), err)
		}
		return guarded(f, types)
	}
	if f.IsRelocatable() {
		return nil, nil, fmt.Errorf("%s: a module's types follow its kernel's, and its .BTF.inline would follow them: only kernels have one so far", img.Path())
	}
	types, err := f.SectionContents(".BTF")
	if err == nil && types == nil {
		err = fmt.Errorf("%s: no section .BTF, on which .BTF.inline builds", img.Path())
	}
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	if _, err := pack.Write(ctx, img, pack.Options{NoTypes: true, Progress: progress}, &b); err != nil {
		return nil, nil, err
	}
	own := bytes.Clone(types) // it is mapped
	p, err := image.FromBytes(img.Path(), b.Bytes(), nil)
	if err != nil {
		return nil, nil, err
	}
	return guarded(p, own)
}

func guarded(f *image.File, types []byte) (section []byte, sum *Written, err error) {
	err = f.Guard(func() error {
		section, sum, err = Write(f, types)
		return err
	})
	return section, sum, err
}

// Write returns the contents of a section .BTF.inline, for what a pack says of inlined instances: one that leaves out the types of the image's
// own BTF, on which they build. types are those. Views have chosen the locations; the section has none.
func Write(f *image.File, types []byte) ([]byte, *Written, error) {
	section, err := packfile.Find(f.Contents(), f.Path())
	if err != nil {
		return nil, nil, err
	}
	p, err := packfile.Open(section, f.Path())
	if err != nil {
		return nil, nil, err
	}
	facts := p.Facts().Types
	if !facts.Base {
		return nil, nil, fmt.Errorf("%s: .BTF.inline builds on the image's own BTF, and this pack has all types: it must leave them out (pack write --no-types), and the image have BTF", f.Path())
	}
	own, err := packfile.BTF(f.Contents(), f.Path())
	if err != nil {
		return nil, nil, err
	}
	base, err := btf.New(types, nil)
	if err == nil && (base.Len() != int(facts.BaseTypes)) {
		err = errors.New("these are not the types that the pack leaves out")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: .BTF: %w", f.Path(), err)
	}
	w := &writer{file: f, known: make(map[string]uint32), places: make(map[string][]place), texts: make(map[string]uint32), out: Written{LeftOut: make(map[string]int)}}
	if w.all, err = btf.New(own, base); err != nil {
		return nil, nil, fmt.Errorf("%s: .BTF: %w", f.Path(), err)
	}
	w.order = byteOrder(binary.LittleEndian)
	if f.BigEndian() {
		w.order = binary.BigEndian
	}
	if err := w.begin(own, facts.BaseStrings); err != nil {
		return nil, nil, err
	}
	refs, err := p.List(nil)
	if err != nil {
		return nil, nil, err
	}
	// The order in which an image has its sites: of instances at one address the outer ones are first.
	sites := make([]*packfile.Site, len(refs))
	err = p.Each(refs, func(i int, s *packfile.Site) error {
		if s.Inline {
			x := *s
			sites[i] = &x
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	for _, s := range sites {
		if s != nil {
			if err := w.site(s); err != nil {
				return nil, nil, err
			}
		}
	}
	return w.section(), &w.out, nil
}

// writer makes the section: types that go on after those of the pack, each once.
type writer struct {
	file  *image.File
	order byteOrder
	all   *btf.Types

	types, strings []byte
	count          uint32 // number of the next type
	before         uint32 // bytes of strings of what it builds on
	known          map[string]uint32
	texts          map[string]uint32
	places         map[string][]place // by section
	out            Written
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// place is an instance.
type place struct{ function, params, offset uint32 }

// begin takes over the types that the pack has besides the image's own: parameters are of these too.
func (w *writer) begin(own []byte, before uint32) error {
	if len(own) < 24 {
		return fmt.Errorf("%s: .BTF: %d bytes are no header", w.file.Path(), len(own))
	}
	head := w.order.Uint32(own[4:])
	part := func(at int) []byte {
		from := head + w.order.Uint32(own[at:])
		return bytes.Clone(own[from : from+w.order.Uint32(own[at+4:])]) // package btf has looked at these
	}
	w.types, w.strings = part(8), part(16)
	w.before, w.count = before, uint32(w.all.Len())
	return nil
}

func (w *writer) text(s string) uint32 {
	if s == "" {
		return 0
	}
	at, known := w.texts[s]
	if !known {
		at = w.before + uint32(len(w.strings))
		w.strings = append(append(w.strings, s...), 0)
		w.texts[s] = at
	}
	return at
}

// maxElements is how many elements a type has: more was not allowed before there was this section.
const maxElements = math.MaxUint16

// add adds a type, unless there is one that is equal.
func (w *writer) add(kind btf.Kind, name string, elements int, of uint32, rest ...uint32) uint32 {
	var b []byte
	for _, v := range append([]uint32{w.text(name), uint32(kind)<<24 | uint32(elements), of}, rest...) {
		b = w.order.AppendUint32(b, v)
	}
	id, known := w.known[string(b)]
	if !known {
		id = w.count
		w.count++
		w.known[string(b)] = id
		w.types = append(w.types, b...)
	}
	return id
}

// site adds an instance.
func (w *writer) site(s *packfile.Site) error {
	sec := w.file.SectionAt(s.Addr)
	if sec == nil || s.Addr-sec.Addr > math.MaxUint32 {
		return fmt.Errorf("%s: the instance of %s at %#x is in no section", w.file.Path(), s.Function.Name, s.Addr)
	}
	if len(s.Function.Params) > maxElements {
		return fmt.Errorf("%s: %s has %d parameters", w.file.Path(), s.Function.Name, len(s.Function.Params))
	}
	var declared, at []uint32
	for i, p := range s.Function.Params {
		declared = append(declared, w.text(p.Name), uint32(p.Type))
		v := packfile.Value{Absent: true}
		if i < len(s.Values.Params) {
			v = s.Values.Params[i]
		}
		id, why, err := w.param(&v, p.Type)
		if err != nil {
			return fmt.Errorf("%s: %s of %s at %#x: %w", w.file.Path(), p.Name, s.Function.Name, s.Addr, err)
		}
		if why != "" {
			w.out.LeftOut[why]++
		} else {
			w.out.Located++
		}
		at = append(at, id)
	}
	n := w.count
	f := w.add(btf.KindFunc, s.Function.Name, 0, w.add(btf.KindFuncProto, "", len(s.Function.Params), uint32(s.Values.Result.Type), declared...))
	if f >= n {
		w.out.Functions++
	}
	w.out.Instances++
	w.places[sec.Name] = append(w.places[sec.Name], place{f, w.add(btf.KindLocProto, "", len(at), 0, at...), uint32(s.Addr - sec.Addr)})
	return nil
}

// param adds where a parameter is, or returns why the section cannot say it.
func (w *writer) param(v *packfile.Value, declared packfile.TypeID) (id uint32, why string, err error) {
	switch {
	case v.Absent || v.Reason.Code != reasons.None || v.Loc.Kind == loc.KindNone:
		return 0, leftReason, nil
	case v.Loc.Doubt != reasons.None:
		return 0, leftDoubt, nil
	case v.Own && v.Type != declared:
		return 0, leftType, nil
	}
	size, err := w.sizeOf(btf.ID(declared))
	if err != nil {
		return 0, "", err
	}
	flags, values, why := w.place(&v.Loc, size)
	if why != "" {
		return 0, why, nil
	}
	return w.add(btf.KindLocParam, "", len(values), size, append([]uint32{flags}, values...)...), "", nil
}

// place returns the flags and values of a location.
func (w *writer) place(l *loc.Location, size uint32) (flags uint32, values []uint32, why string) {
	switch l.Kind {
	case loc.KindConstant:
		return constant(l.Expr, size)
	case loc.KindRegister:
		if l.Expr.Op == ops.Reg {
			return btf.LocReg, []uint32{uint32(l.Expr.K)}, ""
		}
	case loc.KindMemory, loc.KindValue:
		register, offset, ok := sum(l.Expr)
		if !ok || l.Size != 0 {
			return 0, nil, computed(l.Expr)
		}
		flags = btf.LocReg
		if l.Kind == loc.KindMemory {
			flags |= btf.LocDeref
			if offset == 0 {
				return flags, []uint32{register}, ""
			}
		}
		return flags | btf.LocOffset, []uint32{register, uint32(offset)}, ""
	case loc.KindPieces:
		return w.pieces(l, size)
	case loc.KindBytes:
		return 0, nil, leftConstant
	case loc.KindImplicitPointer:
		return 0, nil, leftImplicit
	}
	return 0, nil, leftCompute
}

// constant returns the flags and values of a constant: one word if the parameter has one.
func constant(e *loc.Expr, size uint32) (flags uint32, values []uint32, why string) {
	switch {
	case e.Op != ops.Const:
		return 0, nil, computed(e)
	case size > 4 || e.K != uint64(uint32(e.K)) && e.K != uint64(int64(int32(e.K))):
		return btf.LocConst, []uint32{uint32(e.K), uint32(e.K >> 32)}, ""
	case e.K != uint64(uint32(e.K)):
		return btf.LocConst | btf.LocSigned, []uint32{uint32(e.K)}, ""
	}
	return btf.LocConst, []uint32{uint32(e.K)}, ""
}

// sum returns a register and what is added to it.
func sum(e *loc.Expr) (register uint32, offset int32, ok bool) {
	if e.Op == ops.Reg {
		return uint32(e.K), 0, true
	}
	if e.Op != ops.Add || e.A.Op != ops.Reg || e.B.Op != ops.Const || int64(e.B.K) != int64(int32(e.B.K)) {
		return 0, 0, false
	}
	return uint32(e.A.K), int32(e.B.K), true
}

// pieces returns the flags and values of what is in two registers, of which the first is full.
func (w *writer) pieces(l *loc.Location, size uint32) (flags uint32, values []uint32, why string) {
	word := uint64(w.file.Arch().WordSize)
	if len(l.Pieces) != 2 || uint64(size) <= word || uint64(size) > 2*word {
		return 0, nil, leftPieces
	}
	for i := range l.Pieces {
		p := &l.Pieces[i]
		bits := 8 * min(word, uint64(size)-uint64(i)*word)
		if p.BitOffset != 0 || p.BitSize != bits || p.Loc.Kind != loc.KindRegister || p.Loc.Expr.Op != ops.Reg {
			return 0, nil, leftPieces
		}
		values = append(values, uint32(p.Loc.Expr.K))
	}
	return btf.LocReg, values, ""
}

// computed says why an expression is not in the section.
func computed(e *loc.Expr) string {
	why := leftCompute
	e.Walk(func(x *loc.Expr) {
		if x.Op == ops.Addr {
			why = leftAddress
		}
	})
	return why
}

// sizeOf returns the size of a type in bytes.
func (w *writer) sizeOf(id btf.ID) (uint32, error) {
	count := uint32(1)
	for range 64 {
		t, err := w.all.Type(id)
		if err != nil {
			return 0, err
		}
		switch t.Kind {
		case btf.KindInt, btf.KindStruct, btf.KindUnion, btf.KindEnum, btf.KindEnum64, btf.KindFloat:
			return count * t.Size, nil
		case btf.KindPointer:
			return count * uint32(w.file.Arch().WordSize), nil
		case btf.KindArray:
			var n uint32
			id, n = t.Array()
			count *= n
		case btf.KindTypedef, btf.KindConst, btf.KindVolatile, btf.KindRestrict, btf.KindTypeTag:
			id = t.Elem
		default:
			return 0, nil // a function, or a structure that is only declared
		}
	}
	return 0, fmt.Errorf("type %d leads nowhere", id)
}

// section returns all.
func (w *writer) section() []byte {
	for _, name := range slices.Sorted(maps.Keys(w.places)) {
		all := w.places[name]
		radix.Sort(all, func(p *place) uint64 { return uint64(p.function)<<32 | uint64(p.offset) })
		for part := range slices.Chunk(all, maxElements) {
			var rest []uint32
			for _, p := range part {
				rest = append(rest, p.function, p.params, p.offset)
			}
			w.add(btf.KindLocSec, "inline"+name, len(part), 0, rest...)
		}
	}
	b := w.order.AppendUint16(nil, 0xeb9f)
	b = append(b, 1, 0)
	for _, v := range []int{24, 0, len(w.types), len(w.types), len(w.strings)} {
		b = w.order.AppendUint32(b, uint32(v))
	}
	b = slices.Concat(b, w.types, w.strings)
	w.out.Bytes = len(b)
	return b
}

// String says what was written.
func (w *Written) String() string {
	var left []string
	for _, why := range slices.SortedFunc(maps.Keys(w.LeftOut), func(a, b string) int { return cmp.Or(w.LeftOut[b]-w.LeftOut[a], cmp.Compare(a, b)) }) {
		left = append(left, fmt.Sprintf("%d %s", w.LeftOut[why], why))
	}
	text := fmt.Sprintf("%d instances of %d functions, with %d locations: %d bytes", w.Instances, w.Functions, w.Located, w.Bytes)
	if left != nil {
		text += "; parameters without one: " + strings.Join(left, ", ")
	}
	return text
}
