package body

import (
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// GCC splits a function into its beginning, which it inlines, and the rest, a function of its own (-fpartial-inlining, gcc/ipa-split.cc). No run
// begins with the rest, if the function itself, or an inlined body of it, is around each call and each jump to it.

// IsPart reports whether a symbol's name is that of the rest of a function which GCC has split.
func IsPart(symbol string) bool { return strings.Contains(symbol, ".part.") }

// Continues reports whether each run of a part, whose record and entry these are, is one that has begun elsewhere: at a way into a body, which is
// known, or at the entry of a function.
func (u *Unit) Continues(part int32, entry uint64, symbol string) (bool, error) {
	root := u.Recs[part].Root
	if root < 0 || strings.Contains(symbol, ".lto_priv.") { // other units may call it
		return false, nil
	}
	arch := insn.For(u.Image.Instructions())
	if arch == nil || u.Image.IsRelocatable() {
		return false, nil
	}
	found := false
	for i := range u.Recs {
		rec := int32(i)
		if u.Recs[i].Flags&(index.Inlined|index.HasPC) != index.HasPC {
			continue
		}
		from, err := u.sourcesOf(arch, rec, entry)
		if err != nil {
			return false, err
		}
		if len(from) == 0 {
			continue
		}
		c, err := u.Code(rec)
		if err != nil || c.Why != "" {
			return false, err
		}
		for _, addr := range from {
			n, ok := c.graph.At(addr)
			if !ok {
				continue // nothing leads there
			}
			if begun, err := c.begunAt(c.owner[n], root); err != nil || !begun {
				return false, err
			}
			found = true
		}
	}
	return found, nil
}

// sourcesOf returns where a function calls, or jumps to, an address. It goes on behind what is no instruction.
func (u *Unit) sourcesOf(arch *insn.Arch, rec int32, to uint64) (from []uint64, err error) {
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

// begunAt reports whether a run of the function with a record of its own has begun where code of a body runs.
func (c *Code) begunAt(i, root int32) (bool, error) {
	for ; i >= 0; i = c.bodies[i].parent {
		b := &c.bodies[i]
		if c.u.Recs[b.rec].Root != root {
			continue
		}
		if b.parent < 0 {
			return !IsPart(c.symbol(b.start)), nil
		}
		w, err := c.Ways(b.rec)
		return w.Unknown == "", err
	}
	return false, nil
}

// symbol returns the name of the function at an address.
func (c *Code) symbol(addr uint64) string {
	if s := c.u.Image.SymbolAt(addr, ""); s != nil {
		return s.Name
	}
	return ""
}
