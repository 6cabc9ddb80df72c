package dw

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// declaration is an abbreviation of a unit that has been loaded, with its attributes, and its program in steps. What only a scan asks for,
// abbrev.Search, is not set for the unit's language.
type declaration struct {
	abbrev
	attrs []AttrSpec
	steps []step
}

// declarations are the abbreviations of a unit that has been loaded. It is known from the beginning that all of them can be read, but each
// is only read once an entry has it: a unit of a kernel has 150, and the sites of one function in it take a fifth of them. Several
// goroutines may use them.
type declarations struct {
	unit   *Unit
	consts []int64
	places []declPlace // by code-1, as long as codes count up from 1
	read   []atomic.Pointer[declaration]
	others map[uint64]*declaration // with other codes
}

// declPlace is where a declaration is in the unit's table, after its code, and the index of its first constant.
type declPlace struct {
	at, konst uint32
	kind      recordKind
}

// recordKind is what entries that a scan records are.
type recordKind uint8

const (
	recorded recordKind = 1 << iota
	inlinedCall
	hasPC
)

func recordKindOf(inlined, pc bool) recordKind {
	kind := recorded
	if inlined {
		kind |= inlinedCall
	}
	if pc {
		kind |= hasPC
	}
	return kind
}

// errDeclared says that something is wrong with a table: readAbbrevs says what.
var errDeclared = errors.New("the abbreviations cannot be read")

// readDeclarations reads the unit's own entry, and looks over its table.
func (u *Unit) readDeclarations() (*declarations, error) {
	b, root, err := u.beginRoot()
	if err != nil {
		return nil, err
	}
	t, err := u.declare()
	if err != nil {
		own := Tables.Get().(*AbbrevTable)
		defer Tables.Put(own)
		return nil, cmp.Or(u.Begin(own), err)
	}
	u.rootOnce.Do(func() {
		if ab := t.get(root); ab == nil {
			u.rootErr = u.unknownRoot()
		} else {
			u.rootErr = u.readRoot(ab.attrs, t.consts, b)
		}
	})
	if u.rootErr != nil {
		return nil, u.rootErr
	}
	return t, nil
}

// declRoom is memory to read a table into: how large it is is known afterwards.
type declRoom struct {
	consts []int64
	places []declPlace
}

var declRooms = sync.Pool{New: func() any { return new(declRoom) }}

// declare looks over the unit's table.
func (u *Unit) declare() (*declarations, error) {
	room := declRooms.Get().(*declRoom)
	defer declRooms.Put(room)
	consts, places := room.consts[:0], room.places[:0]
	type other struct {
		code uint64
		declPlace
	}
	var others []other
	b, forms := u.abbrevData(), u.formSteps()
	base := b.P
	for {
		code := b.ULEB()
		if b.Bad || uint64(b.P-base) > math.MaxUint32 {
			return nil, errDeclared
		}
		if code == 0 {
			break
		}
		place := declPlace{at: uint32(b.P - base), konst: uint32(len(consts))}
		tag, pc := Tag(min(b.ULEB(), 1<<16-1)), false
		b.U8()
		for {
			name, f := nextSpec(&b)
			if b.Bad {
				return nil, errDeclared
			}
			if name == 0 && f == 0 {
				break
			}
			pc = pc || name == AttrLowpc || name == AttrEntrypc || name == AttrRanges
			switch {
			case f == FormImplicitConst:
				consts = append(consts, b.SLEB())
			case f >= 256 || forms[f] == stepUnknown:
				if formStep(f, u) == stepUnknown {
					return nil, errDeclared
				}
				fallthrough
			case f.alternative():
				if f.alternative() && u.Data.sup == nil {
					return nil, errDeclared
				}
			}
		}
		if tag == TagSubprogram || tag == TagInlinedSubroutine {
			place.kind = recordKindOf(tag == TagInlinedSubroutine, pc)
		}
		if code == uint64(len(places))+1 {
			places = append(places, place)
		} else {
			others = append(others, other{code, place})
		}
	}
	room.consts, room.places = consts, places
	t := &declarations{unit: u, consts: slices.Clone(consts), places: slices.Clone(places), read: make([]atomic.Pointer[declaration], len(places))}
	for _, o := range others {
		if t.others == nil {
			t.others = make(map[uint64]*declaration)
		}
		t.others[o.code] = t.at(o.declPlace)
	}
	return t, nil
}

// abbrevData returns a reader at the beginning of the unit's table.
func (u *Unit) abbrevData() bin.Reader {
	b := bin.Reader{D: u.Data.Abbrev, BigEndian: u.Data.BigEndian}
	b.Seek(u.AbbrevOff)
	return b
}

