package bin_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/leb128"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

func TestLEB128(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    []byte
		u    uint64
		s    int64
		n    int // bytes read
	}{
		// DWARF 5 section 7.6, figures 22 and 23.
		{"2", []byte{2}, 2, 2, 1},
		{"127", []byte{127 + 0x80, 0}, 127, 127, 2},
		{"128", []byte{0 + 0x80, 1}, 128, 128, 2},
		{"129", []byte{1 + 0x80, 1}, 129, 129, 2},
		{"-2", []byte{0x7e}, 0x7e, -2, 1},
		{"-127", []byte{1 + 0x80, 0x7f}, 0x3f81, -127, 2},
		{"-128", []byte{0 + 0x80, 0x7f}, 0x3f80, -128, 2},
		{"padded zero", []byte{0x80, 0x80, 0x00, 0x55}, 0, 0, 3},
		{"padded -1", []byte{0xff, 0xff, 0x7f}, 0x1fffff, -1, 3},
		{"64 bits set", append(bytes.Repeat([]byte{0xff}, 9), 0x01), math.MaxUint64, -1, 10},
		{"lowest", append(bytes.Repeat([]byte{0x80}, 9), 0x7f), 1 << 63, math.MinInt64, 10},
		{"bits above 64 are dropped", append(bytes.Repeat([]byte{0x80}, 10), 0x7f), 0, 0, 11},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := bin.Reader{D: tt.b}
			if v := b.ULEB(); v != tt.u || b.Bad || b.P != tt.n {
				t.Errorf("uleb(%x) = %#x after %d bytes (bad %v), want %#x after %d", tt.b, v, b.P, b.Bad, tt.u, tt.n)
			}
			b = bin.Reader{D: tt.b}
			if v := b.SLEB(); v != tt.s || b.Bad || b.P != tt.n {
				t.Errorf("sleb(%x) = %d after %d bytes (bad %v), want %d after %d", tt.b, v, b.P, b.Bad, tt.s, tt.n)
			}
		})
	}
	for _, cut := range [][]byte{nil, {0x80}, {0xff, 0xff}} {
		u, s := bin.Reader{D: cut}, bin.Reader{D: cut}
		if v := u.ULEB(); v != 0 || !u.Bad {
			t.Errorf("uleb(%x) = %d, bad %v; want 0, bad", cut, v, u.Bad)
		}
		if v := s.SLEB(); v != 0 || !s.Bad {
			t.Errorf("sleb(%x) = %d, bad %v; want 0, bad", cut, v, s.Bad)
		}
	}
}

func FuzzLEB128RoundTrip(f *testing.F) {
	for _, v := range []uint64{0, 1, 0x3f, 0x40, 0x7f, 0x80, 1 << 31, 1<<63 - 1, 1 << 63, math.MaxUint64} {
		f.Add(v, uint8(0))
		f.Add(v, uint8(3))
	}
	f.Fuzz(func(t *testing.T, v uint64, tail uint8) {
		var u, s bytes.Buffer
		leb128.EncodeUnsigned(&u, v)
		leb128.EncodeSigned(&s, int64(v))
		if got := dwarftest.ULEB(v); !bytes.Equal(got, u.Bytes()) {
			t.Fatalf("the test's uleb(%#x) is %x, delve's is %x", v, got, u.Bytes())
		}
		for _, enc := range [][]byte{u.Bytes(), s.Bytes()} {
			for n := range len(enc) {
				b := bin.Reader{D: enc[:n]}
				if b.ULEB(); !b.Bad {
					t.Fatalf("%d of %d bytes of %x make a number", n, len(enc), enc)
				}
			}
		}
		n, m := u.Len(), s.Len()
		u.Write(make([]byte, tail))
		s.Write(make([]byte, tail))
		b := bin.Reader{D: u.Bytes()}
		if got := b.ULEB(); got != v || b.Bad || b.P != n {
			t.Fatalf("uleb(%x) = %#x after %d bytes, want %#x after %d", u.Bytes(), got, b.P, v, n)
		}
		b = bin.Reader{D: s.Bytes()}
		if got := b.SLEB(); got != int64(v) || b.Bad || b.P != m {
			t.Fatalf("sleb(%x) = %d after %d bytes, want %d after %d", s.Bytes(), got, b.P, int64(v), m)
		}
	})
}

