package runs

import (
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Continues reports whether each run of a part, whose record and entry these are, is one that has begun elsewhere: at a way into a body, which is
// known, or at the entry of a function.
func Continues(u *body.Unit, part int32, entry uint64, symbol string) (bool, error) {
	root := u.Recs[part].Root
	if root < 0 || strings.Contains(symbol, ".lto_priv.") { // other units may call it
		return false, nil
	}
	if u.Image.IsRelocatable() {
		return false, nil
	}
	found := false
	for i := range u.Recs {
		rec := int32(i)
		if u.Recs[i].Flags&(index.Inlined|index.HasPC) != index.HasPC {
			continue
		}
		from, err := u.SourcesOf(rec, entry)
		if err != nil {
			return false, err
		}
		if len(from) == 0 {
			continue
		}
		c, err := Follow(u, rec)
		if err != nil || c.Why != "" {
			return false, err
		}
		for _, addr := range from {
			n, ok := c.Graph.At(addr)
			if !ok {
				continue // nothing leads there
			}
			if begun, err := c.begunAt(c.Owner[n], root); err != nil || !begun {
				return false, err
			}
			found = true
		}
	}
	return found, nil
}

// begunAt reports whether a run of the function with a record of its own has begun where code of a body runs.
func (c *Code) begunAt(i, root int32) (bool, error) {
	for ; i >= 0; i = c.Bodies[i].Parent {
		b := &c.Bodies[i]
		if c.Unit.Recs[b.Rec].Root != root {
			continue
		}
		if b.Parent < 0 {
			return !body.IsPart(c.symbol(b.Start)), nil
		}
		w, err := c.Ways(b.Rec)
		return w.Unknown == "", err
	}
	return false, nil
}

// symbol returns the name of the function at an address.
func (c *Code) symbol(addr uint64) string {
	if s := c.Unit.Image.SymbolAt(addr, ""); s != nil {
		return s.Name
	}
	return ""
}
