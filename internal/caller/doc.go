// Package caller finds the call sites that say what a function was called with, by the address that a call returns to.
//
//	own, err := caller.Read(unit, others)
//	calls, why, err := own.Of(record)
//	for _, c := range calls {
//		v, err := c.Register(5)
//	}
//
// A call speaks only if its return address proves it: the instruction before that address calls the function, and the function cannot have
// been entered again, by jumps at the ends of functions (tail calls), since then. Such jumps leave the return address of an earlier call in
// place, whose values are not those that the jump passed.
package caller

import (
	"slices"
	"sort"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Unit is what is known of the calls in a unit's code.
type Unit struct {
	u         *body.Unit
	others    func(addr uint64) (*Unit, error)
	arch      *insn.Arch
	code      []dw.Range // of the functions, apart from each other
	functions []function // by address
	base      uint64     // below all code that is near the unit's
	calls     []call     // by target
	jumpsOnce sync.Once
	jumps     []uint64 // see jumpsTo
	known     sync.Map // what Of has returned, by record

	indirectOnce  sync.Once
	indirectCalls []Call // see indirect
	indirectErr   error

	tailsOnce sync.Once
	tails     []tail // see tailCalls
	tailsErr  error
}

// function is a part of a function out of line.
type function struct {
	dw.Range
	rec   int32
	start uint64
}

// call is a direct call: where it leads, in its upper half, and the address after it, both from Unit.base.
type call uint64

// Read reads where a unit's functions are, and what they call. A unit whose code is not decoded has no calls. others returns the unit with
// the code at an address, or nil.
func Read(u *body.Unit, others func(addr uint64) (*Unit, error)) (*Unit, error) {
	x := &Unit{u: u, arch: insn.For(u.Image.Instructions()), others: others}
	if x.arch == nil || u.Image.IsRelocatable() {
		return x, nil
	}
	outside := func(r *index.Rec) bool { return r.Flags&index.Inlined == 0 && r.Flags&index.HasPC != 0 }
	count := 0
	for i := range u.Recs {
		if outside(&u.Recs[i]) {
			count++
		}
	}
	x.functions, x.code = make([]function, 0, count), make([]dw.Range, 0, count)
	for i := range u.Recs {
		r := &u.Recs[i]
		if !outside(r) {
			continue
		}
		e, err := u.Entry(u.Off + uint64(r.Off))
		if err != nil {
			return nil, err
		}
		var pcs dw.PCs
		if err := e.Attrs(pcs.Take); err != nil {
			return nil, err
		}
		ranges, err := u.Extent(&pcs)
		if err != nil {
			return nil, err
		}
		start, ok, err := u.Start(&pcs)
		if err != nil {
			return nil, err
		}
		for _, g := range ranges {
			if s := u.Image.SectionAt(g.Lo); ok && g.Lo < g.Hi && s != nil && s.Exec {
				x.functions = append(x.functions, function{g, int32(i), start})
			}
		}
	}
	x.functions = radix.Sort(x.functions, func(f *function) uint64 { return f.Hi }) // they are by their records
	x.functions = radix.Sort(x.functions, func(f *function) uint64 { return f.Lo })
	if len(x.functions) > 0 {
		x.base = x.functions[0].Lo - min(x.functions[0].Lo, 1<<31)
	}
	memory := callMemory.Get().(*[]call)
	defer callMemory.Put(memory)
	found := (*memory)[:0]
	end := uint64(0) // functions of a damaged file may overlap
	for _, f := range x.functions {
		from := max(f.Lo, end)
		if from >= f.Hi {
			continue
		}
		end = f.Hi
		err := u.Image.View(from, f.Hi-from, func(code []byte) {
			x.arch.Results.Calls(code, from, func(after int, target uint64) {
				to, back := target-x.base, from+uint64(after)-x.base
				if to == uint64(uint32(to)) && back == uint64(uint32(back)) { // calls further away are none that are looked for
					found = append(found, call(to<<32|back))
				}
			})
		})
		if err == nil { // else it is a file with debug information only
			x.code = append(x.code, dw.Range{Lo: from, Hi: f.Hi})
		}
	}
	slices.Sort(found)
	x.calls, *memory = slices.Clone(found), found
	return x, nil
}

// callMemory is memory for the calls of a unit until it is known how many there are.
var callMemory = sync.Pool{New: func() any { return new([]call) }}

// function returns the function that has an address, if there is one.
func (x *Unit) function(addr uint64) (f function, ok bool) {
	i := sort.Search(len(x.functions), func(i int) bool { return x.functions[i].Lo > addr })
	if i == 0 || addr >= x.functions[i-1].Hi {
		return function{}, false
	}
	f = x.functions[i-1]
	several := i > 1 && x.functions[i-2].Hi > addr && x.functions[i-2].rec != f.rec
	return f, !several
}

// called returns where the direct calls of a function return to, by address.
func (x *Unit) called(start uint64) (after []uint64) {
	to := start - x.base
	if to != uint64(uint32(to)) {
		return nil
	}
	from, _ := slices.BinarySearch(x.calls, call(to<<32))
	for ; from < len(x.calls) && uint64(x.calls[from]>>32) == to; from++ {
		after = append(after, x.base+uint64(uint32(x.calls[from])))
	}
	return slices.Compact(after)
}
