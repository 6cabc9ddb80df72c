package arch

import "debug/elf"

// Relocation is one type of relocation as compilers use it in debug information
// and frame descriptions: which value goes where.
type Relocation struct {
	Type uint32
	Name string // as the architecture's ABI spells it
	Size int    // bytes that are written; 0: the type does nothing
	Kind RelocationKind
}

// RelocationKind says what a relocation computes from the symbol's address S, the
// addend A and the place P that is written.
type RelocationKind uint8

const (
	// Absolute is S + A.
	Absolute RelocationKind = iota
	// Relative is S + A - P, signed.
	Relative
	// ThreadLocal is S + A with S counted from the start of the section that the symbol
	// is in: where in a block of thread-local storage a variable is.
	ThreadLocal
)

// Relocation returns the relocation of a type, or nil when the table lacks it.
func (a *Arch) Relocation(typ uint32) *Relocation {
	if a == nil {
		return nil
	}
	for i := range a.relocations {
		if r := &a.relocations[i]; r.Type == typ {
			return r
		}
	}
	return nil
}

// RelocationName returns what the ABI calls a type of relocation, also of one that
// the table lacks.
func (a *Arch) RelocationName(typ uint32) string { return a.relocationName(typ) }

// Relocations returns the architecture's table. The caller must not change it.
func (a *Arch) Relocations() []Relocation { return a.relocations }

func amd64RelocationName(typ uint32) string { return elf.R_X86_64(typ).String() }

func arm64RelocationName(typ uint32) string { return elf.R_AARCH64(typ).String() }

// amd64Relocations: System V ABI AMD64 supplement 1.0, table 4.9. PLT32 has the
// meaning of PC32 in a file that no linker has seen.
var amd64Relocations = []Relocation{
	{uint32(elf.R_X86_64_NONE), "R_X86_64_NONE", 0, Absolute},
	{uint32(elf.R_X86_64_64), "R_X86_64_64", 8, Absolute},
	{uint32(elf.R_X86_64_32), "R_X86_64_32", 4, Absolute},
	{uint32(elf.R_X86_64_32S), "R_X86_64_32S", 4, Absolute},
	{uint32(elf.R_X86_64_16), "R_X86_64_16", 2, Absolute},
	{uint32(elf.R_X86_64_8), "R_X86_64_8", 1, Absolute},
	{uint32(elf.R_X86_64_PC64), "R_X86_64_PC64", 8, Relative},
	{uint32(elf.R_X86_64_PC32), "R_X86_64_PC32", 4, Relative},
	{uint32(elf.R_X86_64_PLT32), "R_X86_64_PLT32", 4, Relative},
	{uint32(elf.R_X86_64_PC16), "R_X86_64_PC16", 2, Relative},
	{uint32(elf.R_X86_64_PC8), "R_X86_64_PC8", 1, Relative},
	{uint32(elf.R_X86_64_DTPOFF64), "R_X86_64_DTPOFF64", 8, ThreadLocal},
	{uint32(elf.R_X86_64_DTPOFF32), "R_X86_64_DTPOFF32", 4, ThreadLocal},
}

// arm64Relocations: ELF for the Arm 64-bit Architecture 2023Q3, "Data relocations"
// and "Dynamic relocations".
var arm64Relocations = []Relocation{
	{uint32(elf.R_AARCH64_NONE), "R_AARCH64_NONE", 0, Absolute},
	{uint32(elf.R_AARCH64_NULL), "R_AARCH64_NULL", 0, Absolute},
	{uint32(elf.R_AARCH64_ABS64), "R_AARCH64_ABS64", 8, Absolute},
	{uint32(elf.R_AARCH64_ABS32), "R_AARCH64_ABS32", 4, Absolute},
	{uint32(elf.R_AARCH64_ABS16), "R_AARCH64_ABS16", 2, Absolute},
	{uint32(elf.R_AARCH64_PREL64), "R_AARCH64_PREL64", 8, Relative},
	{uint32(elf.R_AARCH64_PREL32), "R_AARCH64_PREL32", 4, Relative},
	{uint32(elf.R_AARCH64_PREL16), "R_AARCH64_PREL16", 2, Relative},
	{uint32(elf.R_AARCH64_TLS_DTPREL64), "R_AARCH64_TLS_DTPREL64", 8, ThreadLocal},
}
