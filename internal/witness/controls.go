package witness

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/claim"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// The controls of a claim are the bodies of the same function whose parameters debug information knows. They are read when a question first asks
// for a parameter of the function that is lost: then all answers, whether an index is kept or not, and those that packs are made of, are the same.

// Controls are what the bodies of an image's functions say.
type Controls struct {
	img    *entries.Image
	reader func() Reader

	mu    sync.Mutex
	all   map[entries.FunctionKey]*groups
	asked int  // how many functions were asked for, up to fewFunctions
	most  bool // more were

	claims claims

	every     atomic.Pointer[learned]
	keptOnce  sync.Once // asks the index for it
	everyOnce sync.Once
	everyErr  error
}

// fewFunctions is how many functions are learned alone: then all of the image's are, together.
const fewFunctions = 64

// New returns the controls of an image. reader makes what reads parameters.
func New(img *entries.Image, reader func() Reader) *Controls {
	return &Controls{img: img, reader: reader}
}

// groupsOf returns the groups of a function, or nil if none of them speaks.
func (c *Controls) groupsOf(k entries.FunctionKey) (*groups, error) {
	g := c.ask(k)
	if l := c.learned(); l != nil {
		return l.of(k), nil
	}
	if g != nil {
		g.once.Do(func() { g.err = c.learn(k, g) })
		return g, g.err
	}
	c.everyOnce.Do(func() { c.everyErr = c.learnEvery() })
	if c.everyErr != nil {
		return nil, c.everyErr
	}
	return c.every.Load().of(k), nil
}

// ask notes that a function is asked for, and returns its groups if it is one of the few that are learned alone.
func (c *Controls) ask(k entries.FunctionKey) *groups {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.all[k]
	if g == nil && c.asked < fewFunctions && !c.img.AsksAll() {
		c.asked++
		g = newGroups()
		if c.all == nil {
			c.all = make(map[entries.FunctionKey]*groups)
		}
		c.all[k] = g
	}
	c.most = c.most || g == nil
	return g
}

// learnedOf returns the groups of a function that speak, or nil if none does. known is false if that has not been learned.
func (c *Controls) learnedOf(k entries.FunctionKey) (g *groups, known bool) {
	l := c.learned()
	if l == nil {
		return nil, false
	}
	return l.of(k), true
}

// Counts returns how many controls there are by rule, of the groups that are large enough to speak, if those of all functions were needed.
func (c *Controls) Counts() map[string]claim.Count {
	c.mu.Lock()
	most := c.most
	c.mu.Unlock()
	if !most {
		return nil
	}
	if l := c.learned(); l != nil {
		return l.counts
	}
	return nil
}

// toLearn returns what observes bodies whose parameters are known.
func (c *Controls) toLearn() observed {
	return observed{facts: new(Facts), reader: c.reader, hands: true}
}

// learn reads the bodies of one function.
func (c *Controls) learn(k entries.FunctionKey, g *groups) error {
	img := c.img
	sel, units, err := img.Index.Candidates(context.Background(), &k)
	if err != nil {
		return err
	}
	of := func(own entries.FunctionKey) *groups {
		if own == k {
			return g
		}
		return nil
	}
	learners := sync.Pool{New: func() any { return &learner{of: of, seen: c.toLearn()} }}
	return img.Index.Parallel(len(units), func(s *index.Scanner, i int) error {
		l := learners.Get().(*learner)
		defer learners.Put(l)
		return l.unit(s, &img.Units[units[i]], func(r *index.Rec, u *entries.Unit) bool { return sel.Match(u.NameRefOf(r)) })
	})
}

