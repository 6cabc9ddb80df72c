package symbolic

import "encoding/binary"

// Evaluation computes values for given numbers of symbols.
type Evaluation struct {
	Trace     *Trace
	Read      func(addr uint64, n int) []byte // memory; nil if there is none
	Given     map[int32]uint64                // by symbol
	BigEndian bool
}

// Value computes a value. ok is false if it has a symbol that is neither given nor made of others.
func (e Evaluation) Value(v Value) (n uint64, ok bool) {
	out := v.Const
	for _, x := range v.Terms {
		if x.Symbol == 0 {
			continue
		}
		n, ok := e.symbol(x.Symbol)
		if !ok {
			return 0, false
		}
		out += n * x.Scale
	}
	return out, true
}

func (e Evaluation) symbol(id int32) (uint64, bool) {
	if n, ok := e.Given[id]; ok {
		return n, true
	}
	s := e.Trace.Symbols[id]
	if s.Kind != Loaded && s.Kind != ZeroExtended && s.Kind != SignExtended {
		return 0, false
	}
	v, ok := e.Value(s.Of)
	if !ok {
		return 0, false
	}
	switch s.Kind {
	case ZeroExtended:
		return v & Mask(s.Bits), true
	case SignExtended:
		return Signed(v, s.Bits), true
	}
	var word [8]byte
	if s.Bits > 64 {
		return 0, false
	}
	d := e.Read(v, int(s.Bits/8))
	if len(d) != int(s.Bits/8) {
		return 0, false
	}
	if e.BigEndian {
		copy(word[8-len(d):], d)
		return binary.BigEndian.Uint64(word[:]), true
	}
	copy(word[:], d)
	return binary.LittleEndian.Uint64(word[:]), true
}
