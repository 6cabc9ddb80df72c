package caller

import (
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// maxFollowed bounds how many functions are followed from one to the next.
const maxFollowed = 32

// enteredAgain reports whether a function may have been entered again since a call of it, with that call's return address: at its end it
// jumps to a function that, so or over further ones, jumps to it. why says what is not known.
//
// A jump into another unit's code may come back only if something of that code jumps to the function, or knows its address: nothing does if
// only its own unit can name it, no jump of that unit leads to it, and its signature is its own, which only direct calls can use.
func (x *Unit) enteredAgain(f function, entry uint64, clone bool) (why string, err error) {
	if clone && x.u.Whole() && !x.jumpsTo(entry) {
		return "", nil
	}
	seen := []int32{f.rec}
	for at := 0; at < len(seen); at++ {
		out, err := x.jumpsOut(seen[at])
		if err != nil {
			return "", err
		}
		switch {
		case out.Lost:
			return "it goes on in another function by an indirect jump", nil
		case at == 0 && out.Again:
			return "it jumps to its own beginning", nil
		}
		for _, to := range out.To {
			g, ok := x.function(to)
			switch {
			case to == entry:
				return "it may go on in itself", nil
			case !ok:
				return "it goes on in a function of another unit", nil
			case g.rec == f.rec:
				return "it may go on in itself", nil
			case len(seen) == maxFollowed:
				return "it goes on in too many functions", nil
			case !slices.Contains(seen, g.rec):
				seen = append(seen, g.rec)
			}
		}
	}
	return "", nil
}

// codes is memory for code.
var codes = sync.Pool{New: func() any { return new(body.Code) }}

// jumpsOut returns where a function goes on in others.
func (x *Unit) jumpsOut(rec int32) (body.Out, error) {
	memory := codes.Get().(*body.Code)
	defer codes.Put(memory)
	code, err := x.u.InstructionsIn(memory, rec)
	if err != nil {
		return body.Out{}, err
	}
	return code.JumpsOut()
}

// jumpsTo reports whether a jump of the unit may lead to an address.
func (x *Unit) jumpsTo(addr uint64) bool {
	x.jumpsOnce.Do(func() { x.jumps = x.readJumps() })
	_, to := slices.BinarySearch(x.jumps, addr)
	return to
}

// entries is how far behind the beginning of a function a second one is at most, in bytes.
const entries = 64

// readJumps returns where jumps of the unit may lead that enter functions, sorted. It looks for one at each byte where an instruction can
// begin.
func (x *Unit) readJumps() []uint64 {
	memory := jumpMemory.Get().(*[]uint64)
	defer jumpMemory.Put(memory)
	all := (*memory)[:0]
	step := x.arch.Stride()
	begins := branchesOf(x.arch)
	for _, c := range x.code {
		_ = x.u.Image.View(c.Lo, c.Hi-c.Lo, func(code []byte) { // it could be read before
			for at := 0; at < len(code); at += step {
				if !begins[code[at]] {
					continue
				}
				in, ok := x.arch.Next(code[at:])
				if !ok || in.Call {
					continue
				}
				to, from := in.Target, at
				if in.Lost && x.arch.Pair != nil && at >= 4 { // the instruction before may say where it leads
					to, _ = x.arch.Pair(code[at-4:at], code[at:])
					from = at - 4
				}
				if !in.Branches && (!in.Lost || to == 0) {
					continue
				}
				if target := c.Lo + uint64(from) + uint64(to); target < c.Lo+entries || target >= c.Hi {
					all = append(all, target)
				}
			}
		})
	}
	slices.Sort(all)
	*memory = all
	return slices.Clone(slices.Compact(all))
}

// jumpMemory is memory for the jumps of a unit until it is known how many there are.
var jumpMemory = sync.Pool{New: func() any { return new([]uint64) }}

// branches are what branchesOf has returned.
var branches sync.Map

// branchesOf returns the bytes with which a branch may begin, but for prefixes: what follows them is a branch by itself.
func branchesOf(a *insn.Arch) *[256]bool {
	if known, ok := branches.Load(a); ok {
		return known.(*[256]bool)
	}
	out := new([256]bool)
	code := make([]byte, 17)
	branch := func(code []byte) bool {
		in, ok := a.Next(code)
		return ok && (in.Branches || in.Lost)
	}
	for first := range 256 {
		for second := 0; second < 256 && !out[first]; second++ {
			code[0], code[1] = byte(first), byte(second)
			out[first] = a.Stride() > 1 || branch(code[:16]) && !branch(code[1:])
		}
	}
	branches.Store(a, out)
	return out
}
