package pack

import (
	"encoding/binary"
	"fmt"
)

// BTF as it is stored: Documentation/bpf/btf.rst of Linux 6.12.

// Kinds of types.
const (
	kindInt      = 1
	kindPtr      = 2
	kindArray    = 3
	kindStruct   = 4
	kindUnion    = 5
	kindEnum     = 6
	kindFwd      = 7
	kindTypedef  = 8
	kindVolatile = 9
	kindConst    = 10
	kindRestrict = 11
	kindFunc     = 12
	kindProto    = 13
	kindVar      = 14
	kindDatasec  = 15
	kindFloat    = 16
	kindDeclTag  = 17
	kindTypeTag  = 18
	kindEnum64   = 19
)

// Encodings of integers.
const (
	intSigned = 1
	intChar   = 2
	intBool   = 4
)

const (
	btfMagic  = 0xeb9f
	btfHeader = 24
	maxVlen   = 1<<16 - 1
)

// extra is how many bytes follow the twelve of a type, in all and for each of its parts.
var extra = map[uint32][2]int{
	kindInt: {4, 0}, kindPtr: {}, kindArray: {12, 0}, kindStruct: {0, 12}, kindUnion: {0, 12}, kindEnum: {0, 8}, kindFwd: {},
	kindTypedef: {}, kindVolatile: {}, kindConst: {}, kindRestrict: {}, kindFunc: {}, kindProto: {0, 8}, kindVar: {4, 0},
	kindDatasec: {0, 12}, kindFloat: {}, kindDeclTag: {4, 0}, kindTypeTag: {}, kindEnum64: {0, 12},
}

// table is BTF that has been read: types by number.
type table struct {
	order       binary.ByteOrder
	types, strs []byte
	at          []uint32 // where in types each begins; 0 is void
}

// readTable checks the outlines of BTF; what types are made of is checked where it is read.
func readTable(d []byte, order binary.ByteOrder) (*table, error) {
	if len(d) < btfHeader || order.Uint16(d) != btfMagic || d[2] != 1 {
		return nil, fmt.Errorf("%s+0x0: it is not BTF of version 1", btfSection)
	}
	head := uint64(order.Uint32(d[4:]))
	part := func(at int) ([]byte, error) {
		off, n := head+uint64(order.Uint32(d[at:])), uint64(order.Uint32(d[at+4:]))
		if off > uint64(len(d)) || n > uint64(len(d))-off {
			return nil, fmt.Errorf("%s+%#x: it is outside the section", btfSection, at)
		}
		return d[off : off+n], nil
	}
	t := &table{order: order, at: []uint32{0}}
	var err error
	if t.types, err = part(8); err != nil {
		return nil, err
	}
	if t.strs, err = part(16); err != nil {
		return nil, err
	}
	if n := len(t.strs); n == 0 || t.strs[n-1] != 0 {
		return nil, fmt.Errorf("%s+0x10: the strings do not end", btfSection)
	}
	for p := 0; p < len(t.types); {
		if len(t.types)-p < 12 {
			return nil, fmt.Errorf("%s: type %d is cut short", btfSection, len(t.at))
		}
		info := order.Uint32(t.types[p+4:])
		more, known := extra[info>>24&0x1f]
		if !known {
			return nil, fmt.Errorf("%s: type %d is of the unknown kind %d", btfSection, len(t.at), info>>24&0x1f)
		}
		size := 12 + more[0] + more[1]*int(info&0xffff)
		if size > len(t.types)-p {
			return nil, fmt.Errorf("%s: type %d is cut short", btfSection, len(t.at))
		}
		t.at = append(t.at, uint32(p))
		p += size
	}
	return t, nil
}

func (t *table) record(id uint32) []byte { return t.types[t.at[id]:] }

func (t *table) kind(id uint32) uint32 {
	if id == 0 {
		return 0
	}
	return t.order.Uint32(t.record(id)[4:]) >> 24 & 0x1f
}

