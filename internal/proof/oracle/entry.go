package oracle

import (
	"bytes"
	"fmt"
)

// Numbers of the standard (DWARF 5, section 7.5) under its names, and GNU's.
type (
	tag  uint64
	attr uint64
	form uint64
)

const (
	tagArrayType           tag = 0x01
	tagClassType           tag = 0x02
	tagEnumerationType     tag = 0x04
	tagFormalParameter     tag = 0x05
	tagLexDwarfBlock       tag = 0x0b
	tagMember              tag = 0x0d
	tagPointerType         tag = 0x0f
	tagReferenceType       tag = 0x10
	tagStructType          tag = 0x13
	tagSubroutineType      tag = 0x15
	tagTypedef             tag = 0x16
	tagUnionType           tag = 0x17
	tagInheritance         tag = 0x1c
	tagInlinedSubroutine   tag = 0x1d
	tagPtrToMemberType     tag = 0x1f
	tagSubrangeType        tag = 0x21
	tagBaseType            tag = 0x24
	tagConstType           tag = 0x26
	tagSubprogram          tag = 0x2e
	tagVariantPart         tag = 0x33
	tagVariable            tag = 0x34
	tagVolatileType        tag = 0x35
	tagRestrictType        tag = 0x37
	tagRvalueReferenceType tag = 0x42
	tagAtomicType          tag = 0x47
)

const (
	attrLocation       attr = 0x02
	attrName           attr = 0x03
	attrProducer       attr = 0x25
	attrByteSize       attr = 0x0b
	attrBitOffset      attr = 0x0c
	attrBitSize        attr = 0x0d
	attrStmtList       attr = 0x10
	attrLowpc          attr = 0x11
	attrHighpc         attr = 0x12
	attrCompDir        attr = 0x1b
	attrConstValue     attr = 0x1c
	attrUpperBound     attr = 0x2f
	attrLanguage       attr = 0x13
	attrAbstractOrigin attr = 0x31
	attrCount          attr = 0x37
	attrDataMemberLoc  attr = 0x38
	attrDeclFile       attr = 0x3a
	attrDeclLine       attr = 0x3b
	attrDeclaration    attr = 0x3c
	attrEncoding       attr = 0x3e
	attrFrameBase      attr = 0x40
	attrSpecification  attr = 0x47
	attrType           attr = 0x49
	attrVarParameter   attr = 0x4b
	attrEntrypc        attr = 0x52
	attrRanges         attr = 0x55
	attrDataBitOffset  attr = 0x6b
	attrStrOffsetsBase attr = 0x72
	attrAddrBase       attr = 0x73
	attrRnglistsBase   attr = 0x74
	attrNoreturn       attr = 0x87
	attrLoclistsBase   attr = 0x8c
	attrGNULocviews    attr = 0x2137
	attrGNUEntryView   attr = 0x2138
)

const (
	formAddr          form = 0x01
	formBlock2        form = 0x03
	formBlock4        form = 0x04
	formData2         form = 0x05
	formData4         form = 0x06
	formData8         form = 0x07
	formString        form = 0x08
	formBlock         form = 0x09
	formBlock1        form = 0x0a
	formData1         form = 0x0b
	formFlag          form = 0x0c
	formSdata         form = 0x0d
	formStrp          form = 0x0e
	formUdata         form = 0x0f
	formRefAddr       form = 0x10
	formRef1          form = 0x11
	formRef2          form = 0x12
	formRef4          form = 0x13
	formRef8          form = 0x14
	formRefUdata      form = 0x15
	formIndirect      form = 0x16
	formSecOffset     form = 0x17
	formExprloc       form = 0x18
	formFlagPresent   form = 0x19
	formStrx          form = 0x1a
	formAddrx         form = 0x1b
	formRefSup4       form = 0x1c
	formStrpSup       form = 0x1d
	formData16        form = 0x1e
	formLineStrp      form = 0x1f
	formRefSig8       form = 0x20
	formImplicitConst form = 0x21
	formLoclistx      form = 0x22
	formRnglistx      form = 0x23
	formRefSup8       form = 0x24
	formStrx1         form = 0x25
	formStrx2         form = 0x26
	formStrx3         form = 0x27
	formStrx4         form = 0x28
	formAddrx1        form = 0x29
	formAddrx2        form = 0x2a
	formAddrx3        form = 0x2b
	formAddrx4        form = 0x2c
	formGNURefAlt     form = 0x1f20
	formGNUStrpAlt    form = 0x1f21
)

