package bpfexec

import (
	"encoding/binary"
	"errors"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

var native = binary.NativeEndian

// Arena is memory for prologues to read: mapped bytes, followed by unmapped ones.
type Arena struct {
	Bytes []byte // readable, a whole number of pages
	base  uint64 // the address that prologues read it at
	all   []byte
	m     *ebpf.Map // that it is the value of, in the kernel
	low   bool      // from NewLowArena
}

// NewArena maps memory of at least size bytes. A helper that reads user memory
// does not wait for a page to be brought in, so all are filled here.
func NewArena(size int) (*Arena, error) {
	page, size := pages(size)
	all, err := unix.Mmap(-1, 0, size+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	if err := unix.Mprotect(all[size:], unix.PROT_NONE); err != nil {
		return nil, err
	}
	return &Arena{Bytes: all[:size:size], base: uint64(uintptr(unsafe.Pointer(&all[0]))), all: all}, nil
}

// lowest and highest are where NewLowArena looks for room, in steps: above what programs are linked at, and below
// the end of the addresses of 32 bits.
const (
	lowest  = 0x10000000
	highest = 0x70000000
	step    = 0x08000000
)

// NewLowArena is NewArena for memory whose addresses have 31 bits.
func NewLowArena(size int) (*Arena, error) {
	page, size := pages(size)
	err := error(unix.ENOMEM)
	for at := uintptr(lowest); at < highest; at += step {
		var base unsafe.Pointer
		base, err = unix.MmapPtr(-1, 0, addressOf(at), uintptr(size+page), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE|unix.MAP_FIXED_NOREPLACE)
		if err != nil {
			continue
		}
		all := unsafe.Slice((*byte)(base), size+page)
		if err := unix.Mprotect(all[size:], unix.PROT_NONE); err != nil {
			return nil, err
		}
		return &Arena{Bytes: all[:size:size], base: uint64(at), all: all, low: true}, nil
	}
	return nil, err
}

// addressOf returns a number as an address at which nothing of Go's is.
func addressOf(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// NewKernelArena is NewArena for memory of the kernel: the one value of a map, of which Bytes are
// another mapping. Its last page is the last of an area of vmalloc, which a page that is never
// mapped follows (bpf_map_area_mmapable_alloc in kernel/bpf/syscall.c, __get_vm_area_node in
// mm/vmalloc.c). It needs Linux 5.5.
func NewKernelArena(size int) (*Arena, error) {
	_, size = pages(size)
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "bpfexec_arena", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(size), MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE})
	if err != nil {
		return nil, explain(err)
	}
	all, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	a := &Arena{Bytes: all, all: all, m: m}
	prog, err := oneWord(asm.LoadMapValue(asm.R2, m.FD(), 0), asm.StoreMem(asm.R1, 0, asm.R2, asm.DWord))
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if a.base, err = runWord(prog, 0); err != nil {
		return nil, errors.Join(err, Close(prog), a.Close())
	}
	return a, Close(prog)
}

// oneWord loads instructions that find a word at R1 and leave one there.
func oneWord(insns ...asm.Instruction) (*ebpf.Program, error) {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "bpfexec_word", Type: ebpf.Syscall, Flags: unix.BPF_F_SLEEPABLE, License: "GPL",
		Instructions: append(insns, asm.Mov.Imm(asm.R0, 0), asm.Return()),
	})
	return prog, explain(err)
}

// runWord runs what oneWord loaded.
func runWord(prog *ebpf.Program, word uint64) (uint64, error) {
	ctx := native.AppendUint64(nil, word)
	_, err := prog.Run(&ebpf.RunOptions{Context: ctx, ContextOut: ctx})
	return native.Uint64(ctx), explain(err)
}

// pages returns the size of a page, and a size in whole pages, but at least one.
func pages(size int) (page, whole int) {
	page = unix.Getpagesize()
	return page, (max(size, 1) + page - 1) / page * page
}

// Addr returns the address of a byte of the arena.
func (a *Arena) Addr(off int) uint64 { return a.base + uint64(off) }

// Unmapped returns the first address after the arena. Reads of the page that begins there
// fault.
func (a *Arena) Unmapped() uint64 { return a.Addr(0) + uint64(len(a.Bytes)) }

// Close unmaps the arena.
func (a *Arena) Close() error {
	if a.low {
		return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(a.all)), uintptr(len(a.all)))
	}
	err := unix.Munmap(a.all)
	if a.m != nil {
		err = errors.Join(err, a.m.Close())
	}
	return err
}

// reader is the program of InKernel.
var reader = sync.OnceValues(func() (*ebpf.Program, error) {
	return oneWord(
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R3, asm.R1, 0, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R10),
		asm.Add.Imm(asm.R1, -8),
		asm.Mov.Imm(asm.R2, 1),
		asm.FnProbeReadKernel.Call(),
		asm.StoreMem(asm.R6, 0, asm.R0, asm.DWord))
})

// InKernel reports whether bpf_probe_read_kernel reads a byte of the kernel's memory.
func InKernel(addr uint64) (bool, error) {
	prog, err := reader()
	if err != nil {
		return false, err
	}
	failed, err := runWord(prog, addr)
	return failed == 0, err
}
