package prologue

import (
	"cmp"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/ops"
)

// Arguments in neighbouring memory are read with one helper call. A fault in one argument
// must not make the others fail, so it matters what a fault of the common read means:
//
//   - In the stack frame of the site either all arguments fault or none does: a stack is
//     mapped as a whole. The same holds in one page of the image, and for arguments that
//     are the same bytes.
//   - Elsewhere, through a pointer, it is not known. If the common read faults, each
//     argument is read again, alone. These instructions run only then.
//
// The memory between the arguments is read with them. It is next to variables, so it is not
// a device's.

// maxSpan is how many bytes one read for several arguments covers at most, and
// maxJoined for how many arguments it is.
const (
	maxSpan   = 64
	maxJoined = 8
)

// pageSize is the smallest page size of all architectures: bytes in one such page are in one
// page everywhere. Images are moved by whole pages.
const pageSize = 4096

// place is the address of a read: a base plus an offset. The base is nil for an address of
// the image.
type place struct {
	base *node
	off  int64
}

// placeOf splits the address of a read.
func placeOf(read *node) place {
	a := read.a
	switch {
	case a.op == ops.Addr:
		return place{nil, int64(a.k)}
	case a.op == ops.Add && a.b.isConst():
		return place{a.a, int64(a.b.k)}
	}
	return place{a, 0}
}

// same reports whether two nodes compute the same value.
func same(a, b *node) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	return a.op == b.op && a.size == b.size && a.k == b.k && same(a.a, b.a) && same(a.b, b.b) && same(a.c, b.c)
}

// join joins units that read neighbouring memory.
//
// BPF loads from the stack only what is aligned (check_ptr_alignment in
// kernel/bpf/verifier.c is strict there on all machines), hence only arguments
// that are aligned with respect to the base are joined, and the buffer begins at
// the same offset within 8 bytes as they do.
func (f *fetcher) join() {
	f.near = f.near[:0]
	for i := range f.fetches {
		t := &f.fetches[i]
		if t.unit == nil || t.unit.read == nil || !loadable(t.size) {
			continue
		}
		if t.at = placeOf(t.unit.read); t.at.off%int64(t.size) == 0 {
			f.near = append(f.near, t)
		}
	}
	// A group is the reads with the same base. It is moved to the front of near; the others
	// keep their order.
	for near := f.near; len(near) > 1; {
		g := 1
		for j := 1; j < len(near); j++ {
			if t := near[j]; f.readsOf(t) == f.readsOf(near[0]) && same(t.at.base, near[0].at.base) {
				copy(near[g+1:j+1], near[g:j])
				near[g] = t
				g++
			}
		}
		if g > 1 {
			f.joinGroup(near[:g])
		}
		near = near[g:]
	}
}

// joinGroup joins the reads of a group with one base that are near enough.
func (f *fetcher) joinGroup(group []*fetch) {
	slices.SortStableFunc(group, func(a, b *fetch) int { return cmp.Compare(a.at.off, b.at.off) })
	for len(group) > 1 {
		n := 1
		for n < min(len(group), maxJoined) && f.together(group[:n+1]) {
			n++
		}
		if n > 1 {
			f.joinAll(group[:n])
		}
		group = group[n:]
	}
}

// span returns the number of bytes from the first argument to the end of the last.
func span(group []*fetch) uint64 {
	end := uint64(0)
	for _, t := range group {
		end = max(end, uint64(t.at.off-group[0].at.off)+uint64(t.size))
	}
	return end
}

// together reports whether a group that is sorted by offset can be read at once.
func (f *fetcher) together(group []*fetch) bool {
	first := group[0].at.off
	last := group[len(group)-1]
	if uint64(last.at.off-first) > maxSpan || span(group) > maxSpan {
		return false
	}
	if f.steadyAll(group) || f.faultTogether(group) {
		return true
	}
	if _, ok := f.inImage(group[0].at); ok {
		return false // in two pages of the image: joining them would save nothing
	}
	// Reading one again must not overwrite a part of another.
	for i, t := range group[1:] {
		before := group[i]
		apart := uint64(t.at.off - before.at.off)
		if apart < uint64(before.size) && (apart != 0 || t.size != before.size) {
			return false
		}
	}
	return true
}

// faultTogether reports whether all arguments of a group fault or none does.
func (f *fetcher) faultTogether(group []*fetch) bool {
	at := group[0].at
	if addr, ok := f.inImage(at); ok {
		return addr/pageSize == (addr+span(group)-1)/pageSize
	}
	if f.inFrame(at.base) {
		return true
	}
	for _, t := range group[1:] {
		if t.at.off != at.off || t.size != group[0].size {
			return false
		}
	}
	return true
}

// steadyAll reports whether all arguments of a group are loaded and cannot fault.
func (f *fetcher) steadyAll(group []*fetch) bool {
	f.reads = f.readsOf(group[0]) // of all
	return f.within(group) && !slices.ContainsFunc(group, func(t *fetch) bool { return !f.steady(t.unit.read) })
}

// inImage returns the link-time address of a place in the image.
func (f *fetcher) inImage(p place) (addr uint64, ok bool) {
	switch {
	case p.base == nil:
		return uint64(p.off), true
	case f.o.Moves && p.base.op == ops.Reg && p.base.k == uint64(f.o.Arch.PC):
		return uint64(p.off) + f.o.At, true
	}
	return 0, false
}

// joinAll makes a group one unit. It replaces the unit of the first argument in memory.
func (f *fetcher) joinAll(group []*fetch) {
	u := group[0].unit
	u.span = int(span(group))
	u.certain = f.steadyAll(group)
	// Loads of memory that may not be there ask for each argument what a 0 means.
	asks := f.readsOf(group[0]) == ReadCast && group[0].at.base != nil
	u.alone = !u.certain && (asks || !f.faultTogether(group))
	for _, t := range group[1:] {
		f.drop(t.unit)
	}
	u.n = 0
	for i := range f.fetches { // in the order of the arguments
		if t := &f.fetches[i]; slices.Contains(group, t) {
			t.unit, t.slot = u, int(t.at.off-group[0].at.off)
			u.fetches[u.n] = t
			u.n++
		}
	}
}

// drop removes a unit.
func (f *fetcher) drop(u *unit) {
	i := slices.Index(f.units, u)
	f.units = slices.Delete(f.units, i, i+1)
}
