package dwarfloc

// StatedByTable returns what a table of the kernel states of a site's parameter, whatever the debug information says, or "".
func StatedByTable(s *Site, name string) (text, witness string, err error) {
	e, err := s.u.Entry(s.DIE)
	if err != nil {
		return "", "", err
	}
	at := visible{site: s}
	if err := at.scope(&at.here, e, 0); err != nil {
		return "", "", err
	}
	x, _, err := at.here.Find(name, true)
	if x == nil || err != nil {
		return "", "", err
	}
	if err := x.Complete(); err != nil {
		return "", "", err
	}
	l, witness, err := s.evaluator().Stated(&x.Var)
	if witness == "" || err != nil {
		return "", "", err
	}
	return l.Text(s.Image.Arch()), witness, nil
}
