package caller

import "github.com/bpfprologue/bpfprologue/internal/body"

// maxKept bounds how many functions are looked at for one register.
const maxKept = 16

// Keeps reports whether a register has everywhere in a function of the unit what it had where that was called: no instruction writes it, and none
// of the unit's functions that it calls. GCC's callers rely on it (-fipa-ra).
func (x *Unit) Keeps(c *body.Code, register uint64) (bool, error) {
	return x.keeps(c, register, make(map[int32]bool), false)
}

// keeps is Keeps; whole is set if the function's jumps to others count too: for what calls it they are a part of it.
func (x *Unit) keeps(c *body.Code, register uint64, seen map[int32]bool, whole bool) (bool, error) {
	if !c.Spares(register) {
		return false, nil
	}
	to, known := c.CallsTo()
	if whole && known {
		out, err := c.JumpsOut()
		if err != nil || out.Lost {
			return false, err
		}
		to = append(to, out.To...)
	}
	for _, addr := range to {
		f, ok := x.function(addr)
		if !ok || f.start != addr {
			return false, nil
		}
		if seen[f.rec] {
			continue
		}
		if seen[f.rec] = true; len(seen) > maxKept {
			return false, nil
		}
		callee, err := x.u.InstructionsIn(new(body.Code), f.rec)
		if err != nil {
			return false, err
		}
		if kept, err := x.keeps(callee, register, seen, true); !kept || err != nil {
			return false, err
		}
	}
	return known, nil
}
