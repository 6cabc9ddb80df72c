package symbolic

import mathbits "math/bits"

// State is what registers and memory hold on one path through the code, relative to what they held where the path begins. It knows
// what instructions move, add and extend; what they compute otherwise is a number of its own.
type State struct {
	t    *Trace
	from int32 // symbols up to it are of the place where the path begins
	step func(t *Trace, code []byte, addr uint64) Condition
}

// NewState returns the state where a path begins. Step follows an instruction.
func NewState(t *Trace, step func(t *Trace, code []byte, addr uint64) Condition) *State {
	return &State{t, int32(len(t.Symbols)), step}
}

// Restart makes the state again what [NewState] returned.
func (s *State) Restart() { s.t.Restart() }

// Step follows the first instruction in code, which is at addr and goes on at the next one.
func (s *State) Step(code []byte, addr uint64) { s.step(s.t, code, addr) }

// Operation returns the last shift to the right or division since it was asked for. ok is false if there was none.
func (s *State) Operation() (x Operation, ok bool) {
	x, s.t.Last = s.t.Last, Operation{}
	return x, x.Bits != 0
}

// IsOf reports whether an operation is one of so many lower bits of two numbers, or of what these are extended to.
func (s *State) IsOf(x *Operation, a, b Value, bits uint8) bool {
	extend := s.t.Low
	if x.Signed {
		extend = s.t.LowSigned
	}
	is := func(operand, v Value) bool {
		if x.Bits <= bits {
			return s.t.Low(operand, x.Bits) == s.t.Low(v, x.Bits)
		}
		return operand == extend(v, bits)
	}
	if !x.Divides {
		return is(x.Of, a) && s.t.Low(x.By, 8) == s.t.Low(b, 8)
	}
	return is(x.Of, a) && is(x.By, b)
}

// Holds reports whether a register that is followed holds a number, or something that is made of what that is made of.
func (s *State) Holds(a Value) bool {
	for i := range s.t.Regs {
		for v := s.t.Regs[i]; ; {
			for _, x := range v.Terms {
				if x.Symbol != 0 && (x.Symbol == a.Terms[0].Symbol || x.Symbol == a.Terms[1].Symbol) {
					return true
				}
			}
			k := &s.t.Symbols[v.Single()]
			if k.Kind != ZeroExtended && k.Kind != SignExtended && k.Kind != Partly {
				break
			}
			v = k.Of
		}
	}
	return false
}

// Register returns what a register holds, by its DWARF number. ok is false for those that are not followed.
func (s *State) Register(n uint64) (v Value, ok bool) {
	if n >= uint64(len(s.t.Regs)) {
		return Value{}, false
	}
	return s.t.Regs[n], true
}

// Constant returns a number.
func (s *State) Constant(n uint64) Value { return Constant(n) }

// Load returns what so many bits of memory hold.
func (s *State) Load(at Value, bits uint8) Value {
	return s.t.Load(s.t.Low(at, s.t.bits), bits)
}

// Plus returns a + b*scale.
func (s *State) Plus(a, b Value, scale uint64) Value { return s.t.Plus(a, b, scale) }

// Low returns the lower bits of a number.
func (s *State) Low(a Value, bits uint8) Value { return s.t.Low(s.t.modulo(a, bits), bits) }

// Extended returns the lower bits of a number, sign-extended.
func (s *State) Extended(a Value, bits uint8) Value { return s.t.LowSigned(a, bits) }

// Differs reports whether the lower bits of two numbers differ, whatever was where the path begins: by a constant, because an
// instruction on the path made one of them of others, or because the second one is the first and more than a constant.
func (s *State) Differs(a, b Value, bits uint8) bool {
	from := s.t.modulo(a, bits)
	d, ok := sum(from, s.t.modulo(b, bits), ^uint64(0))
	if ok && d.IsConstant() {
		return d.Const&Mask(bits) != 0
	}
	if ok && !s.t.astray && !from.IsConstant() && !d.shares(from) {
		return true
	}
	return !s.t.astray && s.Made(a) != s.Made(b)
}

// Adds reports whether the lower bits of two numbers differ by a number, whatever was where the path begins.
func (s *State) Adds(a, b Value, bits uint8) bool {
	d, ok := sum(s.t.modulo(a, bits), s.t.modulo(b, bits), ^uint64(0))
	return ok && d.IsConstant() && d.Const&Mask(bits) != 0
}

