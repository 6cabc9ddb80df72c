package dw

import (
	"errors"
	"fmt"
	"sync"
)

// AttrSpec is one attribute of an abbreviation.
type AttrSpec struct {
	Name  Attr
	form  Form
	konst uint32 // for DW_FORM_implicit_const: index of the value in the table's consts
}

// abbrev is one abbreviation declaration. Besides its attributes it has a short
// program that skips an entry's bytes. A run of fixed-size attributes is a single
// step, so most of the 17.9 million entries of a kernel cost two or three
// additions each.
type abbrev struct {
	Tag      Tag
	Children bool
	Search   bool // entries of this kind may be, or contain, functions
	Record   bool // entries of this kind are functions or inlined calls
	HasPC    bool // has an address or ranges, or an entry address
	abstract bool // has DW_AT_inline

	attr0, attrN uint32 // attributes: table.attrs[attr0:attrN]
	Step0, StepN uint32 // program: table.Steps[Step0:StepN]
	SibN         uint32 // end of the program's part up to DW_AT_sibling, or 0

	// If all sizes are fixed: bytes of all attributes, and of those before a
	// little-endian DW_AT_sibling of 4 bytes; otherwise -1.
	size, sibAt int32
}

// A step packs an opcode (bits 24 to 31) and an operand (bits 0 to 23).
type step uint32

// Opcodes of steps; n is the operand.
const (
	stepFixed    step = iota << 24 // skip n bytes
	stepLEB                        // skip an LEB128 number
	stepString                     // skip a string
	stepBlock                      // skip a block whose length takes n bytes, 0 for ULEB128
	stepIndirect                   // skip an attribute whose form is in the data
	StepSibling                    // unit-relative offset of n bytes, 0 for ULEB128
	StepName                       // DW_AT_name in form n
	StepOrigin                     // DW_AT_abstract_origin or DW_AT_specification in form n
	StepKind     = 0xff << 24
	StepOperand  = 1<<24 - 1
)

// A word is all that a scan needs to know about most kinds of entries: what to do
// in the lower 3 bits, and an operand above them.
type word uint64

// What a word says to do. WordKind masks this part; the operand is above WordShift bits.
const (
	WordRest  word = iota // look at the abbreviation
	WordEnd               // the end of a list of children
	WordPlain             // nothing to note, no children: skip operand bytes
	WordOpen              // nothing to note, but children may be functions: skip operand bytes and descend
	WordJump              // go to the DW_AT_sibling found operand bytes after the code
	WordKind  word = 7
	WordShift      = 3
)

// AbbrevTable holds the abbreviations of one unit.
type AbbrevTable struct {
	dense  []abbrev           // by code-1, as long as codes count up from 1
	Words  []word             // by code, for those in dense
	sparse map[uint64]*abbrev // the others
	attrs  []AttrSpec
	consts []int64
	Steps  []step
	InC    bool // types contain no functions
}

// Get returns the abbreviation with a code, or nil.
func (t *AbbrevTable) Get(code uint64) *abbrev {
	if code-1 < uint64(len(t.dense)) {
		return &t.dense[code-1]
	}
	return t.sparse[code]
}

// fixedSize is the size in bytes of a form's data, or -1 when it varies.
func fixedSize(f Form, u *Unit) int {
	switch f {
	case FormFlagPresent, FormImplicitConst:
		return 0
	case FormData1, FormRef1, FormFlag, FormStrx1, FormAddrx1:
		return 1
	case FormData2, FormRef2, FormStrx2, FormAddrx2:
		return 2
	case FormStrx3, FormAddrx3:
		return 3
	case FormData4, FormRef4, FormStrx4, FormAddrx4, FormRefSup4:
		return 4
	case FormData8, FormRef8, FormRefSig8, FormRefSup8:
		return 8
	case FormData16:
		return 16
	case FormAddr:
		return int(u.AddrSize)
	case FormStrp, FormSecOffset, FormLineStrp, FormStrpSup, FormGNURefAlt, FormGNUStrpAlt:
		return u.OffsetSize()
	case FormRefAddr:
		if u.Version <= 2 {
			return int(u.AddrSize)
		}
		return u.OffsetSize()
	}
	return -1
}

