package oracle_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
)

// Memory holds its own address at each multiple of 8; registers hold 0x1000 times
// their number; -1 is in register 15. Expected values are worked out by hand.
func testMachine() oracle.Machine {
	return oracle.Machine{
		Reg: func(n uint64) (uint64, bool) {
			if n == 15 {
				return ^uint64(0), true
			}
			return 0x1000 * n, n < 17
		},
		Mem: func(addr uint64, p []byte) bool {
			for i := range p {
				a := addr + uint64(i)
				var word [8]byte
				binary.LittleEndian.PutUint64(word[:], a&^7)
				p[i] = word[a&7]
			}
			return addr != 0
		},
		CFA:       func() (uint64, error) { return 0x7ff0, nil },
		FrameBase: []byte{0x9c},
		Bias:      0x200000,
		BaseType: func(off uint64) (oracle.BaseType, error) {
			// The offset is the size, and 0x10 marks signed types, 0x20 floats.
			return oracle.BaseType{Size: int(off & 15), Signed: off&0x10 != 0, Float: off&0x20 != 0}, nil
		},
		Indexed: func(i uint64) (uint64, error) { return 0x100 * i, nil },
	}
}

func TestEval(t *testing.T) {
	const minus = ^uint64(0)
	for _, c := range []struct {
		name string
		expr []byte
		kind oracle.ResultKind
		want uint64
		err  error
	}{
		{"reg5", []byte{0x55}, oracle.InRegister, 0x5000, nil},
		{"regx 3", []byte{0x90, 3}, oracle.InRegister, 0x3000, nil},
		{"vector register", []byte{0x90, 17}, 0, 0, oracle.ErrNoRegister},
		{"breg5 8", []byte{0x75, 8}, oracle.InMemory, 0x5008, nil},
		{"breg5 -8 as value", []byte{0x75, 0x78, 0x9f}, oracle.IsValue, 0x4ff8, nil},
		{"bregx 3 16", []byte{0x92, 3, 16}, oracle.InMemory, 0x3010, nil},
		{"fbreg -24", []byte{0x91, 0x68}, oracle.InMemory, 0x7fd8, nil},
		{"call_frame_cfa", []byte{0x9c, 0x9f}, oracle.IsValue, 0x7ff0, nil},
		{"addr moves", []byte{0x03, 0, 1, 0, 0, 0, 0, 0, 0}, oracle.InMemory, 0x200100, nil},
		{"addrx moves", []byte{0xa1, 2}, oracle.InMemory, 0x200200, nil},
		{"constx does not", []byte{0xa2, 2, 0x9f}, oracle.IsValue, 0x200, nil},
		{"deref", []byte{0x75, 0, 0x06, 0x9f}, oracle.IsValue, 0x5000, nil},
		{"deref_size 1", []byte{0x75, 1, 0x94, 1, 0x9f}, oracle.IsValue, 0x50, nil},
		{"fault", []byte{0x30, 0x06}, 0, 0, oracle.ErrFault},
		{"const1s", []byte{0x09, 0xff, 0x9f}, oracle.IsValue, minus, nil},
		{"const2u", []byte{0x0a, 0xfe, 0xff, 0x9f}, oracle.IsValue, 0xfffe, nil},
		{"const4s", []byte{0x0d, 0xfe, 0xff, 0xff, 0xff, 0x9f}, oracle.IsValue, minus - 1, nil},
		{"consts", []byte{0x11, 0x80, 0x7f, 0x9f}, oracle.IsValue, minus - 127, nil},
		{"over minus", []byte{0x37, 0x32, 0x14, 0x1c, 0x9f}, oracle.IsValue, minus - 4, nil},
		{"pick 2", []byte{0x31, 0x32, 0x33, 0x15, 2, 0x9f}, oracle.IsValue, 1, nil},
		{"rot", []byte{0x31, 0x32, 0x33, 0x17, 0x9f}, oracle.IsValue, 2, nil},
		{"rot, second", []byte{0x31, 0x32, 0x33, 0x17, 0x13, 0x9f}, oracle.IsValue, 1, nil},
		{"swap minus", []byte{0x37, 0x32, 0x16, 0x1c, 0x9f}, oracle.IsValue, minus - 4, nil},
		{"abs", []byte{0x09, 0xfe, 0x19, 0x9f}, oracle.IsValue, 2, nil},
		{"abs of unsigned", []byte{0xa5, 15, 0x08, 0x19, 0x9f}, oracle.IsValue, minus, nil},
		{"div is signed", []byte{0x09, 0xf9, 0x32, 0x1b, 0x9f}, oracle.IsValue, minus - 2, nil},
		{"mod is unsigned", []byte{0x09, 0xff, 0x3a, 0x1d, 0x9f}, oracle.IsValue, 5, nil},
		{"mod of signed", []byte{0xa5, 15, 0x18, 0xa4, 0x18, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0x1d, 0x9f}, oracle.IsValue, minus, nil},
		{"division by zero", []byte{0x31, 0x30, 0x1b, 0x9f}, 0, 0, oracle.ErrFault},
		{"shl by 64", []byte{0x31, 0x08, 64, 0x24, 0x9f}, oracle.IsValue, 0, nil},
		{"shr is logical", []byte{0x09, 0xff, 0x08, 60, 0x25, 0x9f}, oracle.IsValue, 15, nil},
		{"shra by 64", []byte{0x09, 0x80, 0x08, 64, 0x26, 0x9f}, oracle.IsValue, minus, nil},
		{"lt is signed", []byte{0x09, 0xff, 0x31, 0x2d, 0x9f}, oracle.IsValue, 1, nil},
		{"lt of unsigned", []byte{0xa5, 15, 0x04, 0xa5, 1, 0x04, 0x2d, 0x9f}, oracle.IsValue, 0, nil},
		{"ge", []byte{0x32, 0x32, 0x2a, 0x9f}, oracle.IsValue, 1, nil},
		{"not neg", []byte{0x35, 0x20, 0x1f, 0x9f}, oracle.IsValue, 6, nil},
		{"convert to s8", []byte{0x08, 0x80, 0xa8, 0x11, 0x9f}, oracle.IsValue, minus - 127, nil},
		{"convert to u16", []byte{0x09, 0xff, 0xa8, 0x02, 0x9f}, oracle.IsValue, 0xffff, nil},
		{"wraps as u8", []byte{0xa5, 15, 1, 0x23, 2, 0x9f}, oracle.IsValue, 1, nil},
		{"shr of s32 has 32 bits", []byte{0xa5, 15, 0x14, 0x08, 28, 0x25, 0x9f}, oracle.IsValue, 15, nil},
		{"a plain number takes its neighbour's type", []byte{0xa5, 15, 0x08, 0x37, 0x1a, 0x9f}, oracle.IsValue, 7, nil},
		{"the generic type is as wide as u64", []byte{0xa5, 15, 0x08, 0x71, 0, 0x1a, 0x9f}, oracle.IsValue, 0x1000, nil},
		{"other mixtures are invalid", []byte{0xa5, 15, 0x14, 0x71, 0, 0x1a, 0x9f}, 0, 0, oracle.ErrBad},
		{"reinterpret", []byte{0x09, 0xff, 0xa9, 0x08, 0x9f}, oracle.IsValue, minus, nil},
		{"reinterpret of another size", []byte{0x31, 0xa9, 0x04, 0x9f}, 0, 0, oracle.ErrBad},
		{"float", []byte{0x31, 0xa8, 0x28, 0x9f}, 0, 0, oracle.ErrUnsupported},
		{"bra taken", []byte{0x31, 0x31, 0x28, 1, 0, 0x37, 0x9f}, oracle.IsValue, 1, nil},
		{"bra not taken", []byte{0x31, 0x30, 0x28, 1, 0, 0x37, 0x9f}, oracle.IsValue, 7, nil},
		{"skip", []byte{0x31, 0x2f, 1, 0, 0x37, 0x9f}, oracle.IsValue, 1, nil},
		{"endless loop", []byte{0x2f, 0xfd, 0xff}, 0, 0, oracle.ErrUnsupported},
		{"branch out", []byte{0x2f, 9, 0}, 0, 0, oracle.ErrBad},
		{"empty stack", []byte{0x22}, 0, 0, oracle.ErrBad},
		{"cut short", []byte{0x0c, 1}, 0, 0, oracle.ErrBad},
		{"entry value elsewhere", []byte{0xa3, 1, 0x55, 0x9f}, 0, 0, oracle.ErrEntryValue},
		{"parameter ref", []byte{0xfa, 1, 2, 3, 4, 0x9f}, 0, 0, oracle.ErrParameterRef},
		{"thread-local", []byte{0x31, 0xe0}, 0, 0, oracle.ErrThreadLocal},
		{"call2", []byte{0x98, 0, 0}, 0, 0, oracle.ErrUnsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testMachine()
			res, err := m.Eval(c.expr)
			if !errors.Is(err, c.err) || err == nil && (res.Kind != c.kind || res.Value != c.want) {
				t.Errorf("% x: kind %d, %#x, %v; want kind %d, %#x, %v", c.expr, res.Kind, res.Value, err, c.kind, c.want, c.err)
			}
		})
	}
}

