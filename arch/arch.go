// Package arch describes processor architectures as data: which DWARF number
// belongs to which register, what the register is called, and at which byte of
// struct pt_regs a BPF program finds it. Relocations are in package internal/image, and what
// instructions do is in internal/insn: CONTRIBUTING.md lists what a new architecture
// needs.
package arch

import (
	"debug/elf"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	Name      string // as Debian calls it: "amd64", "arm64"
	Machine   elf.Machine
	WordSize  int    // bytes in a general register and in an address
	BigEndian bool   // numbers in memory are big-endian
	Sigil     string // written before a register's name: "%" on x86
	// Source names where the table comes from: the psABI's register mapping and
	// the kernel's struct pt_regs.
	Source string

	// GlobDat is the type of the relocations in executables and libraries that give an
	// entry of the global offset table a symbol's address.
	GlobDat uint32

	// CodeMarks is set if symbol tables have labels between code and data, such as $d and .L12,
	// which are no places to name code after: kallsyms leaves them out too (scripts/kallsyms.c).
	CodeMarks bool
	// LowBit is set if the lowest bit of a function symbol's value is not part of its address: it
	// says which of two instruction sets the function has.
	LowBit bool
	// LocalEntries is set if functions can have a second entry for callers in the same image, as
	// st_other of the function's symbol says. Most callers enter there.
	LocalEntries bool

	SP uint16 // DWARF number of the stack pointer
	// PC is the DWARF number of the instruction pointer. If the mapping has none, it is one that the
	// mapping does not use.
	PC uint16
	// Link is the DWARF number of the register that holds the return address at a function's
	// entry, or 0 if that is on the stack.
	Link uint16
	// Results are the DWARF numbers of the registers that hold a function's result, for
	// results of as many words.
	Results []uint16
	// Args are the DWARF numbers of the registers that hold arguments at a function's
	// entry, in their order. There are none if that is not known.
	Args []uint16
	// Preserved are the DWARF numbers of the registers that functions preserve: at a
	// function's entry they hold values of its caller.
	Preserved []uint16
	// StackArgs is where the other arguments begin: bytes above the stack pointer at a
	// function's entry.
	StackArgs int

	// GOARCH and Uname are what Go and uname -m call the architecture.
	GOARCH string
	Uname  []string
	// Hosts are kernels for other architectures that run code of this one, by the names of these: which of
	// their registers has the one with a DWARF number here. Its low bytes are the register's.
	Hosts map[string]map[uint16]string

	registers func() *registers
}

// registers are an architecture's registers.
type registers struct {
	list  []Register
	byNum []*Register // nil where the mapping has no register
}

// Register returns the register with a DWARF number, or nil when the
// architecture's mapping does not define that number.
func (a *Arch) Register(dwarf uint64) *Register {
	if a == nil {
		return nil
	}
	r := a.registers()
	if dwarf >= uint64(len(r.byNum)) {
		return nil
	}
	return r.byNum[dwarf]
}

// Registers returns all registers in order of their DWARF numbers. The caller
// must not change them.
func (a *Arch) Registers() []Register { return a.registers().list }

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
	list := a.registers().list
	for i := range list {
		r := &list[i]
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
		if a.Machine == machine && (class == elf.ELFCLASS64) == (a.WordSize == 8) && (data == elf.ELFDATA2MSB) == a.BigEndian {
			return a, nil
		}
	}
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.Name
	}
	return nil, fmt.Errorf("unsupported machine %v (%v, %v): images can be for %s", machine, class, data, strings.Join(names, ", "))
}

// All returns all architectures, sorted by name. The caller must not change them.
func All() []*Arch { return all }

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

// On returns the architecture as programs of a kernel for another one see it: with that kernel's struct pt_regs.
// It is nil if such a kernel runs no code of this architecture. A nil kernel is one of this architecture.
func (a *Arch) On(kernel *Arch) *Arch {
	if kernel == nil || kernel == a {
		return a
	}
	names, ok := a.Hosts[kernel.Name]
	if !ok {
		return nil
	}
	regs := slices.Clone(a.Registers())
	for i := range regs {
		r := &regs[i]
		r.Offset = -1
		if host := kernel.RegisterByName(names[r.DWARF]); host != nil {
			r.Offset = host.Offset
		}
	}
	out, x := *a, index(regs)
	out.registers = func() *registers { return x }
	return &out
}

// build makes an architecture. Its registers are made when they are asked for: most processes ask for those of one architecture.
// kernelNames holds the kernel's names that differ from the manual's.
func build(a Arch, kernelNames map[string]string, list func() []Register) *Arch {
	a.registers = sync.OnceValue(func() *registers {
		regs := list()
		for i := range regs {
			r := &regs[i]
			if r.Offset >= 0 {
				r.KernelName = r.Name
				if k, ok := kernelNames[r.Name]; ok {
					r.KernelName = k
				}
			}
		}
		return index(regs)
	})
	return &a
}

// index lists registers by their numbers.
func index(list []Register) *registers {
	x := &registers{list: list}
	for i := range list {
		r := &list[i]
		n := int(r.DWARF)
		if grow := n + 1 - len(x.byNum); grow > 0 {
			x.byNum = append(x.byNum, make([]*Register, grow)...)
		}
		x.byNum[n] = r
	}
	return x
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

// named makes registers with names that struct pt_regs holds as consecutive words.
func named(dwarf uint16, offset, stride int, names ...string) []Register {
	regs := make([]Register, len(names))
	for i, name := range names {
		regs[i] = Register{DWARF: dwarf + uint16(i), Name: name, Offset: offset + i*stride}
	}
	return regs
}

// mixed makes vector registers called prefix and a number, in the order of their DWARF numbers.
func mixed(prefix string, dwarf uint16, numbers ...int) []Register {
	regs := make([]Register, len(numbers))
	for i, n := range numbers {
		regs[i] = Register{DWARF: dwarf + uint16(i), Name: prefix + strconv.Itoa(n), Offset: -1, Vector: true}
	}
	return regs
}

// absent makes count registers called prefix+"0", prefix+"1", ... that struct pt_regs does not hold.
func absent(prefix string, count int, dwarf uint16) []Register {
	regs := numbered(prefix, count, dwarf, 0, 0)
	for i := range regs {
		regs[i].Offset = -1
	}
	return regs
}
