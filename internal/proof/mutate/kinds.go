package mutate

import (
	"bytes"
	"debug/elf"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// kind is a kind of mutations. change makes one; it does nothing where a file has nothing to change.
type kind struct {
	name   string
	change func(*variant)
}

// kinds are what is done to images, in the order of the table.
var kinds = []kind{
	{"references", (*variant).reference},
	{"counts and lengths", func(v *variant) { v.attribute(classNumber) }},
	{"addresses", func(v *variant) { v.attribute(classAddress) }},
	{"offsets of lists and tables", func(v *variant) { v.attribute(classOffset) }},
	{"location and range lists", (*variant).list},
	{"views", (*variant).views},
	{"expressions", (*variant).expression},
	{"names and string offsets", (*variant).text},
	{"abbreviations", func(v *variant) { v.bytes(named(".debug_abbrev")) }},
	{"unit headers", (*variant).unit},
	{"entries", func(v *variant) { v.bytes(named(".debug_info", ".debug_types")) }},
	{"address tables", func(v *variant) { v.words(named(".debug_addr"), 8) }},
	{"line programs", (*variant).lines},
	{"frames", (*variant).frames},
	{"exception tables", func(v *variant) { v.bytes(named(".gcc_except_table")) }},
	{"relocations", (*variant).relocation},
	{"symbols", (*variant).symbol},
	{"notes and debug links", (*variant).note},
	{"ELF headers", (*variant).elfHeader},
	{"section headers", (*variant).sectionHeader},
	{"compression", (*variant).compression},
	{"code", func(v *variant) { v.bytes(func(s *elf.Section) bool { return s.Flags&elf.SHF_EXECINSTR != 0 }) }},
	{"kernel tables", (*variant).kernelTable},
	{"truncation", (*variant).truncate},
}

// Kinds that are none of images.
const (
	keptKind   = "kept index"
	objectKind = "BPF objects"
)

// mutate damages a good file. The result depends on the generator alone. done is what was done to it,
// and is empty if the file has nothing of the kind.
func mutate(l *layout, good []byte, r *rand.Rand, k *kind) (data []byte, done []string) {
	v := &variant{layout: l, Rand: r, data: bytes.Clone(good)}
	for n, tries := 1+r.IntN(3), 0; len(v.said) < n && tries < 8; tries++ {
		k.change(v)
	}
	if bytes.Equal(v.data, good) {
		return nil, nil
	}
	return v.data, v.said
}

// bytes changes some bytes of one of the sections that match.
func (v *variant) bytes(match func(*elf.Section) bool) {
	b, name := v.pick(match)
	v.somewhere(b, name)
}

// words changes an entry, or a part of one, of a table.
func (v *variant) words(match func(*elf.Section) bool, size int) {
	b, name := v.pick(match)
	if len(b) < size {
		return
	}
	at := v.IntN(len(b)/size) * size
	part := []int{1, 2, 4, 8}[v.IntN(4)]
	if part > size {
		part = size
	}
	off := at + v.IntN(size/part)*part
	v.number(b[off:off+part], name)
}

// attribute changes the value of an attribute.
func (v *variant) attribute(c class) {
	if f, ok := v.field(func(f *field) bool { return f.class == c }); ok {
		v.change(f)
	}
}

// reference lets an entry refer to another one, to itself, or to the middle of something.
func (v *variant) reference() {
	isRef := func(f *field) bool { return f.class == classReference }
	f, ok := v.field(isRef)
	if !ok {
		return
	}
	b := v.bytesOf(f)
	if f.form != dw.FormRef4 && f.form != dw.FormRefAddr || v.IntN(4) == 0 || len(b) < 4 {
		v.change(f)
		return
	}
	to := uint32(f.value)
	switch v.IntN(4) {
	case 0: // what another one refers to
		if o, ok := v.field(isRef); ok {
			to = uint32(o.value)
		}
	case 1: // near itself, so that it, or a parent, refers to itself
		to = le.Uint32(b) - uint32(v.IntN(64))
		if f.off > 64 {
			to = uint32(f.off) - uint32(v.IntN(64))
		}
	case 2: // any attribute
		o := v.fields[v.IntN(len(v.fields))]
		to = uint32(o.off - 1)
	default:
		to += uint32(v.IntN(9)) - 4
	}
	le.PutUint32(b, to)
	v.say(".debug_info+%#x: %v now refers to %#x", f.off, f.attr, to)
}

// list changes a location list or range list where it begins, or its offsets.
func (v *variant) list() {
	isList := named(".debug_loc", ".debug_loclists", ".debug_ranges", ".debug_rnglists")
	b, name := v.pick(isList)
	f, ok := v.field(func(f *field) bool { return f.form == dw.FormSecOffset && f.value < uint64(len(b)) })
	if !ok || v.IntN(3) == 0 {
		v.somewhere(b, name)
		return
	}
	v.somewhere(b[f.value:min(f.value+48, uint64(len(b)))], name)
}

// views changes what says at which view of an address something begins.
func (v *variant) views() {
	f, ok := v.field(func(f *field) bool { return f.attr == dw.AttrGNULocviews || f.attr == dw.AttrGNUEntryView })
	if !ok {
		return
	}
	lists, name := v.pick(named(".debug_loc", ".debug_loclists"))
	if f.attr == dw.AttrGNUEntryView || v.IntN(2) == 0 || f.value >= uint64(len(lists)) {
		v.change(f)
		return
	}
	v.somewhere(lists[f.value:min(f.value+12, uint64(len(lists)))], name+": views") // pairs are before the list
}

// operations are those of DWARF that take a path of their own (DWARF 5, section 7.7.1).
var operations = []byte{
	0x03, 0x06, 0x0a, 0x0e, 0x10, 0x11, 0x12, 0x14, 0x15, 0x16, 0x1b, 0x1c, 0x1d, 0x1e, 0x22, 0x23, 0x24, 0x26, 0x28, 0x2f,
	0x30, 0x50, 0x6f, 0x70, 0x77, 0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e,
	0x9f, 0xa0, 0xa1, 0xa3, 0xa4, 0xa5, 0xa6, 0xa8, 0xa9, 0xe0, 0xf0, 0xf2, 0xf3, 0xf5, 0xf7, 0xf9, 0xfa,
}

// expression changes the operations of an expression, or its length.
func (v *variant) expression() {
	b, what := []byte(nil), ".debug_info: an expression"
	if f, ok := v.field(func(f *field) bool { return f.class == classExpression }); ok && v.IntN(3) > 0 {
		b = v.bytesOf(f)
		if v.IntN(4) == 0 {
			v.number(b[:min(1, len(b))], what+"'s length")
			return
		}
		b = b[min(1, len(b)):]
	} else {
		b, what = v.pick(named(".debug_loc", ".debug_loclists"))
	}
	if len(b) == 0 {
		return
	}
	if v.IntN(3) == 0 {
		v.somewhere(b, what)
		return
	}
	at := v.IntN(len(b))
	for i := at; i < min(len(b), at+1+v.IntN(3)); i++ {
		b[i] = operations[v.IntN(len(operations))]
	}
	v.say("%s+%#x: operation %#x", what, at, b[at])
}

// text changes a name, or where it is.
func (v *variant) text() {
	switch v.IntN(4) {
	case 0:
		v.bytes(named(".debug_str", ".debug_line_str"))
	case 1: // a name without end, or with what terminals obey
		b, name := v.pick(named(".debug_str", ".debug_line_str", ".strtab"))
		if len(b) > 0 {
			at := v.IntN(len(b))
			copy(b[at:], []string{"\x1b]0;\a", "\n#", "*/", "{}\"'", "\xff\xfe", "\xe2\x80\xae", "%s%n", "..", "/", "a b"}[v.IntN(10)])
			v.say("%s+%#x: a name", name, at)
		}
	case 2:
		v.words(named(".debug_str_offsets"), 4)
	default:
		v.attribute(classString)
	}
}

// chain returns where the parts of a section begin that say how long they are: units, tables, frames.
func chain(b []byte) (starts []int) {
	for at := 0; at+12 <= len(b) && len(starts) < 10000; {
		starts = append(starts, at)
		at += 4 + int(le.Uint32(b[at:]))
	}
	return starts
}

// part picks one of the parts of a section.
func (v *variant) part(match func(*elf.Section) bool) ([]byte, string) {
	b, name := v.pick(match)
	starts := chain(b)
	if len(starts) == 0 {
		return nil, ""
	}
	i := v.IntN(len(starts))
	end := len(b)
	if i+1 < len(starts) {
		end = min(end, starts[i+1])
	}
	return b[starts[i]:end], name
}

// unit changes the header of a unit.
func (v *variant) unit() {
	b, name := v.part(named(".debug_info", ".debug_types", ".debug_aranges", ".debug_addr", ".debug_str_offsets", ".debug_rnglists", ".debug_loclists"))
	v.somewhere(b[:min(24, len(b))], name+": a header")
}

// lines changes the header of a line table, or its program.
func (v *variant) lines() {
	b, name := v.part(named(".debug_line"))
	if len(b) > 12 && v.IntN(2) == 0 {
		v.somewhere(b[:min(len(b), 40)], name+": a header")
		return
	}
	v.somewhere(b, name)
}

// frames changes a description of frames.
func (v *variant) frames() {
	b, name := v.part(named(".debug_frame", ".eh_frame"))
	if v.IntN(3) == 0 {
		v.somewhere(b[:min(len(b), 24)], name+": a header")
		return
	}
	v.somewhere(b, name)
}

// relocation changes a field of a relocation: where, what kind, of which symbol, plus what.
func (v *variant) relocation() { v.words(typed(elf.SHT_RELA), relaSize) }

// symbol changes a field of a symbol, or a relocation of the global offset table.
func (v *variant) symbol() {
	if v.IntN(8) == 0 {
		v.bytes(named(".strtab", ".dynstr", ".got", ".got.plt"))
		return
	}
	v.words(typed(elf.SHT_SYMTAB, elf.SHT_DYNSYM), symbolSize)
}

// note changes a note, or what names a separate debug file.
func (v *variant) note() {
	b, name := v.pick(func(s *elf.Section) bool {
		return s.Type == elf.SHT_NOTE || strings.HasPrefix(s.Name, ".gnu_debug")
	})
	v.somewhere(b[:min(len(b), 40)], name)
}

// elfHeader changes a field of the file's header or of a segment's.
func (v *variant) elfHeader() {
	at, size := 16, headerSize-16
	if v.segments > 0 && v.IntN(3) == 0 {
		at, size = v.segments, 56*len(v.file.Progs)
	} else if v.IntN(8) == 0 {
		at, size = 0, 16
	}
	if at+size <= len(v.data) {
		v.somewhere(v.data[at:at+size], "header")
	}
}

// sectionHeader changes a field of a section's header, or exchanges two sections.
func (v *variant) sectionHeader() {
	i := v.IntN(len(v.file.Sections))
	h, name := v.header(i), v.file.Sections[i].Name
	if v.IntN(6) == 0 {
		j := v.IntN(len(v.file.Sections))
		o := v.header(j)
		for k := 24; k < 40; k++ { // offset and size
			h[k], o[k] = o[k], h[k]
		}
		v.say("sections %s and %s have each other's contents", name, v.file.Sections[j].Name)
		return
	}
	// Offsets and sizes of the fields (gABI, figure 4-8).
	f := [][2]int{{0, 4}, {4, 4}, {8, 8}, {16, 8}, {24, 8}, {32, 8}, {40, 4}, {44, 4}, {48, 8}, {56, 8}}[v.IntN(10)]
	v.number(h[f[0]:f[0]+f[1]], "the header of "+name)
}

// compression changes a compressed section as it is stored, or says that another one is compressed.
func (v *variant) compression() {
	found := v.sections(func(s *elf.Section) bool { return s.Flags&elf.SHF_COMPRESSED != 0 })
	if len(found) == 0 || v.IntN(8) == 0 {
		debug := v.sections(func(s *elf.Section) bool { return strings.HasPrefix(s.Name, ".debug_") })
		if len(debug) == 0 {
			return
		}
		i := debug[v.IntN(len(debug))]
		h := v.header(i)
		le.PutUint64(h[8:], le.Uint64(h[8:])^uint64(elf.SHF_COMPRESSED))
		v.say("%s is compressed, or no longer", v.file.Sections[i].Name)
		return
	}
	i := found[v.IntN(len(found))]
	h := v.header(i)
	off, size := le.Uint64(h[24:]), le.Uint64(h[32:])
	if off+size > uint64(len(v.data)) {
		return
	}
	if v.IntN(2) == 0 {
		size = min(size, 30)
	}
	v.somewhere(v.data[off:off+size], v.file.Sections[i].Name+", compressed")
}

// kernelTables are what a kernel or a module has about its code.
var kernelTables = []string{
	"__jump_table", "__ex_table", ".altinstructions", ".altinstr_replacement", "__bug_table", ".static_call_sites", "__mcount_loc",
	".parainstructions", "_kprobe_blacklist", ".return_sites", ".retpoline_sites", ".smp_locks", ".init.data", ".data", ".rodata",
	"__patchable_function_entries", ".orc_unwind_ip", "__ksymtab", ".modinfo", ".gnu.linkonce.this_module",
}

// kernelTable changes a table of the kernel's.
func (v *variant) kernelTable() {
	v.words(func(s *elf.Section) bool { return slices.Contains(kernelTables, s.Name) }, 8)
}

// truncate ends the file early.
func (v *variant) truncate() {
	if v.IntN(3) == 0 { // at the end of a section, or near
		s := v.file.Sections[v.IntN(len(v.file.Sections))]
		if at := int(s.Offset+s.FileSize) - v.IntN(3); at > 0 && at < len(v.data) {
			v.data = v.data[:at]
			v.say("the file ends at %#x", at)
		}
		return
	}
	v.data = v.data[:v.IntN(len(v.data)+1)]
	v.say("the file ends at %#x", len(v.data))
}
