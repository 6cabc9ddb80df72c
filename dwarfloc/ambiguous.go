package dwarfloc

// AmbiguousSymbols returns the names that several functions or labels of the image
// have, at different addresses: such a name says nothing of where a probe is.
func (img *Image) AmbiguousSymbols() map[string]bool {
	out := make(map[string]bool)
	_ = guard(func() error {
		t := img.table()
		at := make(map[string]uint64, t.len())
		for i := range t.len() {
			s := t.at(i)
			name, _ := zstr(t.strs, uint64(s.name))
			if addr, ok := at[name]; ok && addr != s.addr {
				out[name] = true
			}
			at[name] = s.addr
		}
		return nil
	})
	return out
}
