package image

import (
	"debug/elf"
)

// relocation is a type of relocation that compilers use in debug information and frame
// descriptions.
type relocation struct {
	typ  uint32
	name string // the ABI's name
	size int    // bytes to write; 0: the type does nothing
	kind relocationKind
}

// relocationKind says what a relocation computes from the symbol's address S, the
// addend A and the address P of the bytes to write.
type relocationKind uint8

const (
	// absolute is S + A.
	absolute relocationKind = iota
	// relative is S + A - P, signed.
	relative
	// threadLocal is S + A with S counted from the start of the symbol's section: a
	// variable's offset in a block of thread-local storage.
	threadLocal

	// The following are for differences of addresses, which linkers of RISC-V and LoongArch change: two
	// relocations at the same place, each of which changes what is there.

	add          // what is there + S + A
	subtract     // what is there - (S + A)
	set          // S + A, of which only the low bits count
	setSix       // set in the low six bits
	addSix       // add in the low six bits
	subtractSix  // subtract in the low six bits
	setULEB      // set in a LEB128 number, with as many bytes
	addULEB      // add in a LEB128 number
	subtractULEB // subtract in a LEB128 number
)

// isULEB reports whether the relocation is of a LEB128 number.
func (k relocationKind) isULEB() bool { return k >= setULEB }

// relocationTable has the relocations of one architecture.
type relocationTable struct {
	types []relocation
	name  func(typ uint32) string // also for types that are not in the table
	// inPlace is set if there are relocations without addends (SHT_REL), whose addends are the
	// values that they replace.
	inPlace bool
}

// relocationTables has the tables by architecture name.
var relocationTables = map[string]relocationTable{
	"amd64":    {amd64Relocations, func(typ uint32) string { return elf.R_X86_64(typ).String() }, false},
	"arm64":    {arm64Relocations, func(typ uint32) string { return elf.R_AARCH64(typ).String() }, false},
	"armhf":    {armRelocations, func(typ uint32) string { return elf.R_ARM(typ).String() }, true},
	"i386":     {i386Relocations, func(typ uint32) string { return elf.R_386(typ).String() }, true},
	"loong64":  {loongRelocations, func(typ uint32) string { return elf.R_LARCH(typ).String() }, false},
	"mips64el": {mipsRelocations, mipsRelocationName, false},
	"ppc64el":  {ppc64Relocations, func(typ uint32) string { return elf.R_PPC64(typ).String() }, false},
	"riscv64":  {riscvRelocations, riscvRelocationName, false},
	"s390x":    {s390Relocations, func(typ uint32) string { return elf.R_390(typ).String() }, false},
}

// amd64Relocations: System V ABI AMD64 supplement 1.0, table 4.9. Before linking,
// PLT32 means the same as PC32.
var amd64Relocations = []relocation{
	{uint32(elf.R_X86_64_NONE), "R_X86_64_NONE", 0, absolute},
	{uint32(elf.R_X86_64_64), "R_X86_64_64", 8, absolute},
	{uint32(elf.R_X86_64_32), "R_X86_64_32", 4, absolute},
	{uint32(elf.R_X86_64_32S), "R_X86_64_32S", 4, absolute},
	{uint32(elf.R_X86_64_16), "R_X86_64_16", 2, absolute},
	{uint32(elf.R_X86_64_8), "R_X86_64_8", 1, absolute},
	{uint32(elf.R_X86_64_PC64), "R_X86_64_PC64", 8, relative},
	{uint32(elf.R_X86_64_PC32), "R_X86_64_PC32", 4, relative},
	{uint32(elf.R_X86_64_PLT32), "R_X86_64_PLT32", 4, relative},
	{uint32(elf.R_X86_64_PC16), "R_X86_64_PC16", 2, relative},
	{uint32(elf.R_X86_64_PC8), "R_X86_64_PC8", 1, relative},
	{uint32(elf.R_X86_64_DTPOFF64), "R_X86_64_DTPOFF64", 8, threadLocal},
	{uint32(elf.R_X86_64_DTPOFF32), "R_X86_64_DTPOFF32", 4, threadLocal},
}

