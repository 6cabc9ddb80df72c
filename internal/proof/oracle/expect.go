package oracle

import (
	"errors"
)

// Input is Expect's input: a location expression, the object that it describes, and the
// state of the machine.
type Input struct {
	Expr      []byte
	Size      int // bytes of the object, 1 to 8
	Signed    bool
	AtEntry   bool   // at the entry of the function whose frame it is
	FrameBase []byte // DW_AT_frame_base of that function
	CFA       uint64 // canonical frame address
	NoCFA     bool   // CFA is not known
	NoFrame   bool   // the register that is the frame base is not set up yet: see Site
	Bias      uint64 // running address minus link-time address
	BigEndian bool   // memory is big-endian
	AddrSize  int    // bytes of an address and a register; 0 means 8

	Reg func(n uint64) (v uint64, ok bool)    // by DWARF number
	Mem func(addr uint64, p []byte) (ok bool) // fills p

	// These depend on the expression's unit. Site's Machine sets them; most expressions do
	// not need them.
	BaseType   func(off uint64) (BaseType, error)
	Indexed    func(i uint64) (uint64, error)
	OffsetSize int
}

// Expect returns what a fetch of an object must deliver, extended to 64 bits. ok is false if
// there is no value in this state of the machine: memory cannot be read, or a division by
// zero. err is not nil if the expression has no value in any state; it wraps one of this
// package's errors.
func Expect(in Input) (v uint64, ok bool, err error) {
	m := Machine{
		Reg: in.Reg, Mem: in.Mem, FrameBase: in.FrameBase, AtEntry: in.AtEntry, NoFrame: in.NoFrame, Bias: in.Bias,
		BigEndian: in.BigEndian, AddrSize: in.AddrSize, BaseType: in.BaseType, Indexed: in.Indexed, OffsetSize: in.OffsetSize,
	}
	if !in.NoCFA {
		m.CFA = func() (uint64, error) { return in.CFA, nil }
	}
	res, err := m.Eval(in.Expr)
	if err == nil {
		v, err = m.Fetch(res, in.Size, in.Signed)
	}
	if errors.Is(err, ErrFault) {
		return 0, false, nil
	}
	return v, err == nil, err
}
