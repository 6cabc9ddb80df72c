package dwarfloc

import "fmt"

// attrSpec is one attribute of an abbreviation.
type attrSpec struct {
	name     attrName
	form     form
	implicit int64 // value of DW_FORM_implicit_const
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

// abbrevTable is the abbreviations of one or more units.
type abbrevTable struct {
	dense  []abbrev           // by code-1, while codes come in order from 1
	sparse map[uint64]*abbrev // the others
	attrs  []attrSpec
	steps  []step
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

// parseAbbrevs reads the unit's table. It takes the memory of used, a table that is
// not needed any more, or nil.
func (u *unit) parseAbbrevs(used *abbrevTable) (*abbrevTable, error) {
	img := u.img
	b := buf{d: img.abbrev, be: img.be}
	b.seek(u.abbrevOff)
	t := used
	if t == nil {
		// A kernel's unit has some 300 abbreviations of 6 attributes; a unit of a few
		// bytes has few, or uses few of them.
		n := int(min(u.end-u.off, 2048))
		t = &abbrevTable{
			dense: make([]abbrev, 0, n*320/2048), attrs: make([]attrSpec, 0, n), steps: make([]step, 0, n*3/4),
		}
	}
	*t = abbrevTable{dense: t.dense[:0], attrs: t.attrs[:0], steps: t.steps[:0]}
	for {
		at := b.p
		code := b.uleb()
		if b.bad {
			return nil, img.errorf(".debug_abbrev", uint64(at), "the abbreviation table of the unit at .debug_info+%#x does not end", u.off)
		}
		if code == 0 {
			return t, nil
		}
		a := abbrev{tag: tag(b.uleb()), children: b.u8() != 0, attr0: uint32(len(t.attrs))}
		for {
			name, f := attrName(b.uleb()), form(b.uleb())
			if b.bad {
				return nil, img.errorf(".debug_abbrev", uint64(at), "abbreviation %d does not end", code)
			}
			if name == 0 && f == 0 {
				break
			}
			var implicit int64
			if f == formImplicitConst {
				implicit = b.sleb()
			}
			t.attrs = append(t.attrs, attrSpec{name, f, implicit})
		}
		a.attrN = uint32(len(t.attrs))
		if err := u.compile(t, &a); err != nil {
			return nil, img.errorf(".debug_abbrev", uint64(at), "abbreviation %d: %v", code, err)
		}
		if code == uint64(len(t.dense))+1 {
			t.dense = append(t.dense, a)
		} else {
			if t.sparse == nil {
				t.sparse = make(map[uint64]*abbrev)
			}
			t.sparse[code] = &a
		}
	}
}

// compile writes the program of an abbreviation.
func (u *unit) compile(t *abbrevTable, a *abbrev) error {
	switch a.tag {
	case tagSubprogram, tagInlinedSubroutine:
		a.search, a.record = true, true
	case tagCompileUnit, tagPartialUnit, tagLexicalBlock, tagNamespace, tagModule:
		a.search = true
	case tagStructType, tagClassType, tagUnionType, tagInterfaceType, tagEnumerationType:
		a.search = !isC(u.lang)
	case tagArrayType, tagSubroutineType, tagCallSite, tagGNUCallSite, tagFormalParameter, tagVariable, tagMember:
	default:
		// A tag unknown here (try blocks, vendor scopes) may contain anything.
		a.search = true
	}
	a.step0 = uint32(len(t.steps))
	fixed := 0
	flush := func() {
		for ; fixed > 0; fixed -= min(fixed, stepOperand) {
			t.steps = append(t.steps, stepFixed|step(min(fixed, stepOperand)))
		}
	}
	for _, at := range t.attrs[a.attr0:a.attrN] {
		switch at.name {
		case attrLowpc, attrEntrypc, attrRanges:
			a.hasPC = true
		case attrInline:
			a.abstract = true
		}
		size := fixedSize(at.form, u)
		varying, known := varStep(at.form)
		switch {
		case size < 0 && !known:
			return fmt.Errorf("unknown form %#x", uint32(at.form))
		case a.record && at.name == attrName_ && at.form != formIndirect:
			flush()
			t.steps = append(t.steps, stepName|step(at.form))
		case a.record && (at.name == attrAbstractOrigin || at.name == attrSpecification) && at.form != formIndirect:
			flush()
			t.steps = append(t.steps, stepOrigin|step(at.form))
		case at.name == attrSibling && (size > 0 || at.form == formRefUdata) && at.form != formRefAddr:
			flush()
			t.steps = append(t.steps, stepSibling|step(max(size, 0)))
			a.sibN = uint32(len(t.steps))
		case size >= 0:
			fixed += size
		default:
			flush()
			t.steps = append(t.steps, varying)
		}
	}
	flush()
	a.stepN = uint32(len(t.steps))
	return nil
}
