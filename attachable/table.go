// Package attachable predicts, from a kernel image alone, at which addresses the kernel accepts
// a kprobe, why it refuses one at the others, and what a hit costs.
//
//	table, err := attachable.New(img)
//	cause := table.At(site.Addr) // attachable.CauseNone if it accepts one
//	method := table.Method(site.Addr) // by ftrace, by a jump, or by a breakpoint
//
// The rules are those of Linux 6.1 to 7.2: check_kprobe_address_safe and
// check_ftrace_location in kernel/kprobes.c, within_notrace_func in
// kernel/trace/trace_kprobe.c, can_probe in arch/x86/kernel/kprobes/core.c, and
// arm_kprobe_decode_insn in arch/arm64/kernel/probes/decode-insn.c. Each checks a table that
// the image has too, or code. Tests confirm the predictions by probes at 2,000 random sites of
// Debian's 6.1, 6.12 and 7.2 for amd64 and 6.1 and 7.2 for arm64, at 400 of its 6.1 for s390x, ppc64el and armhf, at
// 800 for i386, at 400 of
// 6.12 for riscv64 and at 1,500 of its 7.2 for loong64, one at a time, and by
// the kernel's own list of them. At does not consider code that the kernel replaces when it boots, for
// its processor's errata.
package attachable

