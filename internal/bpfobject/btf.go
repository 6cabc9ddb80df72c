package bpfobject

import (
	"bytes"
	"errors"
	"fmt"
)

// Kinds of types (Documentation/bpf/btf.rst, section 2.2).
const (
	kindInt     = 1
	kindPointer = 2
	kindArray   = 3
	kindStruct  = 4
	kindUnion   = 5
	kindEnum    = 6
	kindConst   = 10
	kindFunc    = 12
	kindProto   = 13
	kindVar     = 14
	kindDatasec = 15
	kindTag     = 17
	kindEnum64  = 19
	lastKind    = 19
)

// extra is how many bytes follow the 12 of a type, and how many more for each of its members.
var extra = [lastKind + 1][2]int{
	kindInt: {4, 0}, kindArray: {12, 0}, kindStruct: {0, 12}, kindUnion: {0, 12}, kindEnum: {0, 8},
	kindProto: {0, 8}, kindVar: {4, 0}, kindDatasec: {0, 12}, kindTag: {4, 0}, kindEnum64: {0, 12},
}

// types is the section .BTF: types are added behind those that are there.
type types struct {
	in      *section
	head    []byte
	types   []byte
	strings []byte
	offsets []int // of types, by their numbers less 1
}

var errNoTypes = errors.New("the object has no BTF: compile it with clang -g")

func (o *Object) readTypes() error {
	s, e := o.section(".BTF"), o.section(".BTF.ext")
	if s == nil || e == nil {
		return errNoTypes
	}
	t, err := readTypes(s.data)
	if err != nil {
		return fmt.Errorf("section .BTF: %w", err)
	}
	t.in = s
	// What is relocated there is right in place; the numbers of symbols would not be.
	o.types, s.rels, e.rels = t, nil, nil
	if o.ext, err = readExtension(e, t); err != nil {
		return fmt.Errorf("section .BTF.ext: %w", err)
	}
	return nil
}

func readTypes(b []byte) (*types, error) {
	if len(b) < 24 || le.Uint16(b) != 0xeb9f || b[2] != 1 {
		return nil, errors.New("it does not begin as BTF does")
	}
	head := uint64(le.Uint32(b[4:]))
	at, n := uint64(le.Uint32(b[8:])), uint64(le.Uint32(b[12:]))
	text, size := uint64(le.Uint32(b[16:])), uint64(le.Uint32(b[20:]))
	if head < 24 || head+at+n > uint64(len(b)) || head+text+size > uint64(len(b)) || size == 0 {
		return nil, errors.New("it is cut off")
	}
	t := &types{head: bytes.Clone(b[:24]), types: bytes.Clone(b[head+at:][:n]), strings: bytes.Clone(b[head+text:][:size])}
	if t.strings[size-1] != 0 {
		return nil, errors.New("its strings do not end")
	}
	for pos := 0; pos < len(t.types); {
		if len(t.types)-pos < 12 {
			return nil, errors.New("a type is cut off")
		}
		t.offsets = append(t.offsets, pos)
		info := le.Uint32(t.types[pos+4:])
		kind := info >> 24 & 0x1f
		if kind == 0 || kind > lastKind {
			return nil, fmt.Errorf("a type of kind %d", kind)
		}
		pos += 12 + extra[kind][0] + extra[kind][1]*int(info&0xffff)
		if pos > len(t.types) {
			return nil, errors.New("a type is cut off")
		}
	}
	return t, nil
}

// text returns a string, or "" for one that is not there.
func (t *types) text(at uint32) string {
	if int(at) >= len(t.strings) {
		return ""
	}
	s := t.strings[at:]
	return string(s[:bytes.IndexByte(s, 0)])
}

func (t *types) addText(s string) uint32 {
	at := uint32(len(t.strings))
	t.strings = append(append(t.strings, s...), 0)
	return at
}

// at returns a type's bytes, from its head on, or nil.
func (t *types) at(id uint32) []byte {
	if id == 0 || int(id) > len(t.offsets) {
		return nil
	}
	return t.types[t.offsets[id-1]:]
}

// add adds a type and returns its number.
func (t *types) add(name string, kind, members uint32, words ...uint32) uint32 {
	t.offsets = append(t.offsets, len(t.types))
	at := uint32(0)
	if name != "" {
		at = t.addText(name)
	}
	t.types = le.AppendUint32(le.AppendUint32(t.types, at), kind<<24|members)
	for _, w := range words {
		t.types = le.AppendUint32(t.types, w)
	}
	return uint32(len(t.offsets))
}

// function returns the number of a function's type.
func (t *types) function(name string) (uint32, bool) {
	for i := range t.offsets {
		b := t.at(uint32(i + 1))
		if le.Uint32(b[4:])>>24&0x1f == kindFunc && t.text(le.Uint32(b)) == name {
			return uint32(i + 1), true
		}
	}
	return 0, false
}

// Linkages of functions and variables.
const (
	linkStatic = 0
	linkGlobal = 1
)

// makeStatic renames a function, which only its own file calls then.
func (t *types) makeStatic(id uint32, name string) {
	at := t.addText(name)
	b := t.at(id)
	le.PutUint32(b, at)
	le.PutUint32(b[4:], kindFunc<<24|linkStatic)
}

// entry adds the type int name(void *ctx).
func (t *types) entry(name string) uint32 {
	number := t.add("int", kindInt, 0, 4, 1<<24|32)
	pointer := t.add("", kindPointer, 0, 0)
	proto := t.add("", kindProto, 1, number, t.addText("ctx"), pointer)
	return t.add(name, kindFunc, linkGlobal, proto)
}

// bytes returns the section.
func (t *types) bytes() []byte {
	out := bytes.Clone(t.head)
	le.PutUint32(out[4:], 24)
	le.PutUint32(out[8:], 0)
	le.PutUint32(out[12:], uint32(len(t.types)))
	le.PutUint32(out[16:], uint32(len(t.types)))
	le.PutUint32(out[20:], uint32(len(t.strings)))
	return append(append(out, t.types...), t.strings...)
}
