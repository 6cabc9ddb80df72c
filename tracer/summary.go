package tracer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/kernelerr"
	"github.com/bpfprologue/bpfprologue/internal/suggest"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/types"
)

// A summary counts hits in the kernel. A program makes a key of what hits are told apart by, and adds
// to the value of that key, in a map that has a value for each processor. What it adds is added by
// atomic instructions: a task can lose its processor in the middle of a uprobe's program, to one that
// hits the same probe. Keys are finer than rows: the texts of a row are made when it is read, and rows
// with the same texts are added up then. So each site can have another type for an argument.

// What hits can be told apart by in a summary, besides arguments: see SummaryOptions.By.
const (
	bySite     = "site"
	byFunction = "function"
	byCaller   = "caller"
	byComm     = "comm"
	byPID      = "pid"
	byTID      = "tid"
	byStack    = "stack"
)

// words are what hits can be told apart by, besides arguments.
var words = []string{bySite, byFunction, byCaller, byComm, byPID, byTID, byStack}

// SummaryOptions are options of OpenSummary. The zero SummaryOptions count the hits of each
// definition.
type SummaryOptions struct {
	// By is what hits are told apart by: names of arguments, or
	//
	//   - site: the site, or each way into it
	//   - function: the function that the definition names
	//   - caller: the function that an inlined site is inlined into, or the return address of a function that is probed at its
	//     entry; "?" at other sites
	//   - comm: the name of the task
	//   - pid: the process, in the initial PID namespace
	//   - tid: the task, in the initial PID namespace
	//   - stack: where the hit came from: see Stack; "?" if the kernel had no room for another stack, or none could be taken
	//
	// An argument that a definition does not have is "?" there, as one that was not fetched.
	// Structures have what they refer to if the plan was told of these names: see plan.Options.Keys.
	By []string
	// Totals are the names of arguments that are summed, with their minima and maxima.
	Totals []string
	// Histograms are the histograms of arguments.
	Histograms []HistogramOf
	// Spans are definitions whose whole runs are counted, in the place of plans, which are nil then. "$duration" is one more argument
	// of each: how long the run took, in nanoseconds. What the definition's condition says of $duration and $retval is looked at
	// where a run ends. By "caller" and By "stack" are where the run began.
	Spans []*plan.Span
	// MaxKeys is how many keys are counted for each definition. 0 means as many as 64 MiB have
	// room for, from 1024 to 16384. Summary.Unreported counts hits with other keys.
	MaxKeys int
	// Stack is which stacks By "stack" is about. 0 means the one where the probe is.
	Stack Stacks
	// StackText and CallerText print a stack, from the outermost function to the innermost with
	// semicolons between them, and the function at a return address: see package stacks. Hits with
	// the same text are one row. If nil, they are addresses.
	StackText  func(s *Stack) string
	CallerText func(s *Stack, address uint64) string
}

// HistogramOf is the argument of a histogram, and its buckets: from Low up to High, which is not
// included, in steps, and one below and one above; or, without a step, powers of two.
type HistogramOf struct {
	Arg             string
	Low, High, Step int64
}

// maxBuckets is how many buckets a linear histogram has at most, and maxKeyArgs how many arguments
// hits are told apart by.
const (
	maxBuckets = 1000
	maxKeyArgs = 16
)

// buckets returns how many buckets a linear histogram has between those for what is below and above.
func (h *HistogramOf) buckets() int {
	return int((uint64(h.High-h.Low) + uint64(h.Step) - 1) / uint64(h.Step))
}

func (h *HistogramOf) check() error {
	switch {
	case h.Step == 0 && h.Low == 0 && h.High == 0:
		return nil
	case h.Step <= 0 || h.High <= h.Low || h.High-h.Low < 0:
		return fmt.Errorf("a histogram of %s from %d to %d in steps of %d: it goes up, by steps of 1 or more", h.Arg, h.Low, h.High, h.Step)
	case uint64(h.High-h.Low)/uint64(h.Step) >= maxBuckets:
		return fmt.Errorf("a histogram of %s with %d steps from %d to %d: at most %d", h.Arg, uint64(h.High-h.Low)/uint64(h.Step), h.Low, h.High, maxBuckets)
	}
	return nil
}

