package dwarfloc

import (
	"fmt"
	"slices"
	"sync"
)

// attrSpec is one attribute of an abbreviation.
type attrSpec struct {
	name  attrName
	form  form
	konst uint32 // of DW_FORM_implicit_const: index of the value in the table's consts
}

// abbrev is one abbreviation declaration. Besides its attributes it has a short
// program that passes over an entry's bytes: runs of attributes of fixed size
// are one step, so that most of the 17.9 million entries of a kernel cost two or
// three additions each.
type abbrev struct {
	tag      tag
	children bool
	search   bool // entries of this kind may be, or contain, functions
	record   bool // entries of this kind are functions or inlined instances
	hasPC    bool // has an address or ranges, or an entry address
	abstract bool // has DW_AT_inline

	attr0, attrN uint32 // attributes: table.attrs[attr0:attrN]
	step0, stepN uint32 // program: table.steps[step0:stepN]
	sibN         uint32 // the program's part up to DW_AT_sibling, or 0

	// Where all sizes are fixed: bytes of the attributes, and of those before a
	// DW_AT_sibling of 4 bytes, little-endian; else -1.
	size, sibAt int32
}

// A step is what to do in its upper 8 bits and an operand in the lower 24.
type step uint32

const (
	stepFixed    step = iota << 24 // pass over n bytes
	stepLEB                        // pass over an LEB128 number
	stepString                     // pass over a string
	stepBlock                      // pass over a block whose length has n bytes, 0 for ULEB
	stepIndirect                   // pass over an attribute whose form is in the data
	stepSibling                    // a unit-relative offset of n bytes, 0 for ULEB
	stepName                       // DW_AT_name of form n
	stepOrigin                     // DW_AT_abstract_origin or DW_AT_specification of form n
	stepKind     = 0xff << 24
	stepOperand  = 1<<24 - 1
)

// A word is all that a scan needs to know of most kinds of entries: what to do in
// its lower 3 bits, and an operand above.
type word uint64

const (
	wordRest  word = iota // look at the abbreviation
	wordEnd               // the end of a list of children
	wordPlain             // nothing to note, no children: pass over operand bytes
	wordOpen              // nothing to note, but children may be functions: pass over operand bytes and go down
	wordJump              // go to the DW_AT_sibling that stands operand bytes behind the code
	wordKind  word = 7
	wordShift      = 3
)

// abbrevTable is the abbreviations of one unit.
type abbrevTable struct {
	dense  []abbrev           // by code-1, while codes come in order from 1
	words  []word             // by code, of dense
	sparse map[uint64]*abbrev // the others
	attrs  []attrSpec
	consts []int64
	steps  []step
	keep   bool // attributes of all abbreviations, not just of the one that the unit's entry has
	inC    bool // types contain no functions
}

func (t *abbrevTable) get(code uint64) *abbrev {
	if code-1 < uint64(len(t.dense)) {
		return &t.dense[code-1]
	}
	return t.sparse[code]
}

// fixedSize is the size in bytes of a form's data, or -1 when it varies.
func fixedSize(f form, u *unit) int {
	switch f {
	case formFlagPresent, formImplicitConst:
		return 0
	case formData1, formRef1, formFlag, formStrx1, formAddrx1:
		return 1
	case formData2, formRef2, formStrx2, formAddrx2:
		return 2
	case formStrx3, formAddrx3:
		return 3
	case formData4, formRef4, formStrx4, formAddrx4, formRefSup4:
		return 4
	case formData8, formRef8, formRefSig8, formRefSup8:
		return 8
	case formData16:
		return 16
	case formAddr:
		return int(u.addrSize)
	case formStrp, formSecOffset, formLineStrp, formStrpSup, formGNURefAlt, formGNUStrpAlt:
		return u.offsetSize()
	case formRefAddr:
		if u.version <= 2 {
			return int(u.addrSize)
		}
		return u.offsetSize()
	}
	return -1
}

// varStep is the step over a form without a fixed size, and whether there is one.
func varStep(f form) (step, bool) {
	switch f {
	case formSdata, formUdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx:
		return stepLEB, true
	case formString:
		return stepString, true
	case formBlock1:
		return stepBlock | 1, true
	case formBlock2:
		return stepBlock | 2, true
	case formBlock4:
		return stepBlock | 4, true
	case formBlock, formExprloc:
		return stepBlock, true
	case formIndirect:
		return stepIndirect, true
	}
	return 0, false
}