// arm64Relocations: ELF for the Arm 64-bit Architecture 2023Q3, "Data relocations"
// and "Dynamic relocations".
var arm64Relocations = []relocation{
	{uint32(elf.R_AARCH64_NONE), "R_AARCH64_NONE", 0, absolute},
	{uint32(elf.R_AARCH64_NULL), "R_AARCH64_NULL", 0, absolute},
	{uint32(elf.R_AARCH64_ABS64), "R_AARCH64_ABS64", 8, absolute},
	{uint32(elf.R_AARCH64_ABS32), "R_AARCH64_ABS32", 4, absolute},
	{uint32(elf.R_AARCH64_ABS16), "R_AARCH64_ABS16", 2, absolute},
	{uint32(elf.R_AARCH64_PREL64), "R_AARCH64_PREL64", 8, relative},
	{uint32(elf.R_AARCH64_PREL32), "R_AARCH64_PREL32", 4, relative},
	{uint32(elf.R_AARCH64_PREL16), "R_AARCH64_PREL16", 2, relative},
	{uint32(elf.R_AARCH64_TLS_DTPREL64), "R_AARCH64_TLS_DTPREL64", 8, threadLocal},
}

// armRelocations: ELF for the Arm Architecture 2023Q3, "Relocation codes table".
var armRelocations = []relocation{
	{uint32(elf.R_ARM_NONE), "R_ARM_NONE", 0, absolute},
	{uint32(elf.R_ARM_ABS32), "R_ARM_ABS32", 4, absolute},
	{uint32(elf.R_ARM_ABS16), "R_ARM_ABS16", 2, absolute},
	{uint32(elf.R_ARM_ABS8), "R_ARM_ABS8", 1, absolute},
	{uint32(elf.R_ARM_REL32), "R_ARM_REL32", 4, relative},
	{uint32(elf.R_ARM_TLS_LDO32), "R_ARM_TLS_LDO32", 4, threadLocal},
}

// i386Relocations: System V ABI Intel386 supplement 1.1, table 4.9. Before linking, PLT32 means
// the same as PC32.
var i386Relocations = []relocation{
	{uint32(elf.R_386_NONE), "R_386_NONE", 0, absolute},
	{uint32(elf.R_386_32), "R_386_32", 4, absolute},
	{uint32(elf.R_386_16), "R_386_16", 2, absolute},
	{uint32(elf.R_386_8), "R_386_8", 1, absolute},
	{uint32(elf.R_386_PC32), "R_386_PC32", 4, relative},
	{uint32(elf.R_386_PLT32), "R_386_PLT32", 4, relative},
	{uint32(elf.R_386_PC16), "R_386_PC16", 2, relative},
	{uint32(elf.R_386_PC8), "R_386_PC8", 1, relative},
	{uint32(elf.R_386_TLS_LDO_32), "R_386_TLS_LDO_32", 4, threadLocal},
}

// mipsRelocations: 64-bit ELF Object File Specification for MIPS, table 32, and GNU's for
// thread-local storage.
var mipsRelocations = []relocation{
	{uint32(elf.R_MIPS_NONE), "R_MIPS_NONE", 0, absolute},
	{uint32(elf.R_MIPS_32), "R_MIPS_32", 4, absolute},
	{uint32(elf.R_MIPS_64), "R_MIPS_64", 8, absolute},
	{uint32(elf.R_MIPS_TLS_DTPREL32), "R_MIPS_TLS_DTPREL32", 4, threadLocal},
	{uint32(elf.R_MIPS_TLS_DTPREL64), "R_MIPS_TLS_DTPREL64", 8, threadLocal},
	{mipsPC32, "R_MIPS_PC32", 4, relative},
}

// mipsPC32 is GNU's R_MIPS_PC32 (include/elf/mips.h in binutils), which debug/elf does not know.
const mipsPC32 = 248

