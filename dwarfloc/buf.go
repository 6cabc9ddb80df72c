package dwarfloc

import (
	"bytes"
	"encoding/binary"
)

// buf reads values from a section. A read past the end gives zero and marks the
// buffer bad, so a caller checks once after a group of reads; nothing here
// panics on any input.
type buf struct {
	d   []byte
	p   int // next byte
	be  bool
	bad bool
}

func (b *buf) fail() {
	b.bad = true
	b.p = len(b.d)
}

// seek moves to an absolute position.
func (b *buf) seek(off uint64) {
	if off > uint64(len(b.d)) {
		b.fail()
		return
	}
	b.p = int(off)
}

func (b *buf) skip(n uint64) {
	if n > uint64(len(b.d)-b.p) {
		b.fail()
		return
	}
	b.p += int(n)
}

func (b *buf) bytes(n uint64) []byte {
	if n > uint64(len(b.d)-b.p) {
		b.fail()
		return nil
	}
	s := b.d[b.p : b.p+int(n) : b.p+int(n)]
	b.p += int(n)
	return s
}

func (b *buf) u8() uint8 {
	if b.p >= len(b.d) {
		b.fail()
		return 0
	}
	v := b.d[b.p]
	b.p++
	return v
}

func (b *buf) u16() uint16 {
	s := b.bytes(2)
	if s == nil {
		return 0
	}
	if b.be {
		return binary.BigEndian.Uint16(s)
	}
	return binary.LittleEndian.Uint16(s)
}

func (b *buf) u32() uint32 {
	s := b.bytes(4)
	if s == nil {
		return 0
	}
	if b.be {
		return binary.BigEndian.Uint32(s)
	}
	return binary.LittleEndian.Uint32(s)
}

func (b *buf) u64() uint64 {
	s := b.bytes(8)
	if s == nil {
		return 0
	}
	if b.be {
		return binary.BigEndian.Uint64(s)
	}
	return binary.LittleEndian.Uint64(s)
}

// uint reads an unsigned number of n bytes, 1 to 8.
func (b *buf) uint(n int) uint64 {
	switch n {
	case 1:
		return uint64(b.u8())
	case 2:
		return uint64(b.u16())
	case 4:
		return uint64(b.u32())
	case 8:
		return b.u64()
	}
	return bytesUint(b.bytes(uint64(n)), b.be)
}

// bytesUint is the unsigned number that up to 8 bytes stand for.
func bytesUint(s []byte, be bool) uint64 {
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

func (b *buf) sint(n int) int64 {
	return signExtend(b.uint(n), n)
}

// signExtend reads the low size bytes of v as a signed number.
func signExtend(v uint64, size int) int64 {
	if size <= 0 || size >= 8 {
		return int64(v)
	}
	shift := 64 - 8*uint(size)
	return int64(v<<shift) >> shift
}

// zeroExtend keeps the low size bytes of v.
func zeroExtend(v uint64, size int) uint64 {
	if size <= 0 || size >= 8 {
		return v
	}
	return v & (1<<(8*uint(size)) - 1)
}

// uleb reads an unsigned LEB128 number. Bits above 64 are dropped, as readers of
// DWARF do; a number that does not end within the section is bad.
func (b *buf) uleb() uint64 {
	if b.p < len(b.d) && b.d[b.p] < 0x80 {
		v := b.d[b.p]
		b.p++
		return uint64(v)
	}
	var v uint64
	for shift := uint(0); ; shift += 7 {
		if b.p >= len(b.d) {
			b.fail()
			return 0
		}
		c := b.d[b.p]
		b.p++
		if shift < 64 {
			v |= uint64(c&0x7f) << shift
		}
		if c < 0x80 {
			return v
		}
	}
}

func (b *buf) sleb() int64 {
	var v uint64
	for shift := uint(0); ; {
		if b.p >= len(b.d) {
			b.fail()
			return 0
		}
		c := b.d[b.p]
		b.p++
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

// cstr reads a string up to its NUL byte.
func (b *buf) cstr() []byte {
	i := bytes.IndexByte(b.d[b.p:], 0)
	if i < 0 {
		b.fail()
		return nil
	}
	s := b.d[b.p : b.p+i]
	b.p += i + 1
	return s
}

// offset reads a section offset: 8 bytes in 64-bit DWARF, else 4.
func (b *buf) offset(dwarf64 bool) uint64 {
	if dwarf64 {
		return b.u64()
	}
	return uint64(b.u32())
}

// unitLength reads an initial length (DWARF 5 section 7.4).
func (b *buf) unitLength() (n uint64, dwarf64 bool) {
	n = uint64(b.u32())
	switch {
	case n == 0xffffffff:
		return b.u64(), true
	case n >= 0xfffffff0:
		b.fail()
		return 0, false
	}
	return n, false
}
