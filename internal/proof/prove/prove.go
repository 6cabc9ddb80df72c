// Package prove executes generated prologues in the running kernel and compares each value
// they fetch with the value that an independent evaluator computes.
//
//	report, err := prove.Image(ctx, img, file, prove.Options{})
//	report.Disagreements // empty, or each one in full
//
// The prologues run with bpf_probe_read_user, or with loads of kernel memory, in a
// BPF_PROG_TYPE_SYSCALL program, whose context is a synthetic struct pt_regs: its registers are
// random numbers, many of them addresses in an arena of random memory, of this process or of the
// kernel. A sixth of its words is 0: a load that faults gives 0 too, and err must tell which it
// was. The addresses of the image are moved into the same arena. The expected values come
// from a second reader of the image (with delve's frame package for
// call frames) and a second evaluator of DWARF expressions, which share no code
// with packages dwarfloc and prologue.
//
// It needs Linux 5.14 and root, or CAP_BPF and CAP_PERFMON.
package prove

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/kernelhas"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/internal/share"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Options are how much is run, and how. The zero Options are the usual ones.
type Options struct {
	Seed   uint64                 // of registers and memory
	States int                    // sets of registers for each prologue; 0: 3
	Each   func(prologues uint64) // if not nil, called with how many prologues have run
	// Convention is that of an image's prologues: up to three parameters in registers,
	// or all of a site in a record. A plan has its own.
	Convention prologue.Convention
	// Reads is how prologues read memory: prologue.ReadCast, for memory of the kernel and all
	// that it can do, or else prologue.ReadUser.
	Reads prologue.Reads
}

// Report is what was run, and with which results.
type Report struct {
	Sites      uint64 `json:"sites"`
	Prologues  uint64 `json:"prologues"`   // distinct ones that ran
	Values     uint64 `json:"values"`      // compared
	Agreed     uint64 `json:"agreed"`      // of these
	Faults     uint64 `json:"faults"`      // values that neither side could read
	NotFetched uint64 `json:"not_fetched"` // arguments that have no value on either side
	Unchecked  uint64 `json:"unchecked"`   // arguments that the second reader has no opinion on
	// Unsupported are arguments with the reason unsupported-operation, and Doubted those
	// with contradictory and reassigned: the second reader believes what it reads.
	Unsupported uint64 `json:"unsupported"`
	Doubted     uint64 `json:"doubted"`
	// NotStored are arguments with the reason not-stored-yet: the second reader does not
	// read code.
	NotStored uint64 `json:"not_stored"`
	Stray     uint64 `json:"stray"` // values not compared: they came from memory of this process outside the arena
	// Disagreements are the values that differ, in full; at most MaxDisagreements,
	// Values minus Agreed counts them all.
	Disagreements []string `json:"disagreements"`
}

// MaxDisagreements bounds how many disagreements a report spells out.
const MaxDisagreements = 1000

func (r *Report) add(o *Report) {
	r.Prologues += o.Prologues
	r.Values += o.Values
	r.Agreed += o.Agreed
	r.Faults += o.Faults
	r.NotFetched += o.NotFetched
	r.Unchecked += o.Unchecked
	r.Unsupported += o.Unsupported
	r.Doubted += o.Doubted
	r.NotStored += o.NotStored
	r.Stray += o.Stray
	r.Disagreements = append(r.Disagreements, o.Disagreements...)
	r.Disagreements = r.Disagreements[:min(len(r.Disagreements), MaxDisagreements)]
}

// refused returns the count for a reason that the second reader never gives: it evaluates
// what cannot be compiled, such as a loop, reads what is not stored yet, and takes the
// addresses of a module's sections to be what they are here.
func (r *Report) refused(c loc.ReasonCode) *uint64 {
	switch c {
	case reasons.Unsupported:
		return &r.Unsupported
	case reasons.Contradictory, reasons.Reassigned:
		return &r.Doubted
	case reasons.NotStoredYet:
		return &r.NotStored
	case reasons.ModuleAddress:
		return &r.Unchecked
	}
	return nil
}

// Available returns why prologues cannot be executed here, or nil.
func Available() error { return bpfexec.Available() }

// Image proves every distinct prologue of an image: for every site, of its parameters, up to
// three at a time or as Options say. file is the second reader's view of the same image.
func Image(ctx context.Context, img *dwarfloc.Image, file *oracle.File, o Options) (*Report, error) {
	return run(img, file, nil, o, func(add addFunc) (uint64, error) {
		return share.EachDistinct(ctx, img, how(o), func(worker int, s *dwarfloc.Site, args []plan.Argument, first int) error {
			return add(worker, s, nil, args, first)
		})
	})
}

// Second opens the file of an image for the second reader. A relocatable image, such as a
// module, has addresses that the first one chose.
func Second(ctx context.Context, img *dwarfloc.Image) (*oracle.File, error) {
	if by := inside.AnsweredBy(img); by != "" {
		return nil, fmt.Errorf("%s: %s does not tell anything to a second reader: values are proven with debug information", img.Path(), by)
	}
	var loaded []uint64
	if inside.File(img).IsRelocatable() {
		for _, s := range inside.File(img).Sections() {
			loaded = append(loaded, s.Addr)
		}
	}
	return oracle.Open(ctx, img.Path(), inside.File(img).DebugPath(), loaded...)
}