func mipsRelocationName(typ uint32) string {
	if typ == mipsPC32 {
		return "R_MIPS_PC32"
	}
	return elf.R_MIPS(typ).String()
}

// ppc64Relocations: 64-Bit ELF V2 ABI Specification for Power 1.5, table 3.20.
var ppc64Relocations = []relocation{
	{uint32(elf.R_PPC64_NONE), "R_PPC64_NONE", 0, absolute},
	{uint32(elf.R_PPC64_ADDR64), "R_PPC64_ADDR64", 8, absolute},
	{uint32(elf.R_PPC64_ADDR32), "R_PPC64_ADDR32", 4, absolute},
	{uint32(elf.R_PPC64_ADDR16), "R_PPC64_ADDR16", 2, absolute},
	{uint32(elf.R_PPC64_UADDR64), "R_PPC64_UADDR64", 8, absolute},
	{uint32(elf.R_PPC64_UADDR32), "R_PPC64_UADDR32", 4, absolute},
	{uint32(elf.R_PPC64_REL64), "R_PPC64_REL64", 8, relative},
	{uint32(elf.R_PPC64_REL32), "R_PPC64_REL32", 4, relative},
	{uint32(elf.R_PPC64_DTPREL64), "R_PPC64_DTPREL64", 8, threadLocal},
}

// riscvRelocations: RISC-V ABIs Specification 1.0, "Relocations".
var riscvRelocations = []relocation{
	{uint32(elf.R_RISCV_NONE), "R_RISCV_NONE", 0, absolute},
	{uint32(elf.R_RISCV_64), "R_RISCV_64", 8, absolute},
	{uint32(elf.R_RISCV_32), "R_RISCV_32", 4, absolute},
	{uint32(elf.R_RISCV_32_PCREL), "R_RISCV_32_PCREL", 4, relative},
	{uint32(elf.R_RISCV_TLS_DTPREL32), "R_RISCV_TLS_DTPREL32", 4, threadLocal},
	{uint32(elf.R_RISCV_TLS_DTPREL64), "R_RISCV_TLS_DTPREL64", 8, threadLocal},
	{uint32(elf.R_RISCV_ADD8), "R_RISCV_ADD8", 1, add},
	{uint32(elf.R_RISCV_ADD16), "R_RISCV_ADD16", 2, add},
	{uint32(elf.R_RISCV_ADD32), "R_RISCV_ADD32", 4, add},
	{uint32(elf.R_RISCV_ADD64), "R_RISCV_ADD64", 8, add},
	{uint32(elf.R_RISCV_SUB8), "R_RISCV_SUB8", 1, subtract},
	{uint32(elf.R_RISCV_SUB16), "R_RISCV_SUB16", 2, subtract},
	{uint32(elf.R_RISCV_SUB32), "R_RISCV_SUB32", 4, subtract},
	{uint32(elf.R_RISCV_SUB64), "R_RISCV_SUB64", 8, subtract},
	{uint32(elf.R_RISCV_SET8), "R_RISCV_SET8", 1, set},
	{uint32(elf.R_RISCV_SET16), "R_RISCV_SET16", 2, set},
	{uint32(elf.R_RISCV_SET32), "R_RISCV_SET32", 4, set},
	{uint32(elf.R_RISCV_SET6), "R_RISCV_SET6", 1, setSix},
	{uint32(elf.R_RISCV_SUB6), "R_RISCV_SUB6", 1, subtractSix},
	{riscvSetULEB, "R_RISCV_SET_ULEB128", 1, setULEB},
	{riscvSubULEB, "R_RISCV_SUB_ULEB128", 1, subtractULEB},
	// The linker may shorten code that another relocation names: this file's has not been.
	{uint32(elf.R_RISCV_RELAX), "R_RISCV_RELAX", 0, absolute},
}

// Types that debug/elf does not know.
const (
	riscvSetULEB = 60
	riscvSubULEB = 61
)