// Summary is attached probes whose hits are counted.
type Summary struct {
	// Attachments are the attached and the refused sites of each plan.
	Attachments []*instances.Attachment

	session  *Session
	options  SummaryOptions
	of       []*counted // each plan
	overflow *ebpf.Map
	stacks   *ebpf.Map // nil unless By has "stack"
}

// OpenSummary is Open for a summary: hits are counted in the kernel, and Rows returns the counts.
//
// An error about an argument names it, and the nearest ones. Others are those of Open.
func OpenSummary(ctx context.Context, r *instances.Running, plans []*plan.Plan, what SummaryOptions, o Options) (s *Summary, err error) {
	s = &Summary{session: &Session{plans: plans}, options: what}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	if len(what.Spans) > 0 {
		if s.session, err = newSpans(what.Spans, &o); err != nil {
			return s, err
		}
	}
	if len(plans) > maxPlans {
		return s, fmt.Errorf("%d definitions: at most %d at a time", len(plans), maxPlans)
	}
	if err := s.checkNames(); err != nil {
		return s, err
	}
	for _, p := range plans {
		if err := s.counts(&counted{plan: p, definition: p.Definition}); err != nil {
			return s, err
		}
	}
	for _, p := range what.Spans {
		if err := s.counts(&counted{plan: p.Begin, definition: p.Definition, run: newRun(p)}); err != nil {
			return s, err
		}
	}
	who, err := s.session.filters(r, &o)
	if err != nil {
		return s, err
	}
	if s.overflow, err = ebpf.NewMap(&ebpf.MapSpec{Name: "overflow", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}); err != nil {
		return s, fmt.Errorf("make the counter of hits without room: %w", kernelerr.Explain(err))
	}
	if slices.Contains(what.By, byStack) {
		if s.stacks, err = ebpf.NewMap(&ebpf.MapSpec{Name: "stacks", Type: ebpf.StackTrace, KeySize: 4, ValueSize: 8 * maxFrames, MaxEntries: maxKeys}); err != nil {
			return s, fmt.Errorf("make a map for stacks: %w", kernelerr.Explain(err))
		}
	}
	for _, c := range s.of {
		c.stacks = s.stacks
		if err := c.makeMaps(what.MaxKeys); err != nil {
			return s, err
		}
	}
	if len(what.Spans) > 0 {
		err = s.openSpans(ctx, r, &o, who)
		s.Attachments = s.session.Attachments
		return s, err
	}
	if err := s.load(r, who); err != nil {
		return s, err
	}
	err = s.session.attachAll(ctx, r, &o, who, func(_ int, p *plan.Plan) func(int) uint64 {
		return func(site int) uint64 { return uint64(site) | entryBit(&p.Sites[site]) }
	})
	s.Attachments = s.session.Attachments
	return s, err
}

// counts finds out what is counted of a definition.
func (s *Summary) counts(c *counted) error {
	if err := c.find(&s.options); err != nil {
		return fmt.Errorf("%v: %w", c.definition, err)
	}
	s.of = append(s.of, c)
	return nil
}

// load loads the programs: one for all instances of a plan that have the arguments in the same places.
func (s *Summary) load(r *instances.Running, who processes) error {
	all := make(map[programKey]fields)
	size := s.session.keyOf(true)
	return s.session.load(r, func(n, instance int) programKey {
		key, f := size(n, instance), s.of[n].fields(instance)
		key.counts = fmt.Sprint(f)
		all[key] = f
		return key
	}, func(key programKey) asm.Instructions { return s.of[key.plan].program(all[key], s.overflow, who) })
}

// cookieEntry is the bit of the attach cookie that is set where the return address is still where
// the call has put it.
const cookieEntry = 47

func entryBit(s *plan.Site) uint64 {
	if atEntry(s) {
		return 1 << cookieEntry
	}
	return 0
}

// atEntry reports whether a probe is at a function's first instruction.
func atEntry(s *plan.Site) bool {
	return s.Kind == dwarfloc.SiteEntry && s.Offset == 0 && !s.AfterPrologue && !s.Return && s.MovedFrom == 0
}

