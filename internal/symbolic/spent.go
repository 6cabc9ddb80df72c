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
	if len(s.t.written) == 0 {
		return false
	}
	at := s.t.written[len(s.t.written)-1]
	v, ok := s.t.memory[at]
	return ok && at.bits >= bits && !s.t.inFrame(at.addr) && s.t.Low(v, bits) == s.t.Low(a, bits)
}