// formSteps are what to do for each form below 256: the bytes of a fixed size, or a
// step. They depend on three properties of a unit.
type formSteps [256]step

// fixed reports whether a form's size is known without its data.
func (s *formSteps) fixed(f form) bool { return f < 256 && s[f]&stepKind == stepFixed }

// stepUnknown marks forms that this package does not know.
const stepUnknown step = stepKind

var formTables = func() (t [8]formSteps) {
	for i := range t {
		u := unit{dwarf64: i&1 != 0, addrSize: 4, version: 5}
		if i&2 != 0 {
			u.addrSize = 8
		}
		if i&4 != 0 {
			u.version = 2
		}
		for f := range t[i] {
			t[i][f] = formStep(form(f), &u)
		}
	}
	return t
}()

func formStep(f form, u *unit) step {
	if n := fixedSize(f, u); n >= 0 {
		return stepFixed | step(n)
	}
	if s, ok := varStep(f); ok {
		return s
	}
	return stepUnknown
}

// formSteps returns the unit's table.
func (u *unit) formSteps() *formSteps {
	i := 0
	if u.dwarf64 {
		i |= 1
	}
	if u.addrSize == 8 {
		i |= 2
	}
	if u.version <= 2 {
		i |= 4
	}
	return &formTables[i]
}

// tables holds memory to read tables into.
var tables = sync.Pool{New: func() any { return &abbrevTable{inC: true, keep: true} }}

// parseAbbrevs reads the unit's table for good, and its own entry.
func (u *unit) parseAbbrevs() (*abbrevTable, error) {
	t := tables.Get().(*abbrevTable)
	defer tables.Put(t)
	if err := u.begin(t); err != nil {
		return nil, err
	}
	return t.clone(), nil
}

// clone returns a copy that is no larger than it need be.
func (t *abbrevTable) clone() *abbrevTable {
	return &abbrevTable{
		dense: slices.Clone(t.dense), sparse: t.sparse, attrs: slices.Clone(t.attrs), consts: slices.Clone(t.consts),
		steps: slices.Clone(t.steps), keep: t.keep, inC: t.inC,
	}
}

// begin reads the unit's table into t, whose memory is used again, and the unit's
// own entry. That entry's language decides how types are passed over. Its
// abbreviation can be the last one of the table, so the language is taken to be that
// of the unit before, and the table read again where it is not.
func (u *unit) begin(t *abbrevTable) error {
	b := u.buf(int(u.first))
	root := b.uleb()
	if b.bad || root == 0 {
		return u.img.errorf(".debug_info", u.first, "the unit has no entries")
	}
	for {
		if err := u.readAbbrevs(t, root); err != nil {
			return err
		}
		u.rootOnce.Do(func() { u.rootErr = u.readRoot(t.get(root), t, b) })
		if u.rootErr != nil || t.inC == isC(u.lang) {
			return u.rootErr
		}
		t.inC = isC(u.lang)
	}
}

// readAbbrevs reads the unit's table into t. root is the abbreviation code of the
// unit's entry.
func (u *unit) readAbbrevs(t *abbrevTable, root uint64) error {
	img := u.img
	b := buf{d: img.abbrev, be: img.be}
	b.seek(u.abbrevOff)
	t.dense, t.words, t.sparse = t.dense[:0], append(t.words[:0], wordEnd), nil
	t.attrs, t.consts, t.steps = t.attrs[:0], t.consts[:0], t.steps[:0]
	forms := u.formSteps()
	for {
		at := b.p
		code := b.uleb()
		if b.bad {
			return img.errorf(".debug_abbrev", uint64(at), "the abbreviation table of the unit at .debug_info+%#x does not end", u.off)
		}
		if code == 0 {
			return nil
		}
		a := abbrev{tag: tag(min(b.uleb(), 1<<16-1)), children: b.u8() != 0, attr0: uint32(len(t.attrs))}
		consts := len(t.consts)
		for {
			var name attrName
			var f form
			if p := b.p; p+1 < len(b.d) && b.d[p]|b.d[p+1] < 0x80 { // nearly all
				name, f = attrName(b.d[p]), form(b.d[p+1])
				b.p += 2
			} else {
				name, f = attrName(min(b.uleb(), 1<<16-1)), form(min(b.uleb(), 1<<16-1))
			}
			if b.bad {
				return img.errorf(".debug_abbrev", uint64(at), "abbreviation %d does not end", code)
			}
			if name == 0 && f == 0 {
				break
			}
			at := attrSpec{name: name, form: f}
			if f == formImplicitConst {
				at.konst = uint32(len(t.consts))
				t.consts = append(t.consts, b.sleb())
			}
			t.attrs = append(t.attrs, at)
		}
		a.attrN = uint32(len(t.attrs))
		w, err := u.compile(t, &a, forms)
		if err != nil {
			return img.errorf(".debug_abbrev", uint64(at), "abbreviation %d: %v", code, err)
		}
		if !t.keep && code != root {
			t.attrs, t.consts = t.attrs[:a.attr0], t.consts[:consts]
		}
		if code == uint64(len(t.dense))+1 {
			t.dense = append(t.dense, a)
			t.words = append(t.words, w)
		} else {
			if t.sparse == nil {
				t.sparse = make(map[uint64]*abbrev)
			}
			t.sparse[code] = &a
		}
	}
}

