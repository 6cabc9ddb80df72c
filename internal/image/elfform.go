package image

import (
	"debug/elf"
	"encoding/binary"
)

// elfForm says how numbers and tables of a file are written: by its class and byte order.
type elfForm struct {
	wide bool // 64 bits
	big  bool // big-endian
	// mips is set for 64-bit files for MIPS, whose relocations have three types.
	mips bool
}

func (src *source) form() elfForm {
	h := &src.file.FileHeader
	return elfForm{wide: h.Class == elf.ELFCLASS64, big: h.ByteOrder == binary.BigEndian, mips: h.Machine == elf.EM_MIPS && h.Class == elf.ELFCLASS64}
}

// order returns the byte order, for what is written.
func (f elfForm) order() interface {
	binary.ByteOrder
	binary.AppendByteOrder
} {
	if f.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// u16, u32 and u64 read a number, of tables: calls of order's methods would be a good part of their time.
func (f elfForm) u16(d []byte) uint16 {
	if f.big {
		return binary.BigEndian.Uint16(d)
	}
	return binary.LittleEndian.Uint16(d)
}

func (f elfForm) u32(d []byte) uint32 {
	if f.big {
		return binary.BigEndian.Uint32(d)
	}
	return binary.LittleEndian.Uint32(d)
}

func (f elfForm) u64(d []byte) uint64 {
	if f.big {
		return binary.BigEndian.Uint64(d)
	}
	return binary.LittleEndian.Uint64(d)
}

// word returns a number with the size of an address.
func (f elfForm) word(d []byte) uint64 {
	if f.wide {
		return f.u64(d)
	}
	return uint64(f.u32(d))
}

// rel is an Elf64_Rela, Elf32_Rela, Elf64_Rel or Elf32_Rel.
type rel struct {
	at     uint64
	symbol uint32
	// types has one type, or on 64-bit MIPS three, which are applied one after the other: each but
	// the first has the result of the one before as its addend, and no symbol.
	types  [3]uint32
	addend uint64
}

// relSize returns the bytes of a relocation with or without an addend.
func (f elfForm) relSize(addend bool) int {
	words := 2
	if addend {
		words++
	}
	if f.wide {
		return 8 * words
	}
	return 4 * words
}

// rel reads a relocation.
func (f elfForm) rel(d []byte, addend bool) (r rel) {
	r.at = f.word(d)
	if !f.wide {
		info := f.u32(d[4:])
		r.symbol, r.types[0] = info>>8, info&0xff
		if addend {
			r.addend = uint64(int64(int32(f.u32(d[8:]))))
		}
		return r
	}
	info := f.u64(d[8:])
	if r.symbol, r.types[0] = uint32(info>>32), uint32(info); f.mips {
		// 64-bit ELF Object File Specification for MIPS, section 2.9: a symbol of 32 bits, a special
		// symbol, and the third, second and first type, in this order of bytes in any byte order.
		r.symbol = f.u32(d[8:])
		r.types = [3]uint32{uint32(d[15]), uint32(d[14]), uint32(d[13])}
	}
	if addend {
		r.addend = f.u64(d[16:])
	}
	return r
}
