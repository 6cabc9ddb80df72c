// Package body follows the code of one function: its basic blocks, the bodies of what was inlined into it, the statements of
// the line table, and the places where runs of a body begin and end.
//
//	c, err := image.Unit(u).Code(record)
//	ways, err := c.Ways(record)
//	for _, w := range ways.In {
//		fmt.Printf("%#x\n", w.Probe)
//	}
//
// It takes the records and rows of a unit, bytes of code, and the tables in which a kernel lists what it changes. It knows no
// variable, no type and no site.
package body

import (
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Image is the code of an image with debug information. Several goroutines may use it at once.
type Image struct {
	*image.File
	Data *dw.Data

	noReturns noReturns
	patches   patches
	callers   callers
}

// New returns the code of a file. It reads nothing yet.
func New(f *image.File, d *dw.Data) *Image { return &Image{File: f, Data: d} }

// Unit is a unit of the image, with what is known of its code.
type Unit struct {
	*index.Unit
	Image *Image

	compilerOnce sync.Once
	compiled     compiler
	texts        atomic.Pointer[texts]
}

// Forget frees what was derived from the unit's declarations.
func (u *Unit) Forget() { u.texts.Store(nil) }

// Outermost returns the record of the out-of-line function that a record is, or is inlined
// into.
func (u *Unit) Outermost(rec int32) int32 {
	for u.Recs[rec].Flags&index.Inlined != 0 && u.Recs[rec].Parent >= 0 {
		rec = u.Recs[rec].Parent
	}
	return rec
}