// varStep returns the step that skips a form without a fixed size, if there is one.
func varStep(f Form) (step, bool) {
	switch f {
	case FormSdata, FormUdata, FormRefUdata, FormStrx, FormAddrx, FormLoclistx, FormRnglistx, FormGNUAddrIndex, FormGNUStrIndex:
		return stepLEB, true
	case FormString:
		return stepString, true
	case FormBlock1:
		return stepBlock | 1, true
	case FormBlock2:
		return stepBlock | 2, true
	case FormBlock4:
		return stepBlock | 4, true
	case FormBlock, FormExprloc:
		return stepBlock, true
	case FormIndirect:
		return stepIndirect, true
	}
	return 0, false
}

// formSteps holds the step for each form below 256: a fixed number of bytes, or
// another kind. The table depends on three properties of a unit.
type formSteps [256]step

// fixed reports whether a form's size is known without its data.
func (s *formSteps) fixed(f Form) bool { return f < 256 && s[f]&StepKind == stepFixed }

// stepUnknown marks forms that this package does not know.
const stepUnknown step = StepKind

var formTables = func() (t [8]formSteps) {
	for i := range t {
		u := Unit{Header: Header{Dwarf64: i&1 != 0, AddrSize: 4, Version: 5}}
		if i&2 != 0 {
			u.AddrSize = 8
		}
		if i&4 != 0 {
			u.Version = 2
		}
		for f := range t[i] {
			t[i][f] = formStep(Form(f), &u)
		}
	}
	return t
}()

func formStep(f Form, u *Unit) step {
	if n := fixedSize(f, u); n >= 0 {
		return stepFixed | step(n)
	}
	if s, ok := varStep(f); ok {
		return s
	}
	return stepUnknown
}

// formSteps returns the table for a unit of this version and these sizes.
func (u *Unit) formSteps() *formSteps {
	i := 0
	if u.Dwarf64 {
		i |= 1
	}
	if u.AddrSize == 8 {
		i |= 2
	}
	if u.Version <= 2 {
		i |= 4
	}
	return &formTables[i]
}

// Tables recycles the memory that tables are read into.
var Tables = sync.Pool{New: func() any { return &AbbrevTable{InC: true} }}

// Begin reads the unit's own entry, and its table into t, reusing t's memory. The
// entry's language decides how types are skipped, but its abbreviation can be the
// last one of the table. So Begin assumes the language of the previous unit, and
// reads the table again if that was wrong.
func (u *Unit) Begin(t *AbbrevTable) error {
	b, root, err := u.beginRoot()
	if err != nil {
		return err
	}
	for {
		if err := u.readAbbrevs(t, root); err != nil {
			return err
		}
		u.rootOnce.Do(func() {
			if ab := t.Get(root); ab == nil {
				u.rootErr = u.unknownRoot()
			} else {
				u.rootErr = u.readRoot(t.attrs[ab.attr0:ab.attrN], t.consts, b)
			}
		})
		if u.rootErr != nil || t.InC == IsC(u.Lang) {
			return u.rootErr
		}
		t.InC = IsC(u.Lang)
	}
}

// readAbbrevs reads the unit's table into t. root is the abbreviation code of the
// unit's entry.
func (u *Unit) readAbbrevs(t *AbbrevTable, root uint64) error {
	d := u.Data
	b := u.abbrevData()
	t.dense, t.Words, t.sparse = t.dense[:0], append(t.Words[:0], WordEnd), nil
	t.attrs, t.consts, t.Steps = t.attrs[:0], t.consts[:0], t.Steps[:0]
	forms := u.formSteps()
	for {
		at := b.P
		code := b.ULEB()
		if b.Bad {
			return d.Errorf(".debug_abbrev", uint64(at), "the abbreviation table of the unit at .debug_info+%#x does not end", u.Off)
		}
		if code == 0 {
			return nil
		}
		a := abbrev{Tag: Tag(min(b.ULEB(), 1<<16-1)), Children: b.U8() != 0, attr0: uint32(len(t.attrs))}
		consts := len(t.consts)
		for {
			name, f := nextSpec(&b)
			if b.Bad {
				return d.Errorf(".debug_abbrev", uint64(at), "abbreviation %d does not end", code)
			}
			if name == 0 && f == 0 {
				break
			}
			at := AttrSpec{Name: name, form: f}
			if f == FormImplicitConst {
				at.konst = uint32(len(t.consts))
				t.consts = append(t.consts, b.SLEB())
			}
			t.attrs = append(t.attrs, at)
		}
		a.attrN = uint32(len(t.attrs))
		w, err := u.compile(t, &a, forms)
		if err != nil {
			return d.Errorf(".debug_abbrev", uint64(at), "abbreviation %d: %v", code, err)
		}
		if code != root {
			t.attrs, t.consts = t.attrs[:a.attr0], t.consts[:consts]
		}
		if code == uint64(len(t.dense))+1 {
			t.dense = append(t.dense, a)
			t.Words = append(t.Words, w)
		} else {
			if t.sparse == nil {
				t.sparse = make(map[uint64]*abbrev)
			}
			t.sparse[code] = &a
		}
	}
}

