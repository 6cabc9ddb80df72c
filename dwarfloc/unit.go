package dwarfloc

import (
	"bytes"
	"encoding/binary"
	"sort"
	"strings"
	"sync"
)

// unit is one unit of .debug_info. Its header is read with those of all others, the
// rest when the unit is first needed.
type unit struct {
	img       *Image
	off, end  uint64 // in .debug_info: header, and end
	first     uint64 // first entry
	abbrevOff uint64
	signature uint64 // of a type unit
	typeOff   uint64 // of a type unit: the type's entry, relative to the unit
	version   uint16
	addrSize  uint8
	kind      uint8
	dwarf64   bool

	rootOnce sync.Once // reads the attributes below
	rootErr  error
	loadOnce sync.Once // reads the abbreviations as well
	loadErr  error
	abbrevs  *abbrevTable // nil until then

	// attributes of the unit's own entry
	lang                                       uint64
	lowpc                                      uint64
	pcs                                        pcAttrs
	nameValue, compDirValue, producerValue     value // see name, compDir, optimized
	stmtList                                   uint64
	hasStmtList                                bool
	strOffsetsBase, addrBase, rngBase, locBase uint64

	optimizedOnce sync.Once
	isOptimized   bool

	// filled by the scan
	recs    []rec
	recOnce sync.Once
	recErr  error

	typeMu sync.Mutex
	types  map[uint64]*Type

	lineOnce sync.Once
	lines    *lineTable
	lineErr  error
	rowsMu   sync.Mutex
}

func (u *unit) offsetSize() int {
	if u.dwarf64 {
		return 8
	}
	return 4
}

// readUnits reads all unit headers (DWARF 5 section 7.5.1, DWARF 4 section
// 7.5.1.1).
func (img *Image) readUnits() error {
	b := buf{d: img.info, be: img.be}
	for b.p < len(b.d) {
		u := unit{img: img, off: uint64(b.p)}
		n, dwarf64 := b.unitLength()
		if b.bad || n > uint64(len(b.d)-b.p) {
			return img.errorf(".debug_info", u.off, "invalid unit length %#x: %#x bytes are left", n, uint64(len(img.info))-u.off)
		}
		u.dwarf64 = dwarf64
		u.end = uint64(b.p) + n
		if n > 1<<32-64 {
			return img.errorf(".debug_info", u.off, "unsupported unit of %#x bytes", n)
		}
		if n == 0 {
			continue // padding between units
		}
		u.version = b.u16()
		switch {
		case u.version == 5:
			u.kind = b.u8()
			u.addrSize = b.u8()
			u.abbrevOff = b.offset(dwarf64)
			switch u.kind {
			case unitSkeleton, unitSplitCompile:
				b.skip(8) // DWO id
			case unitType, unitSplitType:
				u.signature = b.u64()
				u.typeOff = b.offset(dwarf64)
			case unitCompile, unitPartial:
			default:
				return img.errorf(".debug_info", u.off, "unknown unit type %#x", u.kind)
			}
		case u.version >= 2 && u.version <= 4:
			u.kind = unitCompile
			u.abbrevOff = b.offset(dwarf64)
			u.addrSize = b.u8()
		default:
			return img.errorf(".debug_info", u.off, "unsupported DWARF version %d", u.version)
		}
		if b.bad || uint64(b.p) > u.end {
			return img.errorf(".debug_info", u.off, "the unit's header does not fit into its length")
		}
		if u.addrSize != 4 && u.addrSize != 8 {
			return img.errorf(".debug_info", u.off, "invalid address size %d", u.addrSize)
		}
		u.first = uint64(b.p)
		img.units = append(img.units, unit{
			img: img, off: u.off, end: u.end, first: u.first, abbrevOff: u.abbrevOff, signature: u.signature,
			typeOff: u.typeOff, version: u.version, addrSize: u.addrSize, kind: u.kind, dwarf64: u.dwarf64,
		})
		b.seek(u.end)
	}
	return nil
}

// unitAt returns the unit that contains an offset in .debug_info, or nil.
func (img *Image) unitAt(off uint64) *unit {
	i := sort.Search(len(img.units), func(i int) bool { return img.units[i].end > off })
	if i == len(img.units) || off < img.units[i].first {
		return nil
	}
	return &img.units[i]
}

