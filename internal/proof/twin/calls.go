package twin

// run is a run of A, in the order of all.
type run struct {
	site    *site
	returns uint64 // the address to which the function returns that the run is in
	parent  int    // the run of the function, not inlined, that has the call of this one, or -1
	at      place  // where it was called, up to that function, if not open
	open    bool   // it was called in a body that may be inlined: some with always_inline are
	direct  bool   // it was called by its name
}

// tree finds which run called which, and where.
func (t *trace) tree(c *code, lines lineTable) {
	inlined := make(map[string]bool) // functions that have inlined bodies
	for _, of := range t.functions {
		for _, s := range of.sites {
			inlined[s.Symbol] = inlined[s.Symbol] || s.Inlined()
		}
	}
	last := make(map[string]int)
	for i := range t.runs {
		r := &t.runs[i]
		caller := r.site.Symbol
		if r.site.Inlined() {
			r.at, r.direct = r.site.called(), true
		} else {
			caller = t.symbols.at(r.returns - 1)
			r.at, r.open, r.direct = place{lines.at(r.returns - 1)}, inlined[caller], c.calls[r.returns] == r.site.name
		}
		r.parent = -1
		if p, ok := last[caller]; ok {
			r.parent = p
		}
		if !r.site.Inlined() {
			last[r.site.Symbol] = i
		}
	}
}

// removed says for each run of A whether B has no code for the call that led to it: neither a call of the function nor its body,
// at the line of the call, in whatever copy of the function that called it; or none for a call on the way there.
func (t *trace) removed(b *code) []bool {
	out := make([]bool, len(t.runs))
	for i := range t.runs {
		r := &t.runs[i]
		out[i] = r.parent >= 0 && out[r.parent] || r.direct && !t.called(i, b.places[r.site.name], b.near)
	}
	return out
}

// called reports whether one of some places can be where a run was called.
func (t *trace) called(run int, places []place, near int) bool {
	for _, p := range places {
		if t.along(run, p, near) {
			return true
		}
	}
	return false
}

// along reports whether a run can have been called at a place, as far as it is known where that was.
func (t *trace) along(run int, p place, near int) bool {
	for run >= 0 {
		r := &t.runs[run]
		for _, at := range r.at {
			if len(p) == 0 {
				return true
			}
			if !at.fits(p[0], near) {
				return false
			}
			p = p[1:]
		}
		if r.open {
			return true
		}
		run = r.parent
	}
	return true
}
