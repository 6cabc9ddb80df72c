package dw

import (
	"debug/dwarf"
	"fmt"
	"strings"
	"unicode"
)

// The tags, attributes, forms and encodings that this package reads: those of
// DWARF 5 (section 7.5) and GNU extensions.

// Tag is the kind of an entry, DW_TAG_*.
type Tag uint16

// Tags, DWARF 5 table 7.3.
const (
	TagArrayType         Tag = 0x01
	TagClassType         Tag = 0x02
	TagEnumerationType   Tag = 0x04
	TagFormalParameter   Tag = 0x05
	TagLexicalBlock      Tag = 0x0b
	TagMember            Tag = 0x0d
	TagPointerType       Tag = 0x0f
	TagReferenceType     Tag = 0x10
	TagCompileUnit       Tag = 0x11
	TagStructType        Tag = 0x13
	TagSubroutineType    Tag = 0x15
	TagTypedef           Tag = 0x16
	TagUnionType         Tag = 0x17
	TagUnspecifiedParams Tag = 0x18
	TagVariant           Tag = 0x19
	TagInheritance       Tag = 0x1c
	TagInlinedSubroutine Tag = 0x1d
	TagModule            Tag = 0x1e
	TagPtrToMember       Tag = 0x1f
	TagSubrangeType      Tag = 0x21
	TagBaseType          Tag = 0x24
	TagConstType         Tag = 0x26
	TagEnumerator        Tag = 0x28
	TagSubprogram        Tag = 0x2e
	TagTemplateTypeParam Tag = 0x2f
	TagTemplateValue     Tag = 0x30
	TagVariantPart       Tag = 0x33
	TagVariable          Tag = 0x34
	TagVolatileType      Tag = 0x35
	TagRestrictType      Tag = 0x37
	TagInterfaceType     Tag = 0x38
	TagNamespace         Tag = 0x39
	TagUnspecifiedType   Tag = 0x3b
	TagPartialUnit       Tag = 0x3c
	TagImportedUnit      Tag = 0x3d
	TagRvalueRefType     Tag = 0x42
	TagTemplateAlias     Tag = 0x43
	TagAtomicType        Tag = 0x47
	TagCallSite          Tag = 0x48
	TagCallParameter     Tag = 0x49
	TagSkeletonUnit      Tag = 0x4a
	TagGNUCallSite       Tag = 0x4109
	TagGNUCallParameter  Tag = 0x410a
)

// Attr is an attribute's name, DW_AT_*.
type Attr uint16

// String returns DWARF's name: "DW_AT_low_pc".
func (a Attr) String() string {
	switch a {
	case AttrGNULocviews:
		return "DW_AT_GNU_locviews"
	case AttrGNUEntryView:
		return "DW_AT_GNU_entry_view"
	}
	name := dwarfName(dwarf.Attr(a).String())
	if pc, ok := strings.CutSuffix(name, "pc"); ok {
		name = pc + "_pc" // debug/dwarf has Lowpc, Highpc and Entrypc
	}
	return "DW_AT_" + name
}

