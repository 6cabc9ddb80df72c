package dwarfloc

import (
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// LLVM removes the result of a function that only its own unit calls if no caller uses it,
// or if all can know it; the function then returns with whatever is in the register (seen
// with clang 14 to 16). The debug information does not show it, and still has the type of
// the result. What shows that a result exists is a caller that uses it.

// callers caches what follows the direct calls in an image, by the address of the function.
type callers struct {
	once  sync.Once
	after map[uint64][]uint64 // link-time addresses
}

// resultUsed reports whether the site's function, which only its unit can call, has a result
// as far as can be seen: a caller uses it, or the address of the function is taken.
func (s *Site) resultUsed() bool {
	arch := insn.For(s.u.img.Instructions())
	if s.u.gnu() || s.AfterPrologue || arch == nil {
		return true
	}
	img := s.u.img
	c := &img.callers
	c.once.Do(func() { c.after = img.readCalls(arch) })
	after := c.after[s.fun.start]
	for _, addr := range after {
		n := uint64(64)
		if sec := img.SectionAt(addr); sec != nil {
			n = min(n, sec.Addr+sec.Size-addr)
		}
		code, err := img.Bytes(addr, n)
		if err == nil && arch.Results.Uses(code) {
			return true
		}
	}
	return len(after) == 0
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
