package body

import (
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// callers caches what follows the direct calls in an image, by the address of the function.
type callers struct {
	once  sync.Once
	after map[uint64][]uint64 // link-time addresses
}

// ResultUsed reports whether code after a direct call of the function at a link-time address uses its result. called is false if
// there is no such call.
func (img *Image) ResultUsed(function uint64) (used, called bool) {
	arch := insn.For(img.Instructions())
	if arch == nil {
		return false, false
	}
	after := img.callsOf(function)
	for _, addr := range after {
		n := uint64(64)
		if sec := img.SectionAt(addr); sec != nil {
			n = min(n, sec.Addr+sec.Size-addr)
		}
		code, err := img.Bytes(addr, n)
		if err == nil && arch.Results.Uses(code) {
			return true, true
		}
	}
	return false, len(after) > 0
}

// Called reports whether there is a direct call of the function at a link-time address.
func (img *Image) Called(function uint64) bool { return len(img.callsOf(function)) > 0 }

// callsOf returns the link-time addresses after the direct calls of a function.
func (img *Image) callsOf(function uint64) []uint64 {
	arch := insn.For(img.Instructions())
	if arch == nil {
		return nil
	}
	c := &img.callers
	c.once.Do(func() { c.after = img.readCalls(arch) })
	return c.after[function]
}

// readCalls returns the addresses after all direct calls, by the function that they call.
func (img *Image) readCalls(arch *insn.Arch) map[uint64][]uint64 {
	after := make(map[uint64][]uint64)
	for _, sec := range img.Sections() {
		if !sec.Exec {
			continue
		}
		code, err := img.Bytes(sec.Addr, sec.Size)
		if err != nil {
			continue // it has no contents: no call is found
		}
		arch.Results.Calls(code, sec.Addr, func(at int, target uint64) {
			after[target] = append(after[target], sec.Addr+uint64(at))
		})
	}
	return after
}