func TestBuf(t *testing.T) {
	d := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 0xff}
	le, be := bin.Reader{D: d}, bin.Reader{D: d, BigEndian: true}
	for _, tt := range []struct {
		n      int
		le, be uint64
	}{
		{1, 0x01, 0x01}, {2, 0x0201, 0x0102}, {3, 0x030201, 0x010203}, {4, 0x04030201, 0x01020304},
		{5, 0x0504030201, 0x0102030405}, {7, 0x07060504030201, 0x01020304050607},
		{8, 0x0807060504030201, 0x0102030405060708},
	} {
		le.Seek(0)
		be.Seek(0)
		if l, b := le.Uint(tt.n), be.Uint(tt.n); l != tt.le || b != tt.be || le.P != tt.n {
			t.Errorf("uint(%d) = %#x and %#x, want %#x and %#x", tt.n, l, b, tt.le, tt.be)
		}
	}
	b := bin.Reader{D: d}
	b.Seek(9)
	if v := b.Sint(1); v != -1 {
		t.Errorf("sint(1) of 0xff = %d, want -1", v)
	}
	for name, read := range map[string]func(*bin.Reader){
		"u8": func(b *bin.Reader) { b.Seek(10); b.U8() }, "u16": func(b *bin.Reader) { b.U16() }, "u32": func(b *bin.Reader) { b.U32() },
		"u64": func(b *bin.Reader) { b.U64() }, "bytes": func(b *bin.Reader) { b.Bytes(math.MaxUint64) }, "skip": func(b *bin.Reader) { b.Skip(1 << 63) },
		"seek": func(b *bin.Reader) { b.Seek(11) }, "cstr": func(b *bin.Reader) { b.CString() }, "offset": func(b *bin.Reader) { b.Offset(false) },
	} {
		b := bin.Reader{D: d, P: 9}
		if read(&b); !b.Bad || b.P != len(d) {
			t.Errorf("%s past the end: bad %v at %d, want bad at %d", name, b.Bad, b.P, len(d))
		}
		if b.U8() != 0 || b.U64() != 0 || len(b.CString()) != 0 {
			t.Errorf("%s: a bad buffer still reads values", name)
		}
	}
	b = bin.Reader{D: []byte("abc\x00def")}
	if s := b.CString(); string(s) != "abc" || b.P != 4 || b.Bad {
		t.Errorf("cstr = %q, position %d", s, b.P)
	}
}

func TestUnitLength(t *testing.T) {
	for _, tt := range []struct {
		d       []byte
		n       uint64
		dwarf64 bool
		bad     bool
	}{
		{dwarftest.LE32(0x1234), 0x1234, false, false},
		{dwarftest.LE32(0xffffffef), 0xffffffef, false, false},
		{dwarftest.LE32(0xfffffff0), 0, false, true}, // reserved
		{dwarftest.LE32(0xfffffffe), 0, false, true},
		{dwarftest.Cat(dwarftest.LE32(0xffffffff), dwarftest.LE64(0x123456789)), 0x123456789, true, false},
		{dwarftest.LE32(0xffffffff), 0, true, true},
		{[]byte{1, 2}, 0, false, true},
	} {
		b := bin.Reader{D: tt.d}
		if n, d64 := b.UnitLength(); n != tt.n || d64 != tt.dwarf64 || b.Bad != tt.bad {
			t.Errorf("unitLength(%x) = %#x, %v (bad %v), want %#x, %v (bad %v)", tt.d, n, d64, b.Bad, tt.n, tt.dwarf64, tt.bad)
		}
	}
}

func TestExtend(t *testing.T) {
	for _, tt := range []struct {
		v    uint64
		size int
		s    int64
		u    uint64
	}{
		{0xff80, 1, -128, 0x80}, {0x17f, 1, 127, 0x7f}, {0x18000, 2, -0x8000, 0x8000}, {1 << 31, 4, -1 << 31, 1 << 31},
		{math.MaxUint64, 8, -1, math.MaxUint64}, {0x80, 0, 0x80, 0x80},
	} {
		if s, u := bin.SignExtend(tt.v, tt.size), bin.ZeroExtend(tt.v, tt.size); s != tt.s || u != tt.u {
			t.Errorf("extend %#x from %d bytes: %d and %#x, want %d and %#x", tt.v, tt.size, s, u, tt.s, tt.u)
		}
	}
}
