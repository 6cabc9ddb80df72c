package dw

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// Unit is one unit of .debug_info. All headers are read at once, the rest of a unit
// when it is first needed.
type Unit struct {
	Header
	Data   *Data
	Number int // index in Data.Units
	// Recalled says that the header was not read but is said to be there: it is compared when the
	// unit is first needed.
	Recalled bool
	// Skeleton is what the compiler left of a split unit in the image itself: its addresses and
	// lines. It is nil for others.
	Skeleton *Unit
	From     uint64 // where in Info the offsets count from by which entries of other units are named

	rootOnce sync.Once // reads the attributes below
	rootErr  error
	loadOnce sync.Once // reads the abbreviations as well
	loadErr  error
	abbrevs  atomic.Pointer[declarations] // nil until then, and after Forget

	*rootAttrs // never nil

	lineMu sync.Mutex // held while lines is read
	lines  atomic.Pointer[lines]
	rowsMu sync.Mutex
}

// rootAttrs are the attributes of a unit's own entry. Most questions read few units of an image: the others have none of their own.
type rootAttrs struct {
	Lang                                       uint64
	lowpc                                      uint64
	PCs                                        PCs
	nameValue, compDirValue, producerValue     Value // see Name, CompDir, Producer
	dwoName                                    Value // see Elsewhere
	dwoID                                      Value
	StmtList                                   uint64
	HasStmtList                                bool
	strOffsetsBase, addrBase, RngBase, LocBase uint64
}

// unread are the attributes of units that have not been read, which nobody changes.
var unread rootAttrs

// NewUnits returns units without headers.
func NewUnits(d *Data, n int) []Unit {
	units := make([]Unit, n)
	for i := range units {
		units[i].Data, units[i].Number, units[i].rootAttrs = d, i, &unread
	}
	return units
}

// Header is a unit's header.
type Header struct {
	Off, End  uint64 // in .debug_info: header, and end
	First     uint64 // first entry, in .debug_info
	AbbrevOff uint64
	Signature uint64 // for a type unit; for a skeleton and its split unit, what they have in common
	TypeOff   uint64 // for a type unit: the type's entry, relative to the unit
	Version   uint16
	AddrSize  uint8
	Kind      uint8
	Dwarf64   bool
}

// OffsetSize returns the size in bytes of an offset in the unit: 8 in 64-bit DWARF, or else 4.
func (u *Unit) OffsetSize() int {
	if u.Dwarf64 {
		return 8
	}
	return 4
}

// ReadUnits reads all unit headers (DWARF 5 section 7.5.1, DWARF 4 section
// 7.5.1).
func (d *Data) ReadUnits() error {
	for off := uint64(0); off < uint64(len(d.Info)); {
		h, err := d.readHeader(off)
		if err != nil {
			return err
		}
		if off = h.End; h.First == 0 {
			continue // padding between units
		}
		n := len(d.Units)
		d.Units = append(d.Units, Unit{Data: d, Number: n, Header: h, rootAttrs: &unread})
		if d.parts != nil && !d.partAt(h.Off).take(&d.Units[n]) {
			d.Units = d.Units[:n]
		}
	}
	d.ready = true
	return nil
}

// Ready reports whether the units have been read.
func (d *Data) Ready() bool { return d.ready }

// take completes a unit of the part. It is false for one that is not needed.
func (p *part) take(u *Unit) bool {
	u.Data, u.From = p.data, p.refs
	if p.split != nil {
		return p.split.take(p, u)
	}
	return !p.data.isSkeleton(u.Off)
}