// learnEvery reads the bodies of all functions.
func (c *Controls) learnEvery() error {
	img, every := c.img, newLearned()
	often, err := inlinedOften(img)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	of := func(k entries.FunctionKey) *groups {
		mu.Lock()
		defer mu.Unlock()
		g := every.groups[k]
		if g == nil {
			g = newGroups()
			every.groups[k] = g
		}
		return g
	}
	learners := sync.Pool{New: func() any { return &learner{of: of, seen: c.toLearn()} }}
	units := img.Index.AllUnits()
	err = img.Index.Parallel(len(units), func(s *index.Scanner, i int) error {
		l := learners.Get().(*learner)
		defer learners.Put(l)
		u := &img.Units[units[i]]
		err := l.unit(s, u, func(r *index.Rec, u *entries.Unit) bool { return often[u.NameRefOf(r)] })
		if !u.IsType() {
			u.ForgetLearned()
		}
		return err
	})
	if err != nil {
		return err
	}
	every.prune()
	every.new = true
	c.every.Store(every)
	return nil
}

// inlinedOften returns the names of functions with enough inlined bodies for a group to speak.
func inlinedOften(img *entries.Image) (map[index.NameRef]bool, error) {
	refs := make([]map[index.NameRef]int, len(img.Units))
	err := img.Index.Parallel(len(img.Units), func(s *index.Scanner, i int) error {
		u := &img.Units[i]
		if u.IsType() {
			return nil
		}
		if err := s.Open(u.Unit); err != nil {
			return err
		}
		refs[i] = make(map[index.NameRef]int)
		for j := range u.Recs {
			if r := &u.Recs[j]; entries.Inlined(r) {
				refs[i][u.NameRefOf(r)]++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all, names := make(map[index.NameRef]int), make(map[string]int)
	for _, m := range refs {
		for ref, n := range m {
			all[ref] += n
		}
	}
	for ref, n := range all {
		names[img.Index.NameOf(ref)] += n
	}
	out := make(map[index.NameRef]bool)
	for ref := range all {
		if names[img.Index.NameOf(ref)] > claim.Enough {
			out[ref] = true
		}
	}
	return out, nil
}

// learner is what one goroutine reuses from body to body.
type learner struct {
	of   func(entries.FunctionKey) *groups // nil for a function that is not learned
	seen observed
	spot entries.Spot
	own  map[int32]ofUnit // the unit's functions
}

// ofUnit is what is known of a function once one of its bodies in a unit was read. The others have parameters of the same types.
type ofUnit struct {
	groups    *groups // nil if it is not learned, or if no witness speaks of such parameters: a kernel has a fifth of its bodies of such functions
	onlyOnWay bool    // see observed
}

// unit adds the controls of a unit's bodies.
func (l *learner) unit(s *index.Scanner, u *entries.Unit, is func(*index.Rec, *entries.Unit) bool) error {
	if u.IsType() {
		return nil
	}
	if err := s.Open(u.Unit); err != nil {
		return err
	}
	if l.own == nil {
		l.own = make(map[int32]ofUnit)
	}
	clear(l.own)
	for i := range u.Recs {
		if r := &u.Recs[i]; entries.Inlined(r) && is(r, u) {
			if err := l.body(u, int32(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// body adds the controls of a body.
func (l *learner) body(u *entries.Unit, rec int32) error {
	root := u.Recs[rec].Root
	f, known := l.own[root]
	if !known || root < 0 {
		k, err := entries.KeyOf(u, rec)
		if err != nil {
			return err
		}
		f = ofUnit{groups: l.of(k)}
		l.own[root] = f
	}
	if f.groups == nil {
		return nil
	}
	if ok, err := u.Read(rec, &l.spot); err != nil || !ok {
		return err
	}
	l.spot.Own = true
	if f.onlyOnWay {
		// To look at the code is a fraction of the work to read the parameters: of a kernel's bodies, three of ten have no such instruction.
		if may, err := l.seen.mayHave(&l.spot); err != nil || !may {
			return err
		}
	}
	ok, err := l.seen.read(&l.spot)
	if err != nil {
		return err
	}
	if ok {
		f.groups.add(&l.seen)
	}
	if f.onlyOnWay = l.seen.onlyOnWay; l.seen.mute {
		f.groups = nil
	}
	l.own[root] = f
	return nil
}
