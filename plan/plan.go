// Package plan turns a definition and an image into sites, arguments, prologues and the
// programs that are needed: everything that can be decided without a kernel.
//
//	img, err := dwarfloc.Open("vmlinux", nil)
//	def, err := probe.ParseSection("func=my_func_*_abcd arg1")
//	p, err := plan.New(ctx, img, def, plan.Options{})
//	for _, s := range p.Sites {
//		fmt.Println(s.Site, s.Args[0].Loc.Text(img.Arch()), s.Instance)
//	}
//
// A plan is deterministic: the same image, definition and options give the same plan, byte
// by byte, on any machine. Package instances loads and attaches it.
//
// # Sites and instances
//
// A definition has many sites: each function that it names may be out of line and inlined at
// many places. An argument has a different location at each of them, so each site needs its
// own prologue before the user's program. Many of these prologues are equal: at 16 of the 76
// places where Linux 6.1 inlined get_page its argument is in %rdi. Sites with equal
// prologues share one program, an instance.
//
// Prologues are equal if their instructions are, and if the same constants are addresses
// of the image (prologue.Prologue.Key). Comments do not count: an instance has those of its
// first site. Prologues that read the same value in different ways are different.
//
// # Conventions
//
// Up to three numbers are in registers when the user's program begins. More numbers,
// strings, structures and arrays are in a record, and the program's third argument is its
// address. All instances of a plan have one convention. [Plan.Header] declares the record
// in C. Its layout is the same at all sites, unless the definition's functions differ in
// the types of their arguments: see [Site].
package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/sites"
)

// Missing is what to do with a site that lacks an argument.
//
//   - MissingFlag keeps the site. The program finds the argument's bit set in err
//   - MissingSkip excludes the site from all instances
//   - MissingFail makes New return an error that wraps ErrMissingArgument
type Missing uint8

const (
	// MissingFlag keeps the site. The program finds the argument's bit set in err.
	MissingFlag Missing = iota
	// MissingSkip excludes the site from all instances.
	MissingSkip
	// MissingFail makes New return an error that wraps ErrMissingArgument.
	MissingFail
)

// Doubt is what to do with an argument that may not be the one that was passed: see Argument.Doubt.
//
//   - DoubtMissing takes it for a missing one. Options.Missing applies
//   - DoubtMark fetches it as any other: whoever prints values marks it. A condition that needs it cannot be computed
//   - DoubtKeep fetches it, and tells the program (prologue.Options.Doubts): its bit of err is set, and another one says that
//     the value is there. Conditions use it. The option doubt=keep of a definition is the same
type Doubt uint8

const (
	// DoubtMissing takes a doubtful argument for a missing one.
	DoubtMissing Doubt = iota
	// DoubtMark fetches a doubtful argument, for whoever marks it. Conditions do not use it.
	DoubtMark
	// DoubtKeep fetches a doubtful argument, tells the program that it is one, and lets conditions use it.
	DoubtKeep
)

// Options are options of New. The zero Options work for every definition and image.
type Options struct {
	// Missing is what to do with sites that lack an argument.
	Missing Missing
	// Doubt is what to do with arguments that may not be what was passed, unless the definition says it.
	Doubt Doubt
	// EntryOnly leaves out the ways into an inlined body that the debug information does not name: some runs may then pass no
	// probe. Otherwise each way is a Site of the plan, and each run hits one.
	EntryOnly bool
	// Target is where the plan will run. The zero Target is right for every image, if
	// addresses of the image need not move. instances.Running.Target returns it for an
	// image that runs on this machine.
	Target Target
	// Filter, if not nil, must match the names of functions too.
	Filter glob.Matcher
	// Convention is how programs get their arguments.
	Convention prologue.Convention
	// StringBytes is the room for a string in a record in bytes, its NUL included. 0 means
	// 64.
	StringBytes int
	// Cost, if not nil, returns what a probe at a link-time address costs, in any unit, or less
	// than 0 if none can be there: attachable.Table.Method tells. The probe of an inlined body then
	// moves along straight code to where it costs less, if that sees the same runs and values. The
	// plan says so in Site.MovedFrom.
	Cost func(addr uint64) int
	// LargeRecords allows records that are too large for the stack: in the map references.RecordMap, which
	// instances.Dispatch has. A plan for which the stack is enough uses that.
	LargeRecords bool
	// CountMissing makes prologues count in the map references.MissingCounter how often a condition
	// could not be computed, and so did not hold. It needs that map, which instances.Dispatch has.
	CountMissing bool
	// Sources are the directories to search for the source files of a lazy pattern.
	Sources sites.Sources

	registers *arch.Arch                   // the image's, as the kernel has them
	moves     bool                         // the image is loaded at another address in each process
	stays     func(addr, size uint64) bool // of prologue.Options
}

