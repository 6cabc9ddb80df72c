// Package ktable reads the tables in which a kernel image lists places in its code: those that
// the kernel replaces or patches, those where a fault or trap leads elsewhere, and those that
// kprobes treat specially.
//
// Tables of kernel modules are not read: in a relocatable file no symbols mark them, and their
// entries are only relocations.
package ktable

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/image"
)

// A Form is the form of a table: entries between two symbols, each of which begins with the
// address that it is for.
type Form struct {
	from, to string
	// sizes are the bytes that an entry has in some kernels. Nothing in an image says in which:
	// the first size is taken that divides the table, and with which check accepts all entries.
	sizes []int
	// narrow are the sizes on machines of 32 bits. There any address may be one, and not from its own
	// place: check tells.
	narrow   []int
	relative bool // the address is 32 bits from its own place, else a word
	// check reports whether an entry can be one. nil accepts all.
	check func(*Marks, entry) bool
}

var (
	// Blacklist has functions: include/linux/kprobes.h, NOKPROBE_SYMBOL.
	Blacklist = &Form{"__start_kprobe_blacklist", "__stop_kprobe_blacklist", []int{8}, []int{4}, false, nil}
	// Mcount has ftrace's calls: include/asm-generic/vmlinux.lds.h, MCOUNT_REC. Calls says where they are.
	Mcount = &Form{"__start_mcount_loc", "__stop_mcount_loc", []int{8}, []int{4}, false, nil}
	// Jumps has static branches: include/linux/jump_label.h, struct jump_entry with
	// CONFIG_HAVE_ARCH_JUMP_LABEL_RELATIVE.
	Jumps = &Form{"__start___jump_table", "__stop___jump_table", []int{16}, []int{12}, true, isJump}
	// StaticCalls is in include/linux/static_call_types.h, struct static_call_site.
	StaticCalls = &Form{"__start_static_call_sites", "__stop_static_call_sites", []int{8}, []int{8}, true, nil}
	// Bugs has traps: include/asm-generic/bug.h, struct bug_entry with
	// CONFIG_GENERIC_BUG_RELATIVE_POINTERS. Without CONFIG_DEBUG_BUGVERBOSE it has 8 bytes. With HAVE_ARCH_BUG_FORMAT, as
	// x86 in 7.2, it has the message too, and 16.
	Bugs = &Form{"__start___bug_table", "__stop___bug_table", []int{12, 8, 16}, []int{12, 8, 16}, true, isBug}
	// Faults has instructions that may fault: struct exception_table_entry in
	// arch/x86/include/asm/extable.h and arch/arm64/include/asm/extable.h. On arm64 it has had 12
	// bytes since 5.16, and 8 before.
	Faults = &Form{"__start___ex_table", "__stop___ex_table", []int{12, 8}, []int{12, 8}, true, isFault}
	// replaced has code with alternatives: struct alt_instr in arch/*/include/asm/alternative.h.
	// On x86 it has had 14 bytes since 6.3, 12 since 5.13, and 13 before; on s390x it has 11 in 6.1, where both lengths are one.
	replaced = &Form{"__alt_instructions", "__alt_instructions_end", []int{12, 14, 13, 11}, []int{12, 14, 13}, true, isReplaced}
	// paravirt has calls through pv_ops: struct paravirt_patch_site in
	// arch/x86/include/asm/paravirt_types.h, until Linux 6.7.
	paravirt = &Form{"__parainstructions", "__parainstructions_end", []int{16}, []int{8}, false, nil}
)

var forms = []*Form{Blacklist, Mcount, Jumps, StaticCalls, Bugs, Faults, replaced, paravirt}

// Marks are the addresses of the symbols that a linker script puts around tables and code.
type Marks struct {
	f    *image.File
	at   map[string]uint64
	code []image.Section // with instructions
	// unread are tables that the image has in no known form, by the symbols at their beginnings.
	unread []string
}

// Unread returns tables that were asked for and that the image has in a form that is not known, by the symbols at their beginnings:
// what they say is missing from every answer.
func (m *Marks) Unread() []string { return m.unread }

