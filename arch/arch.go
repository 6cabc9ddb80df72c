// Package arch describes processor architectures as data: which DWARF number
// belongs to which register, what the register is called, and at which byte of
// struct pt_regs a BPF program finds it. Relocations are in package image, and what
// instructions do is in internal/insn: CONTRIBUTING.md lists what a new architecture
// needs.
package arch

import (
	"debug/elf"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// NoOffset is the Offset of a register that struct pt_regs does not hold.
const NoOffset = -1

// Class says what a register can hold, which decides whether a BPF program can
// fetch it.
type Class uint8

const (
	// General is an integer register, saved in struct pt_regs.
	General Class = iota
	// Vector is a floating point or vector register: the kernel does not save it
	// for a probe, so no BPF program can read it.
	Vector
	// Other is a flag, segment or control register.
	Other
)

// Register is one register of an architecture.
type Register struct {
	DWARF  uint16 // number in the architecture's DWARF register mapping
	Name   string // name as the architecture's manual spells it, without a sigil
	Offset int    // bytes from the start of struct pt_regs, or NoOffset
	Class  Class
}

// Arch is one architecture: what is needed to read its DWARF and to fetch its
// registers in BPF.
type Arch struct {
	Name     string // as Debian calls it: "amd64", "arm64"
	Machine  elf.Machine
	WordSize int    // bytes in a general register and in an address
	Sigil    string // written before a register's name: "%" on x86
	// Source names where the table comes from: the psABI's register mapping and
	// the kernel's struct pt_regs.
	Source string

	SP uint16 // DWARF number of the stack pointer
	// Return is the DWARF number of the register that holds a function's result, for
	// results of up to a word.
	Return uint16
	// Args are the DWARF numbers of the registers that hold arguments at a function's
	// entry, in their order.
	Args []uint16

	kernelNames map[string]string // where they differ from the manual's
	regs        []Register
	byNum       []*Register // nil where the mapping has no register
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
		if name != "" && (r.Name == name || a.KernelName(r) == name) {
			return r
		}
	}
	return nil
}

// KernelName returns what the kernel's kprobe and uprobe events call a register, or ""
// for one that they do not know.
func (a *Arch) KernelName(r *Register) string {
	if r.Offset < 0 {
		return ""
	}
	if k, ok := a.kernelNames[r.Name]; ok {
		return k
	}
	return r.Name
}

// FtraceSaves reports whether a program that ftrace calls at a function's entry, or at its
// return, finds a register's value in its struct pt_regs. Since Linux 6.14 only those of
// arguments and results are saved there (HAVE_FTRACE_REGS_HAVING_PT_REGS and
// ftrace_partial_regs in include/linux/ftrace.h), at a return the result's.
func (a *Arch) FtraceSaves(dwarf uint16, isReturn bool) bool {
	if isReturn {
		return dwarf == a.Return
	}
	return dwarf == a.SP || slices.Contains(a.Args, dwarf)
}

// ForELF returns the architecture of an ELF file, or an error that names the
// machine when there is no table for it.
func ForELF(machine elf.Machine, class elf.Class, data elf.Data) (*Arch, error) {
	for _, a := range all {
		if a.Machine == machine && (class == elf.ELFCLASS64) == (a.WordSize == 8) {
			return a, nil
		}
	}
	return nil, fmt.Errorf("unsupported machine %v (%v, %v)", machine, class, data)
}

// ByName returns the architecture with a name, or nil.
func ByName(name string) *Arch {
	for _, a := range all {
		if a.Name == name {
			return a
		}
	}
	return nil
}

func build(a Arch, regs []Register) *Arch {
	a.regs = regs
	for i := range regs {
		n := int(regs[i].DWARF)
		if grow := n + 1 - len(a.byNum); grow > 0 {
			a.byNum = append(a.byNum, make([]*Register, grow)...)
		}
		a.byNum[n] = &regs[i]
	}
	return &a
}

// numbered makes a run of registers called prefix+first, prefix+first+1, ... .
// A stride of 0 stands for registers that struct pt_regs does not hold.
func numbered(prefix string, first, count int, dwarf uint16, offset, stride int, class Class) []Register {
	regs := make([]Register, count)
	for i := range regs {
		off := NoOffset
		if stride != 0 {
			off = offset + i*stride
		}
		regs[i] = Register{DWARF: dwarf + uint16(i), Name: prefix + strconv.Itoa(first+i), Offset: off, Class: class}
	}
	return regs
}