func (t *table) kflag(id uint32) bool { return t.order.Uint32(t.record(id)[4:])>>31 != 0 }
func (t *table) vlen(id uint32) int   { return int(t.order.Uint32(t.record(id)[4:]) & 0xffff) }

// size is the size, or the type that this one is made of.
func (t *table) size(id uint32) uint32 { return t.order.Uint32(t.record(id)[8:]) }

func (t *table) text(off uint32) string {
	if uint64(off) >= uint64(len(t.strs)) {
		return ""
	}
	s := t.strs[off:]
	for i, c := range s {
		if c == 0 {
			return string(s[:i])
		}
	}
	return ""
}

func (t *table) name(id uint32) string { return t.text(t.order.Uint32(t.record(id))) }

// word returns a number after the first twelve bytes of a type.
func (t *table) word(id uint32, n int) uint32 { return t.order.Uint32(t.record(id)[12+4*n:]) }

// member returns a member of a structure or union: its name, type, and place in bits.
func (t *table) member(id uint32, i int) (name string, typ uint32, off, bits uint64) {
	off = uint64(t.word(id, 3*i+2))
	if t.kflag(id) {
		off, bits = off&0xffffff, off>>24
	}
	return t.text(t.word(id, 3*i)), t.word(id, 3*i+1), off, bits
}

// enumerator returns a value of an enumeration.
func (t *table) enumerator(id uint32, i int) (name string, value int64) {
	if t.kind(id) == kindEnum64 {
		return t.text(t.word(id, 3*i)), int64(uint64(t.word(id, 3*i+1)) | uint64(t.word(id, 3*i+2))<<32)
	}
	v := t.word(id, 2*i+1)
	if t.kflag(id) {
		return t.text(t.word(id, 2*i)), int64(int32(v))
	}
	return t.text(t.word(id, 2*i)), int64(v)
}

// btfWriter writes types that follow those of a table, or begin anew.
type btfWriter struct {
	order binary.ByteOrder
	types []byte
	strs  []byte
	first uint32 // bytes of strings before these
	known map[string]uint32
}

func newBTFWriter(order binary.ByteOrder, before *table) *btfWriter {
	w := &btfWriter{order: order, known: map[string]uint32{"": 0}}
	if before == nil {
		w.strs = []byte{0}
	} else {
		w.first = uint32(len(before.strs))
	}
	return w
}

func (w *btfWriter) text(s string) uint32 {
	at, known := w.known[s]
	if !known {
		at = w.first + uint32(len(w.strs))
		w.known[s] = at
		w.strs = append(append(w.strs, s...), 0)
	}
	return at
}

func (w *btfWriter) u32(v ...uint32) {
	var d [4]byte
	for _, x := range v {
		w.order.PutUint32(d[:], x)
		w.types = append(w.types, d[:]...)
	}
}

func (w *btfWriter) head(name string, kind uint32, kflag bool, vlen int, size uint32) {
	info := kind<<24 | uint32(vlen)
	if kflag {
		info |= 1 << 31
	}
	w.u32(w.text(name), info, size)
}

// section returns the contents of .BTF: the table's, if it is not nil, and then the types that were written. If the
// table is only referred to, they are alone.
func (w *btfWriter) section(before *table, alone bool) []byte {
	types, strs := w.types, w.strs
	if before != nil && !alone {
		types = append(append([]byte(nil), before.types...), types...)
		strs = append(append([]byte(nil), before.strs...), strs...)
	}
	b := make([]byte, btfHeader, btfHeader+len(types)+len(strs))
	w.order.PutUint16(b, btfMagic)
	b[2] = 1
	for i, v := range []int{btfHeader, 0, len(types), len(types), len(strs)} {
		w.order.PutUint32(b[4+4*i:], uint32(v))
	}
	return append(append(b, types...), strs...)
}
