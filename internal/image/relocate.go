package image

import (
	"debug/elf"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// A kernel module is a relocatable file: its sections have no addresses, and its
// debug information has gaps for a loader or linker to fill. Here each section gets
// its own link-time address, code first, and the gaps are filled accordingly. These
// addresses only distinguish places in the file: the kernel loads each section where
// it likes, so probes use symbol plus offset.

const (
	// layoutBase is the first section's address. It is not 0, which means that code
	// was dropped.
	layoutBase = 1 << 16
	// layoutLimit bounds the addresses, because relative values have 32 bits.
	layoutLimit = 1 << 31
)

// layOut assigns addresses to the sections of a relocatable file, with gaps so that
// the end of one is not the start of another. The address of a section that is joined with
// others of its name is its offset there.
func layOut(path string, file *elf.File) error {
	if file.Type != elf.ET_REL {
		return nil
	}
	ends := make(map[string]uint64)
	for _, s := range file.Sections {
		if joined[s.Name] {
			s.Addr = ends[s.Name]
			ends[s.Name] += s.Size
		}
	}
	at := uint64(layoutBase)
	for _, exec := range []bool{true, false} {
		for _, s := range file.Sections {
			if s.Flags&elf.SHF_ALLOC == 0 || s.Flags&elf.SHF_EXECINSTR != 0 != exec {
				continue
			}
			align := max(s.Addralign, 16)
			if align&(align-1) != 0 || align > layoutLimit || s.Size > layoutLimit {
				return &FormatError{Path: path, Section: s.Name, Msg: "invalid size or alignment"}
			}
			s.Addr = (at + align - 1) &^ (align - 1)
			at = s.Addr + s.Size + 1
			if at > layoutLimit {
				return &FormatError{Path: path, Section: s.Name, Msg: "the sections are too large for a relocatable file"}
			}
		}
	}
	return nil
}

// sameLayout lays out a file with separate debug information and reports whether its
// sections have the addresses of f's.
func (f *File) sameLayout(path string, file *elf.File) bool {
	if file.Type != f.own.file.Type || layOut(path, file) != nil {
		return false
	}
	return !f.IsRelocatable() || slices.Equal(loaded(file), f.sections)
}

// relaChunk is how many relocations a goroutine applies at a time.
const relaChunk = 1 << 17

// relocator applies the relocations of one file.
type relocator struct {
	src     *source
	form    elfForm
	types   []*relocation // by type
	name    func(uint32) string
	symbols []relocSymbol
}

// relocSymbol is what a relocation needs to know about a symbol.
type relocSymbol struct {
	addr uint64
	base uint64 // its section's address
}

// relocate fills the gaps in sections of a relocatable file.
func (src *source) relocate(arch string, list []taken) error {
	if src.file.Type != elf.ET_REL {
		return nil
	}
	var r *relocator
	for _, rel := range src.file.Sections {
		if rel.Type != elf.SHT_RELA && rel.Type != elf.SHT_REL {
			continue
		}
		i := slices.IndexFunc(list, func(t taken) bool { return uint32(t.index) == rel.Info })
		if i < 0 {
			continue
		}
		if rel.Type == elf.SHT_REL && !relocationTables[arch].inPlace {
			return src.errorf(rel.Name, 0, "unsupported relocations without addends (SHT_REL): the ABI of %s has none", arch)
		}
		if r == nil {
			var err error
			if r, err = src.relocator(arch, rel.Link); err != nil {
				return err
			}
		}
		relas, err := src.sectionData(rel)
		if err != nil {
			return err
		}
		t := &list[i]
		if t.d, err = r.apply(t, rel, relas); err != nil {
			return err
		}
	}
	return nil
}

// relocator returns a relocator for the symbol table in the section with an index.
func (src *source) relocator(arch string, symtab uint32) (*relocator, error) {
	r := &relocator{src: src, form: src.form()}
	r.use(relocationTables[arch])
	sections := src.file.Sections
	if symtab >= uint32(len(sections)) || sections[symtab].Type != elf.SHT_SYMTAB {
		return nil, src.errorf("", 0, "the relocations name section %d as their symbol table, which is none", symtab)
	}
	d, err := src.sectionData(sections[symtab])
	if err != nil {
		return nil, err
	}
	// Section indices with more than 16 bits are in a separate table.
	var wide []byte
	for _, s := range sections {
		if s.Type == elf.SHT_SYMTAB_SHNDX && s.Link == symtab {
			if wide, err = src.sectionData(s); err != nil {
				return nil, err
			}
		}
	}
	size := r.form.symSize()
	r.symbols = make([]relocSymbol, len(d)/size)
	for i := range r.symbols {
		sym := r.form.sym(d[i*size:])
		s := &r.symbols[i]
		section := uint32(sym.section)
		switch sym.section {
		case elf.SHN_UNDEF, elf.SHN_COMMON:
			continue // defined elsewhere: address 0, where no code is
		case elf.SHN_ABS:
			s.addr = sym.value
			continue
		case elf.SHN_XINDEX:
			section = 0
			if 4*i+4 <= len(wide) {
				section = r.form.u32(wide[4*i:])
			}
		}
		if section == 0 || section >= uint32(len(sections)) {
			return nil, src.errorf(sections[symtab].Name, uint64(i*size), "the symbol is in section %d, and there are %d", section, len(sections))
		}
		s.base = sections[section].Addr
		s.addr = s.base + sym.value
	}
	return r, nil
}

// use sets the architecture's relocations.
func (r *relocator) use(table relocationTable) {
	r.name = table.name
	for i := range table.types {
		t := &table.types[i]
		for uint32(len(r.types)) <= t.typ {
			r.types = append(r.types, nil)
		}
		r.types[t.typ] = t
	}
}

// apply returns a relocated copy of a section. Assemblers and linkers sort relocations
// by offset, so each processor can copy and fill a part of the section. If they are not
// sorted, one processor does all.
func (r *relocator) apply(t *taken, rel *elf.Section, relas []byte) ([]byte, error) {
	size := r.form.relSize(rel.Type == elf.SHT_RELA)
	n := len(relas) / size
	offset := func(i int) uint64 { return r.form.word(relas[i*size:]) }
	out := make([]byte, len(t.d))
	chunks := (n + relaChunk - 1) / relaChunk
	bounds := make([]uint64, chunks+1)
	for i := 1; i < chunks; i++ {
		bounds[i] = offset(i * relaChunk)
	}
	bounds[chunks] = uint64(len(out))
	sorted := slices.IsSorted(bounds)
	if sorted {
		inOrder := make([]bool, chunks)
		err := inParallel(chunks, func(i int) (err error) {
			lo, hi := bounds[i], bounds[i+1]
			copy(out[lo:hi], t.d[lo:hi])
			inOrder[i], err = r.fill(t.sec, rel, out, relas, i*relaChunk, min(n, (i+1)*relaChunk), lo, hi)
			return err
		})
		sorted = !slices.Contains(inOrder, false)
		if err != nil && sorted {
			return nil, err
		}
	}
	if !sorted || chunks == 0 {
		copy(out, t.d)
		if _, err := r.fill(t.sec, rel, out, relas, 0, n, 0, uint64(len(out))); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fill applies the relocations from first to last-1, all of which must be within
// [lo, hi) of the section; within reports whether they are.
func (r *relocator) fill(sec, rel *elf.Section, out, relas []byte, first, last int, lo, hi uint64) (within bool, err error) {
	addends := rel.Type == elf.SHT_RELA
	size := r.form.relSize(addends)
	bad := func(i int, format string, args ...any) error {
		return r.src.errorf(rel.Name, uint64(i*size), format, args...)
	}
	for i := first; i < last; i++ {
		e := r.form.rel(relas[i*size:], addends)
		var t *relocation
		if uint64(e.types[0]) < uint64(len(r.types)) {
			t = r.types[e.types[0]]
		}
		if t == nil || e.types[1] != 0 || e.types[2] != 0 {
			typ := e.types[0]
			if t != nil {
				typ = max(e.types[1], e.types[2])
			}
			return true, bad(i, "unknown relocation type %d (%s)", typ, r.name(typ))
		}
		if t.size == 0 {
			continue
		}
		bytes := uint64(t.size)
		if t.kind.isULEB() && e.at < uint64(len(out)) {
			bytes = ulebSize(out[e.at:])
		}
		if e.at > uint64(len(out)) || bytes > uint64(len(out))-e.at {
			return true, bad(i, "the relocation is for offset %#x of %s, which has %#x bytes", e.at, sec.Name, len(out))
		}
		if e.at < lo || e.at+bytes > hi {
			return false, nil
		}
		if uint64(e.symbol) >= uint64(len(r.symbols)) {
			return true, bad(i, "the relocation names symbol %d, and there are %d", e.symbol, len(r.symbols))
		}
		s, to := &r.symbols[e.symbol], out[e.at:e.at+bytes]
		v := e.addend
		if !addends {
			v = r.form.signed(to)
		}
		switch t.kind {
		case relative:
			v += s.addr - (sec.Addr + e.at)
		case threadLocal:
			v += s.addr - s.base
		default:
			v += s.addr
		}
		if t.kind >= add {
			r.form.change(to, t.kind, v)
			continue
		}
		// The value must fit, either as signed or as unsigned.
		r.form.put(to, v)
		if shift := 64 - 8*t.size; v<<shift>>shift != v && uint64(int64(v<<shift)>>shift) != v {
			return true, bad(i, "%s does not hold the value %#x", t.name, v)
		}
	}
	return true, nil
}

// number returns a number of 1, 2, 4 or 8 bytes, or of 3 in little-endian order.
func (f elfForm) number(d []byte) uint64 {
	switch len(d) {
	case 1:
		return uint64(d[0])
	case 2:
		return uint64(f.u16(d))
	case 3:
		return uint64(d[0]) | uint64(d[1])<<8 | uint64(d[2])<<16
	case 4:
		return uint64(f.u32(d))
	}
	return f.u64(d)
}

// signed is number for a signed one.
func (f elfForm) signed(d []byte) uint64 {
	shift := 64 - 8*len(d)
	return uint64(int64(f.number(d)<<shift) >> shift)
}

// put writes the low bytes of a number.
func (f elfForm) put(d []byte, v uint64) {
	switch len(d) {
	case 1:
		d[0] = uint8(v)
	case 2:
		f.order().PutUint16(d, uint16(v))
	case 3:
		d[0], d[1], d[2] = uint8(v), uint8(v>>8), uint8(v>>16)
	case 4:
		f.order().PutUint32(d, uint32(v))
	default:
		f.order().PutUint64(d, v)
	}
}

// change changes what is in the section by a value.
func (f elfForm) change(d []byte, k relocationKind, v uint64) {
	switch k {
	case add:
		f.put(d, f.number(d)+v)
	case subtract:
		f.put(d, f.number(d)-v)
	case set:
		f.put(d, v)
	case setSix:
		d[0] = d[0]&^63 | uint8(v)&63
	case addSix:
		d[0] = d[0]&^63 | (d[0]+uint8(v))&63
	case subtractSix:
		d[0] = d[0]&^63 | (d[0]-uint8(v))&63
	case setULEB:
		putULEB(d, v)
	case addULEB:
		r := bin.Reader{D: d}
		putULEB(d, r.ULEB()+v)
	case subtractULEB:
		r := bin.Reader{D: d}
		putULEB(d, r.ULEB()-v)
	}
}

// ulebSize returns the bytes of the LEB128 number that d begins with, all of d if it does not end.
func ulebSize(d []byte) uint64 {
	for i, c := range d {
		if c&0x80 == 0 {
			return uint64(i + 1)
		}
	}
	return uint64(len(d))
}

// putULEB writes a number over one that has as many bytes.
func putULEB(d []byte, v uint64) {
	for i := range d {
		d[i] = d[i]&0x80 | uint8(v)&0x7f
		v >>= 7
	}
}
