package packfile

import (
	"cmp"
	"slices"
)

// Names returns the names of all functions that have a site, sorted, without duplicates.
func (f *File) Names() ([]string, error) {
	return f.namesOf(func(s *session, id int) (string, error) { return s.textOf(s.nameText(id)) })
}

// QualifiedNames is Names with the names as people write them.
func (f *File) QualifiedNames() ([]string, error) {
	return f.namesOf(func(s *session, id int) (string, error) {
		x, err := s.describe(id)
		if err != nil {
			return "", err
		}
		return x.Qualified, nil
	})
}

func (f *File) namesOf(of func(s *session, id int) (string, error)) ([]string, error) {
	s, err := f.session()
	if err != nil {
		return nil, err
	}
	defer s.end()
	has := make([]bool, f.funs)
	err = s.each(func(int) bool { return true }, func(_ int, b *readBlock) (bool, error) {
		for i := range b.nodes {
			if n := &b.nodes[i]; !n.ghost {
				has[n.fun] = true
			}
		}
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	var out []string
	for id, ok := range has {
		if ok {
			n, err := of(s, id)
			if err != nil {
				return nil, err
			}
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Of returns the sites of the functions with a name, in the order of dwarfloc.Image.Sites.
func (f *File) Of(name string) ([]Ref, error) {
	id, err := f.nameOf(name)
	if err != nil || id < 0 {
		return nil, err
	}
	s, err := f.session()
	if err != nil {
		return nil, err
	}
	defer s.end()
	picked := func(name uint32) bool { return int(name) == id }
	in, err := s.blocksWith(picked)
	if err != nil {
		return nil, err
	}
	return s.sitesIn(in, picked)
}

// List returns the sites of the functions whose names match selects, or all if it is nil, in the
// order of dwarfloc.Image.Sites. match is called once for each name.
func (f *File) List(match func(name string) bool) ([]Ref, error) {
	s, err := f.session()
	if err != nil {
		return nil, err
	}
	defer s.end()
	if match == nil {
		return s.sitesIn(nil, func(uint32) bool { return true })
	}
	matches := make([]bool, f.parts[partNames].N)
	few := 0
	for g := range groups(len(matches)) {
		all, err := f.texts(partNames, g)
		if err != nil {
			return nil, err
		}
		for i, t := range all {
			if matches[g*groupSize+i] = match(t); matches[g*groupSize+i] {
				few++
			}
		}
	}
	picked := func(name uint32) bool { return matches[name] }
	var in func(int) bool
	if few < len(matches)/8 {
		if in, err = s.blocksWith(picked); err != nil {
			return nil, err
		}
	}
	return s.sitesIn(in, picked)
}

// blocksWith returns which blocks can have sites of functions with names.
func (s *session) blocksWith(picked func(name uint32) bool) (func(int) bool, error) {
	in := make([]bool, s.f.facts.Blocks)
	for fun, n := range s.names {
		if !picked(n) {
			continue
		}
		blocks, err := s.blocksOf(fun)
		if err != nil {
			return nil, err
		}
		for _, b := range blocks {
			in[b] = true
		}
	}
	return func(n int) bool { return in[n] }, nil
}

// sitesIn returns sites of functions in blocks, or in all if in is nil. Of some blocks, what was read is kept for Each.
func (s *session) sitesIn(in func(block int) bool, picked func(name uint32) bool) ([]Ref, error) {
	few := in != nil
	if !few {
		in = func(int) bool { return true }
	}
	var all []listed
	err := s.each(in, func(i int, b *readBlock) (bool, error) {
		before := len(all)
		for j := range b.nodes {
			n := &b.nodes[j]
			if name := s.names[n.fun]; !n.ghost && picked(name) {
				all = append(all, listed{Ref{uint32(i), uint32(n.index)}, name, n.addr, n.view, n.inline})
			}
		}
		return few && len(all) > before && s.keep(i, b), nil
	})
	if err != nil {
		return nil, err
	}
	return sortListed(all), nil
}

// Site returns a site.
func (f *File) Site(r Ref) (*Site, error) {
	var out Site
	err := f.Each([]Ref{r}, func(_ int, s *Site) error {
		out = *s
		return nil
	})
	return &out, err
}

// Each calls g for sites, with their indices in refs: block by block, so that each block is read once. s is
// reused after g returns, but not what it points to, which must not be changed.
func (f *File) Each(refs []Ref, g func(i int, s *Site) error) error {
	s, err := f.session()
	if err != nil {
		return err
	}
	defer s.end()
	order := make([]int, len(refs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(compareRefs(refs[a], refs[b]), cmp.Compare(a, b)) })
	var out Site
	for i := 0; i < len(order); {
		n := refs[order[i]].Block
		b, err := s.block(int(n))
		if err != nil {
			return err
		}
		m := materializer{s: s, b: b, in: uint64(n), chains: make(map[int32][]Caller)}
		at := 0
		for ; i < len(order) && refs[order[i]].Block == n; i++ {
			want := int32(min(refs[order[i]].Index, 1<<31-1))
			for at < len(b.nodes) && (b.nodes[at].ghost || b.nodes[at].index < want) {
				at++
			}
			if at == len(b.nodes) {
				return f.own.Errorf(f.parts[partBlocks].From, "site %d of block %d is asked for, which has %d", want, n, b.sites)
			}
			if err := m.site(&b.nodes[at], &out); err != nil {
				return err
			}
			if err := g(order[i], &out); err != nil {
				return err
			}
		}
		s.release(b)
	}
	return nil
}
