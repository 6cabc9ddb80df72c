package mutate

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/image"
)

var le = binary.LittleEndian

// Sizes and offsets of ELF64 (System V gABI, chapters 4 and 5).
const (
	headerSize        = 64
	sectionHeaderSize = 64
	symbolSize        = 24
	relaSize          = 24
)

// layout is what is known of a good file: where everything is.
type layout struct {
	file     *elf.File
	headers  int // offset of the section headers
	segments int
	contents map[string][]byte // of debug sections, decompressed and relocated
	fields   []field           // of the entries in .debug_info
}

// newLayout reads a good file. Debug information is read as this module reads it, since a file that
// is relocated has no lengths and offsets in its sections as they are stored.
func newLayout(data []byte) (*layout, error) {
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	l := &layout{file: file, headers: int(le.Uint64(data[40:])), segments: int(le.Uint64(data[32:]))}
	if file.Machine == elf.EM_BPF {
		return l, nil
	}
	img, err := image.FromBytes("good", data, nil)
	if err != nil {
		return nil, err
	}
	if l.contents, err = img.DebugSections(); err != nil {
		return l, nil // of a stripped file, which has no debug sections
	}
	sections := dw.Sections{WordSize: 8, EhFrameAddr: addressOf(file, ".eh_frame"), Errorf: func(section string, off uint64, format string, args ...any) error {
		return fmt.Errorf("%s+%#x: %s", section, off, fmt.Sprintf(format, args...))
	}}
	l.fields, err = fieldsOf(dw.New(sections, l.contents), len(l.contents[".debug_info"]))
	return l, err
}

// variant is a file that is being damaged.
type variant struct {
	*layout
	*rand.Rand
	data []byte
	said []string // what was done
}

func (v *variant) say(format string, args ...any) {
	v.said = append(v.said, fmt.Sprintf(format, args...))
}

// sections returns the indices of the sections with bytes in the file that match.
func (v *variant) sections(match func(*elf.Section) bool) (out []int) {
	for i, s := range v.file.Sections {
		if s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_NULL && s.FileSize > 0 && match(s) {
			out = append(out, i)
		}
	}
	return out
}

func named(names ...string) func(*elf.Section) bool {
	return func(s *elf.Section) bool { return slices.Contains(names, s.Name) }
}

func typed(types ...elf.SectionType) func(*elf.Section) bool {
	return func(s *elf.Section) bool { return slices.Contains(types, s.Type) }
}

// pick returns the bytes of one of the sections that match, to be changed in place, and its name. A
// section that is compressed is decompressed first, at the end of the file.
func (v *variant) pick(match func(*elf.Section) bool) ([]byte, string) {
	found := v.sections(match)
	if len(found) == 0 {
		return nil, ""
	}
	i := found[v.IntN(len(found))]
	s := v.file.Sections[i]
	if s.Flags&elf.SHF_COMPRESSED == 0 {
		h := v.header(i)
		off, size := le.Uint64(h[24:]), le.Uint64(h[32:])
		if off > uint64(len(v.data)) || size > uint64(len(v.data))-off {
			return nil, "" // damaged already
		}
		return v.data[off : off+size], s.Name
	}
	plain, err := s.Data()
	if err != nil {
		return nil, ""
	}
	h := v.header(i)
	if elf.SectionFlag(le.Uint64(h[8:]))&elf.SHF_COMPRESSED != 0 {
		v.replace(i, plain)
	}
	h = v.header(i)
	off := le.Uint64(h[24:])
	return v.data[off : off+le.Uint64(h[32:])], s.Name
}

// header returns a section's header, to be changed in place.
func (v *variant) header(i int) []byte {
	at := v.headers + i*sectionHeaderSize
	return v.data[at : at+sectionHeaderSize]
}

// replace gives a section other contents, at the end of the file.
func (v *variant) replace(i int, contents []byte) {
	for len(v.data)%16 != 0 {
		v.data = append(v.data, 0)
	}
	off := len(v.data)
	v.data = append(v.data, contents...)
	h := v.header(i)
	le.PutUint64(h[8:], le.Uint64(h[8:])&^uint64(elf.SHF_COMPRESSED))
	le.PutUint64(h[24:], uint64(off))
	le.PutUint64(h[32:], uint64(len(contents)))
}

// number changes a number of some bytes in place to one that is likely to be special.
func (v *variant) number(b []byte, what string) {
	if len(b) == 0 {
		return
	}
	b = b[:min(len(b), 8)]
	old := uint64(0)
	for i := len(b) - 1; i >= 0; i-- {
		old = old<<8 | uint64(b[i])
	}
	n := v.special(old)
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	v.say("%s: %#x is now %#x", what, old, n)
}

// special returns a number that is likely to be special, near or far from the old one.
func (v *variant) special(old uint64) uint64 {
	switch v.IntN(8) {
	case 0:
		return []uint64{0, 1, 2, 3, 7, 8, 0x7f, 0x80, 0xff, 0x100, 0xffff}[v.IntN(11)]
	case 1:
		return ^uint64(0) - uint64(v.IntN(18))
	case 2:
		return []uint64{1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, 1 << 40, 1 << 24}[v.IntN(8)]
	case 3:
		return old + uint64(v.IntN(17)) - 8
	case 4:
		return old ^ 1<<v.IntN(64)
	case 5:
		return -old
	case 6: // of another size
		return old << v.IntN(9) >> v.IntN(9)
	default:
		if s := v.file.Sections[v.IntN(len(v.file.Sections))]; v.IntN(2) == 0 {
			return s.Addr + uint64(v.IntN(3)-1)
		} else {
			return s.Size + uint64(v.IntN(3)-1)
		}
	}
}

// leb changes a LEB128 number in place: it stays as long as it was, or runs into what follows.
func (v *variant) leb(b []byte, what string) {
	if len(b) == 0 {
		return
	}
	v.say("%s: % x is another number", what, b)
	switch n := v.special(uint64(b[0] & 0x7f)); v.IntN(3) {
	case 0:
		for i := range b {
			b[i] = 0xff
		}
	default:
		for i := range b {
			b[i] = byte(n)&0x7f | 0x80
			n >>= 7
		}
		b[len(b)-1] &^= 0x80
	}
}

// somewhere changes a byte, or a few, in place.
func (v *variant) somewhere(b []byte, what string) {
	if len(b) == 0 {
		return
	}
	at := v.IntN(len(b))
	what = fmt.Sprintf("%s+%#x", what, at)
	switch v.IntN(5) {
	case 0:
		v.number(b[at:min(at+8, len(b))], what)
	case 1:
		v.number(b[at:min(at+4, len(b))], what)
	case 2:
		b[at] ^= 1 << v.IntN(8)
		v.say("%s: a bit", what)
	case 3:
		b[at] = []byte{0, 1, 2, 0x3f, 0x40, 0x7f, 0x80, 0xff}[v.IntN(8)]
		v.say("%s: is now %#x", what, b[at])
	default:
		end := min(at+1+v.IntN(8), len(b))
		from := v.IntN(len(b) - (end - at) + 1)
		copy(b[at:end], b[from:])
		v.say("%s: %d bytes from %#x", what, end-at, from)
	}
}