// load reads the unit's abbreviations and its own entry. The answer is
// remembered, an error too.
func (u *unit) load() error {
	u.loadOnce.Do(func() { u.loadErr = u.doLoad() })
	return u.loadErr
}

func (u *unit) doLoad() error {
	t, err := u.parseAbbrevs()
	if err != nil {
		return err
	}
	u.abbrevs = t
	return nil
}

// readRoot reads the unit's own entry, whose attributes begin at b.
func (u *unit) readRoot(ab *abbrev, t *abbrevTable, b buf) error {
	if ab == nil {
		return u.img.errorf(".debug_info", u.first, "the unit's entry has an unknown abbreviation")
	}
	var lowpc value
	for _, at := range t.attrs[ab.attr0:ab.attrN] {
		v := u.readAttr(&b, t, at)
		if b.bad {
			return u.damagedAttr(u.first, at)
		}
		switch at.name {
		case attrName_:
			u.nameValue = v
		case attrCompDir:
			u.compDirValue = v
		case attrProducer:
			u.producerValue = v
		case attrLowpc:
			lowpc = v
		case attrLanguage:
			u.lang = v.u
		case attrStmtList:
			u.stmtList, u.hasStmtList = v.u, true
		case attrStrOffsetsBase:
			u.strOffsetsBase = v.u
		case attrAddrBase:
			u.addrBase = v.u
		case attrRnglistsBase:
			u.rngBase = v.u
		case attrLoclistsBase:
			u.locBase = v.u
		}
		u.pcs.take(at.name, v)
	}
	if lowpc.form == 0 {
		return nil
	}
	// Only now is the base known that an indexed form needs.
	var err error
	u.lowpc, err = u.address(lowpc)
	return err
}

func (u *unit) damagedAttr(off uint64, at attrSpec) error {
	return u.img.errorf(".debug_info", off, "attribute %#x of form %#x does not end within its unit", uint32(at.name), uint32(at.form))
}

// name is the unit's source file, and compDir where it was compiled.
func (u *unit) name() string    { return u.text(u.nameValue) }
func (u *unit) compDir() string { return u.text(u.compDirValue) }

// optimized reports whether the unit's compiler says that it optimised. GCC records
// its options in DW_AT_producer; clang does not, and then the answer is unknown.
func (u *unit) optimized() bool {
	u.optimizedOnce.Do(func() {
		producer := u.text(u.producerValue)
		if !strings.HasPrefix(producer, "GNU ") {
			return
		}
		level := ""
		for f := range strings.FieldsSeq(producer) {
			if strings.HasPrefix(f, "-O") {
				level = f
			}
		}
		u.isOptimized = level != "" && level != "-O0"
	})
	return u.isOptimized
}

// rowsOfCalls reports whether the line table has a row for each call, even of an
// inlined function: GCC's has.
func (u *unit) rowsOfCalls() bool { return strings.HasPrefix(u.text(u.producerValue), "GNU ") }

// entry is one debugging information entry, found but not read.
type entry struct {
	u   *unit
	off uint64  // in .debug_info
	ab  *abbrev // nil: the end of a list of children
	pos int     // in .debug_info: first attribute
}

// entry finds the entry at an offset in .debug_info.
func (u *unit) entry(off uint64) (entry, error) {
	if off < u.first || off >= u.end {
		return entry{}, u.img.errorf(".debug_info", off, "the entry is outside its unit [%#x, %#x)", u.first, u.end)
	}
	b := u.buf(int(off))
	code := b.uleb()
	if b.bad {
		return entry{}, u.img.errorf(".debug_info", off, "the entry does not end within its unit")
	}
	e := entry{u: u, off: off, pos: b.p}
	if code == 0 {
		return e, nil
	}
	e.ab = u.abbrevs.get(code)
	if e.ab == nil {
		return entry{}, u.img.errorf(".debug_info", off, "unknown abbreviation %d", code)
	}
	return e, nil
}

// buf reads .debug_info from a position up to the unit's end.
func (u *unit) buf(pos int) buf {
	return buf{d: u.img.info[:u.end], p: pos, be: u.img.be}
}

// attrs calls f for each attribute.
func (e entry) attrs(f func(attrName, value)) error {
	_, err := e.read(f)
	return err
}

