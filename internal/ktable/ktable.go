package ktable

import (
	"cmp"
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/image"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Edge is a way through code that its instructions do not show: after the instruction at From,
// execution may also continue at To. Both are link-time addresses.
type Edge struct{ From, To uint64 }

// Tables are the edges of a kernel image, and what its traps mean. It is safe for concurrent use.
type Tables struct {
	edges []Edge
	warns []uint64 // traps after which execution continues
	// thunks are where arrays of code that jumps to a register begin.
	thunks []uint64
}

// Read reads the tables of an image. Those that it does not have are empty. The error is about a
// damaged image.
func Read(f *image.File) (*Tables, error) {
	m, err := Find(f, thunks...)
	if err != nil {
		return nil, err
	}
	return m.tables()
}

func (m *Marks) tables() (*Tables, error) {
	t := &Tables{}
	for _, name := range thunks {
		if addr, ok := m.at[name]; ok {
			t.thunks = append(t.thunks, addr)
		}
	}
	for _, l := range []struct {
		form *Form
		add  func(*Tables, *Marks, *list) error
	}{{Jumps, (*Tables).addJumps}, {faults, (*Tables).addFaults}, {replaced, (*Tables).addReplaced}, {Bugs, (*Tables).addBugs}} {
		d, err := m.read(l.form)
		if err == nil && d != nil {
			err = l.add(t, m, d)
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(t.warns)
	slices.SortFunc(t.edges, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	t.edges = slices.Compact(t.edges)
	return t, nil
}

// Edges returns the edges that begin in [lo, hi), in order.
func (t *Tables) Edges(lo, hi uint64) []Edge {
	from := sort.Search(len(t.edges), func(i int) bool { return t.edges[i].From >= lo })
	to := sort.Search(len(t.edges), func(i int) bool { return t.edges[i].From >= hi })
	if from >= to {
		return nil
	}
	return t.edges[from:to:to]
}

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
	for _, s := range m.f.Sections() {
		if s.Exec && addr >= s.Addr && addr-s.Addr <= s.Size {
			return true
		}
	}
	return false
}

// addJumps adds both ways of static branches: the kernel puts a jump or a NOP there. struct
// jump_entry is the places of the instruction and of the target, and a key.
func (t *Tables) addJumps(m *Marks, l *list) error {
	code := m.code()
	l.each(func(e entry) {
		from := e.near(0)
		t.edges = append(t.edges, Edge{from, e.near(4)})
		if in, ok := code.next(from); ok && !in.Onward {
			t.edges = append(t.edges, Edge{from, from + uint64(in.Size)})
		}
	})
	return code.err
}

func isFault(m *Marks, e entry) bool { return m.isCode(e.near(0)) && m.isCode(e.near(4)) }

// addFaults adds the ways from instructions that may fault to where execution then continues.
func (t *Tables) addFaults(_ *Marks, l *list) error {
	l.each(func(e entry) { t.edges = append(t.edges, Edge{e.near(0), e.near(4)}) })
	return nil
}

// bugWarning is BUGFLAG_WARNING of include/asm-generic/bug.h.
const bugWarning = 1 << 0

func isBug(m *Marks, e entry) bool { return m.isCode(e.near(0)) }

// addBugs adds the traps of WARN: their flags are the last 16 bits of an entry, or with 8 bytes
// those after the address.
func (t *Tables) addBugs(_ *Marks, l *list) error {
	flags := 10
	if l.size == 8 {
		flags = 4
	}
	l.each(func(e entry) {
		if e.u16(flags)&bugWarning != 0 {
			t.warns = append(t.warns, e.near(0))
		}
	})
	return nil
}

// code reads instructions of an image.
type code struct {
	f    *image.File
	arch *insn.Arch
	err  error
}

func (m *Marks) code() *code { return &code{f: m.f, arch: insn.For(m.f.Arch().Name)} }

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
