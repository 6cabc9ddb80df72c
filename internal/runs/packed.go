package runs

import (
	"encoding/binary"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// Flags of packed ways.
const (
	packedWithin = 1 << iota
	packedUnknown
	packedAgain // of one way
	packedBefore
	packedBehind
	packedMidway
	packedFolded // of all
)

// Append appends the ways in a compact form: as they are kept with an image's index.
func (w *Ways) Append(b []byte) []byte {
	flags := byte(0)
	if w.Within {
		flags |= packedWithin
	}
	if w.Unknown != "" {
		flags |= packedUnknown
	}
	if w.Folded {
		flags |= packedFolded
	}
	b = append(b, flags)
	if w.Unknown != "" {
		b = binary.AppendUvarint(b, uint64(len(w.Unknown)))
		b = append(b, w.Unknown...)
	}
	b = binary.AppendUvarint(b, uint64(w.NoReturn))
	last := uint64(0)
	address := func(a uint64) {
		b = binary.AppendVarint(b, int64(a-last))
		last = a
	}
	for _, ways := range [...][]Way{w.In, w.Out} {
		b = binary.AppendUvarint(b, uint64(len(ways)))
		for i := range ways {
			x := &ways[i]
			flags := byte(0)
			if x.Again {
				flags |= packedAgain
			}
			if len(x.Before) > 0 {
				flags |= packedBefore
			}
			if x.Behind {
				flags |= packedBehind
			}
			if x.Midway {
				flags |= packedMidway
			}
			b = append(b, flags)
			address(x.Addr)
			address(x.Probe)
			b = binary.AppendUvarint(b, x.View)
			if len(x.Before) > 0 {
				b = binary.AppendUvarint(b, uint64(len(x.Before)))
				for _, a := range x.Before {
					address(a)
				}
			}
		}
	}
	return b
}

// Packed reads ways that Append has written, one after the other.
type Packed struct{ b bin.Reader }

// Unpack returns what reads packed ways.
func Unpack(d []byte) Packed { return Packed{bin.Reader{D: d}} }

// Whole reports whether what was read were all of the packed ways, and nothing else.
func (p *Packed) Whole() bool { return !p.b.Bad && p.b.P == len(p.b.D) }

// count returns how many things follow, of which each has a byte at least.
func (p *Packed) count() uint64 {
	n := p.b.ULEB()
	if n > uint64(len(p.b.D)-p.b.P) {
		p.b.Bad = true
		return 0
	}
	return n
}

// Next reads into w, whose memory it uses.
func (p *Packed) Next(w *Ways) {
	flags := p.b.U8()
	w.Within, w.Folded, w.Unknown = flags&packedWithin != 0, flags&packedFolded != 0, ""
	if flags&packedUnknown != 0 {
		w.Unknown = string(p.b.Bytes(p.b.ULEB()))
	}
	w.NoReturn = int(p.b.ULEB())
	last := uint64(0)
	address := func() uint64 {
		u := p.b.ULEB()
		last += uint64(int64(u>>1) ^ -int64(u&1))
		return last
	}
	for _, ways := range [...]*[]Way{&w.In, &w.Out} {
		n := int(p.count())
		*ways = slices.Grow((*ways)[:0], n)[:n]
		for i := range *ways {
			x := &(*ways)[i]
			flags := p.b.U8()
			x.Again, x.Behind, x.Midway, x.Before = flags&packedAgain != 0, flags&packedBehind != 0, flags&packedMidway != 0, x.Before[:0]
			x.Addr, x.Probe, x.View = address(), address(), p.b.ULEB()
			if flags&packedBefore != 0 {
				for range p.count() {
					x.Before = append(x.Before, address())
				}
			}
		}
	}
}
