package oracle

import (
	"fmt"
)

// Fetch reads an object of up to 8 bytes, as a number of 64 bits.
func (m *Machine) Fetch(res Result, size int, signed bool) (uint64, error) {
	if size < 1 || size > 8 {
		return 0, fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
	}
	b, err := m.FetchBytes(res, size)
	if err != nil {
		return 0, err
	}
	c := cursor{d: b, big: m.BigEndian}
	return Extend(c.uint(size), size, signed), nil
}

// FetchBytes reads an object's bytes.
func (m *Machine) FetchBytes(res Result, size int) ([]byte, error) {
	var b []byte
	switch res.Kind {
	case InMemory:
		b = make([]byte, size)
		if m.Mem == nil || !m.Mem(res.Value, b) {
			return nil, fmt.Errorf("%w at %#x", ErrFault, res.Value)
		}
	case InRegister, IsValue:
		b = bytesOf(res.Value, min(size, m.have(&res)), m.BigEndian)
	case IsBytes:
		b = res.Bytes
	case InPieces:
		var err error
		if b, err = m.join(res.Pieces); err != nil {
			return nil, err
		}
	case IsImplicit:
		return nil, ErrImplicitPointer
	default:
		return nil, ErrMissing
	}
	if len(b) < size {
		return nil, fmt.Errorf("%w: %d bytes wanted, the location has %d", ErrTooLarge, size, len(b))
	}
	return b[:size], nil
}

// join builds an object from its pieces bit by bit, in the order of memory: beginning with the lowest
// bit of its first byte, or on a big-endian machine with the highest.
func (m *Machine) join(pieces []Piece) ([]byte, error) {
	var out []byte
	n := uint64(0)
	for _, p := range pieces {
		if p.Bits > 1<<20 || p.Skip > 1<<20 {
			return nil, fmt.Errorf("%w: a piece of %d bits", ErrBad, p.Bits)
		}
		size := (p.Skip + p.Bits + 7) / 8
		b, err := m.FetchBytes(p.Result, int(size))
		if err != nil {
			return nil, err
		}
		skip := p.Skip
		if m.BigEndian && (p.Kind == InRegister || p.Kind == IsValue) {
			skip = 8*size - p.Bits - p.Skip // it counts from the lowest bit
		}
		for i := range p.Bits {
			if n%8 == 0 {
				out = append(out, 0)
			}
			setBit(out, n, m.BigEndian, bitAt(b, skip+i, m.BigEndian))
			n++
		}
	}
	return out, nil
}

// bitAt returns a bit of bytes in memory, counted in their order.
func bitAt(b []byte, i uint64, big bool) byte {
	if big {
		return b[i/8] >> (7 - i%8) & 1
	}
	return b[i/8] >> (i % 8) & 1
}

func setBit(b []byte, i uint64, big bool, bit byte) {
	if big {
		b[i/8] |= bit << (7 - i%8)
	} else {
		b[i/8] |= bit << (i % 8)
	}
}
