package dwarfloc

// LLVM removes the result of a function that only its own unit calls if no caller uses it,
// or if all can know it; the function then returns with whatever is in the register (seen
// with clang 14 to 16). The debug information does not show it, and still has the type of
// the result. What shows that a result exists is a caller that uses it.

// resultUsed reports whether the site's function, which only its unit can call, has a result
// as far as can be seen: a caller uses it, or the address of the function is taken.
func (s *Site) resultUsed() bool {
	if s.u.code.GNU() || s.AfterPrologue {
		return true
	}
	used, called := s.u.img.code.ResultUsed(s.fun.start)
	return used || !called
}