// Site is one site of a plan.
type Site struct {
	*dwarfloc.Site
	Args []Argument
	// If are the conditions of the definition: the program runs if all of them hold.
	If []Condition
	// Never is the condition because of which the program can never run at the site, or nil.
	Never *Condition
	// Instance is the index in Plan.Instances of the program for the site, or -1 for a
	// site that Options.Missing excludes, that is Refused, or where Never is set.
	Instance int
	// Return is set if the probe is a return probe: it fires where the function that begins
	// at the site has returned.
	Return bool
	// Refused is why no probe may be at the site: it is inside an instruction, or a probe there would harm the program. It is nil for
	// nearly all sites.
	Refused error
	// MovedFrom is the link-time address at which the probe would be if it did not cost more there (Options.Cost), or harm the
	// program, or 0.
	MovedFrom uint64
	// Layout is where the arguments are in a record, with prologue.ConventionRecord.
	Layout prologue.Layout
}

// Instance is one program to load.
type Instance struct {
	Number   int // index in Plan.Instances
	Prologue *prologue.Prologue
	Sites    []int // indices in Plan.Sites; Return is the same at all of them
	// Multi is set if one link attaches the program to all Sites: a link of the kind that
	// Plan.Target names, for which the program is loaded. Else each site has its own link.
	Multi bool
}

// Plan is a definition resolved in an image: its sites, and the programs for them.
type Plan struct {
	Definition *probe.Definition
	Image      *dwarfloc.Image
	Target     Target              // where it runs; Reads is not ReadAuto
	Convention prologue.Convention // of all instances; not ConventionAuto
	Doubt      Doubt               // what it does with doubtful arguments; DoubtKeep if the definition has doubt=keep
	// RecordBytes is the room for a record in the map references.RecordMap, or 0 if records are on the
	// stack: see Options.LargeRecords.
	RecordBytes int
	Sites       []Site
	Instances   []Instance
}

// NumProbes returns the number of sites that have an instance.
func (p *Plan) NumProbes() int {
	n := 0
	for i := range p.Instances {
		n += len(p.Instances[i].Sites)
	}
	return n
}

// ErrMissingArgument is wrapped by New's error if a site lacks an argument and
// Options.Missing is MissingFail.
var ErrMissingArgument = errors.New("not every argument is fetched at every site")

// New finds the sites of a definition in an image, resolves its arguments there, and
// writes their prologues.
//
// Of a function with candidates (probe.Point.Candidates) the plan's definition has the one that is meant.
//
// An error about the definition is a *probe.Error, which points into its text. It may wrap
// a *sites.NotFoundError, a *sites.NoSourceError, dwarfloc.ErrNoFunction,
// ErrMissingArgument or ErrNeedsRecord.
// A record that is too large is a *prologue.StackError. If ctx ends, the error is its cause.
// Other errors are about damaged debug information or a file that cannot be read.
func New(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, o Options) (*Plan, error) {
	def, err := chosen(ctx, img, def, &o)
	if err != nil {
		return nil, err
	}
	p, err := begin(img, def, &o)
	if err != nil {
		return nil, err
	}
	found, err := expand(ctx, img, def, &o)
	if err != nil {
		return nil, err
	}
	if found, err = throughWays(ctx, img, def, found, &o); err != nil {
		return nil, err
	}
	p.Sites = make([]Site, 0, len(found))
	if err := p.resolve(ctx, found, &o); err != nil {
		return nil, err
	}
	// Checked first: a mistyped name causes other errors too.
	if err := p.checkNames(); err != nil {
		return nil, err
	}
	p.choose(&o)
	if err := p.fits(); err != nil {
		return nil, err
	}
	p.agree(p.shapes())
	err = p.write(ctx, &o)
	var stack *prologue.StackError
	if errors.As(err, &stack) && o.LargeRecords {
		p.moveRecords()
		err = p.write(ctx, &o)
	}
	if err != nil {
		return nil, err
	}
	if err := img.Changed(); err != nil { // symbols and names of types are asked for without an error
		return nil, err
	}
	return p, nil
}

// moveRecords makes room for the records of all sites outside of the stack.
func (p *Plan) moveRecords() {
	p.Instances = nil
	for i := range p.Sites {
		p.RecordBytes = max(p.RecordBytes, prologue.RecordSize(appendArgs(nil, p.Sites[i].Args), p.Doubt == DoubtKeep))
	}
}

// begin returns a plan without sites.
func begin(img *dwarfloc.Image, def *probe.Definition, o *Options) (*Plan, error) {
	if n := o.stringBytes(); n > prologue.MaxObject {
		return nil, fmt.Errorf("strings of %d bytes: a record holds at most %d", n, prologue.MaxObject)
	}
	kernel, err := place.IsKernel(img)
	if err != nil {
		return nil, err
	}
	target, err := o.Target.of(kernel)
	if err != nil {
		return nil, err
	}
	if o.registers = img.Arch().On(target.Kernel); o.registers == nil {
		return nil, fmt.Errorf("%s is for %s, and a kernel for %s does not run it", img.Path(), img.Arch().Name, target.Kernel.Name)
	}
	o.moves = inside.File(img).IsPositionIndependent() && !kernel
	if target.Reads == prologue.ReadCast {
		if o.stays, err = place.Stays(img); err != nil {
			return nil, err
		}
	}
	switch {
	case def.Options.KeepDoubt:
		o.Doubt = DoubtKeep
	case o.Doubt == DoubtKeep:
		own := *def // what is printed as a section name is what the programs are written for
		own.Options.KeepDoubt = true
		def = &own
	}
	return &Plan{Definition: def, Image: img, Target: target, Doubt: o.Doubt}, nil
}

