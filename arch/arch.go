// Package arch describes processor architectures as data: which DWARF number
// belongs to which register, what the register is called, and at which byte of
// struct pt_regs a BPF program finds it. Relocations are in package image, and what
// instructions do is in internal/insn: CONTRIBUTING.md lists what a new architecture
// needs.
package arch

import (
	"debug/elf"
	"fmt"
	"strconv"
	"strings"
)

// Register is one register of an architecture.
type Register struct {
	DWARF uint16 // number in the architecture's DWARF register mapping
	Name  string // name as the architecture's manual spells it, without a sigil
	// KernelName is what the kernel's kprobe and uprobe events call the register: "ax"
	// for rax. It is "" for one that they do not know.
	KernelName string
	// Offset is in bytes from the start of struct pt_regs, or -1 if that does not hold
	// the register.
	Offset int
	// Vector is set for floating point and vector registers. The kernel does not save
	// them for a probe, so no BPF program can read them.
	Vector bool
}

// Arch is one architecture: the numbers needed to read its DWARF and to fetch its registers
// in BPF.
type Arch struct {
	Name     string // as Debian calls it: "amd64", "arm64"
	Machine  elf.Machine
	WordSize int    // bytes in a general register and in an address
	Sigil    string // written before a register's name: "%" on x86
	// Source names where the table comes from: the psABI's register mapping and
	// the kernel's struct pt_regs.
	Source string

	// GlobDat is the type of the relocations in executables and libraries that give an
	// entry of the global offset table a symbol's address.
	GlobDat uint32

	SP uint16 // DWARF number of the stack pointer
	PC uint16 // DWARF number of the instruction pointer
	// Link is the DWARF number of the register that holds the return address at a function's
	// entry, or 0 if that is on the stack.
	Link uint16
	// Results are the DWARF numbers of the registers that hold a function's result, for
	// results of as many words.
	Results []uint16
	// Args are the DWARF numbers of the registers that hold arguments at a function's
	// entry, in their order.
	Args []uint16
	// Preserved are the DWARF numbers of the registers that functions preserve: at a
	// function's entry they hold values of its caller.
	Preserved []uint16
	// VectorArgs is how many more arguments are in vector registers.
	VectorArgs int
	// StackArgs is where the other arguments begin: bytes above the stack pointer at a
	// function's entry.
	StackArgs int
	// ResultAddress is set if the address for a result in memory is passed like a first
	// argument, and is returned like a pointer.
	ResultAddress bool
	// LargeByReference is set if structures of more than two words are passed by address,
	// and not set if they are copied to the stack.
	LargeByReference bool
	// WordClasses is set if each word of a structure is in a register of its own kind, and
	// all of it on the stack if there are too few registers. Otherwise only structures of
	// nothing but floating-point numbers are in vector registers; and after an argument
	// that found too few registers, none is in one.
	WordClasses bool

	regs  []Register
	byNum []*Register // nil where the mapping has no register
}

// Register returns the register with a DWARF number, or nil when the
// architecture's mapping does not define that number.
func (a *Arch) Register(dwarf uint64) *Register {
	if a == nil || dwarf >= uint64(len(a.byNum)) {
		return nil
	}
	return a.byNum[dwarf]
}

// Registers returns all registers in order of their DWARF numbers. The caller
// must not change them.
func (a *Arch) Registers() []Register { return a.regs }

// RegisterName returns how a register is printed: "%rax". A number outside the
// mapping prints as "reg71".
func (a *Arch) RegisterName(dwarf uint64) string {
	if r := a.Register(dwarf); r != nil {
		return a.Sigil + r.Name
	}
	return "reg" + strconv.FormatUint(dwarf, 10)
}

// RegisterByName returns the register with a name: as the manual spells it, with or
// without the sigil, or as the kernel's probes do (ax for rax, arch/*/kernel/ptrace.c,
// regs_query_register_offset). It returns nil for a name that is neither.
func (a *Arch) RegisterByName(name string) *Register {
	name = strings.TrimPrefix(name, "%")
	for i := range a.regs {
		r := &a.regs[i]
		if name != "" && (r.Name == name || r.KernelName == name) {
			return r
		}
	}
	return nil
}

// ForELF returns the architecture of an ELF file by the fields of its header, or an error
// that names the machine if there is no table for it.
func ForELF(machine elf.Machine, class elf.Class, data elf.Data) (*Arch, error) {
	for _, a := range all {
		if a.Machine == machine && (class == elf.ELFCLASS64) == (a.WordSize == 8) {
			return a, nil
		}
	}
	return nil, fmt.Errorf("unsupported machine %v (%v, %v)", machine, class, data)
}

// ByName returns the architecture with the name that Debian gives it, such as "amd64" or
// "arm64", or nil.
func ByName(name string) *Arch {
	for _, a := range all {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// build indexes an architecture's registers. kernelNames holds the kernel's names that
// differ from the manual's.
func build(a Arch, kernelNames map[string]string, regs []Register) *Arch {
	a.regs = regs
	for i := range regs {
		r := &regs[i]
		if r.Offset >= 0 {
			r.KernelName = r.Name
			if k, ok := kernelNames[r.Name]; ok {
				r.KernelName = k
			}
		}
		n := int(r.DWARF)
		if grow := n + 1 - len(a.byNum); grow > 0 {
			a.byNum = append(a.byNum, make([]*Register, grow)...)
		}
		a.byNum[n] = r
	}
	return &a
}

// numbered makes count registers called prefix+"0", prefix+"1", ... that struct pt_regs
// holds as consecutive words of stride bytes.
func numbered(prefix string, count int, dwarf uint16, offset, stride int) []Register {
	regs := make([]Register, count)
	for i := range regs {
		regs[i] = Register{DWARF: dwarf + uint16(i), Name: prefix + strconv.Itoa(i), Offset: offset + i*stride}
	}
	return regs
}

// vectors makes count vector registers called prefix+first, prefix+(first+1), ...
func vectors(prefix string, first, count int, dwarf uint16) []Register {
	regs := make([]Register, count)
	for i := range regs {
		regs[i] = Register{DWARF: dwarf + uint16(i), Name: prefix + strconv.Itoa(first+i), Offset: -1, Vector: true}
	}
	return regs
}