// nextSpec reads what an attribute is, and its form.
func nextSpec(b *bin.Reader) (name Attr, f Form) {
	if p := b.P; p+1 < len(b.D) && b.D[p]|b.D[p+1] < 0x80 { // nearly all
		name, f = Attr(b.D[p]), Form(b.D[p+1])
		b.P += 2
		return name, f
	}
	if name, f = Attr(min(b.ULEB(), 1<<16-1)), Form(min(b.ULEB(), 1<<16-1)); name == attrMIPSLinkageName {
		name = AttrLinkageName
	}
	return name, f
}

// get returns the declaration with a code, or nil.
func (t *declarations) get(code uint64) *declaration {
	if code-1 >= uint64(len(t.places)) {
		return t.others[code]
	}
	place := &t.read[code-1]
	a := place.Load()
	if a == nil {
		a = t.at(t.places[code-1])
		place.Store(a)
	}
	return a
}

// kind returns what the entries with a code are, if a scan records them.
func (t *declarations) kind(code uint64) recordKind {
	if code-1 < uint64(len(t.places)) {
		return t.places[code-1].kind
	}
	if a := t.others[code]; a != nil && a.Record {
		return recordKindOf(a.Tag == TagInlinedSubroutine, a.HasPC)
	}
	return 0
}

// at reads a declaration.
func (t *declarations) at(place declPlace) *declaration {
	own := Tables.Get().(*AbbrevTable)
	defer Tables.Put(own)
	own.attrs, own.Steps = own.attrs[:0], own.Steps[:0]
	b := t.unit.abbrevData()
	b.P += int(place.at)
	a := new(declaration)
	a.Tag, a.Children = Tag(min(b.ULEB(), 1<<16-1)), b.U8() != 0
	for konst := place.konst; ; {
		name, f := nextSpec(&b)
		if name == 0 && f == 0 || b.Bad { // bad only if the file has changed since, which Guard tells
			break
		}
		at := AttrSpec{Name: name, form: f}
		if f == FormImplicitConst {
			b.SLEB()
			at.konst = konst
			konst++
		}
		own.attrs = append(own.attrs, at)
	}
	a.attrN = uint32(len(own.attrs))
	_, _ = t.unit.compile(own, &a.abbrev, t.unit.formSteps()) // declare has looked for errors
	a.attrs, a.steps = slices.Clone(own.attrs), slices.Clone(own.Steps)
	return a
}

// Writes reports whether an entry of the unit, or of one that shares its abbreviations, can have an attribute. The unit must have been
// loaded.
func (u *Unit) Writes(wanted Attr) bool {
	return u.writes(func(a Attr, _ Form) bool { return a == wanted })
}

// WritesLists reports what Writes does of a location that is a list.
func (u *Unit) WritesLists() bool {
	return u.writes(func(a Attr, f Form) bool {
		return a == AttrLocation && (f == FormSecOffset || f == FormLoclistx || f == FormData4 || f == FormData8)
	})
}

func (u *Unit) writes(such func(Attr, Form) bool) bool {
	b := u.abbrevData()
	for b.ULEB() != 0 && !b.Bad {
		b.ULEB()
		b.U8()
		for {
			name, f := nextSpec(&b)
			if name == 0 && f == 0 || b.Bad {
				break
			}
			if such(name, f) {
				return true
			}
			if f == FormImplicitConst {
				b.SLEB()
			}
		}
	}
	return false
}

// MayName reports whether what refers to a string at an offset of the unit can be the name of an entry with one of some tags that is no mere
// declaration, by the code that is before it: compilers write names first.
func (u *Unit) MayName(at uint64, tags []Tag) bool {
	if u.Dwarf64 {
		return true
	}
	b := u.abbrevData()
	for {
		code := b.ULEB()
		if code == 0 || b.Bad {
			return b.Bad
		}
		wanted := slices.Contains(tags, Tag(min(b.ULEB(), 1<<16-1)))
		b.U8()
		var name Form // of the first attribute, if that is the name
		declared := false
		for first := true; ; first = false {
			attr, f := nextSpec(&b)
			switch {
			case b.Bad:
				return true
			case f == FormImplicitConst:
				b.SLEB()
			case attr == AttrName && first:
				name = f
			case attr == AttrName && wanted:
				return true
			case attr == AttrDeclaration:
				declared = f == FormFlagPresent
			}
			if attr == 0 && f == 0 {
				break
			}
		}
		switch {
		case !wanted, declared, name == 0:
		case name != FormStrp && name != FormLineStrp, u.endsWith(at, code):
			return true
		}
	}
}

// endsWith reports whether a LEB128 number in the unit ends at an offset.
func (u *Unit) endsWith(at, number uint64) bool {
	d := u.Data.Info[u.First:at]
	for n := 1; n <= min(len(d), 5); n++ {
		if n > 1 && d[len(d)-n] < 0x80 {
			return false
		}
		b := bin.Reader{D: d, P: len(d) - n}
		if b.ULEB() == number && !b.Bad && b.P == len(d) {
			return true
		}
	}
	return false
}
