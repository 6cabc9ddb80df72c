package plan

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/internal/selected"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/sites"
)

// Visitor is what Each calls with the sites and instances of a plan. T is what is kept of a site
// until its turn comes.
type Visitor[T any] struct {
	// Site makes a T of a site. Several goroutines call it at once, in no particular order.
	// The plan has neither Sites nor Instances, and Site.Instance is only -1 or not. The site
	// and its arguments are valid until Site returns.
	Site func(p *Plan, s *Site) (T, error)
	// Size, if not nil, returns about how many bytes a T holds: fewer sites are kept at a time if
	// they are large.
	Size func(t T) int
	// Next gets the sites in the order of Plan.Sites, each with its Instance.
	Next func(t T, instance int) error
	// Instance, if not nil, gets each instance, without its Sites, before the first site that
	// it serves.
	Instance func(p *Plan, in *Instance) error
}

// Each plans a definition as New does, but keeps neither sites nor instances: memory grows much
// less than the plan does. A plan of every parameter of a kernel is 2 GB.
//
// The sites of a pattern of functions come some thousands at a time, the first ones as soon as it
// is known what all of a plan must agree on: its convention, that every argument exists somewhere,
// and what the arguments of the definition are where a site has none. For $params that is
// almost at once; for names of arguments all sites are looked at before. What a definition of
// anything else has, and what MissingFail allows, is known only with the whole plan.
//
// The errors are those of New, of which some can come after some sites, and those that the visitor
// returns.
func Each[T any](ctx context.Context, img *dwarfloc.Image, def *probe.Definition, o Options, v Visitor[T]) error {
	def, err := chosen(ctx, img, def, &o)
	if err != nil {
		return err
	}
	list, err := streamed(ctx, img, def, &o)
	if err != nil {
		return err
	}
	if list == nil || list.Len() <= fewSites {
		return whole(ctx, img, def, o, v)
	}
	return stream(ctx, list, img, def, o, v)
}

// fewSites are so few that a plan of them is small, and made sooner than by looking twice.
const fewSites = 2048

// streamed returns the sites of a definition if it need not be planned as a whole, or else nil.
func streamed(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, o *Options) (*dwarfloc.SiteList, error) {
	p := &def.Point
	if p.Function == "" || p.HasAddr || p.HasLine || p.Lazy != "" || p.Offset != 0 || o.Missing == MissingFail || o.Cost != nil || def.Options.If != nil {
		return nil, nil
	}
	sel, err := selected.Of(def, o.Filter)
	if err != nil {
		return nil, pointError(def, err)
	}
	if _, one := sel.Functions.Literal(); one {
		return nil, nil
	}
	list, err := sites.List(ctx, img, sel)
	if err != nil {
		return nil, functionsError(def, err)
	}
	return list, nil
}