import (
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/ktable"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// span is a range of link-time addresses, [lo, hi).
type span struct{ lo, hi uint64 }

// Table has what predictions for one image need. It is safe for concurrent use.
type Table struct {
	img       *dwarfloc.Image
	release   [2]int // of the kernel, major and minor; 0 if the image does not say
	sections  []area // by name, as kernel and linker script have them
	areas     []area // between two symbols
	blacklist []span // functions, in order
	mcount    []uint64
	jumps     []uint64
	statics   []uint64
	bugs      map[uint64]struct{}

	// What only Method needs, on amd64.
	x86     x86Rules
	faults  []uint64 // instructions that may fault
	patches []ktable.Patch
	unread  []string

	readings  readings
	functions functions

	once sync.Once
	base map[string]uint64 // functions from which clones may be made
}

type area struct {
	span
	cause Cause
}

// sectionCauses are the sections where probes are refused.
var sectionCauses = map[string]Cause{
	".init.text": causeFreedInit, ".exit.text": causeFreedInit, ".altinstr_replacement": causeFreedInit, ".altinstr_aux": causeFreedInit,
	".noinstr.text": causeNoInstr, ".entry.text": causeEntry, ".kprobes.text": causeKprobesText,
}

// symbolAreas are the same areas if a linker script puts the sections into .text, and those of one architecture
// (arch_populate_kprobe_blacklist in arch/arm64/kernel/probes/kprobes.c).
var symbolAreas = []struct {
	from, to string
	cause    Cause
	arch     string // "" for all
}{
	{"__noinstr_text_start", "__noinstr_text_end", causeNoInstr, ""},
	{"__entry_text_start", "__entry_text_end", causeEntry, ""},
	{"__kprobes_text_start", "__kprobes_text_end", causeKprobesText, ""},
	{"_sinittext", "_einittext", causeFreedInit, ""},
	{"__irqentry_text_start", "__irqentry_text_end", causeEntry, "arm64"},
	{"__hyp_text_start", "__hyp_text_end", causeNoInstr, "arm64"},
}

// New reads the tables of a kernel or a kernel module. No probe is refused because of a table
// that the image does not have. The error is about a damaged image.
func New(img *dwarfloc.Image) (*Table, error) {
	t := &Table{img: img, bugs: make(map[uint64]struct{})}
	for _, s := range inside.File(img).Sections() {
		if c, ok := sectionCauses[s.Name]; ok {
			t.sections = append(t.sections, area{span{s.Addr, s.Addr + s.Size}, c})
		}
	}
	var names []string
	for _, a := range symbolAreas {
		names = append(names, a.from, a.to)
	}
	marks, err := ktable.Find(inside.File(img), append(names, symbolsX86...)...)
	if err != nil {
		return nil, err
	}
	t.release[0], t.release[1], _ = marks.Release()
	for _, a := range symbolAreas {
		if lo, hi, ok := marks.Between(a.from, a.to); ok && (a.arch == "" || a.arch == img.Arch().Name) {
			t.areas = append(t.areas, area{span{lo, hi}, a.cause})
		}
	}
	for _, l := range []struct {
		table *ktable.Form
		add   func(uint64)
	}{
		{ktable.Jumps, func(a uint64) { t.jumps = append(t.jumps, a) }},
		{ktable.StaticCalls, func(a uint64) { t.statics = append(t.statics, a) }},
		{ktable.Bugs, func(a uint64) { t.bugs[a] = struct{}{} }},
		{ktable.Blacklist, func(a uint64) {
			if r, ok := t.rangeOf(a); ok {
				t.blacklist = append(t.blacklist, r)
			}
		}},
	} {
		all, err := marks.Addresses(l.table)
		if err != nil {
			return nil, err
		}
		for _, addr := range all {
			l.add(addr)
		}
	}
	if t.mcount, err = marks.Calls(); err != nil {
		return nil, err
	}
	slices.Sort(t.mcount)
	slices.Sort(t.jumps)
	slices.Sort(t.statics)
	t.blacklist = radix.Sort(t.blacklist, func(s *span) uint64 { return s.lo })
	if read := methodsOf[img.Arch().Name].read; read != nil {
		err = read(t, marks)
	}
	t.unread = marks.Unread()
	return t, err
}

// Unread returns the kernel's tables that are in a form that is not known, by the symbols at their beginnings. What they list is not
// seen: probes that the kernel refuses for it are predicted to be accepted.
func (t *Table) Unread() []string { return t.unread }

// rangeOf returns the code from the symbol at or before an address to the next symbol, as
// kallsyms does.
func (t *Table) rangeOf(addr uint64) (span, bool) {
	_, lo, hi, ok := inside.File(t.img).CodeRange(addr)
	return span{lo, hi}, ok
}

// At returns why the kernel refuses a probe at a link-time address, or CauseNone. For a pack, which has neither code nor
// symbols, At only knows section ranges; use Of.
func (t *Table) At(addr uint64) (c Cause) {
	// Reads fail after Close; they must not be taken for a refusal.
	if err := inside.File(t.img).Guard(func() error { c = t.at(addr); return nil }); err != nil {
		return causeNotRead
	}
	return c
}

// Of is At for the address of a site. A pack has the answer of its image for the places where bodies begin, if it is a
// kernel's.
func (t *Table) Of(s *dwarfloc.Site) Cause {
	text, known := inside.Refused(s)
	if !known {
		return t.At(s.Addr)
	}
	for c := CauseNone; c < causeNotRead; c++ {
		if c.String() == text {
			return c
		}
	}
	return CauseNone
}

func (t *Table) at(addr uint64) Cause {
	if s := inside.File(t.img).SectionAt(addr); s == nil || !s.Exec {
		return causeNotCode
	}
	for _, areas := range [][]area{t.sections, t.areas} {
		for _, a := range areas {
			if addr >= a.lo && addr < a.hi {
				return a.cause
			}
		}
	}
	f := t.functionAt(addr)
	switch {
	case f == nil && inside.AnsweredBy(t.img) != "":
		return CauseNone
	case f == nil:
		return causeNotCode
	case t.listed(addr), f.listed:
		return causeBlacklisted
	case f.untraced:
		return causeNoFtrace
	}
	if i, _ := slices.BinarySearch(t.mcount, addr+1); i > 0 && addr != t.mcount[i-1] && addr-t.mcount[i-1] < t.callSize() {
		return causeInFtrace
	}
	switch {
	case t.covered(t.jumps, addr):
		return causeJumpLabel
	case t.covered(t.statics, addr):
		return causeStaticCall
	}
	if _, ok := t.bugs[addr]; ok {
		return causeBug
	}
	if at, checked := t.boundary(f.span, addr); checked && !at {
		return causeMidInstruction
	}
	return t.refuses(f.lo, addr)
}

// function is what is the same for all addresses of a function.
type function struct {
	span
	listed   bool // what it was made from is in the blacklist
	untraced bool // neither it nor what it was made from has a call of ftrace
}

// functions keeps what some functions are, each at the places of addresses in it that were asked about.
type functions [256]atomic.Pointer[function]

// functionAt returns the function that has an address, or nil.
func (t *Table) functionAt(addr uint64) *function {
	const together = 6 // bits: bytes of code that have one place
	place := &t.functions[addr>>together%uint64(len(t.functions))]
	if f := place.Load(); f != nil && addr >= f.lo && addr < f.hi {
		return f
	}
	name, lo, hi, ok := inside.File(t.img).CodeRange(addr)
	if !ok {
		return nil
	}
	f := &function{span: span{lo, hi}}
	whole, hasWhole := t.unsuffixed(name)
	f.listed = hasWhole && t.listed(whole.lo)
	f.untraced = len(t.mcount) > 0 && !within(t.mcount, f.span) && (!hasWhole || !within(t.mcount, whole))
	place.Store(f)
	return f
}

// unsuffixed returns the function that a clone was made from: foo for foo.isra.0 and foo.cold.
// The kernel checks that function too.
func (t *Table) unsuffixed(name string) (f span, ok bool) {
	base, _, ok := strings.Cut(name, ".")
	if !ok || base == "" {
		return f, false
	}
	t.once.Do(t.readBases)
	addr, ok := t.base[base]
	if !ok {
		return f, false
	}
	f, ok = t.rangeOf(addr)
	return f, ok && f.hi > f.lo
}

// readBases finds the functions of the names that clones have before their suffixes. Of several with one name it is the first by
// address, as it is for the kernel (kernel/kallsyms.c, kallsyms_lookup_name).
func (t *Table) readBases() {
	clones := make(map[string]bool)
	for s := range inside.File(t.img).Symbols() {
		if base, _, ok := strings.Cut(s.Name, "."); ok && base != "" {
			clones[base] = true
		}
	}
	t.base = make(map[string]uint64, len(clones))
	for s := range inside.File(t.img).Symbols() {
		if _, known := t.base[s.Name]; !known && clones[s.Name] {
			t.base[s.Name] = s.Addr
		}
	}
}

// within reports whether one of some sorted addresses is in a range.
func within(addrs []uint64, r span) bool {
	i, _ := slices.BinarySearch(addrs, r.lo)
	return i < len(addrs) && addrs[i] < r.hi
}

// listed reports whether an address is in a function of the blacklist.
func (t *Table) listed(addr uint64) bool {
	i := sort.Search(len(t.blacklist), func(i int) bool { return t.blacklist[i].lo > addr })
	return i > 0 && addr < t.blacklist[i-1].hi
}

// covered reports whether an address is in an instruction whose address is in a sorted list.
func (t *Table) covered(list []uint64, addr uint64) bool {
	i, _ := slices.BinarySearch(list, addr+1)
	return i > 0 && addr-list[i-1] < maxInstruction && addr-list[i-1] < t.instructionSize(list[i-1])
}