// dwarfName turns a name of package debug/dwarf, "AbstractOrigin", into DWARF's own.
func dwarfName(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 && !unicode.IsUpper(rune(name[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Attributes, DWARF 5 table 7.5, and GNU extensions.
const (
	AttrSibling        Attr = 0x01
	AttrLocation       Attr = 0x02
	AttrName           Attr = 0x03
	AttrByteSize       Attr = 0x0b
	AttrBitOffset      Attr = 0x0c
	AttrBitSize        Attr = 0x0d
	AttrStmtList       Attr = 0x10
	AttrLowpc          Attr = 0x11
	AttrHighpc         Attr = 0x12
	AttrLanguage       Attr = 0x13
	AttrDiscr          Attr = 0x15
	AttrDiscrValue     Attr = 0x16
	AttrCompDir        Attr = 0x1b
	AttrImport         Attr = 0x18
	AttrConstValue     Attr = 0x1c
	AttrContainingType Attr = 0x1d
	AttrInline         Attr = 0x20
	AttrProducer       Attr = 0x25
	AttrUpperBound     Attr = 0x2f
	AttrAbstractOrigin Attr = 0x31
	AttrArtificial     Attr = 0x34
	AttrCallingConv    Attr = 0x36
	AttrCount          Attr = 0x37
	AttrDataMemberLoc  Attr = 0x38
	AttrDeclColumn     Attr = 0x39
	AttrDeclFile       Attr = 0x3a
	AttrDeclLine       Attr = 0x3b
	AttrDeclaration    Attr = 0x3c
	AttrEncoding       Attr = 0x3e
	AttrExternal       Attr = 0x3f
	AttrFrameBase      Attr = 0x40
	AttrSpecification  Attr = 0x47
	AttrStaticLink     Attr = 0x48
	AttrType           Attr = 0x49
	AttrVarParameter   Attr = 0x4b // DW_AT_variable_parameter; Go marks results with it
	AttrEntrypc        Attr = 0x52
	AttrRanges         Attr = 0x55
	AttrCallColumn     Attr = 0x57
	AttrCallFile       Attr = 0x58
	AttrCallLine       Attr = 0x59
	AttrSignature      Attr = 0x69
	AttrDataBitOffset  Attr = 0x6b
	AttrLinkageName    Attr = 0x6e
	AttrStrOffsetsBase Attr = 0x72
	AttrAddrBase       Attr = 0x73
	AttrRnglistsBase   Attr = 0x74
	AttrDwoName        Attr = 0x76
	AttrCallReturnPC   Attr = 0x7d
	AttrCallValue      Attr = 0x7e
	AttrCallOrigin     Attr = 0x7f
	AttrCallParameter  Attr = 0x80
	AttrCallPC         Attr = 0x81
	AttrCallTailCall   Attr = 0x82
	AttrCallTarget     Attr = 0x83
	AttrCallDataValue  Attr = 0x86
	AttrNoreturn       Attr = 0x87
	AttrLoclistsBase   Attr = 0x8c
	AttrGNUCallValue   Attr = 0x2111
	AttrGNUDataValue   Attr = 0x2112
	AttrGNUCallTarget  Attr = 0x2113
	AttrGNUTailCall    Attr = 0x2115

	// DWARF 2 and 3 have no AttrLinkageName. Compilers write this in its place (GCC and LLVM do).
	attrMIPSLinkageName Attr = 0x2007
	AttrGNUDwoName      Attr = 0x2130
	AttrGNUDwoID        Attr = 0x2131
	AttrGNURangesBase   Attr = 0x2132
	AttrGNUAddrBase     Attr = 0x2133
	AttrGNULocviews     Attr = 0x2137
	AttrGNUEntryView    Attr = 0x2138
)

// Form is how an attribute's value is written, DW_FORM_*.
type Form uint16

// String returns the form's number: "form 0x17".
func (f Form) String() string { return fmt.Sprintf("form %#x", uint16(f)) }

// Forms, DWARF 5 table 7.6, and GNU extensions.
const (
	FormAddr          Form = 0x01
	FormBlock2        Form = 0x03
	FormBlock4        Form = 0x04
	FormData2         Form = 0x05
	FormData4         Form = 0x06
	FormData8         Form = 0x07
	FormString        Form = 0x08
	FormBlock         Form = 0x09
	FormBlock1        Form = 0x0a
	FormData1         Form = 0x0b
	FormFlag          Form = 0x0c
	FormSdata         Form = 0x0d
	FormStrp          Form = 0x0e
	FormUdata         Form = 0x0f
	FormRefAddr       Form = 0x10
	FormRef1          Form = 0x11
	FormRef2          Form = 0x12
	FormRef4          Form = 0x13
	FormRef8          Form = 0x14
	FormRefUdata      Form = 0x15
	FormIndirect      Form = 0x16
	FormSecOffset     Form = 0x17
	FormExprloc       Form = 0x18
	FormFlagPresent   Form = 0x19
	FormStrx          Form = 0x1a
	FormAddrx         Form = 0x1b
	FormRefSup4       Form = 0x1c
	FormStrpSup       Form = 0x1d
	FormData16        Form = 0x1e
	FormLineStrp      Form = 0x1f
	FormRefSig8       Form = 0x20
	FormImplicitConst Form = 0x21
	FormLoclistx      Form = 0x22
	FormRnglistx      Form = 0x23
	FormRefSup8       Form = 0x24
	FormStrx1         Form = 0x25
	FormStrx2         Form = 0x26
	FormStrx3         Form = 0x27
	FormStrx4         Form = 0x28
	FormAddrx1        Form = 0x29
	FormAddrx2        Form = 0x2a
	FormAddrx3        Form = 0x2b
	FormAddrx4        Form = 0x2c
	FormGNUAddrIndex  Form = 0x1f01
	FormGNUStrIndex   Form = 0x1f02
	FormGNURefAlt     Form = 0x1f20
	FormGNUStrpAlt    Form = 0x1f21
)

// Unit header types, DWARF 5 section 7.5.1.
const (
	UnitCompile      = 0x01
	UnitType         = 0x02
	UnitPartial      = 0x03
	UnitSkeleton     = 0x04
	UnitSplitCompile = 0x05
	UnitSplitType    = 0x06
)

// Base type encodings, DWARF 5 section 7.8.
const (
	EncAddress      = 0x01
	EncBoolean      = 0x02
	EncComplexFloat = 0x03
	EncFloat        = 0x04
	EncSigned       = 0x05
	EncSignedChar   = 0x06
	EncUnsigned     = 0x07
	EncUnsignedChar = 0x08
	EncUTF          = 0x10
)

// Location list entry kinds, DWARF 5 section 7.7.3, and the GNU view pair.
const (
	LleEndOfList       = 0x00
	LleBaseAddressx    = 0x01
	LleStartxEndx      = 0x02
	LleStartxLength    = 0x03
	LleOffsetPair      = 0x04
	LleDefaultLocation = 0x05
	LleBaseAddress     = 0x06
	LleStartEnd        = 0x07
	LleStartLength     = 0x08
	LleGNUViewPair     = 0x09
)

// Kinds of entries of .debug_loc.dwo, of GNU's extension of DWARF 4 for split units
// (https://gcc.gnu.org/wiki/DebugFission; GCC 4.7 to 10 by default, later with -gdwarf-4).
const (
	gnuLleEndOfList   = 0x00
	gnuLleBaseAddress = 0x01 // an index in .debug_addr
	gnuLleStartEnd    = 0x02 // two indices
	gnuLleStartLength = 0x03 // an index, and four bytes
	gnuLleOffsetPair  = 0x04 // two times four bytes
)

// Range list entry kinds, DWARF 5 section 7.25.
const (
	RleEndOfList    = 0x00
	RleBaseAddressx = 0x01
	RleStartxEndx   = 0x02
	RleStartxLength = 0x03
	RleOffsetPair   = 0x04
	RleBaseAddress  = 0x05
	RleStartEnd     = 0x06
	RleStartLength  = 0x07
)

// Values of DW_AT_calling_convention, DWARF 5 table 7.18.
const (
	CallNoCall      = 0x03 // not by the convention: the compiler changed the signature
	CallByReference = 0x04
	CallByValue     = 0x05
)

// IsCPlusPlus reports whether a language is C++, of any year.
func IsCPlusPlus(lang uint64) bool {
	switch lang {
	case 0x04, 0x1a, 0x21, 0x2b, 0x3a:
		return true
	}
	return false
}

// Languages, DWARF 5 table 7.17.
const (
	LangGo   = 0x16
	LangC    = 0x02
	LangRust = 0x1c

	LangAssembler = 0x8001 // DW_LANG_Mips_Assembler, which all assemblers write
)

// IsC reports whether a language has no member functions, so that the entries of its
// types need not be searched for any: C89, C, C99, C11, C17 and assemblers.
func IsC(lang uint64) bool {
	switch lang {
	case 0x01, 0x02, 0x0c, 0x1d, 0x2c, 0x8001:
		return true
	}
	return false
}
