package insn

// State is what registers and memory hold on one path through the code, relative to what they held where the path begins. It knows
// what instructions move, add and extend; what they compute otherwise is a number of its own.
type State struct {
	arch *Arch
	t    *trace
	from int32 // symbols up to it are of the place where the path begins
}

// Number is what a place holds on the path. Equal ones are equal numbers; others may be.
type Number struct{ v value }

// State returns the state where a path begins. ok is false if the architecture's instructions are not followed.
func (a *Arch) State() (s *State, ok bool) {
	if a.trace == nil {
		return nil, false
	}
	t := newTrace(a.frame, a.width)
	return &State{a, t, int32(len(t.symbols))}, true
}

// Step follows the first instruction in code, which is at addr and goes on at the next one.
func (s *State) Step(code []byte, addr uint64) { s.arch.trace(s.t, code, addr) }

// Register returns what a register holds, by its DWARF number. ok is false for those that are not followed.
func (s *State) Register(n uint64) (v Number, ok bool) {
	if n >= uint64(len(s.t.regs)) {
		return Number{}, false
	}
	return Number{s.t.regs[n]}, true
}

// Constant returns a number.
func (s *State) Constant(n uint64) Number { return Number{constant(n)} }

// Load returns what so many bits of memory hold.
func (s *State) Load(at Number, bits uint8) Number {
	if s.arch.width > 0 {
		at.v = s.t.low(at.v, s.arch.width)
	}
	return Number{s.t.load(at.v, bits)}
}

// Plus returns a + b*scale.
func (s *State) Plus(a, b Number, scale uint64) Number { return Number{s.t.plus(a.v, b.v, scale)} }

// Low returns the lower bits of a number.
func (s *State) Low(a Number, bits uint8) Number { return Number{s.t.low(s.t.modulo(a.v, bits), bits)} }

// Extended returns the lower bits of a number, sign-extended.
func (s *State) Extended(a Number, bits uint8) Number { return Number{s.t.lowSigned(a.v, bits)} }

// Differs reports whether the lower bits of two numbers differ, whatever was where the path begins: by a constant, or because an
// instruction on the path made one of them of others.
func (s *State) Differs(a, b Number, bits uint8) bool {
	d, ok := sum(s.t.modulo(a.v, bits), s.t.modulo(b.v, bits), ^uint64(0))
	if ok && d.isConstant() {
		return d.c&mask(bits) != 0
	}
	return !s.t.astray && s.made(a.v) != s.made(b.v)
}

// Computes reports whether an instruction on the path computes a number: it is not one that was there, that was loaded, or that a call
// returned.
func (s *State) Computes(a Number) bool {
	for v := a.v; ; {
		id := v.single()
		switch k := &s.t.symbols[id]; {
		case id == 0:
			return true
		case k.kind == unknownNumber:
			return id >= s.from
		case k.kind == zeroExtended, k.kind == signExtended, k.kind == partly:
			v = k.of
		default:
			return false
		}
	}
}

// made reports whether a number is none of those where the path begins, and no sum of them.
func (s *State) made(v value) bool {
	for _, x := range v.terms {
		switch k := &s.t.symbols[x.sym]; k.kind {
		case unknownNumber, returnedNumber, calledNumber:
			if x.sym >= s.from {
				return true
			}
		case loaded:
			if !s.framed(k.of) {
				return true // from a slot of the frame it may be what was there all the time
			}
		case zeroExtended, signExtended, partly:
			if k.bits%8 != 0 || s.made(k.of) {
				return true // a mask of other than whole bytes is no conversion
			}
		}
	}
	return false
}

// framed reports whether an address is in the frame, in code of 32 bits too.
func (s *State) framed(addr value) bool {
	if k := &s.t.symbols[addr.single()]; k.kind == zeroExtended {
		addr = k.of
	}
	return s.t.inFrame(addr)
}
