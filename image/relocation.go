package image

import (
	"debug/elf"
)

// relocation is one type of relocation as compilers use it in debug information
// and frame descriptions: which value goes where.
type relocation struct {
	typ  uint32
	name string // as the architecture's ABI spells it
	size int    // bytes that are written; 0: the type does nothing
	kind relocationKind
}

// relocationKind says what a relocation computes from the symbol's address S, the
// addend A and the place P that is written.
type relocationKind uint8

const (
	// absolute is S + A.
	absolute relocationKind = iota
	// relative is S + A - P, signed.
	relative
	// threadLocal is S + A with S counted from the start of the section that the symbol
	// is in: where a variable is in a block of thread-local storage.
	threadLocal
)

// relocationTable is the relocations of one architecture.
type relocationTable struct {
	types []relocation
	name  func(typ uint32) string // also of types that the table lacks
}

// relocationTables are by the name of the architecture.
var relocationTables = map[string]relocationTable{
	"amd64": {amd64Relocations, func(typ uint32) string { return elf.R_X86_64(typ).String() }},
	"arm64": {arm64Relocations, func(typ uint32) string { return elf.R_AARCH64(typ).String() }},
}

// amd64Relocations: System V ABI AMD64 supplement 1.0, table 4.9. PLT32 has the
// meaning of PC32 in a file that no linker has seen.
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