// resolve appends sites to the plan's, where they have probes, with their arguments.
func (p *Plan) resolve(ctx context.Context, found []*dwarfloc.Site, o *Options) error {
	for _, s := range found {
		p.Sites = append(p.Sites, Site{Site: s, Instance: -1})
	}
	if err := p.atReturns(); err != nil {
		return err
	}
	if err := p.checkInstructions(); err != nil {
		return err
	}
	if err := checkArgs(p.Image, p.Definition); err != nil {
		return err
	}
	for i := range p.Sites {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s := &p.Sites[i]
		var err error
		if s.Args, err = arguments(s, p.Definition, o); err != nil {
			return err
		}
		if s.If, err = conditions(s, p.Definition, o); err != nil {
			return err
		}
	}
	if err := p.beforeLoops(); err != nil {
		return err
	}
	if err := p.moveFromHarm(ctx); err != nil || o.Cost == nil {
		return err
	}
	return p.moveToCheaper(ctx, o.Cost)
}

// write writes the sites' prologues and makes an instance of each distinct one.
func (p *Plan) write(ctx context.Context, o *Options) error {
	numbers := make(map[string]int) // of instances, by the kind of their probes and their prologue's key
	var w writer
	for i := range p.Sites {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		s := &p.Sites[i]
		key, err := w.write(p, s, o)
		if err != nil {
			return err
		}
		if key == nil {
			continue
		}
		n, known := numbers[string(key)]
		if !known {
			n = len(p.Instances)
			numbers[string(key)] = n
			p.Instances = append(p.Instances, w.instance(s, n))
		}
		s.Instance = n
		in := &p.Instances[n]
		in.Sites = append(in.Sites, i)
	}
	return nil
}

// writer writes the prologues of sites, one after the other.
type writer struct {
	emitter prologue.Emitter
	key     []byte
	wanted  []prologue.Arg

	conditions []*loc.Expr
}

// Flags in the first byte of an instance's key.
const (
	keyMulti = 1 << iota
	keyReturn
)

// write writes the prologue of a site of a plan, and says which arguments it does not fetch. It
// returns a key that is equal for sites of one instance, valid until the next call, or nil for a
// site that has no instance.
func (w *writer) write(p *Plan, s *Site, o *Options) (key []byte, err error) {
	po := prologue.Options{
		Arch: o.registers, BigEndian: inside.File(p.Image).BigEndian(), Reads: p.Target.Reads, Convention: p.Convention,
		SignExtends: p.Target.SignExtends, Moves: o.moves, At: s.Addr, Stays: o.stays,
		IfMissing: p.Definition.Options.Pass, CountMissing: o.CountMissing, RecordBytes: p.RecordBytes,
		Doubts: p.Doubt == DoubtKeep,
	}
	w.conditions = s.needed(w.conditions[:0], po.IfMissing)
	po.If = w.conditions
	w.wanted = appendArgs(w.wanted[:0], s.Args)
	if err := w.emitter.Emit(w.wanted, &po); err != nil {
		return nil, fmt.Errorf("%v: %w", s.Site, err)
	}
	s.Layout = w.emitter.Layout
	for j, r := range w.emitter.Reasons {
		s.Args[j].Unfetched = r
	}
	if s.Refused != nil || s.Never != nil {
		return nil, nil
	}
	if at := slices.IndexFunc(s.Args, func(a Argument) bool { return !a.Fetched() }); at >= 0 {
		switch o.Missing {
		case MissingSkip:
			return nil, nil
		case MissingFail:
			a := &s.Args[at]
			return nil, probe.Errorf(p.Definition, p.Definition.Args[a.DefinitionArg].Pos, "%w: %v: argument %q: %v", ErrMissingArgument, s.Site, a.Name, a.Unfetched)
		}
	}
	flags := byte(0)
	if p.Target.multi(s) {
		flags |= keyMulti
	}
	if s.Return {
		flags |= keyReturn
	}
	w.key = append(append(w.key[:0], flags), w.emitter.Key...)
	return w.key, nil
}

// instance returns the instance with the prologue that has just been written.
func (w *writer) instance(s *Site, n int) Instance {
	return Instance{Number: n, Prologue: w.emitter.Prologue(s.String()), Multi: w.key[0]&keyMulti != 0}
}

// appendArgs appends the arguments for package prologue.
func appendArgs(to []prologue.Arg, args []Argument) []prologue.Arg {
	for i := range args {
		to = append(to, args[i].Arg)
	}
	return to
}