// classify tells what entries of a kind may contain. inC tells that types contain no
// functions.
func (a *abbrev) classify(inC bool) {
	switch a.tag {
	case tagSubprogram, tagInlinedSubroutine:
		a.search, a.record = true, true
	case tagStructType, tagClassType, tagUnionType, tagInterfaceType, tagEnumerationType:
		a.search = !inC
	case tagArrayType, tagSubroutineType, tagCallSite, tagGNUCallSite, tagFormalParameter, tagVariable, tagMember:
	default:
		// Units, blocks, namespaces; and a tag unknown here (try blocks, vendor scopes)
		// may contain anything.
		a.search = true
	}
}

// compile writes the program of an abbreviation, and its word.
func (u *unit) compile(t *abbrevTable, a *abbrev, forms *formSteps) (word, error) {
	a.classify(t.inC)
	a.step0 = uint32(len(t.steps))
	fixed := 0 // bytes since the last step
	pos := 0   // bytes from the first attribute, while all sizes are fixed
	a.sibAt = -1
	for _, at := range t.attrs[a.attr0:a.attrN] {
		switch at.name {
		case attrLowpc, attrEntrypc, attrRanges:
			a.hasPC = true
		case attrInline:
			a.abstract = true
		}
		var s step
		if at.form < 256 {
			s = forms[at.form]
		} else {
			s = formStep(at.form, u)
		}
		size := int(s & stepOperand)
		switch {
		case s == stepUnknown:
			return 0, fmt.Errorf("unknown form %#x", uint32(at.form))
		case a.record && at.name == attrName_ && at.form != formIndirect:
			s = stepName | step(at.form)
		case a.record && (at.name == attrAbstractOrigin || at.name == attrSpecification) && at.form != formIndirect:
			s = stepOrigin | step(at.form)
		case at.name == attrSibling && (s == stepFixed|1 || s == stepFixed|2 || s == stepFixed|4 || s == stepFixed|8 || at.form == formRefUdata) && at.form != formRefAddr:
			if s == stepFixed|4 && pos >= 0 && a.children && !u.img.be {
				a.sibAt = int32(pos)
			}
			if s&stepKind != stepFixed {
				size = 0
			}
			s = stepSibling | step(size)
		}
		switch {
		case pos < 0:
		case forms.fixed(at.form) && pos < 1<<16:
			pos += int(forms[at.form] & stepOperand)
		default:
			pos = -1
		}
		if s&stepKind == stepFixed {
			fixed += size
			continue
		}
		if fixed > 0 {
			t.flush(&fixed)
		}
		t.steps = append(t.steps, s)
		if s&stepKind == stepSibling {
			a.sibN = uint32(len(t.steps))
		}
	}
	t.flush(&fixed)
	a.stepN = uint32(len(t.steps))
	a.size = int32(pos)
	switch {
	case a.sibAt >= 0 && !a.search:
		return wordJump | word(a.sibAt)<<wordShift, nil
	case a.record || pos < 0 || a.children && a.sibN != 0 && !a.search:
		return wordRest, nil
	case a.children:
		return wordOpen | word(pos)<<wordShift, nil
	}
	return wordPlain | word(pos)<<wordShift, nil
}

// flush writes the step over attributes of fixed size.
func (t *abbrevTable) flush(fixed *int) {
	for ; *fixed > 0; *fixed -= min(*fixed, stepOperand) {
		t.steps = append(t.steps, stepFixed|step(min(*fixed, stepOperand)))
	}
}
