package twin

// run is a run of A, in the order of all.
type run struct {
	function string
	returns  uint64 // the address to which it returns
	parent   int    // the run that called it, or -1
	at       position
	direct   bool // it was called by its name
}

// tree finds which run called which, and where.
func (t *trace) tree(c *code, lines lineTable) {
	last := make(map[string]int)
	for i := range t.runs {
		r := &t.runs[i]
		r.parent = -1
		if p, ok := last[t.symbols.at(r.returns-1)]; ok {
			r.parent = p
		}
		r.direct = c.calls[r.returns] == r.function
		r.at = lines.at(r.returns - 1)
		last[r.function] = i
	}
}

// removed says for each run of A whether B has no code for the call that led to it: neither a call of the function nor its body,
// at the line of the call, in whatever copy of the function that called it; or none for a call on the way there.
func (t *trace) removed(b *code) []bool {
	out := make([]bool, len(t.runs))
	for i := range t.runs {
		r := &t.runs[i]
		out[i] = r.parent >= 0 && out[r.parent] || r.direct && !t.called(i, b.places[r.function], b.near)
	}
	return out
}

// called reports whether one of some places can be where a run was called.
func (t *trace) called(run int, places []place, near int) bool {
	for _, p := range places {
		i, fits := run, true
		for _, at := range p {
			if i < 0 {
				break
			}
			fits = fits && t.runs[i].at.fits(at, near)
			i = t.runs[i].parent
		}
		if fits {
			return true
		}
	}
	return false
}