// checkNames checks that each argument that is asked for is one of some definition.
func (s *Summary) checkNames() error {
	if len(s.options.By) > maxKeyArgs {
		return fmt.Errorf("%d things to tell hits apart by: at most %d", len(s.options.By), maxKeyArgs)
	}
	known := make(map[string]bool)
	group := false
	for _, p := range s.session.plans {
		for i := range p.Definition.Args {
			group = group || p.Definition.Args[i].Expr.Kind.Several()
		}
		for i := range p.Sites {
			for k := range p.Sites[i].Args {
				known[p.Sites[i].Args[k].Name] = true
			}
		}
	}
	for _, p := range s.options.Spans {
		known[runDuration] = true
		for _, name := range newRun(p).own() {
			delete(known, name)
		}
	}
	asked := slices.Clone(s.options.Totals)
	for i := range s.options.Histograms {
		if err := s.options.Histograms[i].check(); err != nil {
			return err
		}
		asked = append(asked, s.options.Histograms[i].Arg)
	}
	words := slices.Clone(words)
	for _, name := range s.options.By {
		if !slices.Contains(words, name) {
			asked = append(asked, name)
		}
	}
	for _, name := range asked {
		if group {
			return fmt.Errorf("%s: $params and $vars are other arguments at each site: name those to count by", name)
		}
		if known[name] {
			continue
		}
		all := words
		for k := range known {
			all = append(all, k)
		}
		slices.Sort(all)
		if near := suggest.Nearest(name, slices.Values(all), 3); len(near) > 0 {
			return fmt.Errorf("no definition fetches %q; did you mean %s?", name, strings.Join(near, ", "))
		}
		return fmt.Errorf("no definition fetches %q; there are %s", name, strings.Join(all, ", "))
	}
	return nil
}

// counted is what is counted of one plan.
type counted struct {
	plan       *plan.Plan // of a run where it begins
	definition *probe.Definition
	run        *run // nil unless whole runs are counted
	what       *SummaryOptions
	bySit      bool // the key has the site
	key        int  // bytes of a key
	value      int  // bytes of a value
	parts      []keyPart
	args       []int // of the key: each a ref of the plan, or, of runs, an index in run.used; or -1
	sums       []counter
	hists      []counter
	stats      *ebpf.Map
	zero       *ebpf.Map

	stack  Stacks
	stacks *ebpf.Map
}

// keyPart is where one of SummaryOptions.By is in a key.
type keyPart struct {
	what     string  // a word, or ""
	pieces   []piece // else an argument, and what it refers to
	at, size int
}

// counter is an argument that is counted, and where in a value.
type counter struct {
	arg    int // index in plan.Site.Args, or -1
	signed bool
	at     int // bytes
	of     *HistogramOf
	slots  int
}

// The layout of a key begins with a word: the site's index in the lowest 32 bits, then a bit for each
// argument that was not fetched.
const keyHead = 8

// The layout of where a hit came from in a key: the return address, if the probe is at a function's first
// instruction, and, in a program, the process and the address of the probe. A stack has the numbers of
// stacks too.
const (
	callerReturn = 0
	callerPID    = 8
	callerAt     = 16
	callerSize   = 24
	stackKernel  = callerSize
	stackUser    = stackKernel + 8
	keyStackSize = stackUser + 8
)

// The layout of what is counted of an argument. What is largest begins as 0: the largest value is kept
// so that an unsigned comparison finds it, and the smallest as the largest complement.
const (
	totalMissing = 0
	totalSum     = 8
	totalMax     = 16
	totalMin     = 24
	totalSize    = 32
)

// logSlots is how many slots a histogram of powers of two has for numbers that are not negative: 0,
// and one for each number of bits. Those with a sign have 64 more before these.
const logSlots = 65

// maxValue is the size in bytes of the largest value for each processor (PCPU_MIN_UNIT_SIZE in
// include/linux/percpu.h).
const maxValue = 32 << 10

