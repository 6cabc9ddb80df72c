// Package body has the facts of one function's code: its basic blocks, the bodies of what was inlined into it, which body each instruction
// and each statement of the line table is of, and what the instructions do with registers and memory.
//
//	c, err := unit.Code(record)
//	i, ok := c.BodyOf(record)
//	for n, insn := range c.Graph.Insns {
//		fmt.Printf("%#x %v\n", insn.Addr, c.Bodies[i].Has(c.Owner[n]))
//	}
//
// It takes the records and rows of a unit, bytes of code, and the tables in which a kernel lists what it changes. It knows no
// variable, no type and no site, and decides nothing: where runs of a body begin and end is found by package runs.
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

// OutermostRanges returns the code of the out-of-line function that contains a record's.
func (u *Unit) OutermostRanges(rec int32) ([]dw.Range, error) {
	e, err := u.Entry(u.Off + uint64(u.Recs[u.Outermost(rec)].Off))
	if err != nil {
		return nil, err
	}
	return u.extentOf(e)
}

// extentOf returns the ranges of the code of the body that an entry describes.
func (u *Unit) extentOf(e dw.Entry) ([]dw.Range, error) {
	var pcs dw.PCs
	if err := e.Attrs(pcs.Take); err != nil {
		return nil, err
	}
	return u.Extent(&pcs)
}