// how returns the options of the prologues that run here.
func how(o Options) share.Options {
	if o.Reads == prologue.ReadCast {
		return share.Options{Reads: prologue.ReadCast, Convention: o.Convention, SignExtends: kernelhas.SignExtends()}
	}
	return share.Options{Reads: prologue.ReadUser, Convention: o.Convention}
}

// addFunc takes arguments of a site that one prologue fetches: its parameters from the one
// with the index first on, or, if that is -1, those of a plan. way is the way into a body that
// the site is, or nil.
type addFunc func(worker int, s *dwarfloc.Site, way *runs.Way, args []plan.Argument, first int) error

// Plan proves the prologues of a plan.
func Plan(ctx context.Context, p *plan.Plan, file *oracle.File, o Options) (*Report, error) {
	// Each unit is read once if sites are in the order of the debug information.
	order := make([]*plan.Site, len(p.Sites))
	for i := range p.Sites {
		order[i] = &p.Sites[i]
	}
	slices.SortStableFunc(order, func(a, b *plan.Site) int {
		switch {
		case a.DIE < b.DIE:
			return -1
		case a.DIE > b.DIE:
			return 1
		}
		return 0
	})
	ways, err := waysOf(ctx, p)
	if err != nil {
		return nil, err
	}
	o.Convention = p.Convention
	if p.Definition.Options.If != nil {
		o.Convention = prologue.ConventionRecord // a value more for each condition
	}
	return run(p.Image, file, p.Definition, o, func(add addFunc) (uint64, error) {
		for _, s := range order {
			if err := ctx.Err(); err != nil {
				return 0, context.Cause(ctx)
			}
			if s.Kind == dwarfloc.SiteExit {
				continue // the second reader knows where a body begins, not where it ends
			}
			if err := add(0, s.Site, ways[s.Site], append(slices.Clone(s.Args), conditionsOf(s)...), -1); err != nil {
				return 0, err
			}
		}
		return uint64(len(order)), nil
	})
}

// waysOf returns the ways that sites of a plan are. Variables are resolved at a way, and the
// site has the address of its probe.
func waysOf(ctx context.Context, p *plan.Plan) (map[*dwarfloc.Site]*runs.Way, error) {
	var sites []*dwarfloc.Site
	for i := range p.Sites {
		if s := &p.Sites[i]; s.Way.Of > 0 && s.Kind == dwarfloc.SiteInline {
			sites = append(sites, s.Site)
		}
	}
	all, err := inside.Ways(p.Image, ctx, sites)
	if err != nil {
		return nil, err
	}
	out := make(map[*dwarfloc.Site]*runs.Way)
	for i, s := range sites {
		in := all[i].In
		at := slices.IndexFunc(in, func(w runs.Way) bool { return w.Probe == s.Addr || slices.Contains(w.Before, s.Addr) })
		if at < 0 {
			return nil, fmt.Errorf("%v is no way into its body", s)
		}
		out[s] = &in[at]
	}
	return out, nil
}

// run feeds sites to one prover for each worker. feed returns the number of sites.
func run(img *dwarfloc.Image, file *oracle.File, def *probe.Definition, o Options, feed func(add addFunc) (uint64, error)) (*Report, error) {
	if err := bpfexec.Available(); err != nil {
		return nil, err
	}
	if a := img.Arch(); o.Reads == prologue.ReadCast && (a.BigEndian || a.WordSize < 8) {
		// Addresses of 4 bytes do not reach this kernel's memory, and what is cast cannot be turned.
		return nil, fmt.Errorf("%s: prologues for %s run here over memory of a process only", img.Path(), a.Name)
	}
	if o.States == 0 {
		o.States = 3
	}
	if o.Reads == prologue.ReadCast && !kernelhas.Casts() {
		return nil, kernelhas.ErrNoCast
	}
	w, err := newWorld(img, o)
	if err != nil {
		return nil, err
	}
	defer w.arena.Close()
	emit := how(o)
	emit.Stays = w.has
	var seen sync.Map
	provers := make([]*prover, runtime.GOMAXPROCS(0))
	for i := range provers {
		r, err := file.NewReader()
		if err != nil {
			return nil, err
		}
		provers[i] = &prover{
			img: img, file: file, reader: r, world: w, o: o, how: emit, def: def, seen: &seen,
			rng: rand.New(rand.NewPCG(o.Seed, uint64(i)+1)),
		}
	}
	sites, err := feed(func(worker int, s *dwarfloc.Site, way *runs.Way, args []plan.Argument, first int) error {
		return provers[worker].add(s, way, args, first)
	})
	total := Report{Sites: sites}
	for _, p := range provers {
		if err == nil { // else what is left need not run: the kernel takes long to load it
			err = p.flush()
		}
		total.add(&p.report)
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(total.Disagreements)
	return &total, nil
}

// String summarises a report in one line.
func (r *Report) String() string {
	return fmt.Sprintf("%d sites, %d distinct prologues executed, %d values compared, %d agreed, %d disagreed (%d values unreadable and %d arguments without a value on both sides, %d unsupported, %d doubted, %d not stored yet, %d unchecked, %d stray)",
		r.Sites, r.Prologues, r.Values, r.Agreed, r.Values-r.Agreed, r.Faults, r.NotFetched, r.Unsupported, r.Doubted, r.NotStored, r.Unchecked, r.Stray)
}
