package body

import "slices"

// CutsForCall reports whether, in the block that has a link-time address, an instruction for the line of a body's call, and not of the body, leaves so many lower bits
// of a number: then these are what is passed. Registers have the number at the address.
func (c *Code) CutsForCall(rec int32, at uint64, bits uint8, number func(s *State) (Number, bool)) bool {
	i, known := c.BodyOf(rec)
	if c.Graph == nil || !known {
		return false
	}
	n, ok := c.Graph.At(at)
	if !ok {
		return false
	}
	own, site := &c.Bodies[i], int32(n)
	block := &c.Graph.Blocks[c.Graph.Block(site)]
	forCall := func(n int32) bool {
		r := c.RowAt(n)
		return r != nil && r.Line == own.Call.Line && r.File == own.Call.File && c.Owner[n] == own.Parent
	}
	s := c.Arch.State()
	var of Number
	isCut := func(v Number) bool {
		has, ok := s.Cut(v, of)
		return ok && has == bits
	}
	var before []Number // what such instructions in front of the address have left
	for n := block.First; n < block.Last; n++ {
		if n == site {
			if of, ok = number(s); !ok {
				return false
			}
			if slices.ContainsFunc(before, isCut) {
				return true
			}
		}
		code := c.Graph.Bytes(n)
		s.Step(code, c.Graph.Insns[n].Addr)
		if !forCall(n) {
			continue
		}
		w, _ := c.Arch.Writes(code)
		for r := range uint64(Followed) {
			v, ok := s.Register(r)
			switch {
			case !ok || !w.Registers.Has(r):
			case n < site:
				before = append(before, v)
			case isCut(v):
				return true
			}
		}
	}
	return false
}