// readHeader reads the header of a unit at an offset in .debug_info. First is 0 if the unit is empty.
func (d *Data) readHeader(off uint64) (u Header, err error) {
	b := bin.Reader{D: d.Info, BigEndian: d.BigEndian}
	b.Seek(off)
	u.Off = off
	n, dwarf64 := b.UnitLength()
	end, types := uint64(len(b.D)), false
	if p := d.partAt(off); p != nil {
		end, types = p.to, p.types
	}
	if b.Bad || uint64(b.P) > end || n > end-uint64(b.P) {
		return u, d.Errorf(".debug_info", u.Off, "invalid unit length %#x: %#x bytes are left", n, end-u.Off)
	}
	u.Dwarf64 = dwarf64
	u.End = uint64(b.P) + n
	if n > 1<<32-64 {
		return u, d.Errorf(".debug_info", u.Off, "unsupported unit of %#x bytes", n)
	}
	if n == 0 {
		return u, nil
	}
	u.Version = b.U16()
	switch {
	case u.Version == 5:
		u.Kind = b.U8()
		u.AddrSize = b.U8()
		u.AbbrevOff = b.Offset(dwarf64)
		switch u.Kind {
		case UnitSkeleton, UnitSplitCompile:
			u.Signature = b.U64() // DWO id
		case UnitType, UnitSplitType:
			u.Signature = b.U64()
			u.TypeOff = b.Offset(dwarf64)
		case UnitCompile, UnitPartial:
		default:
			return u, d.Errorf(".debug_info", u.Off, "unknown unit type %#x", u.Kind)
		}
	case u.Version >= 2 && u.Version <= 4:
		u.Kind = UnitCompile
		u.AbbrevOff = b.Offset(dwarf64)
		u.AddrSize = b.U8()
		if types {
			u.Kind = UnitType
			u.Signature = b.U64()
			u.TypeOff = b.Offset(dwarf64)
		}
	default:
		return u, d.Errorf(".debug_info", u.Off, "unsupported DWARF version %d", u.Version)
	}
	if b.Bad || uint64(b.P) > u.End {
		return u, d.Errorf(".debug_info", u.Off, "the unit's header does not fit into its length")
	}
	if u.AddrSize != 4 && u.AddrSize != 8 {
		return u, d.Errorf(".debug_info", u.Off, "invalid address size %d", u.AddrSize)
	}
	u.First = uint64(b.P)
	return u, nil
}

// checkHeader compares a header that was recalled with the one that is there.
func (u *Unit) checkHeader() error {
	if !u.Recalled {
		return nil
	}
	h, err := u.Data.readHeader(u.Off)
	if err == nil && h != u.Header {
		err = u.Data.Errorf(".debug_info", u.Off, "the unit's header is another one than an index says")
	}
	return err
}

// Load reads the unit's abbreviations and its own entry. It does so once: an error
// is remembered too.
func (u *Unit) Load() error {
	u.loadOnce.Do(func() {
		t, err := u.readDeclarations()
		u.abbrevs.Store(t)
		u.loadErr = err
	})
	return u.loadErr
}

// Loaded reports whether the abbreviations are there: not before Load, nor after Forget.
func (u *Unit) Loaded() bool { return u.abbrevs.Load() != nil }

// table returns the abbreviations of a unit that has been loaded.
func (u *Unit) table() *declarations {
	if t := u.abbrevs.Load(); t != nil {
		return t
	}
	return u.reload()
}

// reload reads the abbreviations again after Forget.
func (u *Unit) reload() *declarations {
	t, err := u.readDeclarations()
	if err != nil {
		return &declarations{} // it was read before: the file has changed, which Guard tells
	}
	u.abbrevs.Store(t)
	return t
}

// Forget frees what has been read of the unit: 30 KB for a unit of a kernel, and its rows. It is
// read again when it is needed, also by a goroutine that is using it now.
func (u *Unit) Forget() {
	u.abbrevs.Store(nil)
	u.lines.Store(nil)
}

// beginRoot returns a reader after the code of the unit's own entry, and that code.
func (u *Unit) beginRoot() (b bin.Reader, code uint64, err error) {
	if err := u.checkHeader(); err != nil {
		return b, 0, err
	}
	b = u.buf(int(u.First))
	if code = b.ULEB(); b.Bad || code == 0 {
		return b, 0, u.Data.Errorf(".debug_info", u.First, "the unit has no entries")
	}
	return b, code, nil
}

func (u *Unit) unknownRoot() error {
	return u.Data.Errorf(".debug_info", u.First, "the unit's entry has an unknown abbreviation")
}

