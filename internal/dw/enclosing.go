package dw

// Enclosing returns the entries that enclose the one at an offset in the unit, the unit's own
// first. The format has no way up, so they are found from there down.
func (u *Unit) Enclosing(off uint64) ([]Entry, error) {
	e, err := u.Entry(u.First)
	if err != nil {
		return nil, err
	}
	var path []Entry
	for e.Off < off && e.HasChildren() {
		path = append(path, e)
		at, err := u.SkipAttrs(e)
		if err != nil {
			return nil, err
		}
		for {
			if e, err = u.Entry(uint64(at)); err != nil || e.IsEnd() {
				return path, err
			}
			if at, err = u.SkipTree(e); err != nil {
				return nil, err
			}
			if uint64(at) > off {
				break // it is the one, or encloses it
			}
		}
	}
	return path, nil
}