// TestShifts: two shifts of a byte, or of 16 bits, have so many bits. The byte at 0x5001 is 0x50, and others are 0.
func TestShifts(t *testing.T) {
	for _, c := range []struct {
		name string
		expr []byte
		want uint64
	}{
		{"an unsigned field of a byte", []byte{0x75, 1, 0x94, 1, 0x32, 0x24, 0x35, 0x26, 0x9f}, 2},
		{"a signed one", []byte{0x75, 1, 0x94, 1, 0x31, 0x24, 0x35, 0x25, 0x9f}, ^uint64(2)},
		{"of 16 bits", []byte{0x75, 1, 0x94, 2, 0x33, 0x24, 0x35, 0x26, 0x9f}, 0x14},
		{"of 32", []byte{0x75, 1, 0x94, 4, 0x33, 0x24, 0x32, 0x26, 0x9f}, 0xa0},
		{"up by more than down", []byte{0x75, 1, 0x94, 1, 0x35, 0x24, 0x32, 0x26, 0x9f}, 0x280},
	} {
		m := testMachine()
		m.GNU = true
		if res, err := m.Eval(c.expr); err != nil || res.Value != c.want {
			t.Errorf("%s: %#x, %v; want %#x", c.name, res.Value, err, c.want)
		}
	}
}

