// Package bin reads numbers as DWARF and ELF write them: of fixed size in either byte
// order, LEB128, offsets and initial lengths.
package bin

import (
	"bytes"
	"encoding/binary"
)

// Reader reads numbers from bytes. A read past the end gives zero and sets Bad, so that
// a caller checks once after a group of reads. Nothing here panics on any input.
type Reader struct {
	D         []byte
	P         int // offset of the next byte in D
	BigEndian bool
	Bad       bool
}

// Fail sets Bad and leaves nothing to read.
func (b *Reader) Fail() {
	b.Bad = true
	b.P = len(b.D)
}

// Seek moves to an absolute position.
func (b *Reader) Seek(off uint64) {
	if off > uint64(len(b.D)) {
		b.Fail()
		return
	}
	b.P = int(off)
}

// Skip passes over n bytes.
func (b *Reader) Skip(n uint64) {
	if n > uint64(len(b.D)-b.P) {
		b.Fail()
		return
	}
	b.P += int(n)
}

// Bytes reads n bytes, which are not copied.
func (b *Reader) Bytes(n uint64) []byte {
	if n > uint64(len(b.D)-b.P) {
		b.Fail()
		return nil
	}
	s := b.D[b.P : b.P+int(n) : b.P+int(n)]
	b.P += int(n)
	return s
}

// U8 reads a number of one byte.
func (b *Reader) U8() uint8 {
	if b.P >= len(b.D) {
		b.Fail()
		return 0
	}
	v := b.D[b.P]
	b.P++
	return v
}

// U16 reads a number of two bytes.
func (b *Reader) U16() uint16 {
	s := b.Bytes(2)
	if s == nil {
		return 0
	}
	if b.BigEndian {
		return binary.BigEndian.Uint16(s)
	}
	return binary.LittleEndian.Uint16(s)
}

// U32 reads a number of four bytes.
func (b *Reader) U32() uint32 {
	s := b.Bytes(4)
	if s == nil {
		return 0
	}
	if b.BigEndian {
		return binary.BigEndian.Uint32(s)
	}
	return binary.LittleEndian.Uint32(s)
}

// U64 reads a number of eight bytes.
func (b *Reader) U64() uint64 {
	s := b.Bytes(8)
	if s == nil {
		return 0
	}
	if b.BigEndian {
		return binary.BigEndian.Uint64(s)
	}
	return binary.LittleEndian.Uint64(s)
}

// Uint reads an unsigned number of n bytes, 1 to 8.
func (b *Reader) Uint(n int) uint64 {
	switch n {
	case 1:
		return uint64(b.U8())
	case 2:
		return uint64(b.U16())
	case 4:
		return uint64(b.U32())
	case 8:
		return b.U64()
	}
	return Uint(b.Bytes(uint64(n)), b.BigEndian)
}

// Uint is the unsigned number that up to 8 bytes stand for.
func Uint(s []byte, be bool) uint64 {
	var v uint64
	for i, c := range s {
		if be {
			v = v<<8 | uint64(c)
		} else if i < 8 {
			v |= uint64(c) << (8 * i)
		}
	}
	return v
}

// Sint reads a signed number of n bytes, 1 to 8.
func (b *Reader) Sint(n int) int64 {
	return SignExtend(b.Uint(n), n)
}

// SignExtend reads the low size bytes of v as a signed number.
func SignExtend(v uint64, size int) int64 {
	if size <= 0 || size >= 8 {
		return int64(v)
	}
	shift := 64 - 8*uint(size)
	return int64(v<<shift) >> shift
}

// ZeroExtend keeps the low size bytes of v.
func ZeroExtend(v uint64, size int) uint64 {
	if size <= 0 || size >= 8 {
		return v
	}
	return v & (1<<(8*uint(size)) - 1)
}

// ULEB reads an unsigned LEB128 number. Bits above 64 are dropped, as readers of
// DWARF do; a number that does not end within the section is bad.
func (b *Reader) ULEB() uint64 {
	if b.P < len(b.D) && b.D[b.P] < 0x80 {
		v := b.D[b.P]
		b.P++
		return uint64(v)
	}
	var v uint64
	for shift := uint(0); ; shift += 7 {
		if b.P >= len(b.D) {
			b.Fail()
			return 0
		}
		c := b.D[b.P]
		b.P++
		if shift < 64 {
			v |= uint64(c&0x7f) << shift
		}
		if c < 0x80 {
			return v
		}
	}
}

// SLEB reads a signed LEB128 number.
func (b *Reader) SLEB() int64 {
	var v uint64
	for shift := uint(0); ; {
		if b.P >= len(b.D) {
			b.Fail()
			return 0
		}
		c := b.D[b.P]
		b.P++
		if shift < 64 {
			v |= uint64(c&0x7f) << shift
		}
		shift += 7
		if c < 0x80 {
			if c&0x40 != 0 && shift < 64 {
				v |= ^uint64(0) << shift
			}
			return int64(v)
		}
	}
}

// CString reads a string up to its NUL byte, which is passed over.
func (b *Reader) CString() []byte {
	i := bytes.IndexByte(b.D[b.P:], 0)
	if i < 0 {
		b.Fail()
		return nil
	}
	s := b.D[b.P : b.P+i]
	b.P += i + 1
	return s
}

// Offset reads a section offset: 8 bytes in 64-bit DWARF, else 4.
func (b *Reader) Offset(dwarf64 bool) uint64 {
	if dwarf64 {
		return b.U64()
	}
	return uint64(b.U32())
}

// UnitLength reads an initial length (DWARF 5 section 7.4).
func (b *Reader) UnitLength() (n uint64, dwarf64 bool) {
	n = uint64(b.U32())
	switch {
	case n == 0xffffffff:
		return b.U64(), true
	case n >= 0xfffffff0:
		b.Fail()
		return 0, false
	}
	return n, false
}

// ULEBOr reads a number of n bytes, or ULEB128 for n = 0.
func (b *Reader) ULEBOr(n int) uint64 {
	if n == 0 {
		return b.ULEB()
	}
	return b.Uint(n)
}

// CStringAt returns the string at an offset of a string section.
func CStringAt(d []byte, off uint64) ([]byte, bool) {
	if off >= uint64(len(d)) {
		return nil, false
	}
	i := bytes.IndexByte(d[off:], 0)
	if i < 0 {
		return nil, false
	}
	return d[off : off+uint64(i)], true
}
