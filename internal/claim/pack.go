package claim

import (
	"cmp"
	"encoding/binary"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// Flags of a packed kind.
const (
	packedCall = 1 << iota
	packedTarget
	packedInner
	packedMember
)

// Compare orders kinds.
func (k *Kind) Compare(o *Kind) int {
	return cmp.Or(cmp.Compare(k.Shape, o.Shape), cmp.Compare(k.Register, o.Register), cmp.Compare(k.flags(), o.flags()),
		cmp.Compare(k.Line, o.Line), cmp.Compare(k.Column, o.Column), cmp.Compare(k.Params, o.Params))
}

func (k *Kind) flags() (f byte) {
	if k.Call {
		f |= packedCall
	}
	if k.Target {
		f |= packedTarget
	}
	if k.Inner {
		f |= packedInner
	}
	if k.Member {
		f |= packedMember
	}
	return f
}

// Pack appends the kind to b, for Unpack.
func (k *Kind) Pack(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, k.Shape)
	b = binary.AppendUvarint(append(b, k.flags()), uint64(k.Register))
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(k.Line)), uint64(k.Column))
	return append(binary.AppendUvarint(b, uint64(len(k.Params))), k.Params...)
}

// Unpack reads what Pack has written.
func (k *Kind) Unpack(b *bin.Reader) {
	k.Shape = b.U64()
	flags := b.U8()
	k.Call, k.Target, k.Inner, k.Member = flags&packedCall != 0, flags&packedTarget != 0, flags&packedInner != 0, flags&packedMember != 0
	k.Register, k.Line, k.Column = uint16(b.ULEB()), uint32(b.ULEB()), uint32(b.ULEB())
	k.Params = string(b.Bytes(b.ULEB()))
}

// Pack appends the group to b, for Unpack.
func (g *Group) Pack(b []byte) []byte {
	for i := range g.by {
		c := &g.by[i]
		b = binary.LittleEndian.AppendUint64(b, c.rest)
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(c.equal)), uint64(c.differ))
	}
	for _, l := range g.limits {
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, l.least), l.most)
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(g.loose)), uint64(g.Undecided))
	b = binary.AppendUvarint(b, uint64(len(g.fixed)))
	for _, v := range g.fixed {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// Unpack reads what Pack has written of a group of a kind that speaks.
func (g *Group) Unpack(b *bin.Reader, k *Kind) {
	g.by = make([]controls, len(forms(k.Params)))
	for i := range g.by {
		g.by[i] = controls{rest: b.U64(), equal: int32(b.ULEB()), differ: int32(b.ULEB())}
	}
	if len(g.by) > 1 {
		g.limits = make([]limit, len(k.Params))
	}
	for i := range g.limits {
		g.limits[i] = limit{b.U64(), b.U64()}
	}
	g.loose, g.Undecided = int(b.ULEB()), int(b.ULEB())
	for left := b.ULEB(); left > 0 && !b.Bad; left-- {
		g.fixed = append(g.fixed, b.U64())
	}
}
