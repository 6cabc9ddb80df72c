package dwarfloc

// pointee is inside.Pointee.
func (s *Site) pointee(target uint64) (v *Variable, err error) {
	err = s.Image.guard(func() error {
		v, err = s.by.pointee(s, target)
		return err
	})
	return v, err
}

func (debugInfo) pointee(s *Site, target uint64) (*Variable, error) {
	u := s.u.img.r.Data.UnitAt(target)
	if u == nil {
		return nil, s.u.Data.Errorf(".debug_info", target, "an implicit pointer's object is outside any unit")
	}
	if err := u.Load(); err != nil {
		return nil, err
	}
	e, err := u.Entry(target)
	if err != nil {
		return nil, err
	}
	if e.IsEnd() {
		return nil, s.u.Data.Errorf(".debug_info", target, "an implicit pointer names the end of a list of entries")
	}
	x, err := s.u.img.of(u).ReadVar(e)
	if err != nil {
		return nil, err
	}
	x.Pointee = true
	return s.variable(&x, s.evaluator())
}
