// Package answers says what is known of an image from something other than its debug information: a pack, or a kernel's BTF.
//
//	s, err := answers.OpenPack(file, section, nil)
//	numbers, err := s.List(nil)
//	err = s.Sites(numbers, func(i int, site *answers.Site) error { ... })
//
// Both are a [Source]. Package dwarfloc makes an image of one, and answers from debug information through the same
// questions. What follows a location (paths, types, computations) is the same for all images.
package answers

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/internal/typesource"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Matcher selects functions by name, as dwarfloc.Matcher does; nil selects all.
type Matcher interface {
	Match(name string) bool
	Literal() (name string, ok bool)
}

// Source answers for an image.
type Source interface {
	// List returns numbers of the sites of the functions that m selects, by function, address and view.
	List(m Matcher) ([]uint64, error)
	// Sites calls f for sites with their indices in numbers, in any order. s is reused.
	Sites(numbers []uint64, f func(i int, s *Site) error) error
	Names() ([]string, error)
	QualifiedNames() ([]string, error)
	Types() typesource.BTF[types.Type]
	// What is what answers, in words: "a pack".
	What() string
}

// Begin is where a run of an entry has begun for good. See inside.Once.
type Begin struct {
	Addr   uint64
	Again  bool // it is also reached while a run goes on
	Within bool // no run begins there
	Folded bool // runs.Ways.Folded
}

// Site is what a source knows of one site. All addresses are link-time addresses.
type Site struct {
	Inline     bool   // an inlined instance, not a function's entry
	Number     uint64 // the same for the same site of the source
	Addr, View uint64
	Semaphore  uint64 // see dwarfloc.Site

	Evidence string // "symbol" or "note", if it is not known by debug information, or what takes the place of it

	Function, Qualified string
	DeclFile            string
	DeclLine            int

	Symbol string
	Offset uint64 // bytes from the symbol

	AfterPrologue, LocalEntry bool

	CallFile string
	CallLine int
	Callers  []packfile.Caller // innermost first; they must not be changed

	In, Of uint64 // identify the function with the code, and that of the body
	Depth  int    // how many bodies of the same function enclose it

	Start  uint64 // of the function that contains the code
	Ways   runs.Ways
	Values Values

	// Leaves are where a program's function is left, if a return probe could harm the program, or Kept is why they are not known.
	Leaves  []body.Leave
	Kept    string
	Returns func(force bool) (leaves []body.Leave, kept string) // returns these two, where they are not known before somebody asks
	Begun   func() Begin                                        // returns where an entry's run has begun for good, or nil
	Looked  bool                                                // Refused was asked for
	Refused string                                              // why no kernel takes a probe, if that was looked at, or ""
	WayIn   func(probe uint64) (refused string, known bool)     // likewise of a way in; in a program what is wrong with its address
	WayOut  func(probe uint64) (wrong string, known bool)       // and of a way out
	Problem string                                              // what is wrong with the site's own address, or ""
	// Inside reports whether an address is one of the function's code, and what is wrong with a probe there, or "". It is nil where nothing is
	// known but the site itself.
	Inside func(addr uint64) (wrong string, is bool)
}

// Place is where values are asked for: at a site, or at one of its ways.
type Place struct {
	Addr, View uint64
	Exit       bool // the end of a run
	Entry      bool // of an out-of-line function
	Return     bool // an instruction at which a function returns, which may be its first one
}

// Value is a variable at a place.
type Value struct {
	Name    string
	Type    *types.Type
	Loc     loc.Location
	Reason  loc.Reason
	Entries int
	LowBit  bool // only bit 0 counts
}

// Values are where the values of a function are.
type Values interface {
	// Params returns the parameters.
	Params(at Place) ([]Value, error)
	// Result returns $retval, and Frame $frame.
	Result(at Place) (Value, error)
	Frame(at Place) (Value, error)
	// Pointee returns the object of an implicit pointer (loc.Location.Target).
	Pointee(at Place, target uint64) (Value, error)
	// Symbol returns the symbol of the address of a way.
	Symbol(addr uint64) (name string, offset uint64)
	// Code returns the bytes of the instruction at an address, as far as they are kept.
	Code(addr uint64) []byte
}

// Named is Values that have a parameter by its name without all the others.
type Named interface {
	Param(at Place, name string) (v Value, found bool, err error)
}

// Param returns a parameter by its name.
func Param(values Values, at Place, name string) (v Value, found bool, err error) {
	if n, ok := values.(Named); ok {
		return n.Param(at, name)
	}
	all, err := values.Params(at)
	for i := range all {
		if all[i].Name == name {
			return all[i], true, err
		}
	}
	return Value{}, false, err
}

// ResultOfOther is the reason why a result has no location at a jump by which a function ends: where it ends by a return probe, it has one.
const ResultOfOther = "the function ends with a jump to another, which returns the result"

// ResultOfInlined is the reason why an inlined function's result has no location.
const ResultOfInlined = "the debug information does not say where the caller has an inlined function's result"

// notDescribed is the reason for what a source does not say about one variable.
func notDescribed(detail string) loc.Reason {
	return loc.Reason{Code: reasons.NotDescribed, Detail: detail}
}

// LowBit reports whether only bit 0 of a value counts where a body begins: that of a truth value. A compiler that passes the low bit of a number to an
// inlined function leaves out the mask, and describes the whole number, wherever that is.
func LowBit(l *loc.Location, t *types.Type) (bool, error) {
	switch l.Kind {
	case loc.KindRegister, loc.KindValue, loc.KindMemory:
	default:
		return false, nil
	}
	r, err := t.Resolve()
	return err == nil && r.Kind == types.Bool && r.Size == 1, err
}

// errorf returns a function for errors about a file's sections.
func errorf(f *image.File) func(section string, off uint64, format string, args ...any) error {
	return func(section string, off uint64, format string, args ...any) error {
		return &image.FormatError{Path: f.Path(), Section: section, Offset: off, Msg: fmt.Sprintf(format, args...)}
	}
}