func riscvRelocationName(typ uint32) string {
	switch typ {
	case riscvSetULEB:
		return "R_RISCV_SET_ULEB128"
	case riscvSubULEB:
		return "R_RISCV_SUB_ULEB128"
	}
	return elf.R_RISCV(typ).String()
}

// loongRelocations: LoongArch ABIs 2.30, "ELF for the LoongArch Architecture", relocation types. What is
// added to and taken from is in the section, as on RISC-V.
var loongRelocations = []relocation{
	{uint32(elf.R_LARCH_NONE), "R_LARCH_NONE", 0, absolute},
	{uint32(elf.R_LARCH_32), "R_LARCH_32", 4, absolute},
	{uint32(elf.R_LARCH_64), "R_LARCH_64", 8, absolute},
	{uint32(elf.R_LARCH_32_PCREL), "R_LARCH_32_PCREL", 4, relative},
	{uint32(elf.R_LARCH_64_PCREL), "R_LARCH_64_PCREL", 8, relative},
	{uint32(elf.R_LARCH_TLS_DTPREL32), "R_LARCH_TLS_DTPREL32", 4, threadLocal},
	{uint32(elf.R_LARCH_TLS_DTPREL64), "R_LARCH_TLS_DTPREL64", 8, threadLocal},
	{uint32(elf.R_LARCH_ADD6), "R_LARCH_ADD6", 1, addSix},
	{uint32(elf.R_LARCH_ADD8), "R_LARCH_ADD8", 1, add},
	{uint32(elf.R_LARCH_ADD16), "R_LARCH_ADD16", 2, add},
	{uint32(elf.R_LARCH_ADD24), "R_LARCH_ADD24", 3, add},
	{uint32(elf.R_LARCH_ADD32), "R_LARCH_ADD32", 4, add},
	{uint32(elf.R_LARCH_ADD64), "R_LARCH_ADD64", 8, add},
	{uint32(elf.R_LARCH_SUB6), "R_LARCH_SUB6", 1, subtractSix},
	{uint32(elf.R_LARCH_SUB8), "R_LARCH_SUB8", 1, subtract},
	{uint32(elf.R_LARCH_SUB16), "R_LARCH_SUB16", 2, subtract},
	{uint32(elf.R_LARCH_SUB24), "R_LARCH_SUB24", 3, subtract},
	{uint32(elf.R_LARCH_SUB32), "R_LARCH_SUB32", 4, subtract},
	{uint32(elf.R_LARCH_SUB64), "R_LARCH_SUB64", 8, subtract},
	{uint32(elf.R_LARCH_ADD_ULEB128), "R_LARCH_ADD_ULEB128", 1, addULEB},
	{uint32(elf.R_LARCH_SUB_ULEB128), "R_LARCH_SUB_ULEB128", 1, subtractULEB},
	// The linker may shorten code that another relocation names: this file's has not been.
	{uint32(elf.R_LARCH_RELAX), "R_LARCH_RELAX", 0, absolute},
}

// s390Relocations: ELF ABI s390x Supplement 1.6, table 2.6.
var s390Relocations = []relocation{
	{uint32(elf.R_390_NONE), "R_390_NONE", 0, absolute},
	{uint32(elf.R_390_64), "R_390_64", 8, absolute},
	{uint32(elf.R_390_32), "R_390_32", 4, absolute},
	{uint32(elf.R_390_16), "R_390_16", 2, absolute},
	{uint32(elf.R_390_8), "R_390_8", 1, absolute},
	{uint32(elf.R_390_PC64), "R_390_PC64", 8, relative},
	{uint32(elf.R_390_PC32), "R_390_PC32", 4, relative},
	{uint32(elf.R_390_PC16), "R_390_PC16", 2, relative},
	{uint32(elf.R_390_TLS_LDO64), "R_390_TLS_LDO64", 8, threadLocal},
	{uint32(elf.R_390_TLS_LDO32), "R_390_TLS_LDO32", 4, threadLocal},
}