func TestExpect(t *testing.T) {
	m := testMachine()
	for _, c := range []struct {
		name    string
		expr    []byte
		size    int
		signed  bool
		atEntry bool
		want    uint64
		ok      bool
		err     error
	}{
		{"low half of a register", []byte{0x5f}, 4, false, false, 0xffffffff, true, nil},
		{"the same, signed", []byte{0x5f}, 4, true, false, ^uint64(0), true, nil},
		{"memory", []byte{0x75, 1}, 1, false, false, 0x50, true, nil},
		{"unreadable memory", []byte{0x30}, 8, false, false, 0, false, nil},
		{"division by zero", []byte{0x31, 0x30, 0x1b, 0x9f}, 4, false, false, 0, false, nil},
		{"entry value at the entry", []byte{0xf3, 1, 0x55, 0x9f}, 8, false, true, 0x5000, true, nil},
		{"entry value elsewhere", []byte{0xf3, 1, 0x55, 0x9f}, 8, false, false, 0, false, oracle.ErrEntryValue},
		{"two halves", []byte{0x55, 0x93, 4, 0x56, 0x93, 4}, 8, false, false, 0x600000005000, true, nil},
		{"bits", []byte{0x55, 0x9d, 4, 12, 0x56, 0x9d, 4, 12}, 1, false, false, 0x65, true, nil},
		{"half is missing", []byte{0x55, 0x93, 4, 0x93, 4}, 8, false, false, 0, false, oracle.ErrMissing},
		{"the other half is not asked for", []byte{0x9e, 4, 1, 2, 3, 4}, 2, false, false, 0x201, true, nil},
		{"too small", []byte{0x9e, 2, 1, 2}, 4, false, false, 0, false, oracle.ErrTooLarge},
		{"implicit pointer", []byte{0xa0, 1, 0, 0, 0, 0}, 8, false, false, 0, false, oracle.ErrImplicitPointer},
		{"stack slot", []byte{0x91, 0}, 2, false, false, 0x7ff0, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, ok, err := oracle.Expect(oracle.Input{
				Expr: c.expr, Size: c.size, Signed: c.signed, AtEntry: c.atEntry,
				FrameBase: []byte{0x9c}, CFA: 0x7ff0, Reg: m.Reg, Mem: m.Mem,
			})
			if v != c.want || ok != c.ok || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("% x: %#x, %v, %v; want %#x, %v, %v", c.expr, v, ok, err, c.want, c.ok, c.err)
			}
		})
	}
}

// FuzzEval checks that no input makes the evaluator panic or run for long.
func FuzzEval(f *testing.F) {
	f.Add([]byte{0x75, 8, 0x9f})
	f.Add([]byte{0x55, 0x93, 8, 0x9d, 4, 4})
	f.Add([]byte{0xa3, 4, 0xa3, 2, 0x91, 0, 0x9f})
	f.Fuzz(func(t *testing.T, expr []byte) {
		m := testMachine()
		m.AtEntry = true
		res, err := m.Eval(expr)
		if err == nil {
			_, _ = m.Fetch(res, 8, false)
		}
	})
}