// readRoot reads the unit's own entry, whose attributes begin at b.
func (u *Unit) readRoot(specs []AttrSpec, consts []int64, b bin.Reader) error {
	u.rootAttrs = new(rootAttrs)
	if err := u.takeSkeleton(); err != nil {
		return err
	}
	var lowpc Value
	for _, at := range specs {
		v := u.readAttr(&b, consts, at)
		if b.Bad {
			return u.DamagedAttr(u.First, at)
		}
		switch at.Name {
		case AttrName:
			u.nameValue = v
		case AttrCompDir:
			u.compDirValue = v
		case AttrProducer:
			u.producerValue = v
		case AttrLowpc:
			lowpc = v
		case AttrLanguage:
			u.Lang = v.U
		case AttrDwoName, AttrGNUDwoName:
			u.dwoName = v
		case AttrGNUDwoID:
			u.dwoID = v
		case AttrStmtList:
			u.StmtList, u.HasStmtList = v.U, true
		case AttrStrOffsetsBase:
			u.strOffsetsBase = v.U
		case AttrAddrBase, AttrGNUAddrBase:
			u.addrBase = v.U
		case AttrRnglistsBase, AttrGNURangesBase:
			u.RngBase = v.U
		case AttrLoclistsBase:
			u.LocBase = v.U
		}
		u.PCs.Take(at.Name, v)
	}
	if err := u.checkID(); err != nil || lowpc.Form == 0 {
		return err
	}
	// An indexed form needs the base, which is known only now.
	var err error
	u.lowpc, err = u.Address(lowpc)
	return err
}

// DamagedAttr returns the error for an attribute, of the entry at off, that is not all there.
func (u *Unit) DamagedAttr(off uint64, at AttrSpec) error {
	return u.Data.Errorf(".debug_info", off, "%v of %v does not end within its unit", at.Name, at.form)
}

// Name returns the path of the unit's source file.
func (u *Unit) Name() string { return u.Text(u.nameValue) }

// CompDir returns the directory in which the unit was compiled.
func (u *Unit) CompDir() string {
	if dir := u.Text(u.compDirValue); dir != "" || u.Skeleton == nil {
		return dir
	}
	return u.Skeleton.CompDir()
}

// Producer returns the compiler that the unit names, for GCC with its options.
func (u *Unit) Producer() string { return u.Text(u.producerValue) }

// Entry is a debugging information entry whose attributes have not been read.
type Entry struct {
	Unit   *Unit
	Off    uint64       // in .debug_info
	Abbrev *declaration // nil: the end of a list of children
	pos    int          // in .debug_info: first attribute
}

// Entry returns the entry at an offset in .debug_info.
func (u *Unit) Entry(off uint64) (Entry, error) {
	if off < u.First || off >= u.End {
		return Entry{}, u.Data.Errorf(".debug_info", off, "the entry is outside its unit [%#x, %#x)", u.First, u.End)
	}
	b := u.buf(int(off))
	code := b.ULEB()
	if b.Bad {
		return Entry{}, u.Data.Errorf(".debug_info", off, "the entry does not end within its unit")
	}
	e := Entry{Unit: u, Off: off, pos: b.P}
	if code == 0 {
		return e, nil
	}
	e.Abbrev = u.table().get(code)
	if e.Abbrev == nil {
		return Entry{}, u.Data.Errorf(".debug_info", off, "unknown abbreviation %d", code)
	}
	return e, nil
}

// buf reads .debug_info from a position up to the unit's end.
func (u *Unit) buf(pos int) bin.Reader {
	return bin.Reader{D: u.Data.Info[:u.End], P: pos, BigEndian: u.Data.BigEndian}
}

// IsEnd reports whether the entry is the end of a list of children.
func (e Entry) IsEnd() bool { return e.Abbrev == nil }

// IsFunctionAt reports whether an offset in .debug_info is that of an entry which a scan records: of a function, or of an inlined
// instance of one, with an address or without. The unit must have been loaded.
func (u *Unit) IsFunctionAt(off uint64, inlined, pc bool) bool {
	if off < u.First || off >= u.End {
		return false
	}
	code, bad := uint64(u.Data.Info[off]), false
	if code >= 0x80 {
		b := u.buf(int(off))
		code, bad = b.ULEB(), b.Bad
	}
	return u.table().kind(code) == recordKindOf(inlined, pc) && !bad
}

// Tag returns the entry's tag, or 0 at the end of a list.
func (e Entry) Tag() Tag {
	if e.Abbrev == nil {
		return 0
	}
	return e.Abbrev.Tag
}

// HasChildren reports whether a list of children follows the entry.
func (e Entry) HasChildren() bool { return e.Abbrev != nil && e.Abbrev.Children }

// Attrs calls f for each attribute.
func (e Entry) Attrs(f func(Attr, Value)) error {
	b := e.Data()
	for _, at := range e.Specs() {
		v := e.Unit.ReadAttr(&b, at)
		if b.Bad {
			return e.Unit.DamagedAttr(e.Off, at)
		}
		f(at.Name, v)
	}
	return nil
}