// entry is a debugging information entry.
type entry struct {
	Offset ref
	Tag    tag
	Fields []field
}

// field is an attribute of an entry. Val is, by the class of the value:
//
//	int64   a constant, an offset in another section, or what is in a supplementary file
//	uint64  an address, an index of a list, or a signature
//	ref     an entry
//	bool    a flag
//	string  a string
//	[]byte  a block or an expression
type field struct {
	attr     attr
	Val      any
	constant bool // Val is a constant, no offset
}

// ref is the offset of an entry in .debug_info.
type ref uint64

// Indices in a unit's tables, which are looked up when all attributes of an entry are known: those of a unit say
// where its tables are, and may come last.
type (
	stringIndex  uint64
	addressIndex uint64
)

// Val returns the value of an attribute, or nil.
func (e *entry) Val(a attr) any {
	if f := e.field(a); f != nil {
		return f.Val
	}
	return nil
}

func (e *entry) field(a attr) *field {
	for i := range e.Fields {
		if e.Fields[i].attr == a {
			return &e.Fields[i]
		}
	}
	return nil
}

// shape is an abbreviation: what entries with its code have.
type shape struct {
	tag      tag
	children bool
	fields   []shapeField
}

type shapeField struct {
	attr     attr
	form     form
	implicit int64
}

// shapes reads the abbreviations at an offset (DWARF 5 section 7.5.3).
func (r *Reader) shapes(off uint64) (map[uint64]*shape, error) {
	if s := r.abbrevs[off]; s != nil {
		return s, nil
	}
	c := r.f.cursor(r.f.sections[".debug_abbrev"], off)
	out := make(map[uint64]*shape)
	for code := c.uleb(); code != 0; code = c.uleb() {
		s := &shape{tag: tag(c.uleb()), children: c.uint(1) != 0}
		for {
			f := shapeField{attr: attr(c.uleb()), form: form(c.uleb())}
			if f.form == formImplicitConst {
				f.implicit = c.sleb()
			}
			if c.bad || f.attr == 0 && f.form == 0 {
				break
			}
			s.fields = append(s.fields, f)
		}
		if out[code] == nil {
			out[code] = s
		}
	}
	if c.bad {
		return nil, fmt.Errorf("oracle: abbreviations at %#x run out of the section", off)
	}
	if r.abbrevs == nil {
		r.abbrevs = make(map[uint64]map[uint64]*shape)
	}
	r.abbrevs[off] = out
	return out, nil
}

// entry reads the attributes of an entry. Those that are indices stay so: see indices.
func (t *tree) entry(c *cursor, s *shape, at ref) (*entry, error) {
	e := &entry{Offset: at, Tag: s.tag, Fields: make([]field, len(s.fields))}
	for i := range s.fields {
		from := &s.fields[i]
		val, constant, err := t.value(c, from.form, from.implicit)
		if err == nil && c.bad {
			err = fmt.Errorf("it runs out of the unit")
		}
		if err != nil {
			return nil, fmt.Errorf("entry at %#x: %w", uint64(at), err)
		}
		e.Fields[i] = field{from.attr, val, constant}
	}
	return e, nil
}