// classify decides what entries of a kind may contain. inC says that types contain
// no functions.
func (a *abbrev) classify(inC bool) {
	switch a.Tag {
	case TagSubprogram, TagInlinedSubroutine:
		a.Search, a.Record = true, true
	case TagStructType, TagClassType, TagUnionType, TagInterfaceType, TagEnumerationType:
		a.Search = !inC
	case TagArrayType, TagSubroutineType, TagCallSite, TagGNUCallSite, TagFormalParameter, TagVariable, TagMember:
	default:
		// Units, blocks and namespaces; and tags unknown here (try blocks, vendor
		// scopes), which may contain anything.
		a.Search = true
	}
}

// compile writes the program of an abbreviation, and its word.
func (u *Unit) compile(t *AbbrevTable, a *abbrev, forms *formSteps) (word, error) {
	a.classify(t.InC)
	a.Step0 = uint32(len(t.Steps))
	fixed := 0 // bytes since the last step
	pos := 0   // bytes from the first attribute, while all sizes are fixed
	a.sibAt = -1
	for _, at := range t.attrs[a.attr0:a.attrN] {
		switch at.Name {
		case AttrLowpc, AttrEntrypc, AttrRanges:
			a.HasPC = true
		case AttrInline:
			a.abstract = true
		}
		var s step
		if at.form < 256 {
			s = forms[at.form]
		} else {
			s = formStep(at.form, u)
		}
		size := int(s & StepOperand)
		switch {
		case at.form.alternative() && u.Data.sup == nil:
			return 0, errors.New("it refers to a supplementary file (dwz -m), and no section says to which")
		case s == stepUnknown:
			return 0, fmt.Errorf("unknown form %#x", uint32(at.form))
		case a.Record && at.Name == AttrName && at.form != FormIndirect:
			s = StepName | step(at.form)
		case a.Record && (at.Name == AttrAbstractOrigin || at.Name == AttrSpecification) && at.form != FormIndirect:
			s = StepOrigin | step(at.form)
		case at.Name == AttrSibling && (s == stepFixed|1 || s == stepFixed|2 || s == stepFixed|4 || s == stepFixed|8 || at.form == FormRefUdata) && at.form != FormRefAddr:
			if s == stepFixed|4 && pos >= 0 && a.Children && !u.Data.BigEndian {
				a.sibAt = int32(pos)
			}
			if s&StepKind != stepFixed {
				size = 0
			}
			s = StepSibling | step(size)
		}
		switch {
		case pos < 0:
		case forms.fixed(at.form) && pos < 1<<16:
			pos += int(forms[at.form] & StepOperand)
		default:
			pos = -1
		}
		if s&StepKind == stepFixed {
			fixed += size
			continue
		}
		if fixed > 0 {
			t.flush(&fixed)
		}
		t.Steps = append(t.Steps, s)
		if s&StepKind == StepSibling {
			a.SibN = uint32(len(t.Steps))
		}
	}
	t.flush(&fixed)
	a.StepN = uint32(len(t.Steps))
	a.size = int32(pos)
	switch {
	case a.sibAt >= 0 && !a.Search:
		return WordJump | word(a.sibAt)<<WordShift, nil
	case a.Record || pos < 0 || a.Children && a.SibN != 0 && !a.Search:
		return WordRest, nil
	case a.Children:
		return WordOpen | word(pos)<<WordShift, nil
	}
	return WordPlain | word(pos)<<WordShift, nil
}

// flush writes the steps that skip the pending bytes of fixed-size attributes.
func (t *AbbrevTable) flush(fixed *int) {
	for ; *fixed > 0; *fixed -= min(*fixed, StepOperand) {
		t.Steps = append(t.Steps, stepFixed|step(min(*fixed, StepOperand)))
	}
}
