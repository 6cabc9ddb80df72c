package oracle

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// File is an image: its sections as bytes, and where its units are.
type File struct {
	Units []Unit

	sections map[string][]byte
	code     [][2]uint64 // address ranges of sections with instructions
	ehFrame  uint64      // address of .eh_frame
	frames   frames
	loaded   []uint64 // see Open

	machine elf.Machine
	big     bool // numbers are big-endian
	word    int  // bytes of an address
	locals  map[uint64]uint64
}

// Unit is one unit of .debug_info.
type Unit struct {
	Off, End uint64 // header, and end
	Version  int
	Type     bool // a type unit: no code
	Dwarf64  bool

	first   uint64 // entry
	abbrevs uint64 // offset of its abbreviations
	address int    // bytes of an address
}

// offset is the size of an offset in other sections.
func (u *Unit) offset() int {
	if u.Dwarf64 {
		return 8
	}
	return 4
}

// Open reads the sections of an image that are needed here. Sections that the image does not
// have are taken from separate, the path of the file with its debug information, or "". A
// relocatable file has no addresses: loaded are those of its sections that are loaded, in
// the file's order. A kernel takes a second: Open ends early, with ctx's cause, when ctx does.
func Open(ctx context.Context, path, separate string, loaded ...uint64) (*File, error) {
	f := &File{sections: make(map[string][]byte), loaded: loaded}
	for _, p := range []string{path, separate} {
		if p == "" {
			continue
		}
		r, err := os.Open(p)
		if err != nil {
			return nil, err
		}
		err = f.read(&reading{r, ctx})
		_ = r.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
	}
	return f, f.readUnits()
}

// reading reads a file until a context ends. debug/elf reads sections some megabytes at a time.
type reading struct {
	r   io.ReaderAt
	ctx context.Context
}

func (r *reading) ReadAt(b []byte, off int64) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.ReadAt(b, off)
}

// FromBytes is Open for a file in memory.
func FromBytes(b []byte) (*File, error) {
	f := &File{sections: make(map[string][]byte)}
	if err := f.read(bytes.NewReader(b)); err != nil {
		return nil, err
	}
	return f, f.readUnits()
}

func (f *File) read(r io.ReaderAt) error {
	e, err := elf.NewFile(r)
	if err != nil {
		return err
	}
	f.machine, f.big, f.word = e.Machine, e.Data == elf.ELFDATA2MSB, 8
	if e.Class == elf.ELFCLASS32 {
		f.word = 4
	}
	addrs, err := f.addresses(e)
	if err != nil {
		return err
	}
	var symbols []elf.Symbol
	if e.Type == elf.ET_REL {
		if symbols, err = e.Symbols(); err != nil {
			return fmt.Errorf("oracle: %w", err)
		}
	}
	own := make(map[string]bool)
	for i, s := range e.Sections {
		name := s.Name
		if rest, ok := strings.CutPrefix(name, ".z"); ok {
			name = "." + rest
		}
		if own[name] && wanted[name] {
			return fmt.Errorf("oracle: several sections %s", name)
		}
		own[name] = true
		if !wanted[name] || s.Type == elf.SHT_NOBITS || f.sections[name] != nil {
			continue
		}
		d, err := contents(s)
		if err == nil && e.Type == elf.ET_REL {
			d, err = relocate(e, i, d, addrs, symbols)
		}
		if err != nil {
			return fmt.Errorf("oracle: section %s: %w", s.Name, err)
		}
		f.sections[name] = d
		if name == ".eh_frame" {
			f.ehFrame = addrs[i]
		}
	}
	if f.machine == elf.EM_PPC64 && f.locals == nil {
		f.locals = make(map[uint64]uint64)
		all, err := e.Symbols()
		if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
			return fmt.Errorf("oracle: %w", err)
		}
		for _, s := range all {
			at := s.Value
			if e.Type == elf.ET_REL && int(s.Section) < len(addrs) {
				at += addrs[s.Section]
			}
			// ELF V2 ABI, section 3.4.1: PPC64_LOCAL_ENTRY_OFFSET
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
				if n := uint64(1) << (s.Other >> 5) >> 2 << 2; n > 0 {
					f.locals[at] = n
				}
			}
		}
	}
	if f.code != nil {
		return nil // the image's own
	}
	for i, s := range e.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Flags&elf.SHF_EXECINSTR != 0 {
			f.code = append(f.code, [2]uint64{addrs[i], addrs[i] + s.Size})
		}
	}
	return nil
}

// wanted are the sections that are needed here.
var wanted = map[string]bool{
	".debug_info": true, ".debug_abbrev": true, ".debug_str": true, ".debug_line_str": true, ".debug_str_offsets": true, ".debug_addr": true,
	".debug_ranges": true, ".debug_rnglists": true, ".debug_loc": true, ".debug_loclists": true, ".debug_frame": true, ".eh_frame": true, ".debug_line": true,
}

