package body

import (
	"sort"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
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

// Nothing follows a call of a function that does not return: the instruction after it belongs
// to something else. The debug information says it of functions that are declared so
// (DW_AT_noreturn, DWARF 5 section 3.3.1). Compilers declare nothing for their own calls: see package noreturn.

// noReturns is what is known of functions that do not return.
type noReturns struct {
	mu sync.RWMutex
	// entries says whether functions return, by the offsets of their entries. It has most functions
	// of an image: a sync.Map of them takes eight times as much.
	entries map[uint64]bool
}

// described reports whether the debug information says that a function to which an attribute
// of a unit refers does not return.
func (n *noReturns) described(u *dw.Unit, origin dw.Value) (bool, error) {
	_, off, err := u.Ref(origin)
	if err != nil {
		return false, err
	}
	n.mu.RLock()
	ends, known := n.entries[off]
	n.mu.RUnlock()
	if known {
		return ends, nil
	}
	e, err := u.Target(origin)
	if err != nil {
		return false, err
	}
	_, err = index.EachOrigin(e, func(a dw.Attr, v dw.Value) {
		ends = ends || a == dw.AttrNoreturn && v.U != 0
	}, func() bool { return !ends })
	if err != nil {
		return false, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.entries == nil {
		n.entries = make(map[uint64]bool)
	}
	n.entries[off] = ends
	return ends, nil
}

// Call is what the debug information says about the code after a call.
type call struct {
	ends   bool // the callee does not return
	leaves bool // it is a jump, at the end of the function
}

// calls returns what is known of calls, by the addresses after them. LLVM gives a tail call's
// own address (DW_AT_call_pc, DWARF 5 section 3.4).
func (c *Code) calls() (map[uint64]call, error) {
	out := make(map[uint64]call)
	e, err := c.Unit.Entry(c.Unit.Off + uint64(c.Unit.Recs[c.Top].Off))
	if err != nil {
		return nil, err
	}
	return out, c.readCalls(e, 0, out)
}

// maxScopes bounds how deeply scopes nest.
const maxScopes = 256

func (c *Code) readCalls(e dw.Entry, depth int, out map[uint64]call) error {
	if depth > maxScopes {
		return nil
	}
	return e.Children(func(k dw.Entry) (bool, error) {
		switch k.Tag() {
		case dw.TagLexicalBlock, dw.TagInlinedSubroutine:
			return true, c.readCalls(k, depth+1, out)
		case dw.TagCallSite, dw.TagGNUCallSite:
		default:
			return true, nil
		}
		var at, origin dw.Value
		tail := false
		err := k.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrLowpc, dw.AttrCallReturnPC, dw.AttrCallPC:
				at = v
			case dw.AttrAbstractOrigin, dw.AttrCallOrigin:
				origin = v
			case dw.AttrCallTailCall, dw.AttrGNUTailCall:
				tail = v.U != 0
			}
		})
		if err != nil || at.Form == 0 {
			return true, err
		}
		addr, err := c.Unit.Address(at)
		if err != nil {
			return true, err
		}
		x := out[addr]
		x.leaves = x.leaves || tail
		if origin.Form != 0 && !tail {
			if x.ends, err = c.Unit.Image.noReturns.described(c.Unit.Unit.Unit, origin); err != nil {
				return true, err
			}
		}
		if x != (call{}) {
			out[addr] = x
		}
		return true, nil
	})
}

// landingPads returns where exceptions in the function's calls lead.
func (c *Code) landingPads() (out []dw.Pad, err error) {
	for _, r := range c.Ranges {
		pads, err := c.Unit.Image.Data.LandingPads(r.Lo, r.Hi)
		if err != nil {
			return nil, err
		}
		out = append(out, pads...)
	}
	return out, nil
}

// SourcesOf returns where a function calls, or jumps to, an address. It goes on behind what is no instruction.
func (u *Unit) SourcesOf(rec int32, to uint64) (from []uint64, err error) {
	arch := insn.For(u.Image.Instructions())
	if arch == nil {
		return nil, nil
	}
	ranges, err := u.OutermostRanges(rec)
	if err != nil {
		return nil, err
	}
	for _, r := range ranges {
		for whole := false; !whole && r.Lo < r.Hi; r.Lo += uint64(arch.Stride()) {
			whole, err = u.Image.each(r, func(at uint64, in insn.Insn, _ []byte) bool {
				if in.Target != 0 && at+uint64(in.Target) == to {
					from = append(from, at)
				}
				r.Lo = at + uint64(in.Size)
				return true
			})
			if err != nil {
				return nil, nil //nolint:nilerr // a file with debug information only
			}
		}
	}
	return from, nil
}
