package ktable

import (
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Edge is a way through code that its instructions do not show: after the instruction at From,
// execution may also continue at To. Both are link-time addresses.
type Edge struct{ From, To uint64 }

// Tables are the edges of a kernel image, and what its traps mean. It is safe for concurrent use.
type Tables struct {
	marks  *Marks
	tables []edges
	jumps  *edges   // the one of static branches, or nil
	warns  []uint64 // traps after which execution continues
	// thunks are where arrays of code that jumps to a register begin.
	thunks []uint64
}

// edges is a table whose entries become edges when they are asked for: a question about a few
// functions needs few of the tens of thousands.
type edges struct {
	*list
	// at are the entries by the address that they are for.
	at []numbered
	// before is how many bytes before an instruction the entry may begin that makes an edge of it.
	before uint64
	// of calls add for each edge of an entry.
	of func(c *code, e entry, add func(from, to uint64))
}

type numbered struct {
	addr uint64
	n    int32 // of the entry
}

// in returns the entries that may make edges in [lo, hi).
func (x *edges) in(lo, hi uint64) []numbered {
	from := lo - min(lo, x.before)
	first := sort.Search(len(x.at), func(k int) bool { return x.at[k].addr >= from })
	last := first
	for last < len(x.at) && x.at[last].addr < hi {
		last++
	}
	return x.at[first:last]
}

// Tables reads the tables of edges and traps. Those that the image does not have are empty. The
// error is about a damaged image.
func (m *Marks) Tables() (*Tables, error) {
	t := &Tables{marks: m}
	for _, name := range thunks {
		if addr, ok := m.at[name]; ok {
			t.thunks = append(t.thunks, addr)
		}
	}
	for _, l := range []struct {
		form   *Form
		before uint64
		of     func(c *code, e entry, add func(from, to uint64))
	}{{Jumps, 0, jumpEdges}, {Faults, 0, faultEdges}, {replaced, maxReplaced, replacedEdges}} {
		d, err := m.read(l.form)
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		x := edges{list: d, before: l.before, of: l.of, at: make([]numbered, d.count())}
		for i := range x.at {
			x.at[i] = numbered{d.at(i).near(0), int32(i)}
		}
		x.at = radix.Sort(x.at, func(n *numbered) uint64 { return n.addr })
		t.tables = append(t.tables, x)
		if l.form == Jumps {
			t.jumps = &x
		}
	}
	bugs, err := m.read(Bugs)
	if err != nil || bugs == nil {
		return t, err
	}
	// Where a trap is also listed as a fault, execution goes on where that says (EX_TABLE of __WARN_FLAGS in
	// arch/powerpc/include/asm/bug.h), and not after it.
	faults, err := m.Addresses(Faults)
	slices.Sort(faults)
	t.warns = slices.DeleteFunc(warnings(bugs), func(addr uint64) bool {
		_, is := slices.BinarySearch(faults, addr)
		return is
	})
	return t, err
}

// Edges returns the edges that begin in [lo, hi), in order. The error is about a damaged image.
func (t *Tables) Edges(lo, hi uint64) ([]Edge, error) {
	for i := range t.tables {
		if len(t.tables[i].in(lo, hi)) > 0 { // in most code there is none
			return t.edges(lo, hi)
		}
	}
	return nil, nil
}

// edges is Edges where entries are.
func (t *Tables) edges(lo, hi uint64) ([]Edge, error) {
	var out []Edge
	code := t.marks.reader()
	add := func(from, to uint64) {
		if from >= lo && from < hi {
			out = append(out, Edge{from, to})
		}
	}
	for i := range t.tables {
		x := &t.tables[i]
		for _, n := range x.in(lo, hi) {
			x.of(code, x.list.at(int(n.n)), add)
		}
	}
	radix.Sort(radix.Sort(out, func(e *Edge) uint64 { return e.To }), func(e *Edge) uint64 { return e.From })
	return slices.Compact(out), code.err
}

// Unread is that of the marks, of the tables that edges and traps are read from.
func (t *Tables) Unread() []string { return t.marks.unread }

// Stops reports whether the trap instruction at an address does not return: it is in no table, or
// a BUG.
func (t *Tables) Stops(addr uint64) bool {
	_, warns := slices.BinarySearch(t.warns, addr)
	return !warns
}

// thunks are the symbols of arrays of thunks: arch/x86/lib/retpoline.S. Compilers jump there
// instead of to a register (-mindirect-branch=thunk-extern, -mretpoline-external-thunk).
var thunks = []string{"__x86_indirect_thunk_array", "__x86_indirect_jump_thunk_array"}

// thunksSize is the bytes of an array: 16 registers of RETPOLINE_THUNK_SIZE each.
const thunksSize = 16 * 32

// Indirect reports whether a jump to an address is one to a register.
func (t *Tables) Indirect(addr uint64) bool {
	for _, at := range t.thunks {
		if addr-at < thunksSize {
			return true
		}
	}
	return false
}

// isCode reports whether an address is in a section of instructions. The end of one counts too: a
// replacement of no bytes may be there.
func (m *Marks) isCode(addr uint64) bool {
	return slices.ContainsFunc(m.code, func(s image.Section) bool { return addr >= s.Addr && addr-s.Addr <= s.Size })
}

func isJump(m *Marks, e entry) bool { return m.isCode(e.near(0)) && m.isCode(e.near(4)) }

// jumpEdges are both ways of a static branch: the kernel puts a jump or a NOP there. struct
// jump_entry is the places of the instruction and of the target, and a key.
func jumpEdges(c *code, e entry, add func(from, to uint64)) {
	from := e.near(0)
	add(from, e.near(4))
	if in, ok := c.next(from); ok && !in.Onward {
		add(from, from+uint64(in.Size))
	}
}

func isFault(m *Marks, e entry) bool { return m.isCode(e.near(0)) && m.isCode(e.near(4)) }

// faultEdges is the way from an instruction that may fault to where execution then continues.
func faultEdges(_ *code, e entry, add func(from, to uint64)) { add(e.near(0), e.near(4)) }

// bugWarning is BUGFLAG_WARNING of include/asm-generic/bug.h.
const bugWarning = 1 << 0

func isBug(m *Marks, e entry) bool { return m.isCode(e.near(0)) }

// warnings returns the traps of WARN, in order: their flags are the last 16 bits of an entry, or
// with 8 bytes those after the address.
func warnings(l *list) (out []uint64) {
	flags := l.size - 2
	if l.size == 8 {
		flags = 4
	}
	l.each(func(e entry) {
		if e.u16(flags)&bugWarning != 0 {
			out = append(out, e.near(0))
		}
	})
	slices.Sort(out)
	return out
}

// code reads instructions of an image.
type code struct {
	f    *image.File
	arch *insn.Arch
	err  error
}

func (m *Marks) reader() *code { return &code{f: m.f, arch: insn.For(m.f.Instructions())} }

// next decodes the instruction at an address, if there is one.
func (c *code) next(addr uint64) (insn.Insn, bool) {
	s := c.f.SectionAt(addr)
	if s == nil || !s.Exec || c.arch == nil || c.err != nil {
		return insn.Insn{}, false
	}
	d, err := c.f.Bytes(addr, min(16, s.Addr+s.Size-addr))
	if err != nil {
		c.err = err
		return insn.Insn{}, false
	}
	in, ok := c.arch.Next(d)
	return in, ok && in.Size > 0
}
