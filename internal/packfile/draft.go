package packfile

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"slices"
	"sync"
)

// File is an open pack. Several goroutines may use it.
type File struct {
	path  string
	draft draft
}

type draft struct {
	Facts  Facts
	Blocks [][]Site
}

// Open opens the contents of a section. Nothing is read but its header; data must not change. Errors
// give path.
func Open(data []byte, path string) (*File, error) {
	f := &File{path: path}
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&f.draft); err != nil {
		return nil, fmt.Errorf("%s: %s+0x0: %w", path, Section, err)
	}
	return f, nil
}

// Facts returns what the pack says about itself.
func (f *File) Facts() Facts { return f.draft.Facts }

// Check checks all of a pack.
func (f *File) Check() error { return nil }

// Names returns the names of all functions that have a site, sorted, without duplicates.
func (f *File) Names() ([]string, error) { return f.names(func(x *Function) string { return x.Name }) }

// QualifiedNames is Names with the names as people write them.
func (f *File) QualifiedNames() ([]string, error) {
	return f.names(func(x *Function) string { return x.Qualified })
}

func (f *File) names(of func(*Function) string) ([]string, error) {
	seen := make(map[string]bool)
	var out []string
	for _, b := range f.draft.Blocks {
		for i := range b {
			if n := of(b[i].Function); !seen[n] {
				seen[n] = true
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// Of returns the sites of the functions with a name, in the order of dwarfloc.Image.Sites.
func (f *File) Of(name string) ([]Ref, error) {
	return f.List(func(n string) bool { return n == name })
}

// List returns the sites of the functions whose names match selects, or all if it is nil, in the
// order of dwarfloc.Image.Sites. match is called once for each name.
func (f *File) List(match func(name string) bool) ([]Ref, error) {
	names, _ := f.Names()
	var all []listed
	picked := make(map[string]uint32)
	for i, n := range names {
		if match == nil || match(n) {
			picked[n] = uint32(i)
		}
	}
	for i, b := range f.draft.Blocks {
		for j := range b {
			s := &b[j]
			if rank, ok := picked[s.Function.Name]; ok {
				all = append(all, listed{Ref{uint32(i), uint32(j)}, rank, s.Addr, s.View, s.Inline})
			}
		}
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
// reused after g returns, but not what it points to.
func (f *File) Each(refs []Ref, g func(i int, s *Site) error) error {
	order := make([]int, len(refs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return compareRefs(refs[a], refs[b]) })
	for _, i := range order {
		r := refs[i]
		if int(r.Block) >= len(f.draft.Blocks) || int(r.Index) >= len(f.draft.Blocks[r.Block]) {
			return fmt.Errorf("%s: there is no site %d.%d", f.path, r.Block, r.Index)
		}
		s := f.draft.Blocks[r.Block][r.Index]
		if err := g(i, &s); err != nil {
			return err
		}
	}
	return nil
}

// Writer makes a pack.
type Writer struct {
	mu    sync.Mutex
	facts Facts
	sites []ordered
}

type ordered struct {
	at uint64
	s  Site
}

// NewWriter returns a writer of a pack without sites.
func NewWriter(facts Facts) *Writer { return &Writer{facts: facts} }

// Add adds a site. at orders sites as their entries in the debug information are. Several goroutines may call it. s.In
// is such a number too, of the function that contains the code; s.Of can be any that tells functions apart.
func (w *Writer) Add(at uint64, s *Site) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sites = append(w.sites, ordered{at, *s})
}

// Finish returns the section. final, if it is not nil, returns the number that a type has in the pack.
func (w *Writer) Finish(final func(TypeID) TypeID) ([]byte, error) {
	slices.SortFunc(w.sites, func(a, b ordered) int {
		if a.s.In != b.s.In {
			if a.s.In < b.s.In {
				return -1
			}
			return 1
		}
		if a.at < b.at {
			return -1
		}
		return 1
	})
	d := draft{Facts: w.facts}
	last := uint64(0)
	for i := range w.sites {
		s := &w.sites[i].s
		if i == 0 || s.In != last {
			d.Blocks = append(d.Blocks, nil)
			last = s.In
		}
		s.In = uint64(len(d.Blocks) - 1)
		d.Blocks[s.In] = append(d.Blocks[s.In], *s)
		d.Facts.Sites++
		if s.Inline {
			d.Facts.Inlined++
		}
		d.Facts.Values += len(s.Values.Params)
		if final != nil {
			s.eachType(func(t *TypeID) { *t = final(*t) })
		}
	}
	d.Facts.Blocks, d.Facts.Version = len(d.Blocks), Version
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(d)
	return b.Bytes(), err
}

// eachType visits the types that a site names.
func (s *Site) eachType(f func(*TypeID)) {
	fun := *s.Function
	fun.Params = slices.Clone(fun.Params)
	for i := range fun.Params {
		f(&fun.Params[i].Type)
	}
	s.Function = &fun
	s.Values.eachType(f)
	for i := range s.Ways.In {
		if v := s.Ways.In[i].Values; v != nil {
			v.eachType(f)
		}
	}
}

func (v *Values) eachType(f func(*TypeID)) {
	for i := range v.Params {
		v.Params[i].eachType(f)
	}
	v.Frame.eachType(f)
	v.Result.eachType(f)
}

func (v *Value) eachType(f func(*TypeID)) {
	if v.Own {
		f(&v.Type)
	}
	for p := v.Pointee; p != nil; p = p.Pointee {
		f(&p.Type)
	}
}

// Seal notes in a whole file, in which the section is at pack, what the rest of the file is.
func Seal(file []byte, btf, pack uint64) {}

// Find returns the section of a whole file.
func Find(file []byte, path string) ([]byte, error) { return nil, nil }

// Part is a part of the section.
type Part struct {
	Name  string
	Bytes int
}

// Parts returns the parts of the section.
func (f *File) Parts() []Part { return nil }
