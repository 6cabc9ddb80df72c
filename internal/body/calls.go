package body

import (
	"sort"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// callers caches where the direct calls in an image are.
type callers struct {
	once  sync.Once
	calls []directCall // by function
}

// directCall is one call, by link-time addresses: of the function, and after the call.
type directCall struct{ function, after uint64 }

// ResultUsed reports whether code after a direct call of the function at a link-time address uses its result. called is false if
// there is no such call.
func (img *Image) ResultUsed(function uint64) (used, called bool) {
	calls := img.callsOf(function)
	for _, c := range calls {
		n := uint64(64)
		if sec := img.SectionAt(c.after); sec != nil {
			n = min(n, sec.Addr+sec.Size-c.after)
		}
		code, err := img.Bytes(c.after, n)
		if err == nil && insn.For(img.Instructions()).Results.Uses(code) {
			return true, true
		}
	}
	return false, len(calls) > 0
}

// Called reports whether there is a direct call of the function at a link-time address.
func (img *Image) Called(function uint64) bool { return len(img.callsOf(function)) > 0 }

// mostCode is how many bytes of code an image may have for CallsOf to look at all of it: the list of a kernel's calls takes 40 MB, and few of
// what is asked about have calls outside of their unit.
const mostCode = 8 << 20

// CallsOf returns the link-time addresses after the direct calls of a function. ok is false for an image that has too much code.
func (img *Image) CallsOf(function uint64) (after []uint64, ok bool) {
	code := uint64(0)
	for _, s := range img.Sections() {
		if s.Exec {
			code += s.Size
		}
	}
	if code > mostCode {
		return nil, false
	}
	for _, c := range img.callsOf(function) {
		after = append(after, c.after)
	}
	return after, true
}

// callsOf returns the direct calls of a function, by address.
func (img *Image) callsOf(function uint64) []directCall {
	arch := insn.For(img.Instructions())
	if arch == nil {
		return nil
	}
	c := &img.callers
	c.once.Do(func() { c.calls = img.readCalls(arch) })
	from := sort.Search(len(c.calls), func(i int) bool { return c.calls[i].function >= function })
	to := from
	for to < len(c.calls) && c.calls[to].function == function {
		to++
	}
	return c.calls[from:to]
}

// readCalls returns all direct calls, by function. What leads to no code is none, though its bytes look like one.
func (img *Image) readCalls(arch *insn.Arch) (calls []directCall) {
	for _, sec := range img.Sections() {
		if !sec.Exec {
			continue
		}
		code, err := img.Bytes(sec.Addr, sec.Size)
		if err != nil {
			continue // it has no contents: no call is found
		}
		arch.Results.Calls(code, sec.Addr, func(at int, target uint64) {
			if to := img.SectionAt(target); to != nil && to.Exec {
				calls = append(calls, directCall{target, sec.Addr + uint64(at)})
			}
		})
	}
	return radix.Sort(calls, func(c *directCall) uint64 { return c.function })
}
