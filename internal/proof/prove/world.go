package prove

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// world is the memory that prologues read: an arena of random words, half of them addresses
// in the arena, so that chains of pointers continue. It takes the place of the image's data
// too: link-time addresses plus bias are in it.
type world struct {
	arena  *bpfexec.Arena
	bias   uint64
	kernel bool // the arena is the kernel's
	order  binary.ByteOrder
	word   int // bytes of an address
	sp     int // the offset of the stack pointer in struct pt_regs
}

// Sizes of the arena in bytes: enough for the offsets of frames and structures, and not more
// than a test may use.
const (
	minArena = 8 << 20
	maxArena = 128 << 20
)

func newWorld(img *dwarfloc.Image, o Options) (*world, error) {
	lo, hi := ^uint64(0), uint64(0)
	for _, s := range inside.File(img).Sections() {
		if s.Addr == 0 {
			continue // per-CPU data is linked at zero
		}
		lo, hi = min(lo, s.Addr), max(hi, s.Addr+s.Size)
	}
	size := uint64(minArena)
	if hi > lo {
		size = min(max(size, hi-lo), maxArena)
	}
	machine := img.Arch()
	w := &world{kernel: o.Reads == prologue.ReadCast, sp: machine.Register(uint64(machine.SP)).Offset, order: binary.LittleEndian, word: machine.WordSize}
	if machine.BigEndian {
		w.order = binary.BigEndian
	}
	arena := bpfexec.NewArena
	switch {
	case w.kernel:
		arena = bpfexec.NewKernelArena
	case w.word < 8:
		arena = bpfexec.NewLowArena
	}
	a, err := arena(int(size))
	if err != nil {
		return nil, err
	}
	w.arena, w.bias = a, a.Addr(0)-lo
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	for i := 0; i+w.word <= len(a.Bytes); i += w.word {
		v := rng.Uint64()
		switch {
		case v&1 == 0:
			v = w.pointer(rng)
		case v%3 == 0:
			v = 0
		}
		w.put(a.Bytes[i:], v)
	}
	return w, nil
}

// put writes a word of the image's machine.
func (w *world) put(to []byte, v uint64) {
	if w.word < 8 {
		w.order.PutUint32(to, uint32(v))
		return
	}
	w.order.PutUint64(to, v)
}

// pointer returns an address in the arena's middle half, so that offsets from it are in the
// arena too.
func (w *world) pointer(rng *rand.Rand) uint64 {
	n := len(w.arena.Bytes)
	return w.arena.Addr(n/4 + rng.IntN(n/2)&^7)
}

// read copies memory at an address, unless some of it is outside the arena.
func (w *world) read(addr uint64, p []byte) bool {
	off := addr - w.arena.Addr(0)
	if off >= uint64(len(w.arena.Bytes)) || uint64(len(p)) > uint64(len(w.arena.Bytes))-off {
		return false
	}
	copy(p, w.arena.Bytes[off:])
	return true
}

// has reports whether memory of the image is in the arena.
func (w *world) has(addr, size uint64) bool {
	off := addr + w.bias - w.arena.Addr(0)
	return off < uint64(len(w.arena.Bytes)) && size <= uint64(len(w.arena.Bytes))-off
}

// register returns the random value of a register, of a word, with an offset in struct pt_regs. In the first
// state all values are addresses. In the kernel the stack pointer always is one: loads of what it
// points to do not ask whether it is there.
func (w *world) register(rng *rand.Rand, state, offset int) uint64 {
	if state == 0 || w.kernel && offset == w.sp {
		return w.pointer(rng)
	}
	switch rng.IntN(6) {
	case 0:
		return (uint64(rng.IntN(256)) - 64) << (64 - 8*w.word) >> (64 - 8*w.word) // small, also negative
	case 1:
		return rng.Uint64() >> (64 - 8*w.word)
	case 2:
		return rng.Uint64() >> 32 // an int with nothing above it
	}
	return w.pointer(rng)
}

// mapped reports whether this process, or its kernel, can read memory at an address, without
// reading it itself.
func (w *world) mapped(addr uint64, size int) bool {
	if w.kernel {
		first, err := bpfexec.InKernel(addr)
		if err != nil || !first {
			return false
		}
		last, err := bpfexec.InKernel(addr + uint64(max(size, 1)) - 1)
		return err == nil && last
	}
	buf := make([]byte, max(size, 1))
	local := []unix.Iovec{{Base: unsafe.SliceData(buf), Len: uint64(len(buf))}}
	n, err := unix.ProcessVMReadv(os.Getpid(), local, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(buf)}}, 0)
	return err == nil && n == len(buf)
}
