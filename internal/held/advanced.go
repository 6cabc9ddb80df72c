package held

// Advanced returns the instruction of a loop, by its link-time address, that adds a constant to a register, and after which no other one writes it on any path to a link-time address:
// "i++", behind which execution has not come back to where the loop begins. by is the constant, or 0 if there is no such instruction.
func (h *Registers) Advanced(register, at uint64) (step uint64, by int64) {
	if h == nil || register >= Followed || h.graph.Why != "" {
		return 0, 0
	}
	n, ok := h.graph.At(at)
	if !ok {
		return 0, 0
	}
	found := int32(-1)
	type place struct{ block, end int32 }
	first := h.graph.Block(int32(n))
	seen := make(map[int32]bool)
	for work := []place{{first, int32(n)}}; len(work) > 0; {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		last := p.end - 1
		for ; last >= h.graph.Blocks[p.block].First && !h.writes(last, register); last-- {
		}
		if last >= h.graph.Blocks[p.block].First {
			if found >= 0 && found != last {
				return 0, 0
			}
			found = last
			continue
		}
		if p.block == h.graph.Entry() {
			return 0, 0
		}
		h.graph.OnlyBehind(p.block, func(last int32) bool {
			if b := h.graph.Block(last); !seen[b] {
				seen[b] = true
				work = append(work, place{b, last + 1})
			}
			return true
		})
	}
	if found < 0 || !h.graph.Repeats(h.graph.Block(found), -1) {
		return 0, 0
	}
	return h.graph.Insns[found].Addr, h.adds(found, register)
}

// writes reports whether an instruction may write a register.
func (h *Registers) writes(n int32, register uint64) bool {
	code := h.graph.Bytes(n)
	if in, ok := h.arch.Next(code); ok && (in.Branches || in.Nop) && !in.Call {
		return false
	}
	w, ok := h.arch.Writes(code)
	return !ok || w.Registers.Has(register)
}

// adds returns the constant that an instruction adds to a register, or 0.
func (h *Registers) adds(n int32, register uint64) int64 {
	s := h.arch.State()
	s.Step(h.graph.Bytes(n), h.graph.Insns[n].Addr)
	v, ok := s.Register(register)
	if !ok {
		return 0
	}
	if of, by, ok := s.Added(v); ok && of == register {
		return by
	}
	return 0
}
