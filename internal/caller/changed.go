package caller

import (
	"cmp"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// before is how many bytes of code in front of a call are looked at.
const before = 128

// Unchanged reports whether the code in front of the call leaves alone what it passes in a register, if that is so much more than what another one
// has: it has not changed that one since. Otherwise the debug information is wrong (clang 14 copies a register to the argument's, changes the
// former, calls, and notes it all the same). GCC's follows what the code changes.
func (c *Call) Unchanged(passed, register uint64, more int64) (bool, error) {
	u, arch := c.x.u, c.x.arch
	if arch == nil || u.GNU() {
		return true, nil
	}
	rows, err := u.Rows()
	if err != nil {
		return false, err
	}
	i, _ := slices.BinarySearchFunc(rows, c.Return-min(before, c.Return), func(r dw.Row, a uint64) int { return cmp.Compare(r.Addr, a) })
	if i == len(rows) || rows[i].Addr >= c.Return {
		return true, nil
	}
	code, err := u.Image.Bytes(rows[i].Addr, c.Return-rows[i].Addr)
	if err != nil {
		return true, nil //nolint:nilerr // the file has no code
	}
	state := arch.State() // since the last instruction that jumps
	set, changed := false, false
	for at := rows[i].Addr; len(code) > 0; {
		in, ok := arch.Next(code)
		switch {
		case !ok || in.Size > len(code):
			return true, nil
		case in.Size == len(code): // the call
			x, known := state.Register(passed)
			y, both := state.Register(register)
			same := known && both && x.Terms == y.Terms && int64(x.Const-y.Const) == more
			return !set || !changed || same, nil
		case in.Branches || in.Call || in.Lost || !in.Onward:
			state, set = arch.State(), false
		default:
			w, ok := arch.Writes(code)
			if !ok {
				return true, nil
			}
			state.Step(code, at)
			changed = !w.Registers.Has(passed) && (changed || w.Registers.Has(register))
			set = set || w.Registers.Has(passed)
		}
		at += uint64(in.Size)
		code = code[in.Size:]
	}
	return true, nil
}
