package dwarfloc

// Tags, attributes, forms and encodings of DWARF 5 (section 7.5) and the GNU
// extensions in use, as far as this package reads them.

type tag uint16

const (
	tagArrayType         tag = 0x01
	tagClassType         tag = 0x02
	tagEnumerationType   tag = 0x04
	tagFormalParameter   tag = 0x05
	tagLexicalBlock      tag = 0x0b
	tagMember            tag = 0x0d
	tagPointerType       tag = 0x0f
	tagReferenceType     tag = 0x10
	tagCompileUnit       tag = 0x11
	tagStructType        tag = 0x13
	tagSubroutineType    tag = 0x15
	tagTypedef           tag = 0x16
	tagUnionType         tag = 0x17
	tagUnspecifiedParams tag = 0x18
	tagInlinedSubroutine tag = 0x1d
	tagModule            tag = 0x1e
	tagSubrangeType      tag = 0x21
	tagBaseType          tag = 0x24
	tagConstType         tag = 0x26
	tagSubprogram        tag = 0x2e
	tagVariable          tag = 0x34
	tagVolatileType      tag = 0x35
	tagRestrictType      tag = 0x37
	tagInterfaceType     tag = 0x38
	tagNamespace         tag = 0x39
	tagUnspecifiedType   tag = 0x3b
	tagPartialUnit       tag = 0x3c
	tagInheritance       tag = 0x1c
	tagRvalueRefType     tag = 0x42
	tagTemplateAlias     tag = 0x43
	tagAtomicType        tag = 0x47
	tagCallSite          tag = 0x48
	tagSkeletonUnit      tag = 0x4a
	tagGNUCallSite       tag = 0x4109
)

type attrName uint16

const (
	attrSibling        attrName = 0x01
	attrLocation       attrName = 0x02
	attrName_          attrName = 0x03
	attrByteSize       attrName = 0x0b
	attrBitSize        attrName = 0x0d
	attrStmtList       attrName = 0x10
	attrLowpc          attrName = 0x11
	attrHighpc         attrName = 0x12
	attrLanguage       attrName = 0x13
	attrCompDir        attrName = 0x1b
	attrConstValue     attrName = 0x1c
	attrInline         attrName = 0x20
	attrProducer       attrName = 0x25
	attrUpperBound     attrName = 0x2f
	attrAbstractOrigin attrName = 0x31
	attrArtificial     attrName = 0x34
	attrCount          attrName = 0x37
	attrDeclFile       attrName = 0x3a
	attrDeclLine       attrName = 0x3b
	attrDeclaration    attrName = 0x3c
	attrEncoding       attrName = 0x3e
	attrExternal       attrName = 0x3f
	attrFrameBase      attrName = 0x40
	attrSpecification  attrName = 0x47
	attrType           attrName = 0x49
	attrEntrypc        attrName = 0x52
	attrRanges         attrName = 0x55
	attrCallFile       attrName = 0x58
	attrCallLine       attrName = 0x59
	attrSignature      attrName = 0x69
	attrLinkageName    attrName = 0x6e
	attrStrOffsetsBase attrName = 0x72
	attrAddrBase       attrName = 0x73
	attrRnglistsBase   attrName = 0x74
	attrDwoName        attrName = 0x76
	attrLoclistsBase   attrName = 0x8c
	attrGNULocviews    attrName = 0x2137
	attrGNUEntryView   attrName = 0x2138
)

type form uint16

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

// Unit header types, DWARF 5 section 7.5.1.
const (
	unitCompile      = 0x01
	unitType         = 0x02
	unitPartial      = 0x03
	unitSkeleton     = 0x04
	unitSplitCompile = 0x05
	unitSplitType    = 0x06
)

// Base type encodings, DWARF 5 section 7.8.
const (
	encAddress      = 0x01
	encBoolean      = 0x02
	encComplexFloat = 0x03
	encFloat        = 0x04
	encSigned       = 0x05
	encSignedChar   = 0x06
	encUnsigned     = 0x07
	encUnsignedChar = 0x08
	encUTF          = 0x10
)

// Location list entry kinds, DWARF 5 section 7.7.3, and the GNU view pair.
const (
	lleEndOfList       = 0x00
	lleBaseAddressx    = 0x01
	lleStartxEndx      = 0x02
	lleStartxLength    = 0x03
	lleOffsetPair      = 0x04
	lleDefaultLocation = 0x05
	lleBaseAddress     = 0x06
	lleStartEnd        = 0x07
	lleStartLength     = 0x08
	lleGNUViewPair     = 0x09
)

// Range list entry kinds, DWARF 5 section 7.25.
const (
	rleEndOfList    = 0x00
	rleBaseAddressx = 0x01
	rleStartxEndx   = 0x02
	rleStartxLength = 0x03
	rleOffsetPair   = 0x04
	rleBaseAddress  = 0x05
	rleStartEnd     = 0x06
	rleStartLength  = 0x07
)

// isC tells languages without member functions, in which a type's entries need
// not be searched for functions: C89, C, C99, C11, C17 and assemblers.
func isC(lang uint64) bool {
	switch lang {
	case 0x01, 0x02, 0x0c, 0x1d, 0x2c, 0x8001:
		return true
	}
	return false
}
