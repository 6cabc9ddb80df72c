package dw

// Parent returns the entry that the one at an offset in the unit is a child of. The format
// has no way up, so it is found from the unit's own entry down. That one has no parent: the
// result is the end of a list.
func (u *Unit) Parent(off uint64) (parent Entry, err error) {
	e, err := u.Entry(u.First)
	if err != nil {
		return Entry{}, err
	}
	for e.Off < off && e.HasChildren() {
		parent = e
		at, err := u.SkipAttrs(e)
		if err != nil {
			return Entry{}, err
		}
		for {
			if e, err = u.Entry(uint64(at)); err != nil || e.IsEnd() {
				return Entry{}, err
			}
			if at, err = u.SkipTree(e); err != nil {
				return Entry{}, err
			}
			if uint64(at) > off {
				break // it is the one, or encloses it
			}
		}
	}
	return parent, nil
}
