// Package inside is what packages of this module ask images and sites, and importers need not know: what a plan, a pack and the
// resolution of expressions are made of. Package dwarfloc answers, and sets package hooks.
package inside

import (
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside/hooks"
)

type functions = hooks.Functions[dwarfloc.Image, dwarfloc.Site, dwarfloc.SiteList, dwarfloc.Variable, dwarfloc.Matcher]

var f = hooks.Dwarfloc.(*functions)

// Along returns, for each site of kind SiteInline, others further along the straight code that begins
// there, in order, up to where the next run begins or this one ends. A probe there is hit by the same
// runs, and finds the site's values of vars, since no instruction before it changes what their
// locations depend on. There are none for a site in code that could not be followed, or that has no
// markers of statements, as clang's: see Ways. vars returns the variables of a site, by its index, and
// whether what they point to is fetched too.
//
// An error is about a file that cannot be read, or damaged debug information, or the cause of ctx.
var Along = f.Along

// CheckInstructions returns, for each site, nil if an instruction begins at its address, or
// an error that wraps refusals.ErrMidInstruction or refusals.ErrNotDecoded. The instructions of the function
// are decoded from its beginning; those of some architectures are not. On amd64 and i386 it is an error that wraps refusals.ErrHarmful
// if the kernel runs the instruction as another one, or repeats the probe.
//
// The kernel does not check these for user space: a uprobe inside an instruction changes what
// the program computes (uprobe_register in kernel/events/uprobes.c takes any offset). It
// need not be checked whether a jump leads into the middle of what a uprobe replaces: that
// is one byte on amd64 (UPROBE_SWBP_INSN_SIZE in arch/x86/include/asm/uprobes.h) and one
// instruction on arm64 (AARCH64_INSN_SIZE in arch/arm64/include/asm/uprobes.h).
//
// The second error is about a file that cannot be read, or damaged debug information.
var CheckInstructions = f.CheckInstructions

// CompilationDir returns the directory that a relative path in the debug information
// is relative to: that of the unit whose main source file it is, or else that of the
// first unit that has one.
var CompilationDir = f.CompilationDir

// Controls returns how many controls there are for each rule by which instructions say what debug information has lost, once all sites of the
// image have been asked about.
var Controls = f.Controls

// Data returns the memory offset bytes after a symbol, as the image's own code finds it.
var Data = f.Data

// EachWays calls f for each site of the image, with its ways if it is an inlined one, as EachSite does: from
// several goroutines, with sites that are reused.
var EachWays = f.EachWays

// File returns the ELF file of an image.
var File = f.File

// KeepDerived writes what answers have derived of the image into its kept index, if there is one, as Close does: the ways of bodies.
var KeepDerived = f.KeepDerived

// Kept returns what Keep was given of the image, by this process or one before, or nil.
var Kept = f.Kept

// Keep notes the coverage of the image, in a form that its caller chooses, for its kept index; but not if this depends on more than the image: on types that another one has, on rules
// that are left out, or on split units that are not there.
var Keep = f.Keep

// Ready reads the kept index of an image, and reports whether there is one: symbols are then found by their addresses at once.
var Ready = f.Ready

// Memory returns the memory at a link-time address as a variable with a name.
var Memory = f.Memory

// ImageType returns the type that a name, "struct page" or "loff_t", means in a definition at sites whose own unit has no type
// of that name: that of the first unit that has one. It is nil if there is none.
var ImageType = f.ImageType

// AnsweredBy returns what answers for the image in the place of debug information: "a pack", "BTF", or "" if nothing does.
var AnsweredBy = f.AnsweredBy

// Ways returns the ways into and out of the bodies of inlined instances: for each site of kind
// SiteInline its own, and for others none.
//
// The code of the functions that contain them is followed, where its instructions are decoded. An error is about
// a file that cannot be read, or damaged debug information, or the cause of ctx.
var Ways = f.Ways

// At returns the site off bytes after an entry's first instruction, where variables are
// resolved as they are there. ok is false if that is not in the function's code.
var At = f.At

// Before returns sites for a way in with Again that see each run once: at the instructions from
// which the way is entered. It returns none if one of these instructions changes what the
// locations of vars depend on, since it has not run yet at its own address. memory says that what
// vars point to is fetched too.
var Before = f.Before

// Body returns the body that a site is in.
var Body = f.Body

// Enumerator returns the value of an enumerator of the site's unit, if no variable of the function
// has its name.
var Enumerator = f.Enumerator

// Evidence returns what the site is known by, if that is neither debug information nor a pack or BTF: "symbol" or "note".
var Evidence = f.Evidence

