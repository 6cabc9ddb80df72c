package oracle

import (
	"errors"
)

// Input is a question for Expect: a location expression, what it describes, and
// the state of the machine where it is asked.
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

	Reg func(n uint64) (v uint64, ok bool)    // by DWARF number
	Mem func(addr uint64, p []byte) (ok bool) // fills p

	// Of the expression's unit; expressions that need none work without. Site's
	// Machine has them.
	BaseType   func(off uint64) (BaseType, error)
	Indexed    func(i uint64) (uint64, error)
	OffsetSize int
}

// Expect says what a fetch of an object must give, extended to 64 bits. ok is
// false when there is no value now: memory cannot be read, a division by zero.
// err tells that the expression gives no value in any state of the machine; it
// wraps one of this package's errors.
func Expect(in Input) (v uint64, ok bool, err error) {
	m := Machine{
		Reg: in.Reg, Mem: in.Mem, FrameBase: in.FrameBase, AtEntry: in.AtEntry, NoFrame: in.NoFrame, Bias: in.Bias,
		BaseType: in.BaseType, Indexed: in.Indexed, OffsetSize: in.OffsetSize,
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
