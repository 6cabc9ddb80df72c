package oracle

import (
	"debug/elf"
	"sort"
	"strings"
)

// Site is one place where a function's body begins.
type Site struct {
	DIE      uint64 // entry in .debug_info
	Function string
	Inlined  bool
	Addr     uint64
	View     uint64
	Params   []Param

	// FunctionStart is the first address of the out-of-line function that contains the
	// site, and FrameBase is its DW_AT_frame_base.
	FunctionStart uint64
	FrameBase     []byte

	r    *Reader
	tree *tree
}

// AtEntry reports whether the site is the first instruction of the function whose
// frame it is in.
func (s *Site) AtEntry() bool { return s.Addr == s.FunctionStart }

// Sites reads the sites of a unit, in the order of their entries. Functions
// without a name and code outside the image's instructions are left out. The
// sites' machines belong to the reader.
func (r *Reader) Sites(u Unit) ([]*Site, error) {
	r.trees, r.unit, r.sites = nil, Unit{}, nil // drop those of the unit before
	if u.Type {
		return nil, nil
	}
	t, err := r.tree(u)
	if err != nil {
		return nil, err
	}
	var out []*Site
	var walk func(n *node) error
	walk = func(n *node) error {
		if n.Tag == tagSubprogram || n.Tag == tagInlinedSubroutine {
			s, err := r.site(n)
			if err != nil {
				return err
			}
			if s != nil {
				out = append(out, s)
			}
		}
		for _, c := range n.children {
			if err := walk(c); err != nil {
				return err
			}
		}
		return nil
	}
	return out, walk(t.root)
}

// Reads reports whether an entry is in the unit that Around has read last.
func (r *Reader) Reads(die uint64) bool { return die >= r.unit.Off && die < r.unit.End }

// Around returns the sites of the unit that has an entry, by their entries. It reads the unit unless it was the last
// one: then the machines of other sites become invalid.
func (r *Reader) Around(die uint64) (map[uint64]*Site, error) {
	if r.Reads(die) {
		return r.sites, nil
	}
	i := sort.Search(len(r.f.Units), func(i int) bool { return r.f.Units[i].End > die })
	if i == len(r.f.Units) {
		return nil, nil
	}
	list, err := r.Sites(r.f.Units[i])
	if err != nil {
		return nil, err
	}
	r.unit, r.sites = r.f.Units[i], make(map[uint64]*Site, len(list))
	for _, s := range list {
		r.sites[s.DIE] = s
	}
	return r.sites, nil
}

// start returns the address where an entry's code is entered.
func (r *Reader) start(n *node) (addr uint64, ok bool, err error) {
	entry := n.Val(attrEntrypc)
	if a, is := entry.(uint64); is {
		return a, true, nil
	}
	addr, ok = n.Val(attrLowpc).(uint64)
	if !ok {
		// The base address is that of the first range, not of the lowest (DWARF 5
		// section 2.17).
		ranges, err := r.ranges(n)
		if err != nil || len(ranges) == 0 {
			return 0, false, err
		}
		addr = ranges[0][0]
	}
	if off, is := entry.(int64); is {
		addr += uint64(off)
	}
	return addr, true, nil
}

func (r *Reader) site(n *node) (*Site, error) {
	addr, ok, err := r.start(n)
	if err != nil || !ok || !r.f.executable(addr) {
		return nil, err
	}
	s := &Site{DIE: uint64(n.Offset), Inlined: n.Tag == tagInlinedSubroutine, Addr: addr, r: r, tree: n.unit}
	name, _, err := r.inherit(n, attrName)
	if err != nil || name == nil {
		return nil, err
	}
	s.Function, _ = name.Val.(string)
	if v, ok := n.Val(attrGNUEntryView).(int64); ok {
		s.View = uint64(v)
	}
	return s, r.fill(s, n)
}

// At returns the site as it is at another address and view of its body.
func (s *Site) At(addr, view uint64) (*Site, error) {
	n, err := s.r.at(ref(s.DIE))
	if err != nil {
		return nil, err
	}
	at := &Site{DIE: s.DIE, Function: s.Function, Inlined: s.Inlined, Addr: addr, View: view, r: s.r, tree: s.tree}
	return at, s.r.fill(at, n)
}

// fill reads what depends on the site's address: its frame base and its parameters.
func (r *Reader) fill(s *Site, n *node) (err error) {
	fun := n
	for fun != nil && fun.Tag != tagSubprogram {
		fun = fun.parent
	}
	if fun != nil {
		if s.FunctionStart, _, err = r.start(fun); err != nil {
			return err
		}
		if fb := fun.field(attrFrameBase); fb != nil {
			if s.FrameBase, _, err = r.location(s, fb, nil); err != nil {
				return err
			}
		}
	}
	return r.params(s, n)
}

// location returns the expression that an attribute has for a site.
func (r *Reader) location(s *Site, loc, views *field) ([]byte, Rule, error) {
	if b, ok := loc.Val.([]byte); ok {
		return b, RuleWhole, nil
	}
	list, err := r.list(s.tree, loc, views)
	if err != nil {
		return nil, RuleNone, err
	}
	expr, rule := choose(list, s.Addr, s.View)
	return expr, rule, nil
}

// NoFrame reports whether the site is the entry of a function whose frame base is a register
// that its prologue has not set yet, as in clang's output.
func (s *Site) NoFrame() (bool, error) {
	if !s.AtEntry() || len(s.FrameBase) != 1 || s.FrameBase[0] < 0x50 || s.FrameBase[0] > 0x6f {
		return false, nil
	}
	steady, err := s.r.f.SteadyFrame(s.Addr)
	return !steady, err
}

// stackPointers are the DWARF numbers of stack pointers, from the documents of the ABIs.
var stackPointers = map[elf.Machine]uint8{
	elf.EM_X86_64: 7, elf.EM_386: 4, elf.EM_AARCH64: 31, elf.EM_ARM: 13, elf.EM_S390: 15, elf.EM_PPC64: 1, elf.EM_RISCV: 2, elf.EM_MIPS: 29, elf.EM_LOONGARCH: 3,
}

// TooEarly reports whether a parameter's expression for the whole scope is relative to the
// stack pointer, at the entry of a function that has not moved it yet: the expression is
// meant for the code after the function's prologue.
func (s *Site) TooEarly(p *Param) (bool, error) {
	const breg0 = 0x70
	sp, known := stackPointers[s.r.f.machine]
	if !known || !s.AtEntry() || p.Rule != RuleWhole || len(p.Expr) == 0 || p.Expr[0] != breg0+sp {
		return false, nil
	}
	steady, err := s.r.f.SteadyFrame(s.Addr)
	return !steady, err
}

// gnu reports whether GCC compiled the site's unit.
func (s *Site) gnu() bool {
	name, _ := s.tree.root.Val(attrProducer).(string)
	return strings.HasPrefix(name, "GNU ")
}

// Machine returns the part of the machine's state that the image determines, for expressions
// of the site. The caller adds registers, memory and the call frame address. It is valid
// until the reader reads another unit.
func (s *Site) Machine() Machine {
	return Machine{
		AtEntry: s.AtEntry(), FrameBase: s.FrameBase, OffsetSize: s.tree.offset(), BigEndian: s.r.f.big, AddrSize: s.r.f.word,
		GNU:      s.gnu(),
		BaseType: func(off uint64) (BaseType, error) { return s.r.baseType(s.tree, off) },
		Indexed:  func(i uint64) (uint64, error) { return s.r.indexed(s.tree, i) },
	}
}
