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
	"errors"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
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
	// Parts fetches what strings and slices inside of structures refer to, as much as the record has room for: Value prints them as it
	// does those that are arguments of their own. It also tells a text that is NULL from one that could not be read.
	Parts bool
	// Keys are names of arguments of which the same is fetched, as much as a key has room for: those by which a summary tells hits apart
	// (tracer.SummaryOptions.By). Where the key does not fit beside the record on the stack, and LargeRecords allows it, the
	// record is in the map, with room for the key after it.
	Keys []string
	// Sources are the directories to search for the source files of a lazy pattern.
	Sources sites.Sources
	// Progress, if not nil, is called by New with the number of sites that have been resolved, by several goroutines at once.
	Progress func(done, total int)

	runs      bool                         // whole runs are counted: their keys are elsewhere
	held      int                          // so many arguments, the first ones, are for a condition on runs
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

	parts []part // Options.Parts
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

	alone bool // the sites share memory, which is one goroutine's
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