// Frame returns what tells one call of a function from others: $frame of a definition.
var Frame = f.Frame

// Jumps reports whether a site that Returns returned is a jump to another function.
var Jumps = f.Jumps

// Named reports whether a matcher selects one of the names that the site's function goes by: with all
// namespaces and classes around it or with the innermost ones only, with a space after a comma or
// without, and without the implementations that Rust numbers.
var Named = f.Named

// SiteType returns the type that a name, "struct page" or "loff_t", means at the site: that of its unit, or of the first
// unit that has one, or of Options.TypesOf. It is nil if there is none.
var SiteType = f.SiteType

// Once returns the site of an entry at which a probe sees each run once, if there is one, and
// otherwise the site, with Again.
//
// A function of Go begins again when it has got a larger stack; the site is after the check of
// the stack then. GCC splits a function into its beginning, which it inlines, and the rest, a
// clone that the beginning calls (-fpartial-inlining): a run that a site in the beginning sees
// may reach the entry of the clone. within is set if each run that does has begun at another site
// of the function, inlined or not.
var Once = f.Once

// Pointee returns the whole object that implicit pointers with a target (loc.Location.Target) point to: the pointer was
// optimized away, but often its object was not.
var Pointee = f.Pointee

// Refused returns why no kernel takes a probe at the site's address, in the words of package attachable, or "". known is
// set if the site is of a pack that has the answer, which one has for its sites and for all ways into inlined bodies.
var Refused = f.Refused

// Result returns the result of the site's function, as it is right after the function
// has returned, or at one of the sites of Returns, by the calling convention: in one or two
// registers, or in memory at an address that is returned. A result that the function may have
// lost has a reason instead.
var Result = f.Result

// ReturnAddress returns the address to which the site's function returns: where it is called, or inlined ($caller of a
// definition).
var ReturnAddress = f.ReturnAddress

// Returns returns the sites of the instructions at which a function of a program returns, or jumps to another that returns in its
// place. At these sites $retval and, in Go, the function's named results are where the calling convention has them; after a jump
// there is no $retval; with force, none but Go's have such sites. moved is false for functions that take a return probe
// at their entry: those of kernels, and of programs in
// C through which no exception can pass, where they end with a jump or it is not known how they end. The error wraps
// refusals.ErrMovingStack or refusals.ErrUnwinding if a return probe could harm the program, and the sites are not all known.
var Returns = f.Returns

// Unset reports whether the function may be yet to store a part of a variable at a site at a line: a member or an element, with a location and a type. It is in the
// frame, and no instruction stores any of it before: a store that nobody reads is gone, or the source has none.
var Unset = f.Unset

// WaysIn returns the sites of an instance's ways in: copies of the site. If it is given away, as who has no more use for it says, one of them is the site itself.
var WaysIn = f.WaysIn

// WaysOut returns the sites of an instance's ways out, of kind SiteExit. Variables are as they
// are right before the instruction there.
var WaysOut = f.WaysOut

// EachOf calls f for the sites with numbers from from to to-1, in several goroutines and unit by
// unit, as EachSite does: worker is less than GOMAXPROCS, and no two calls with the same worker
// overlap; s and w are reused after f returns, but all fields of s are set. w are its ways if ways is
// set, and else nil: they are found once for all sites of a unit, and kept. Each is not for
// several goroutines.
var EachOf = f.EachOf

// Argument returns what is passed to the site's function as its nth argument, from 1: its nth parameter or, where nothing says what its
// parameters are, the nth word by the calling convention.
var Argument = f.Argument

// NoNames reports whether nothing says what the parameters of the site's function are called, nor how many there are: of all that it is
// passed Argument tells.
var NoNames = f.NoNames

// OnlySymbols is List for the functions that the debug information does not have: those that only a symbol names. There are none without
// Options.Symbols.
var OnlySymbols = f.OnlySymbols

// StaticProbes returns the statically defined probes of a program or library whose "PROVIDER:NAME" m selects, and all of these names. Their
// sites are of kind SiteInstruction, and their functions have these names.
var StaticProbes = f.StaticProbes

// Held returns a list of sites, in the order of all lists. They are kept in memory.
var Held = f.Held

// Clone returns a copy of a site that EachOf or EachWays passes, or List's keep gets. The copy may be kept and used by several goroutines,
// and all of its fields are set.
var Clone = f.Clone

// List returns the sites of the functions that m selects and that keep, if it is not nil, accepts. Several goroutines call keep at
// once, with sites that are reused: see Clone.
var List = f.List

// ListAt is List for the functions whose code begins at one of some link-time addresses.
var ListAt = f.ListAt
