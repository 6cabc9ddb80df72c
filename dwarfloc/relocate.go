package dwarfloc

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/arch"
)

// A kernel module is a relocatable file: its sections have no addresses, and its
// debug information has gaps that a loader or a linker fills. Here each section
// gets a link-time address of its own, code first, and the gaps are filled for
// these addresses. The addresses only tell the places of one file apart: the kernel
// loads each section where it likes, so a site is its symbol plus offset.

const (
	// layoutBase is where the first section is put: not at 0, which stands for code
	// that is not there.
	layoutBase = 1 << 16
	// layoutLimit bounds the addresses: what is relative to an address has 32 bits.
	layoutLimit = 1 << 31
)

// LoadsApart reports whether the image is a relocatable file (a kernel module, an
// object file). Its sections have addresses that were chosen here, in order of the
// file, sections with instructions first, and that no program has in memory; no
// number turns one into the other.
func (img *Image) LoadsApart() bool { return img.file.Type == elf.ET_REL }

// layOut gives the sections of a relocatable file their addresses. They leave gaps,
// so that the end of one is not the start of another.
func layOut(path string, file *elf.File) error {
	if file.Type != elf.ET_REL {
		return nil
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

// sameLayout lays out a file with separate debug information and reports whether
// its sections have the image's addresses.
func (img *Image) sameLayout(path string, file *elf.File) bool {
	if file.Type != img.file.Type || layOut(path, file) != nil {
		return false
	}
	if !img.LoadsApart() {
		return true
	}
	var other []Section
	for _, s := range file.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 {
			other = append(other, Section{Name: s.Name, Addr: s.Addr, Size: s.Size, Exec: s.Flags&elf.SHF_EXECINSTR != 0})
		}
	}
	return slices.Equal(other, img.sections)
}

const (
	elfRelaSize = 24 // of an Elf64_Rela
	elfSymSize  = 24 // of an Elf64_Sym
	// relaChunk is how many relocations one processor applies at a time.
	relaChunk = 1 << 17
)

// relocator applies the relocations of one file.
type relocator struct {
	src     *source
	types   []*arch.Relocation // by type
	name    func(uint32) string
	symbols []relocSymbol
}

// relocSymbol is what a relocation needs of a symbol.
type relocSymbol struct {
	addr uint64
	base uint64 // of its section
}

// relocate fills the gaps in sections of a relocatable file.
func (src *source) relocate(a *arch.Arch, list []taken) error {
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
		if rel.Type == elf.SHT_REL {
			return src.errorf(rel.Name, 0, "unsupported relocations without addends (SHT_REL): the ABI of %s has none", a.Name)
		}
		if r == nil {
			var err error
			if r, err = src.relocator(a, rel.Link); err != nil {
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

// relocator reads the symbol table with an index.
func (src *source) relocator(a *arch.Arch, symtab uint32) (*relocator, error) {
	r := &relocator{src: src, name: a.RelocationName}
	for i := range a.Relocations() {
		t := &a.Relocations()[i]
		for uint32(len(r.types)) <= t.Type {
			r.types = append(r.types, nil)
		}
		r.types[t.Type] = t
	}
	sections := src.file.Sections
	if symtab >= uint32(len(sections)) || sections[symtab].Type != elf.SHT_SYMTAB {
		return nil, src.errorf("", 0, "the relocations name section %d as their symbol table, which is none", symtab)
	}
	d, err := src.sectionData(sections[symtab])
	if err != nil {
		return nil, err
	}
	// Indices of more than 16 bits stand in a table of their own.
	var wide []byte
	for _, s := range sections {
		if s.Type == elf.SHT_SYMTAB_SHNDX && s.Link == symtab {
			if wide, err = src.sectionData(s); err != nil {
				return nil, err
			}
		}
	}
	r.symbols = make([]relocSymbol, len(d)/elfSymSize)
	for i := range r.symbols {
		e := d[i*elfSymSize:]
		s := &r.symbols[i]
		section := uint32(binary.LittleEndian.Uint16(e[6:]))
		value := binary.LittleEndian.Uint64(e[8:])
		switch elf.SectionIndex(section) {
		case elf.SHN_UNDEF, elf.SHN_COMMON:
			continue // somewhere else: address 0, which is no code
		case elf.SHN_ABS:
			s.addr = value
			continue
		case elf.SHN_XINDEX:
			section = 0
			if 4*i+4 <= len(wide) {
				section = binary.LittleEndian.Uint32(wide[4*i:])
			}
		}
		if section == 0 || section >= uint32(len(sections)) {
			return nil, src.errorf(sections[symtab].Name, uint64(i*elfSymSize), "the symbol is in section %d, and there are %d", section, len(sections))
		}
		s.base = sections[section].Addr
		s.addr = s.base + value
	}
	return r, nil
}

// apply returns a relocated copy of a section. Relocations are sorted by offset, as
// assemblers and linkers write them, so that each processor copies and fills a part
// of the section; those that are not sorted are applied by one.
func (r *relocator) apply(t *taken, rel *elf.Section, relas []byte) ([]byte, error) {
	n := len(relas) / elfRelaSize
	offset := func(i int) uint64 { return binary.LittleEndian.Uint64(relas[i*elfRelaSize:]) }
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
		err := sideBySide(chunks, func(i int) (err error) {
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
	bad := func(i int, format string, args ...any) error {
		return r.src.errorf(rel.Name, uint64(i*elfRelaSize), format, args...)
	}
	for i := first; i < last; i++ {
		e := relas[i*elfRelaSize : i*elfRelaSize+elfRelaSize]
		at := binary.LittleEndian.Uint64(e)
		typ, index := binary.LittleEndian.Uint32(e[8:]), binary.LittleEndian.Uint32(e[12:])
		v := binary.LittleEndian.Uint64(e[16:])
		var t *arch.Relocation
		if uint64(typ) < uint64(len(r.types)) {
			t = r.types[typ]
		}
		if t == nil {
			return true, bad(i, "unknown relocation type %d (%s)", typ, r.name(typ))
		}
		if t.Size == 0 {
			continue
		}
		size := uint64(t.Size)
		if at > uint64(len(out)) || size > uint64(len(out))-at {
			return true, bad(i, "the relocation is for offset %#x of %s, which has %#x bytes", at, sec.Name, len(out))
		}
		if at < lo || at+size > hi {
			return false, nil
		}
		if uint64(index) >= uint64(len(r.symbols)) {
			return true, bad(i, "the relocation names symbol %d, and there are %d", index, len(r.symbols))
		}
		s := &r.symbols[index]
		switch t.Kind {
		case arch.Absolute:
			v += s.addr
		case arch.Relative:
			v += s.addr - (sec.Addr + at)
		case arch.ThreadLocal:
			v += s.addr - s.base
		}
		switch t.Size {
		case 8:
			binary.LittleEndian.PutUint64(out[at:], v)
			continue
		case 4:
			binary.LittleEndian.PutUint32(out[at:], uint32(v))
		case 2:
			binary.LittleEndian.PutUint16(out[at:], uint16(v))
		case 1:
			out[at] = uint8(v)
		}
		// Signed or unsigned, the value must be the one that was meant.
		if zeroExtend(v, t.Size) != v && uint64(signExtend(v, t.Size)) != v {
			return true, bad(i, "%s does not hold the value %#x", t.Name, v)
		}
	}
	return true, nil
}

// moduleAddress refuses a location that needs an address of a relocatable file.
func (img *Image) moduleAddress(loc *Location) *stop {
	if !img.LoadsApart() {
		return nil
	}
	var addr *Expr
	loc.Exprs(func(e *Expr) {
		e.Walk(func(n *Expr) {
			if n.Op == OpAddr && addr == nil {
				addr = n
			}
		})
	})
	if addr == nil {
		return nil
	}
	detail := "outside the file"
	if s := img.SectionAt(addr.K); s != nil {
		detail = fmt.Sprintf("%s+%#x", s.Name, addr.K-s.Addr)
	}
	return &stop{reason: Reason{ModuleAddress, detail}}
}
