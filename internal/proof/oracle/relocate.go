package oracle

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
)

// contents returns the bytes of a section, decompressed.
func contents(s *elf.Section) ([]byte, error) {
	d, err := s.Data() // decompresses what says so in its flags
	if err != nil || !bytes.HasPrefix(d, []byte("ZLIB")) || s.Name[:2] != ".z" || len(d) < 12 {
		return d, err
	}
	// GNU's old form: "ZLIB", the size in big-endian order, and the data.
	r, err := zlib.NewReader(bytes.NewReader(d[12:]))
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint64(d[4:])
	out, err := io.ReadAll(io.LimitReader(r, int64(min(size, 1<<32))))
	if err == nil && uint64(len(out)) != size {
		err = fmt.Errorf("%d bytes decompressed, and it has %d", len(out), size)
	}
	return out, err
}

// relocation says what a type of relocation writes: size bytes, relative to their own place
// or not, in place of what is there, or added to or taken from it.
type relocation struct {
	size     int
	relative bool
	sign     int // 1 or -1: what is there is changed by the value
}

// The types that compilers write for debug information and frames, by their numbers in the documents of the
// ABIs: AMD64, table 4.9; Arm 64-bit, section 5.7; Arm, table 4-8; Intel386, table 4.9; Power ELF V2, table 3.20;
// RISC-V, table 3; s390x, table 2.6; MIPS, table 32; LoongArch 2.30, "Relocation types".
var relocations = map[elf.Machine]map[uint32]relocation{
	elf.EM_X86_64: {
		uint32(elf.R_X86_64_64): {size: 8}, uint32(elf.R_X86_64_32): {size: 4}, uint32(elf.R_X86_64_32S): {size: 4},
		uint32(elf.R_X86_64_PC32): {size: 4, relative: true}, uint32(elf.R_X86_64_PLT32): {size: 4, relative: true}, uint32(elf.R_X86_64_PC64): {size: 8, relative: true},
		uint32(elf.R_X86_64_DTPOFF64): {size: 8}, uint32(elf.R_X86_64_DTPOFF32): {size: 4},
	},
	elf.EM_AARCH64: {
		uint32(elf.R_AARCH64_ABS64): {size: 8}, uint32(elf.R_AARCH64_ABS32): {size: 4}, uint32(elf.R_AARCH64_ABS16): {size: 2},
		uint32(elf.R_AARCH64_PREL64): {size: 8, relative: true}, uint32(elf.R_AARCH64_PREL32): {size: 4, relative: true},
	},
	elf.EM_ARM:   {2: {size: 4}, 3: {size: 4, relative: true}},
	elf.EM_386:   {1: {size: 4}, 2: {size: 4, relative: true}},
	elf.EM_PPC64: {1: {size: 4}, 38: {size: 8}, 26: {size: 4, relative: true}, 44: {size: 8, relative: true}},
	elf.EM_MIPS:  {2: {size: 4}, 18: {size: 8}},
	elf.EM_S390:  {4: {size: 4}, 22: {size: 8}, 5: {size: 4, relative: true}, 23: {size: 8, relative: true}},
	elf.EM_RISCV: {
		1: {size: 4}, 2: {size: 8}, 57: {size: 4, relative: true}, 51: {},
		33: {size: 1, sign: 1}, 34: {size: 2, sign: 1}, 35: {size: 4, sign: 1}, 36: {size: 8, sign: 1},
		37: {size: 1, sign: -1}, 38: {size: 2, sign: -1}, 39: {size: 4, sign: -1}, 40: {size: 8, sign: -1},
		54: {size: 1}, 55: {size: 2}, 56: {size: 4}, 53: {size: sixBits}, 52: {size: sixBits, sign: -1},
	},
	elf.EM_LOONGARCH: {
		1: {size: 4}, 2: {size: 8}, 8: {size: 4}, 9: {size: 8}, 99: {size: 4, relative: true}, 109: {size: 8, relative: true}, 100: {},
		105: {size: sixBits, sign: 1}, 47: {size: 1, sign: 1}, 48: {size: 2, sign: 1}, 49: {size: 3, sign: 1}, 50: {size: 4, sign: 1}, 51: {size: 8, sign: 1},
		106: {size: sixBits, sign: -1}, 52: {size: 1, sign: -1}, 53: {size: 2, sign: -1}, 54: {size: 3, sign: -1}, 55: {size: 4, sign: -1}, 56: {size: 8, sign: -1},
		107: {size: leb, sign: 1}, 108: {size: leb, sign: -1},
	},
}

// Sizes of relocations that are not of whole bytes.
const (
	sixBits = -6 // of the low six bits of a byte
	leb     = -7 // of seven bits of each byte up to the first without the eighth one
)

// relocate returns a section of a relocatable file with its gaps filled. addrs are the
// addresses of the file's sections, by their indices.
func relocate(e *elf.File, index int, d []byte, addrs []uint64, symbols []elf.Symbol) ([]byte, error) {
	for _, rel := range e.Sections {
		if rel.Type != elf.SHT_RELA && rel.Type != elf.SHT_REL || int(rel.Info) != index {
			continue
		}
		entries, err := rel.Data()
		if err != nil {
			return nil, err
		}
		d = bytes.Clone(d)
		word := 8
		if e.Class == elf.ELFCLASS32 {
			word = 4
		}
		big := e.Data == elf.ELFDATA2MSB
		for c := (cursor{d: entries, big: big}); c.p < uint64(len(entries)); {
			at, info := c.uint(word), c.uint(word)
			typ, n := uint32(info), info>>32
			switch {
			case word == 4:
				typ, n = uint32(info)&0xff, info>>8
			case e.Machine == elf.EM_MIPS:
				typ, n = uint32(info>>56), info&0xffffffff // and two more types, which are 0
			}
			addend := uint64(0)
			if rel.Type == elf.SHT_RELA {
				addend = uint64(c.sint(word))
			}
			if typ == 0 {
				continue // nothing
			}
			how, ok := relocations[e.Machine][typ]
			size, mask := how.size, ^uint64(0)
			switch size {
			case sixBits:
				size, mask = 1, 63
			case leb:
				size = 1 // at least
			}
			if !ok || c.bad || at > uint64(len(d)) || uint64(size) > uint64(len(d))-at {
				return nil, fmt.Errorf("%s: a relocation of type %d at %#x", rel.Name, typ, at)
			}
			there := cursor{d: d, p: at, big: big}
			old := uint64(0)
			switch how.size {
			case 0:
				continue
			case leb:
				old = there.uleb()
			default:
				old = there.uint(size)
			}
			if there.bad {
				return nil, fmt.Errorf("%s: a relocation of type %d at %#x", rel.Name, typ, at)
			}
			if rel.Type == elf.SHT_REL {
				addend = Extend(old, size, true)
			}
			v := addend
			// Symbol 0 has no name and no value, and debug/elf leaves it out.
			if n > uint64(len(symbols)) {
				return nil, fmt.Errorf("%s: symbol %d of %d", rel.Name, n, len(symbols))
			} else if n > 0 {
				s := &symbols[n-1]
				v += s.Value
				if int(s.Section) < len(addrs) {
					v += addrs[s.Section]
				}
			}
			if how.relative {
				v -= addrs[index] + at
			}
			switch how.sign {
			case 1:
				v = old + v
			case -1:
				v = old - v
			}
			if how.size == leb {
				for ; at < there.p; at++ {
					d[at] = d[at]&0x80 | byte(v)&0x7f
					v >>= 7
				}
				continue
			}
			copy(d[at:], bytesOf(v&mask|old&^mask, size, big))
		}
	}
	return d, nil
}
