package dwarfloc

import (
	"context"

	"github.com/bpfprologue/bpfprologue/internal/inside/hooks"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// An image need not have debug information: a pack or BTF may answer in its place. Images and sites ask one of these two
// interfaces, and do not know which source is behind it.

// imageSource answers about an image: dwarfImage from debug information, answered from something else.
type imageSource interface {
	// name is inside.AnsweredBy.
	name() string
	guard(f func() error) error
	list(ctx context.Context, m Matcher, keep func(s *Site) (bool, error)) (*SiteList, error)
	eachSite(ctx context.Context, m Matcher, f func(worker int, s *Site) error) error
	eachWays(ctx context.Context, f func(worker int, s *Site, w *runs.Ways) error) error
	ways(ctx context.Context, sites []*Site) ([]runs.Ways, error)
	along(ctx context.Context, sites []*Site, vars func(site int) (vars []*Variable, memory bool)) ([][]*Site, error)
	functionNames(ctx context.Context) ([]string, error)
	qualifiedNames(ctx context.Context) ([]string, error)
	// check sets out as Image.checkInstructions returns it.
	check(sites []*Site, out []error) error
	siteAt(ctx context.Context, addr uint64) (*Site, error)
	// hasLines returns an error if nothing is known of source lines.
	hasLines() error
	namedType(name string) (*types.Type, error)
}

// siteSource answers about sites: debugInfo, or an answeredSite.
type siteSource interface {
	describe(s *Site) error
	// locate sets the site's symbol. want is the name of the function that has the code.
	locate(s *Site, want string)
	qualifies(s *Site) bool
	qualifiedName(s *Site) (string, error)
	named(s *Site, m Matcher, name string) (bool, error)
	declared(s *Site) (file string, line int, err error)
	body(s *Site) hooks.Body
	ranges(s *Site) ([][2]uint64, error)
	at(s *Site, off uint64) (at *Site, ok bool, err error)
	// begun returns the site at which a run of an entry has begun for good: see Site.once.
	begun(s *Site) (at *Site, within bool, err error)
	returns(s *Site, force bool) (at []*Site, moved bool, err error)
	refused(s *Site) (cause string, known bool)
	// code returns the bytes of the instruction at an address, and perhaps more.
	code(s *Site, addr uint64) ([]byte, error)

	lookup(s *Site, name string) (*Variable, error)
	variables(s *Site) ([]*Variable, error)
	params(s *Site) ([]*Variable, error)
	result(s *Site) (*Variable, error)
	// frame returns the canonical frame address, and what stays the same of it where frames move, or nil.
	frame(s *Site) (cfa, steady *loc.Expr, r loc.Reason, err error)
	pointee(s *Site, target uint64) (*Variable, error)
	namedType(s *Site, name string) (*types.Type, error)
	enumerator(s *Site, name string) (value int64, found bool, err error)
	// argument returns what is passed as the nth argument, from 1: a parameter, or where the calling convention has it.
	argument(s *Site, n int) (*Variable, error)
	// numbered reports whether arguments have no names, and nobody says how many there are.
	numbered(s *Site) bool
}

// dwarfImage is an image as its debug information has it.
type dwarfImage struct{ *Image }

// debugInfo is what the debug information says of a site.
type debugInfo struct{}

func (img dwarfImage) name() string               { return "" }
func (img dwarfImage) guard(f func() error) error { return img.r.Index.Guard(f) }
func (img dwarfImage) hasLines() error            { return nil }

func (debugInfo) refused(*Site) (string, bool) { return "", false }