// value reads a value of a form (DWARF 5 section 7.5.6).
func (t *tree) value(c *cursor, f form, implicit int64) (val any, constant bool, err error) {
	switch f {
	case formAddr:
		return c.uint(t.address), false, nil
	case formAddrx:
		return addressIndex(c.uleb()), false, nil
	case formAddrx1, formAddrx2, formAddrx3, formAddrx4:
		return addressIndex(c.uint(int(f-formAddrx1) + 1)), false, nil
	case formBlock1:
		return c.bytes(c.uint(1)), false, nil
	case formBlock2:
		return c.bytes(c.uint(2)), false, nil
	case formBlock4:
		return c.bytes(c.uint(4)), false, nil
	case formBlock, formExprloc:
		return c.bytes(c.uleb()), false, nil
	case formData16:
		return c.bytes(16), false, nil
	case formData1:
		return int64(c.uint(1)), true, nil
	case formData2:
		return int64(c.uint(2)), true, nil
	case formData4:
		return int64(c.uint(4)), t.Version >= 4, nil // before DWARF 4 it may also be an offset
	case formData8:
		return int64(c.uint(8)), t.Version >= 4, nil
	case formSdata:
		return c.sleb(), true, nil
	case formUdata:
		return int64(c.uleb()), true, nil
	case formImplicitConst:
		return implicit, true, nil
	case formFlag:
		return c.uint(1) != 0, false, nil
	case formFlagPresent:
		return true, false, nil
	case formString:
		return c.text(), false, nil
	case formStrp:
		val, err = t.r.text(".debug_str", c.uint(t.offset()))
		return val, false, err
	case formLineStrp:
		val, err = t.r.text(".debug_line_str", c.uint(t.offset()))
		return val, false, err
	case formStrx:
		return stringIndex(c.uleb()), false, nil
	case formStrx1, formStrx2, formStrx3, formStrx4:
		return stringIndex(c.uint(int(f-formStrx1) + 1)), false, nil
	case formRefAddr:
		if t.Version < 3 {
			return ref(c.uint(t.address)), false, nil
		}
		return ref(c.uint(t.offset())), false, nil
	case formRef1:
		return ref(t.Off + c.uint(1)), false, nil
	case formRef2:
		return ref(t.Off + c.uint(2)), false, nil
	case formRef4:
		return ref(t.Off + c.uint(4)), false, nil
	case formRef8:
		return ref(t.Off + c.uint(8)), false, nil
	case formRefUdata:
		return ref(t.Off + c.uleb()), false, nil
	case formRefSig8:
		return c.uint(8), false, nil
	case formSecOffset, formStrpSup, formGNURefAlt, formGNUStrpAlt:
		return int64(c.uint(t.offset())), false, nil
	case formRefSup4:
		return int64(c.uint(4)), false, nil
	case formRefSup8:
		return int64(c.uint(8)), false, nil
	case formLoclistx, formRnglistx:
		return c.uleb(), false, nil
	case formIndirect:
		if f = form(c.uleb()); f == formIndirect || f == formImplicitConst {
			return nil, false, fmt.Errorf("an indirect form %#x", uint64(f))
		}
		return t.value(c, f, 0)
	}
	return nil, false, fmt.Errorf("unknown form %#x", uint64(f))
}

// indices looks up what an entry has by index.
func (t *tree) indices(e *entry) (err error) {
	for i := range e.Fields {
		switch v := e.Fields[i].Val.(type) {
		case stringIndex:
			e.Fields[i].Val, err = t.string(uint64(v))
		case addressIndex:
			e.Fields[i].Val, err = t.r.indexed(t, uint64(v))
		}
		if err != nil {
			return fmt.Errorf("entry at %#x: %w", uint64(e.Offset), err)
		}
	}
	return nil
}

// string returns a string that .debug_str_offsets refers to.
func (t *tree) string(i uint64) (string, error) {
	base, ok := t.root.Val(attrStrOffsetsBase).(int64)
	if !ok {
		return "", fmt.Errorf("the unit has no DW_AT_str_offsets_base")
	}
	c := t.r.f.cursor(t.r.f.sections[".debug_str_offsets"], uint64(base)+i*uint64(t.offset()))
	off := c.uint(t.offset())
	if c.bad {
		return "", fmt.Errorf("no string with index %d", i)
	}
	return t.r.text(".debug_str", off)
}

// text returns a string of a section.
func (r *Reader) text(section string, off uint64) (string, error) {
	c := r.f.cursor(r.f.sections[section], off)
	s := c.text()
	if c.bad {
		return "", fmt.Errorf("%s: no string at %#x", section, off)
	}
	return s, nil
}

// text reads a string that ends with a NUL.
func (c *cursor) text() string {
	if c.bad || c.p > uint64(len(c.d)) {
		c.bad = true
		return ""
	}
	n := bytes.IndexByte(c.d[c.p:], 0)
	if n < 0 {
		c.bad = true
		return ""
	}
	b := c.bytes(uint64(n) + 1)
	return string(b[:n])
}
