package symbolic

// Compares reports whether the last comparison is one of so many lower bits of a number, at least.
func (s *State) Compares(a Value, bits uint8) bool {
	c := &s.t.Flags
	return c.Valid && c.Bits >= bits && (s.t.Low(c.A, bits) == s.t.Low(a, bits) || s.t.Low(c.B, bits) == s.t.Low(a, bits))
}

// Stores returns how many instructions have written to memory.
func (s *State) Stores() int32 { return s.t.stores }

// Stored reports whether the last instruction that wrote to memory, and not to the frame, has written so many lower bits of a number, at least.
func (s *State) Stored(a Value, bits uint8) bool {
	v, n, ok := s.Written()
	return ok && n >= bits && s.t.Low(v, bits) == s.t.Low(a, bits)
}

// Written returns the number that the last instruction that wrote to memory, and not to the frame, has written, with its bits.
func (s *State) Written() (v Value, bits uint8, ok bool) {
	if len(s.t.written) == 0 {
		return Value{}, 0, false
	}
	at := s.t.written[len(s.t.written)-1]
	v, ok = s.t.memory[at]
	return v, at.bits, ok && !s.t.inFrame(at.addr)
}
