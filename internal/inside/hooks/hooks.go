// Package hooks is where package dwarfloc leaves what package inside calls.
package hooks

import (
	"context"

	"github.com/bpfprologue/bpfprologue/internal/claim"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Functions are those of package inside, which documents them. Package dwarfloc cannot be imported here, so its types are parameters:
// an Image, a Site, a SiteList, a Variable, and what selects functions by their names.
type Functions[I, S, L, V, M any] struct {
	Along             func(img *I, ctx context.Context, sites []*S, vars func(site int) (vars []*V, memory bool)) ([][]*S, error)
	CheckInstructions func(img *I, sites []*S) ([]error, error)
	CompilationDir    func(img *I, file string) string
	Controls          func(img *I) map[string]claim.Count
	Data              func(img *I, symbol string, offset uint64) (*V, error)
	File              func(img *I) *image.File
	KeepDerived       func(img *I) error
	Kept              func(img *I) []byte
	Keep              func(img *I, b []byte)
	Ready             func(img *I) bool
	EachWays          func(img *I, ctx context.Context, f func(worker int, s *S, w *runs.Ways) error) error
	Memory            func(img *I, name string, addr uint64) *V
	ImageType         func(img *I, name string) (*types.Type, error)
	AnsweredBy        func(img *I) string
	List              func(img *I, ctx context.Context, m M, keep func(s *S) (bool, error)) (*L, error)
	ListAt            func(img *I, ctx context.Context, at map[uint64]bool, keep func(s *S) (bool, error)) (*L, error)
	OnlySymbols       func(img *I, ctx context.Context, m M, keep func(s *S) (bool, error)) (*L, error)
	StaticProbes      func(img *I, ctx context.Context, m M) (list *L, names []string, err error)
	Held              func(img *I, sites []*S) *L
	Ways              func(img *I, ctx context.Context, sites []*S) ([]runs.Ways, error)

	EachOf func(l *L, ctx context.Context, from, to int, ways bool, f func(worker, i int, s *S, w *runs.Ways) error) error

	Argument      func(s *S, n int) (*V, error)
	At            func(s *S, off uint64) (at *S, ok bool, err error)
	Before        func(s *S, vars []*V, memory bool) ([]*S, error)
	Body          func(s *S) Body
	Clone         func(s *S) (*S, error)
	Enumerator    func(s *S, name string) (value int64, found bool, err error)
	Evidence      func(s *S) string
	Frame         func(s *S) (*V, error)
	Jumps         func(s *S) bool
	NoNames       func(s *S) bool
	Named         func(s *S, m M) (bool, error)
	SiteType      func(s *S, name string) (*types.Type, error)
	Once          func(s *S) (at *S, within bool, err error)
	Pointee       func(s *S, target uint64) (*V, error)
	Refused       func(s *S) (cause string, known bool)
	Result        func(s *S) (*V, error)
	ReturnAddress func(s *S) (*V, error)
	Returns       func(s *S, force bool) (at []*S, moved bool, err error)
	Unset         func(s *S, v *V, l *loc.Location, t *types.Type) (bool, error)
	WaysIn        func(s *S, w *runs.Ways, given bool) []*S
	WaysOut       func(s *S, w *runs.Ways) []*S
}

// Dwarfloc is a *Functions with the types of package dwarfloc, which sets it.
var Dwarfloc any

// Body identifies the body whose runs begin or end at a site. Sites with equal values are of one
// function in the code of one: runs at them with the same frame ($frame) do not overlap.
type Body struct {
	// In and Of are offsets in .debug_info: of the function that contains the code, and of what
	// describes the one whose body it is.
	In, Of uint64
	// Depth is how many bodies of the same function enclose it.
	Depth int
}