// addresses returns the addresses of a file's sections.
func (f *File) addresses(e *elf.File) ([]uint64, error) {
	out := make([]uint64, len(e.Sections))
	loaded := f.loaded
	for i, s := range e.Sections {
		out[i] = s.Addr
		if e.Type != elf.ET_REL || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		if len(loaded) == 0 {
			return nil, errors.New("oracle: a relocatable file, such as a module, has no addresses, and Open was given none")
		}
		out[i], loaded = loaded[0], loaded[1:]
	}
	return out, nil
}

// readUnits reads the headers of the units (DWARF 5 section 7.5.1).
func (f *File) readUnits() error {
	d := f.sections[".debug_info"]
	for off := uint64(0); off < uint64(len(d)); {
		c := f.cursor(d, off)
		u := Unit{Off: off}
		n := c.uint(4)
		if n == 0xffffffff {
			u.Dwarf64 = true
			n = c.uint(8)
		}
		if n > uint64(len(d)) {
			return fmt.Errorf("oracle: unit at %#x: length %#x", off, n)
		}
		u.End = c.p + n
		u.Version = int(c.uint(2))
		if u.Version < 2 || u.Version > 5 {
			return fmt.Errorf("oracle: unit at %#x: version %d", off, u.Version)
		}
		if u.Version >= 5 {
			kind := c.uint(1)
			u.address = int(c.uint(1))
			u.abbrevs = c.uint(u.offset())
			switch kind {
			case 0x02, 0x06: // type, split_type: a signature, and where the type is
				u.Type = true
				c.uint(8)
				c.uint(u.offset())
			case 0x04, 0x05: // skeleton, split_compile: what the other half is found by
				c.uint(8)
			}
		} else {
			u.abbrevs = c.uint(u.offset())
			u.address = int(c.uint(1))
		}
		u.first = c.p
		if u.address != 4 && u.address != 8 {
			return fmt.Errorf("oracle: unit at %#x: addresses of %d bytes", off, u.address)
		}
		if c.bad || u.End > uint64(len(d)) {
			return fmt.Errorf("oracle: unit at %#x does not fit into .debug_info", off)
		}
		f.Units = append(f.Units, u)
		off = u.End
	}
	return nil
}

// Section returns the bytes of a section of the debug information, decompressed.
func (f *File) Section(name string) []byte { return f.sections[name] }

// Probe returns where a probe at an address has to be: on ppc64el, callers in the same image skip the first
// instructions of a function, where only the others begin.
func (f *File) Probe(addr uint64) uint64 {
	for back := uint64(0); back < 64 && len(f.locals) > 0; back += 4 {
		if n := f.locals[addr-back]; n > back {
			return addr - back + n
		}
	}
	return addr
}

// executable reports whether an address is in a section with instructions.
func (f *File) executable(addr uint64) bool {
	for _, r := range f.code {
		if addr >= r[0] && addr < r[1] {
			return true
		}
	}
	return false
}

// cursor returns a cursor for a section.
func (f *File) cursor(d []byte, p uint64) cursor { return cursor{d: d, p: p, big: f.big} }

// cursor reads numbers. Reading past the end gives zeros and sets bad.
type cursor struct {
	d   []byte
	p   uint64
	big bool // the numbers are big-endian
	bad bool
}

func (c *cursor) bytes(n uint64) []byte {
	if c.bad || c.p > uint64(len(c.d)) || n > uint64(len(c.d))-c.p {
		c.bad = true
		return nil
	}
	c.p += n
	return c.d[c.p-n : c.p]
}

func (c *cursor) uint(n int) uint64 {
	var b [8]byte
	if c.big {
		copy(b[8-n:], c.bytes(uint64(n)))
		return binary.BigEndian.Uint64(b[:])
	}
	copy(b[:], c.bytes(uint64(n)))
	return binary.LittleEndian.Uint64(b[:])
}

func (c *cursor) sint(n int) int64 {
	return int64(c.uint(n)<<(64-8*n)) >> (64 - 8*n)
}

func (c *cursor) uleb() uint64 {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		b := c.uint(1)
		v |= (b & 0x7f) << shift
		if b&0x80 == 0 {
			return v
		}
	}
}

func (c *cursor) sleb() int64 {
	var v uint64
	shift := uint(0)
	for {
		b := c.uint(1)
		v |= (b & 0x7f) << shift
		shift += 7
		if b&0x80 == 0 {
			if b&0x40 != 0 {
				v |= ^uint64(0) << shift
			}
			return int64(v)
		}
	}
}