// whole is Each for a plan that is kept.
func whole[T any](ctx context.Context, img *dwarfloc.Image, def *probe.Definition, o Options, v Visitor[T]) error {
	p, err := New(ctx, img, def, o)
	if err != nil {
		return err
	}
	all, instances := p.Sites, p.Instances
	p.Sites, p.Instances = nil, nil
	next := 0
	var made []T // of some sites, on all processors
	for from, size := 0, firstMade; from < len(all); from, size = from+size, mostMade {
		some := Plan{Sites: all[from:min(len(all), from+size)]}
		made = append(made[:0], make([]T, len(some.Sites))...)
		err := some.eachSite(ctx, nil, func(i int, s *Site) (err error) {
			made[i], err = v.Site(p, s)
			return err
		})
		if err != nil {
			return err
		}
		for i := range some.Sites {
			s := &some.Sites[i]
			if s.Instance == next {
				if v.Instance != nil {
					if err := v.Instance(p, &instances[next]); err != nil {
						return err
					}
				}
				next++
			}
			if err := v.Next(made[i], s.Instance); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstMade and mostMade are of how many sites of a plan that is kept something is made at once: few at first, since somebody waits.
const firstMade, mostMade = 32, 512

// The sites of a plan are sorted by the names of functions, and those that follow each other are
// all over the image, while the debug information is read unit by unit, each of which takes some
// time to begin with. So sites are described in parts, in the order of the image, and each part
// is put into the order of the plan. The first ones are small, since somebody waits.
var ( // tests have smaller ones
	firstPart = 8
	largePart = 1 << 16
)

// maxKept is how many bytes a part holds, by Visitor.Size. What is beyond is described again, in
// smaller parts.
const maxKept = 64 << 20

var errTooMuch = errors.New("the part is too large")

// partRatio is the ratio of one part to the one before.
const partRatio = 8

// parts calls f for one part of n sites after the other, until it returns true.
func parts(n int, f func(from, to int) (done bool, err error)) error {
	size, most := firstPart, largePart
	for from := 0; from < n; {
		to := min(n, from+size)
		if done, err := f(from, to); errors.Is(err, errTooMuch) {
			most = (to - from) / 2
			size = most
			continue
		} else if done || err != nil {
			return err
		}
		from, size = to, min(size*partRatio, most)
	}
	return nil
}

// streamer plans the sites of a list.
type streamer struct {
	list    *dwarfloc.SiteList
	o       Options
	plan    *Plan // without sites
	workers []streamWorker

	shapes []shape // see agree
}

// streamWorker is what one goroutine keeps from site to site.
type streamWorker struct {
	part   Plan // with the probes of one site
	at     []*dwarfloc.Site
	writer writer
	_      [128]byte // so that no cache line is written by two processors
}

// errUndecided means that there is something wrong with a definition as a whole, which New tells.
var errUndecided = errors.New("undecided")

func stream[T any](ctx context.Context, list *dwarfloc.SiteList, img *dwarfloc.Image, def *probe.Definition, o Options, v Visitor[T]) error {
	p, err := begin(img, def, &o)
	if err != nil {
		return err
	}
	if err := checkArgs(img, def); err != nil {
		return err
	}
	st := &streamer{list: list, o: o, plan: p, workers: make([]streamWorker, runtime.GOMAXPROCS(0))}
	if err := st.survey(ctx); errors.Is(err, errUndecided) {
		return whole(ctx, img, def, o, v)
	} else if err != nil {
		return err
	}
	n := numberer[T]{streamer: st, visitor: &v, known: make(map[string]int32), workers: make([][]described[T], len(st.workers))}
	return parts(list.Len(), func(from, to int) (bool, error) { return false, n.part(ctx, from, to) })
}

// each resolves the sites of a list from one number to another and calls f for each, with a plan
// that has its probes. entries leaves out all but functions' entries.
func (st *streamer) each(ctx context.Context, from, to int, entries bool, f func(worker, i int, p *Plan) error) error {
	def := st.plan.Definition
	return inside.EachOf(st.list, ctx, from, to, st.o.through(def) && !entries, func(worker, i int, s *dwarfloc.Site, ways *runs.Ways) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if entries && s.Kind != dwarfloc.SiteEntry {
			return nil
		}
		w := &st.workers[worker]
		w.at = w.at[:0]
		var err error
		if ways == nil {
			w.at = append(w.at, s)
		} else if w.at, err = appendWays(w.at, def, s, ways, false); err != nil {
			return err
		}
		p := &w.part
		kept := p.Sites[:0]
		*p = *st.plan
		p.Sites, p.alone = kept, true
		if err := p.resolve(ctx, w.at, &st.o); err != nil {
			return err
		}
		return f(worker, i, p)
	})
}

// survey finds out what must be known of all sites before the first one can be written. It looks
// at no more of them than it needs.
func (st *streamer) survey(ctx context.Context) error {
	def, p := st.plan.Definition, st.plan
	args := len(def.Args)
	p.Convention = st.o.Convention
	auto := p.Convention == prologue.ConventionAuto
	if auto {
		p.Convention = prologue.ConventionRegisters
	}
	var mu sync.Mutex
	known, has := make([]bool, args), make([]bool, args)
	open := args // arguments that are not known yet
	record, unfit := false, false
	st.shapes = (&Plan{Definition: def}).shapes()
	decided := false
	look := func(entries bool, from, to int) (bool, error) {
		err := st.each(ctx, from, to, entries, func(_, i int, part *Plan) error {
			mu.Lock()
			defer mu.Unlock()
			for j := range part.Sites {
				a := part.Sites[j].Args
				record = record || needsRecord(a)
				for k := range a {
					d := a[k].DefinitionArg
					has[d] = true
					if !known[d] && !reasons.Mistaken(a[k].Variable.Reason.Code) {
						known[d] = true
						open--
					}
				}
			}
			if !auto && !unfit {
				unfit = part.fits() != nil
			}
			shapes := part.shapes()
			for k := range shapes {
				shapes[k].site = i
				st.shapes[k].merge(&shapes[k])
			}
			return nil
		})
		decided = open == 0 && len(st.shapes) == 0
		switch {
		case auto:
			decided = decided && (record || args == 0)
		case p.Convention == prologue.ConventionRegisters:
			decided = decided && args == 0
		}
		return decided, err
	}
	// To follow the code of functions, for the ways into bodies, takes long. No other entries of
	// functions are in the plan than those in the list, so they alone may decide.
	if auto && len(st.shapes) == 0 && !def.Point.Exit {
		err := parts(st.list.Len(), func(from, to int) (bool, error) { return look(true, from, to) })
		if err != nil {
			return err
		}
	}
	if !decided {
		err := parts(st.list.Len(), func(from, to int) (bool, error) { return look(false, from, to) })
		if err != nil {
			return err
		}
	}
	for k := range known {
		unfit = unfit || has[k] && !known[k]
	}
	if unfit {
		return errUndecided
	}
	if auto && record {
		p.Convention = prologue.ConventionRecord
	}
	return nil
}

// numberer puts sites into their order and numbers their instances.
type numberer[T any] struct {
	*streamer
	visitor *Visitor[T]

	mu    sync.Mutex
	known map[string]int32 // keys of prologues, in the order in which they are found
	by    []numbered       // what is known about them

	workers [][]described[T] // sites of a part, in no order
	next    int              // number of the next instance
}

// described is what is kept of a site.
type described[T any] struct {
	t   T
	key int32 // in numberer.by, or -1 for a site without an instance
}

// numbered is a distinct prologue.
type numbered struct {
	number int32 // of its instance, or -1
	site   int32 // in the list: the first one that has it in the current part
	in     Instance
}

// part visits the sites of a part.
func (n *numberer[T]) part(ctx context.Context, from, to int) error {
	where := make([]struct{ worker, from, to int32 }, to-from)
	for w := range n.workers {
		n.workers[w] = n.workers[w][:0]
	}
	var kept atomic.Int64
	err := n.each(ctx, from, to, false, func(worker, i int, p *Plan) error {
		if err := p.fits(); err != nil {
			return err
		}
		p.agree(n.shapes)
		at := &where[i-from]
		at.worker, at.from = int32(worker), int32(len(n.workers[worker]))
		all := p.Sites
		for j := range all {
			s := &all[j]
			key, err := n.streamer.workers[worker].writer.write(p, s, &n.o)
			if err != nil {
				return err
			}
			d := described[T]{key: -1}
			if key != nil {
				d.key = n.keyOf(key, worker, i, s)
				s.Instance = 0
			}
			if d.t, err = n.visitor.Site(n.plan, s); err != nil {
				return err
			}
			if n.visitor.Size != nil && kept.Add(int64(n.visitor.Size(d.t))) > maxKept && to-from > 1 {
				return errTooMuch
			}
			n.workers[worker] = append(n.workers[worker], d)
		}
		at.to = int32(len(n.workers[worker]))
		return nil
	})
	if err != nil {
		return err
	}
	for i := range where {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		at := &where[i]
		part := n.workers[at.worker][at.from:at.to]
		for j := range part {
			if err := n.visit(&part[j]); err != nil {
				return err
			}
		}
	}
	for w := range n.workers {
		clear(n.workers[w]) // what the visitor has got is its own
	}
	return nil
}

// keyOf numbers the key that a worker has just written for a site with a number in the list.
func (n *numberer[T]) keyOf(key []byte, worker, i int, s *Site) int32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	k, known := n.known[string(key)]
	if !known {
		k = int32(len(n.by))
		n.known[string(key)] = k
		n.by = append(n.by, numbered{number: -1, site: -1})
	}
	// The instance's comments are those of its first site.
	x := &n.by[k]
	if x.number < 0 && (x.site < 0 || int32(i) < x.site) {
		x.site = int32(i)
		if n.visitor.Instance != nil {
			x.in = n.streamer.workers[worker].writer.instance(s, 0)
		}
	}
	return k
}

// visit passes on a site whose turn it is.
func (n *numberer[T]) visit(d *described[T]) error {
	if d.key < 0 {
		return n.visitor.Next(d.t, -1)
	}
	x := &n.by[d.key]
	if x.number < 0 {
		x.number = int32(n.next)
		n.next++
		if n.visitor.Instance != nil {
			in := x.in
			x.in, in.Number = Instance{}, int(x.number)
			if err := n.visitor.Instance(n.plan, &in); err != nil {
				return err
			}
		}
	}
	return n.visitor.Next(d.t, int(x.number))
}