// read calls f for each attribute and returns the position behind the last.
func (e entry) read(f func(attrName, value)) (int, error) {
	b := e.u.buf(e.pos)
	t := e.u.abbrevs
	for _, at := range t.attrs[e.ab.attr0:e.ab.attrN] {
		v := e.u.readAttr(&b, t, at)
		if b.bad {
			return 0, e.u.damagedAttr(e.off, at)
		}
		f(at.name, v)
	}
	return b.p, nil
}

// children calls f for each child until it returns false. Children of children
// are passed over.
func (e entry) children(f func(entry) (bool, error)) error {
	if e.ab == nil || !e.ab.children {
		return nil
	}
	u := e.u
	pos, err := u.skipAttrs(e)
	if err != nil {
		return err
	}
	for {
		c, err := u.entry(uint64(pos))
		if err != nil {
			return err
		}
		if c.ab == nil {
			return nil
		}
		more, err := f(c)
		if err != nil || !more {
			return err
		}
		if pos, err = u.skipTree(c); err != nil {
			return err
		}
	}
}

// skipAttrs returns the position behind an entry's attributes.
func (u *unit) skipAttrs(e entry) (int, error) {
	if n := int(e.ab.size); n >= 0 && e.pos+n <= int(u.end) {
		return e.pos + n, nil
	}
	p, _ := u.runSteps(e.pos, u.abbrevs.steps[e.ab.step0:e.ab.stepN])
	if p < 0 {
		return 0, u.img.errorf(".debug_info", e.off, "the entry does not end within its unit")
	}
	return p, nil
}

// skipTree returns the position behind an entry and all entries below it.
func (u *unit) skipTree(e entry) (int, error) {
	depth := 0
	for {
		var p int
		switch {
		case e.ab == nil:
			depth--
			p = e.pos
		case e.ab.children && e.ab.sibN != 0:
			sib := 0
			if at := e.pos + int(e.ab.sibAt); e.ab.sibAt >= 0 && at+4 <= int(u.end) {
				sib = int(u.off) + int(binary.LittleEndian.Uint32(u.img.info[at:]))
			} else {
				_, sib = u.runSteps(e.pos, u.abbrevs.steps[e.ab.step0:e.ab.sibN])
			}
			if sib <= e.pos || uint64(sib) >= u.end {
				return 0, u.img.errorf(".debug_info", e.off, "invalid sibling reference %#x", sib)
			}
			p = sib
		default:
			var err error
			if p, err = u.skipAttrs(e); err != nil {
				return 0, err
			}
			if e.ab.children {
				depth++
			}
		}
		if depth <= 0 {
			return p, nil
		}
		var err error
		if e, err = u.entry(uint64(p)); err != nil {
			return 0, err
		}
	}
}

// runSteps passes over attributes from a position and returns the position
// behind them, or -1 when they do not end within the unit, and the absolute
// position that the last sibling reference names, or 0.
func (u *unit) runSteps(pos int, steps []step) (p, sibling int) {
	b := u.buf(pos)
	for _, s := range steps {
		if s&stepKind == stepSibling {
			sibling = int(min(u.off+b.ulebOr(int(s&stepOperand)), u.end))
		} else {
			u.pass(&b, s)
		}
	}
	if b.bad {
		return -1, 0
	}
	return b.p, sibling
}

// pass passes over what a step stands for.
func (u *unit) pass(b *buf, s step) {
	n := int(s & stepOperand)
	switch s & stepKind {
	case stepFixed:
		b.skip(uint64(n))
	case stepLEB:
		b.uleb()
	case stepString:
		b.cstr()
	case stepBlock:
		b.skip(b.ulebOr(n))
	case stepIndirect:
		u.readForm(b, formIndirect)
	case stepName, stepOrigin:
		u.readForm(b, form(n))
	}
}

// ulebOr reads a number of n bytes, or ULEB128 for n = 0.
func (b *buf) ulebOr(n int) uint64 {
	if n == 0 {
		return b.uleb()
	}
	return b.uint(n)
}

// zstr returns the string at an offset of a string section.
func zstr(d []byte, off uint64) (string, bool) {
	if off >= uint64(len(d)) {
		return "", false
	}
	i := bytes.IndexByte(d[off:], 0)
	if i < 0 {
		return "", false
	}
	return string(d[off : off+uint64(i)]), true
}
