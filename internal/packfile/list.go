package packfile

import (
	"cmp"
	"runtime"
	"slices"
	"sync/atomic"
)

// Names returns the names of all functions that have a site, sorted, without duplicates.
func (f *File) Names() ([]string, error) {
	return f.namesOf(func(_ *session, _ int, name string) (string, error) { return name, nil })
}

// QualifiedNames is Names with the names as people write them. They are kept: who asks for a function that is not there is told the
// nearest ones, and may ask for many.
func (f *File) QualifiedNames() ([]string, error) {
	f.qualified.Lock()
	defer f.qualified.Unlock()
	if f.qualified.names != nil {
		return slices.Clone(f.qualified.names), nil
	}
	out, err := f.namesOf(func(s *session, id int, name string) (string, error) {
		x, err := s.function(id)
		if err != nil || x.qualified == noText {
			return name, err
		}
		return s.textOf(x.qualified)
	})
	if err != nil {
		return nil, err
	}
	f.qualified.names = out
	return slices.Clone(out), nil
}

func (f *File) namesOf(of func(s *session, id int, name string) (string, error)) ([]string, error) {
	has := make([]atomic.Bool, f.funs)
	see := func(n *readNode) bool {
		if !has[n.fun].Load() {
			has[n.fun].Store(true)
		}
		return false
	}
	err := f.eachBlock(nil, see, func(int, int, *readBlock) error { return nil })
	if err != nil {
		return nil, err
	}
	var names []string
	var x textReader
	for g := range groups(f.parts[partNames].N) {
		all, err := x.texts(f, partNames, g)
		if err != nil {
			return nil, err
		}
		names = append(names, all...)
	}
	s := f.session()
	defer s.end()
	var out []string
	for id := range has {
		if !has[id].Load() {
			continue
		}
		name, err := f.nameID(id)
		if err != nil {
			return nil, err
		}
		n, err := of(s, id, names[name])
		if err != nil {
			return nil, err
		}
		out = append(out, n)
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
	s := f.session()
	defer s.end()
	picked, err := f.functionsOf(func(name uint32) bool { return int(name) == id })
	if err != nil {
		return nil, err
	}
	in, err := s.blocksWith(picked)
	if err != nil {
		return nil, err
	}
	return f.sitesIn(in, picked)
}

// List returns the sites of the functions whose names match selects, or all if it is nil, in the
// order of dwarfloc.Image.Sites. match is called once for each name.
func (f *File) List(match func(name string) bool) ([]Ref, error) {
	s := f.session()
	defer s.end()
	if match == nil {
		return f.sitesIn(nil, nil)
	}
	matches := make([]bool, f.parts[partNames].N)
	few := 0
	var x textReader
	for g := range groups(len(matches)) {
		all, err := x.texts(f, partNames, g)
		if err != nil {
			return nil, err
		}
		for i, t := range all {
			if matches[g*groupSize+i] = match(t); matches[g*groupSize+i] {
				few++
			}
		}
	}
	picked, err := f.functionsOf(func(name uint32) bool { return matches[name] })
	if err != nil {
		return nil, err
	}
	var in []int
	if few < len(matches)/8 {
		if in, err = s.blocksWith(picked); err != nil {
			return nil, err
		}
	}
	return f.sitesIn(in, picked)
}

// blocksWith returns which blocks can have sites of functions, sorted.
func (s *session) blocksWith(picked []bool) ([]int, error) {
	in := []int{}
	for fun, is := range picked {
		if !is {
			continue
		}
		blocks, err := s.blocksOf(fun)
		if err != nil {
			return nil, err
		}
		in = append(in, blocks...)
	}
	slices.Sort(in)
	return slices.Compact(in), nil
}

// sitesIn returns sites of the functions that are picked in some blocks, or in all blocks, or of all functions, if these are nil. Of some blocks, what was
// read is kept for Each.
func (f *File) sitesIn(in []int, picked []bool) ([]Ref, error) {
	few := in != nil
	if few {
		f.kept.begin()
	}
	lists := make([][]listed, runtime.GOMAXPROCS(0))
	pick := func(n *readNode) bool { return picked == nil || picked[n.fun] }
	err := f.eachBlock(in, pick, func(worker, i int, b *readBlock) error {
		for j := range b.nodes {
			n := &b.nodes[j]
			if !n.picked {
				continue
			}
			name, err := f.nameID(int(n.fun))
			if err != nil {
				return err
			}
			lists[worker] = append(lists[worker], listed{Ref{uint32(i), uint32(n.index)}, name, n.addr, n.view, n.inline})
		}
		if few && len(b.nodes) > 0 {
			f.kept.add(i, b)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sortListed(slices.Concat(lists...)), nil
}

// Each calls g for sites, with their indices in refs: block by block, so that each block is read once. s is
// reused after g returns, but not what it points to, which must not be changed.
func (f *File) Each(refs []Ref, g func(i int, s *Site) error) error {
	s := f.session()
	defer s.end()
	order := make([]int, len(refs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(compareRefs(refs[a], refs[b]), cmp.Compare(a, b)) })
	var out Site
	var sites []int32
	for i := 0; i < len(order); {
		n := refs[order[i]].Block
		sites = sites[:0]
		for _, j := range order[i:] {
			if refs[j].Block != n {
				break
			}
			sites = append(sites, int32(min(refs[j].Index, 1<<31-1)))
		}
		b, err := s.block(int(n), sites)
		if err != nil {
			return err
		}
		m := materializer{s: s, b: b, in: uint64(n), chains: make(map[int32][]Caller)}
		at := 0
		for _, want := range sites {
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
			i++
		}
	}
	return nil
}