// find finds what is counted, and how it is laid out.
func (c *counted) find(what *SummaryOptions) error {
	p := c.plan
	c.what, c.key, c.value, c.stack = what, keyHead, 8, what.Stack
	if c.run != nil {
		c.key += runHead
	}
	if c.stack == 0 {
		c.stack = StackKernel
		if c.inProgram() {
			c.stack = StackUser
		}
	}
	for _, by := range what.By {
		part := keyPart{what: by, at: c.key, size: 8}
		switch by {
		case bySite, byFunction:
			c.bySit, part.size = true, 0
		case byCaller:
			c.bySit, part.size = true, callerSize
		case byStack:
			if p.Target.Reads == prologue.ReadSleep {
				return errors.New("programs that may sleep cannot count stacks: plan with other reads than prologue.ReadSleep")
			}
			c.bySit, part.size = true, keyStackSize
		case byComm:
			part.size = commSize
		case byPID, byTID:
		default:
			arg := c.argument(by)
			if p, _ := c.of(arg); arg >= 0 && p == nil {
				return fmt.Errorf("runs are not told apart by %s: a histogram has it", by)
			}
			part.what, part.size, part.pieces = "", 0, c.pieces(arg)
			c.bySite(arg)
		}
		c.parts, c.key = append(c.parts, part), c.key+part.size
	}
	for _, name := range what.Totals {
		k, err := c.number(name)
		if err != nil {
			return err
		}
		c.sums, c.value = append(c.sums, k), c.value+totalSize
	}
	for i := range what.Histograms {
		h := &what.Histograms[i]
		k, err := c.number(h.Arg)
		if err != nil {
			return err
		}
		k.of = h
		switch {
		case h.Step > 0:
			k.slots = h.buckets() + 2
		case k.signed:
			k.slots = logSlots + 64
		default:
			k.slots = logSlots
		}
		c.hists, c.value = append(c.hists, k), c.value+8+8*k.slots
	}
	if c.value > maxValue {
		return fmt.Errorf("histograms of %d bytes for each key: at most %d", c.value, maxValue)
	}
	return c.run.layOut(c)
}

// inProgram reports whether the probes are in a program, or a library.
func (c *counted) inProgram() bool { return c.plan.Target.UserSpace() }

// argument returns the index of an argument, or -1.
func (c *counted) argument(name string) int {
	if c.run != nil {
		return c.run.argument(name)
	}
	return argument(c.plan, name)
}

// of returns the plan that fetches something, and what it is there.
func (c *counted) of(arg int) (*plan.Plan, ref) {
	if c.run != nil && arg >= 0 {
		u := &c.run.used[arg]
		return u.plan, u.ref
	}
	return c.plan, ref(arg)
}

// bySite makes the key tell sites apart if an argument is not printed in the same way at all of them.
func (c *counted) bySite(arg int) {
	switch p, _ := c.of(arg); {
	case c.oneType(arg):
	case p != c.plan:
		c.run.byEnd = true
	default:
		c.bySit = true
	}
}

// argument returns the index of a definition's argument at each of its sites, or -1. Definitions with
// $params have none here.
func argument(p *plan.Plan, name string) int {
	for i := range p.Sites {
		for k := range p.Sites[i].Args {
			if p.Sites[i].Args[k].Name == name {
				return k
			}
		}
	}
	return -1
}

// room returns how many bytes an argument has in a key: the most that it has at a site.
func (c *counted) room(arg int) int {
	n := 8
	if arg < 0 {
		return n
	}
	p, r := c.of(arg)
	for i := range p.Instances {
		n = max(n, sourceOf(p, i, r).Size)
	}
	return n
}

// oneType reports whether an argument is printed in the same way at all sites.
func (c *counted) oneType(arg int) bool {
	first := ""
	if arg < 0 {
		return true
	}
	p, r := c.of(arg)
	for i := range p.Sites {
		a := &p.Sites[i].Args[r.arg()]
		if !a.Fetched() {
			continue
		}
		text := fmt.Sprintf("%v %d %d %v %v", a.Kind, a.Size, a.MaxBytes, a.Length.Kind, a.Doubt())
		if a.Variable != nil && a.Variable.Type != nil {
			// Two types of a name can differ, in two compilation units.
			text += fmt.Sprintf(" %v", a.Variable.Type)
			if r, err := a.Variable.Type.Resolve(); err != nil || r.Kind != types.Int && r.Kind != types.Pointer && r.Kind != types.Bool && r.Kind != types.Char {
				text += " " + strconv.Itoa(i)
			}
		}
		if first == "" {
			first = text
		}
		if text != first {
			return false
		}
	}
	return true
}