// Specs returns what attributes the entry has, in order. Where a function call for each
// attribute, as Attrs makes, is too slow:
//
//	b := e.Data()
//	for _, at := range e.Specs() {
//		v := u.ReadAttr(&b, at)
//		if b.Bad {
//			return u.DamagedAttr(e.Off, at)
//		}
//		switch at.Name {
func (e Entry) Specs() []AttrSpec { return e.Abbrev.attrs }

// Has reports whether an entry has an attribute, without a look at its value.
func (e Entry) Has(a Attr) bool {
	return slices.ContainsFunc(e.Specs(), func(s AttrSpec) bool { return s.Name == a })
}

// Data returns a reader at the entry's first attribute.
func (e Entry) Data() bin.Reader { return e.Unit.buf(e.pos) }

// Children calls f for each child until it returns false, but not for their
// children.
func (e Entry) Children(f func(Entry) (bool, error)) error {
	if e.Abbrev == nil || !e.Abbrev.Children {
		return nil
	}
	u := e.Unit
	pos, err := u.SkipAttrs(e)
	if err != nil {
		return err
	}
	for {
		c, err := u.Entry(uint64(pos))
		if err != nil {
			return err
		}
		if c.Abbrev == nil {
			return nil
		}
		more, err := f(c)
		if err != nil || !more {
			return err
		}
		if pos, err = u.SkipTree(c); err != nil {
			return err
		}
	}
}

// SkipAttrs returns the position in .debug_info after an entry's attributes.
func (u *Unit) SkipAttrs(e Entry) (int, error) {
	if n := int(e.Abbrev.size); n >= 0 && e.pos+n <= int(u.End) {
		return e.pos + n, nil
	}
	p, _ := u.runSteps(e.pos, e.Abbrev.steps)
	if p < 0 {
		return 0, u.Data.Errorf(".debug_info", e.Off, "the entry does not end within its unit")
	}
	return p, nil
}

// SkipTree returns the position in .debug_info after an entry and all entries below
// it.
func (u *Unit) SkipTree(e Entry) (int, error) {
	depth := 0
	for {
		var p int
		switch {
		case e.Abbrev == nil:
			depth--
			p = e.pos
		case e.Abbrev.Children && e.Abbrev.SibN != 0:
			sib := 0
			if at := e.pos + int(e.Abbrev.sibAt); e.Abbrev.sibAt >= 0 && at+4 <= int(u.End) {
				sib = int(u.Off) + int(binary.LittleEndian.Uint32(u.Data.Info[at:]))
			} else {
				_, sib = u.runSteps(e.pos, e.Abbrev.steps[:e.Abbrev.SibN])
			}
			if sib <= e.pos || uint64(sib) >= u.End {
				return 0, u.Data.Errorf(".debug_info", e.Off, "invalid sibling reference %#x", sib)
			}
			p = sib
		default:
			var err error
			if p, err = u.SkipAttrs(e); err != nil {
				return 0, err
			}
			if e.Abbrev.Children {
				depth++
			}
		}
		if depth <= 0 {
			return p, nil
		}
		var err error
		if e, err = u.Entry(uint64(p)); err != nil {
			return 0, err
		}
	}
}

// runSteps skips the attributes at a position. It returns the position after them, or
// -1 if they do not end within the unit, and the absolute position that the last
// sibling reference names, or 0.
func (u *Unit) runSteps(pos int, steps []step) (p, sibling int) {
	b := u.buf(pos)
	for _, s := range steps {
		if s&StepKind == StepSibling {
			sibling = int(min(u.Off+b.ULEBOr(int(s&StepOperand)), u.End))
		} else {
			u.Pass(&b, s)
		}
	}
	if b.Bad {
		return -1, 0
	}
	return b.P, sibling
}

// Pass skips what a step stands for.
func (u *Unit) Pass(b *bin.Reader, s step) {
	n := int(s & StepOperand)
	switch s & StepKind {
	case stepFixed:
		b.Skip(uint64(n))
	case stepLEB:
		b.ULEB()
	case stepString:
		b.CString()
	case stepBlock:
		b.Skip(b.ULEBOr(n))
	case stepIndirect:
		u.ReadForm(b, FormIndirect)
	case StepName, StepOrigin:
		u.ReadForm(b, Form(n))
	}
}
