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
)

// relocationTable has the relocations of one architecture.
type relocationTable struct {
	types []relocation
	name  func(typ uint32) string // also for types that are not in the table
}

// relocationTables has the tables by architecture name.
var relocationTables = map[string]relocationTable{
	"amd64": {amd64Relocations, func(typ uint32) string { return elf.R_X86_64(typ).String() }},
	"arm64": {arm64Relocations, func(typ uint32) string { return elf.R_AARCH64(typ).String() }},
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