// Find finds the symbols around all tables, and others by name. The error is about a damaged image.
func Find(f *image.File, others ...string) (*Marks, error) {
	others = append(append(others, thunks...), patching...)
	for _, l := range forms {
		others = append(others, l.from, l.to)
	}
	others = append(others, callOps)
	at, err := f.SymbolAddresses(others...)
	code := slices.DeleteFunc(slices.Clone(f.Sections()), func(s image.Section) bool { return !s.Exec })
	return &Marks{f: f, at: at, code: code}, err
}

// Address returns the address of a symbol.
func (m *Marks) Address(name string) (addr uint64, ok bool) {
	addr, ok = m.at[name]
	return addr, ok
}

// Between returns the addresses of two symbols.
func (m *Marks) Between(from, to string) (lo, hi uint64, ok bool) {
	lo, ok = m.at[from]
	hi, also := m.at[to]
	return lo, hi, ok && also && hi > lo
}

// Addresses returns the addresses that a table lists, in its order. There are none if the image
// does not have it. The error is about a damaged image.
func (m *Marks) Addresses(l *Form) ([]uint64, error) {
	t, err := m.read(l)
	if err != nil || t == nil {
		return nil, err
	}
	out := make([]uint64, 0, t.count())
	if l.relative {
		t.each(func(e entry) { out = append(out, e.near(0)) })
		return out, nil
	}
	moved, err := m.f.Moved(t.addr, t.addr+uint64(len(t.d)))
	if err != nil {
		return nil, err
	}
	t.each(func(e entry) {
		addr := e.word(0)
		if to, ok := moved[e.addr]; ok {
			addr = to
		}
		out = append(out, addr)
	})
	return out, nil
}

// list is a table's bytes.
type list struct {
	addr uint64
	size int // of an entry
	d    []byte
	form
}

// form is how the numbers of a table are read.
type form struct {
	order    binary.ByteOrder
	word     int  // bytes
	relative bool // addresses are distances from where they are
}

// entry is one entry of a table.
type entry struct {
	addr uint64
	d    []byte
	*form
}

// near returns the address in 32 bits at an offset.
func (e entry) near(at int) uint64 {
	n := e.order.Uint32(e.d[at:])
	if !e.relative {
		return uint64(n)
	}
	to := e.addr + uint64(at) + uint64(int64(int32(n)))
	if e.form.word == 4 {
		to = uint64(uint32(to))
	}
	return to
}

// word returns the machine word at an offset.
func (e entry) word(at int) uint64 {
	if e.form.word == 4 {
		return uint64(e.order.Uint32(e.d[at:]))
	}
	return e.order.Uint64(e.d[at:])
}

func (e entry) u16(at int) uint16 { return e.order.Uint16(e.d[at:]) }

func (m *Marks) order() binary.ByteOrder {
	if m.f.BigEndian() {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// read returns a table, or nil if the image does not have it or, which it notes, no size fits.
func (m *Marks) read(l *Form) (*list, error) {
	lo, hi, ok := m.Between(l.from, l.to)
	if !ok {
		return nil, nil
	}
	d, err := m.f.Bytes(lo, hi-lo)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.from, err)
	}
	sizes, forms := l.sizes, []bool{l.relative}
	word := m.f.Arch().WordSize
	if word == 4 && l.relative {
		forms = append(forms, false)
	}
	if word == 4 {
		sizes = l.narrow
	}
	for _, size := range sizes {
		for _, relative := range forms {
			t := &list{lo, size, d, form{m.order(), word, relative}}
			if l.check == nil || len(d)%size == 0 && t.all(func(e entry) bool { return l.check(m, e) }) {
				return t, nil
			}
		}
	}
	if !slices.Contains(m.unread, l.from) {
		m.unread = append(m.unread, l.from)
	}
	return nil, nil
}

func (t *list) count() int { return len(t.d) / t.size }

func (t *list) at(i int) entry {
	return entry{t.addr + uint64(i*t.size), t.d[i*t.size : (i+1)*t.size], &t.form}
}

func (t *list) each(f func(entry)) {
	for i := range t.count() {
		f(t.at(i))
	}
}

func (t *list) all(check func(entry) bool) bool {
	for i := range t.count() {
		if !check(t.at(i)) {
			return false
		}
	}
	return true
}