// number returns the counter of an argument, which is a number at all sites that have it.
func (c *counted) number(name string) (counter, error) {
	k := counter{arg: c.argument(name), at: c.value}
	if k.arg < 0 || c.run != nil && name == runDuration {
		return k, nil
	}
	p, r := c.of(k.arg)
	for i := range p.Sites {
		a := &p.Sites[i].Args[r.arg()]
		what := ""
		switch {
		case !a.Fetched():
			continue
		case a.Kind != prologue.KindScalar:
			what = "is no number"
		case a.Type.Kind == syntax.TypeNone && a.Variable != nil && a.Variable.Type != nil:
			if r, err := a.Variable.Type.Resolve(); err == nil && (r.Kind == types.Float || r.Kind == types.Complex) {
				what = "is a floating-point number"
			}
		}
		if what != "" {
			return k, fmt.Errorf("%s %s at %v: it cannot be added up", name, what, &p.Sites[i])
		}
		k.signed = k.signed || a.Signed
	}
	return k, nil
}

// source returns where something is in what the programs of an instance get.
func (c *counted) source(instance, arg int) source {
	switch {
	case arg < 0:
		return source{Field: prologue.Field{Size: 8}, Bit: -1}
	case c.run != nil:
		return source{Field: c.run.used[arg].slot, Bit: arg}
	}
	return sourceOf(c.plan, instance, ref(arg))
}

// memory is how many bytes the values of a map have, if nobody says how many keys it has.
const (
	memory  = 64 << 20
	minKeys = 1 << 10
	maxKeys = 1 << 14
)

// makeMaps makes the map of keys, which has room for n.
func (c *counted) makeMaps(n int) (err error) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	switch {
	case n < 0 || n > math.MaxInt32:
		return fmt.Errorf("room for %d keys: the number is from 1 to %d", n, math.MaxInt32)
	case n == 0:
		n = min(max(memory/(cpus*c.value), minKeys), maxKeys)
	}
	if len(c.what.By) == 0 {
		n = 1
		if c.run != nil {
			n = len(outcomes)
		}
	}
	if c.stats, err = ebpf.NewMap(&ebpf.MapSpec{Name: "stats", Type: ebpf.PerCPUHash, KeySize: uint32(c.key), ValueSize: uint32(c.value), MaxEntries: uint32(n)}); err != nil {
		return fmt.Errorf("make a map for %d keys with %d bytes for each of %d processors: %w", n, c.value, cpus, kernelerr.Explain(err))
	}
	if c.zero, err = ebpf.NewMap(&ebpf.MapSpec{Name: "zero", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(c.value), MaxEntries: 1}); err != nil {
		return fmt.Errorf("make a value of zeros: %w", kernelerr.Explain(err))
	}
	return nil
}

// Silence makes all probes do nothing, at once, or work again.
func (s *Summary) Silence(on bool) error {
	errs := []error{s.session.calls.silence(on)}
	for _, a := range s.Attachments {
		errs = append(errs, a.Silence(on))
	}
	return errors.Join(errs...)
}

// Unreported returns how many hits were not counted. Lost is 0.
func (s *Summary) Unreported() (Unreported, error) {
	u, err := s.session.Unreported()
	return u, errors.Join(err, s.overflow.Lookup(uint32(0), &u.Overflow))
}

// Close detaches all probes and frees the programs and maps.
func (s *Summary) Close() error {
	errs := []error{s.session.Close()}
	maps := []*ebpf.Map{s.overflow, s.stacks}
	for _, c := range s.of {
		maps = append(maps, c.stats, c.zero)
	}
	for _, m := range maps {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}
