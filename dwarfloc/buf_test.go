package dwarfloc

import (
	"bytes"
	"math"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/leb128"
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
			b := buf{d: tt.b}
			if v := b.uleb(); v != tt.u || b.bad || b.p != tt.n {
				t.Errorf("uleb(%x) = %#x after %d bytes (bad %v), want %#x after %d", tt.b, v, b.p, b.bad, tt.u, tt.n)
			}
			b = buf{d: tt.b}
			if v := b.sleb(); v != tt.s || b.bad || b.p != tt.n {
				t.Errorf("sleb(%x) = %d after %d bytes (bad %v), want %d after %d", tt.b, v, b.p, b.bad, tt.s, tt.n)
			}
		})
	}
	for _, cut := range [][]byte{nil, {0x80}, {0xff, 0xff}} {
		u, s := buf{d: cut}, buf{d: cut}
		if v := u.uleb(); v != 0 || !u.bad {
			t.Errorf("uleb(%x) = %d, bad %v; want 0, bad", cut, v, u.bad)
		}
		if v := s.sleb(); v != 0 || !s.bad {
			t.Errorf("sleb(%x) = %d, bad %v; want 0, bad", cut, v, s.bad)
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
		if got := uleb(v); !bytes.Equal(got, u.Bytes()) {
			t.Fatalf("the test's uleb(%#x) is %x, delve's is %x", v, got, u.Bytes())
		}
		for _, enc := range [][]byte{u.Bytes(), s.Bytes()} {
			for n := range len(enc) {
				b := buf{d: enc[:n]}
				if b.uleb(); !b.bad {
					t.Fatalf("%d of %d bytes of %x make a number", n, len(enc), enc)
				}
			}
		}
		n, m := u.Len(), s.Len()
		u.Write(make([]byte, tail))
		s.Write(make([]byte, tail))
		b := buf{d: u.Bytes()}
		if got := b.uleb(); got != v || b.bad || b.p != n {
			t.Fatalf("uleb(%x) = %#x after %d bytes, want %#x after %d", u.Bytes(), got, b.p, v, n)
		}
		b = buf{d: s.Bytes()}
		if got := b.sleb(); got != int64(v) || b.bad || b.p != m {
			t.Fatalf("sleb(%x) = %d after %d bytes, want %d after %d", s.Bytes(), got, b.p, int64(v), m)
		}
	})
}

func TestBuf(t *testing.T) {
	d := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 0xff}
	le, be := buf{d: d}, buf{d: d, be: true}
	for _, tt := range []struct {
		n      int
		le, be uint64
	}{
		{1, 0x01, 0x01}, {2, 0x0201, 0x0102}, {3, 0x030201, 0x010203}, {4, 0x04030201, 0x01020304},
		{5, 0x0504030201, 0x0102030405}, {7, 0x07060504030201, 0x01020304050607},
		{8, 0x0807060504030201, 0x0102030405060708},
	} {
		le.seek(0)
		be.seek(0)
		if l, b := le.uint(tt.n), be.uint(tt.n); l != tt.le || b != tt.be || le.p != tt.n {
			t.Errorf("uint(%d) = %#x and %#x, want %#x and %#x", tt.n, l, b, tt.le, tt.be)
		}
	}
	b := buf{d: d}
	b.seek(9)
	if v := b.sint(1); v != -1 {
		t.Errorf("sint(1) of 0xff = %d, want -1", v)
	}
	for name, read := range map[string]func(*buf){
		"u8": func(b *buf) { b.seek(10); b.u8() }, "u16": func(b *buf) { b.u16() }, "u32": func(b *buf) { b.u32() },
		"u64": func(b *buf) { b.u64() }, "bytes": func(b *buf) { b.bytes(math.MaxUint64) }, "skip": func(b *buf) { b.skip(1 << 63) },
		"seek": func(b *buf) { b.seek(11) }, "cstr": func(b *buf) { b.cstr() }, "offset": func(b *buf) { b.offset(false) },
	} {
		b := buf{d: d, p: 9}
		if read(&b); !b.bad || b.p != len(d) {
			t.Errorf("%s past the end: bad %v at %d, want bad at %d", name, b.bad, b.p, len(d))
		}
		if b.u8() != 0 || b.u64() != 0 || len(b.cstr()) != 0 {
			t.Errorf("%s: a bad buffer still reads values", name)
		}
	}
	b = buf{d: []byte("abc\x00def")}
	if s := b.cstr(); string(s) != "abc" || b.p != 4 || b.bad {
		t.Errorf("cstr = %q, position %d", s, b.p)
	}
}

func TestUnitLength(t *testing.T) {
	for _, tt := range []struct {
		d       []byte
		n       uint64
		dwarf64 bool
		bad     bool
	}{
		{le32(0x1234), 0x1234, false, false},
		{le32(0xffffffef), 0xffffffef, false, false},
		{le32(0xfffffff0), 0, false, true}, // reserved
		{le32(0xfffffffe), 0, false, true},
		{cat(le32(0xffffffff), le64(0x123456789)), 0x123456789, true, false},
		{le32(0xffffffff), 0, true, true},
		{[]byte{1, 2}, 0, false, true},
	} {
		b := buf{d: tt.d}
		if n, d64 := b.unitLength(); n != tt.n || d64 != tt.dwarf64 || b.bad != tt.bad {
			t.Errorf("unitLength(%x) = %#x, %v (bad %v), want %#x, %v (bad %v)", tt.d, n, d64, b.bad, tt.n, tt.dwarf64, tt.bad)
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
		if s, u := signExtend(tt.v, tt.size), zeroExtend(tt.v, tt.size); s != tt.s || u != tt.u {
			t.Errorf("extend %#x from %d bytes: %d and %#x, want %d and %#x", tt.v, tt.size, s, u, tt.s, tt.u)
		}
	}
}