// Input returns the register that held a number where the path begins, if one did, and how many lower bits of it the number has.
func (s *State) Input(a Value) (register uint64, bits uint8, ok bool) {
	bits = s.t.bits
	for v := a; ; {
		k := &s.t.Symbols[v.Single()]
		switch k.Kind {
		case InputRegister:
			return uint64(k.Which), bits, true
		case ZeroExtended, SignExtended, Partly:
			v, bits = k.Of, min(bits, k.Bits)
		default:
			return 0, 0, false
		}
	}
}

// Offset returns the register that held a number where the path begins, and what was added to it since, if nothing else happened to it. It is that of numbers of which 32 bits
// may be all.
func (s *State) Offset(a Value) (register, added uint64, ok bool) { return s.t.Offset(a) }

// Offset is that of a state.
func (t *Trace) Offset(v Value) (register, added uint64, ok bool) {
	for {
		x := v.Terms[0]
		if x.Scale != 1 || v.Terms[1].Symbol != 0 {
			return 0, 0, false
		}
		added += v.Const
		switch k := &t.Symbols[x.Symbol]; {
		case k.Kind == InputRegister:
			return uint64(k.Which), added, true
		case (k.Kind == ZeroExtended || k.Kind == SignExtended) && k.Bits >= 32:
			v = k.Of
		default:
			return 0, 0, false
		}
	}
}

// Cut returns how many lower bits of another number a number is, if it is that, or of what was loaded from the same memory before a store.
func (s *State) Cut(a, of Value) (bits uint8, ok bool) {
	k := &s.t.Symbols[a.Single()]
	if k.Kind != ZeroExtended {
		return 0, false
	}
	if k.Of == s.t.modulo(of, k.Bits) {
		return k.Bits, true
	}
	was, is := &s.t.Symbols[k.Of.Single()], &s.t.Symbols[of.Single()]
	return k.Bits, was.Kind == Loaded && is.Kind == Loaded && was.Of == is.Of && was.Bits == is.Bits
}

// Bits returns how many lower bits of a number may not be 0. With inherits the number is that which a register held where the path begins, or
// so many lower bits of it.
func (s *State) Bits(a Value) (bits uint8, of uint64, inherits bool) {
	bits = uint8(mathbits.Len64(s.t.limits(a).Hi))
	k := &s.t.Symbols[a.Single()]
	if k.Kind == ZeroExtended {
		k = &s.t.Symbols[k.Of.Single()]
	}
	return bits, uint64(k.Which), k.Kind == InputRegister
}

// Computes reports whether an instruction on the path computes a number: it is not one that was there, that was loaded, or that a call
// returned, and no address in the frame. offset is set if it only adds a constant to one that was there, as the address of a member is made.
func (s *State) Computes(a Value) (computes, offset bool) {
	for v := a; ; {
		id := v.Single()
		switch k := &s.t.Symbols[id]; {
		case id == 0:
			return !s.t.inFrame(v), v.Terms[0].Scale == 1 && v.Terms[1].Symbol == 0
		case k.Kind == UnknownNumber:
			return id >= s.from, false
		case k.Bits%8 != 0:
			return true, false // a mask of other than whole bytes is no conversion
		case k.Kind == ZeroExtended, k.Kind == SignExtended, k.Kind == Partly:
			v = k.Of
		default:
			return false, false
		}
	}
}

// Made reports whether a number is none of those where the path begins, and no sum of them.
func (s *State) Made(v Value) bool {
	for _, x := range v.Terms {
		switch k := &s.t.Symbols[x.Symbol]; k.Kind {
		case UnknownNumber, ReturnedNumber, calledNumber:
			if x.Symbol >= s.from {
				return true
			}
		case Loaded:
			if !s.framed(k.Of) {
				return true // from a slot of the frame it may be what was there all the time
			}
		case ZeroExtended, SignExtended, Partly:
			if k.Bits%8 != 0 || s.Made(k.Of) {
				return true // a mask of other than whole bytes is no conversion
			}
		}
	}
	return false
}

// framed reports whether an address is in the frame, in code of 32 bits too.
func (s *State) framed(addr Value) bool {
	if k := &s.t.Symbols[addr.Single()]; k.Kind == ZeroExtended {
		addr = k.Of
	}
	return s.t.inFrame(addr)
}
