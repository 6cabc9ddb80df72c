package packfile

import (
	"encoding/binary"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// The ways of all bodies of a kernel would take more memory than all else that a writer has of sites. So they are packed until their block is
// written.

// heldSize is the size of the pieces of memory that they are in.
const heldSize = 1 << 16

// held is where held ways are: in which of a writer's pieces, from 1, and where in it. 0 stands for none.
type held struct{ piece, at uint32 }

// Flags of held ways, and of one of them.
const (
	heldKnown = 1 << iota
	heldWithin
	heldAgain
	heldBefore
	heldFolded
)

// hold packs ways without their values, and notes their texts.
func (w *Writer) hold(x *Ways) held {
	flags := byte(0)
	if x.Known {
		flags |= heldKnown
	}
	if x.Within {
		flags |= heldWithin
	}
	if x.Again {
		flags |= heldAgain
	}
	if x.Folded {
		flags |= heldFolded
	}
	b := binary.AppendUvarint(append(w.key[:0], flags), uint64(x.NoReturn))
	text := func(s string) { b = binary.AppendUvarint(b, uint64(w.text(s))) }
	text(x.Unknown)
	last := uint64(0)
	address := func(a uint64) { b, last = binary.AppendVarint(b, int64(a-last)), a }
	for _, list := range [...][]Way{x.In, x.Out} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for i := range list {
			y := &list[i]
			flags := byte(0)
			if y.Again {
				flags |= heldAgain
			}
			if len(y.Before) > 0 {
				flags |= heldBefore
			}
			b = append(b, flags)
			address(y.Addr)
			address(y.Probe)
			b = binary.AppendUvarint(binary.AppendUvarint(b, y.View), y.Offset)
			text(y.Symbol)
			text(y.Refused)
			if len(y.Before) == 0 {
				continue
			}
			b = binary.AppendUvarint(b, uint64(len(y.Before)))
			for j := range y.Before {
				z := &y.Before[j]
				address(z.Addr)
				b = append(binary.AppendUvarint(b, uint64(len(z.Code))), z.Code...)
				text(z.Symbol)
				b = binary.AppendUvarint(b, z.Offset)
			}
		}
	}
	w.key = b
	if n := len(w.ways); n == 0 || len(w.ways[n-1])+len(b) > cap(w.ways[n-1]) {
		w.ways = append(w.ways, make([]byte, 0, max(heldSize, len(b))))
	}
	n := len(w.ways)
	piece := &w.ways[n-1]
	at := len(*piece)
	*piece = append(*piece, b...)
	return held{uint32(n), uint32(at)}
}

// release reads what hold has packed into x, whose memory it uses.
func (w *Writer) release(h held, x *Ways) {
	b := bin.Reader{D: w.ways[h.piece-1], P: int(h.at)}
	flags := b.U8()
	text := func() string { return w.strings.all[b.ULEB()] }
	x.Known, x.Within, x.Again, x.NoReturn, x.Unknown = flags&heldKnown != 0, flags&heldWithin != 0, flags&heldAgain != 0, int(b.ULEB()), text()
	x.Folded = flags&heldFolded != 0
	last := uint64(0)
	address := func() uint64 { last += uint64(unzigzag(b.ULEB())); return last }
	for _, list := range [...]*[]Way{&x.In, &x.Out} {
		n := int(b.ULEB())
		*list = slices.Grow((*list)[:0], n)[:n]
		for i := range *list {
			flags := b.U8()
			y := Way{Again: flags&heldAgain != 0, Addr: address(), Probe: address(), View: b.ULEB(), Offset: b.ULEB(), Symbol: text(), Refused: text()}
			if flags&heldBefore != 0 {
				y.Before = make([]Before, b.ULEB())
				for j := range y.Before {
					y.Before[j] = Before{Addr: address(), Code: b.Bytes(b.ULEB()), Symbol: text(), Offset: b.ULEB()}
				}
			}
			(*list)[i] = y
		}
	}
}
