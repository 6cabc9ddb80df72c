// Package resolve answers where a variable is at a spot in a body, and whether what is there is what was passed.
//
// A Spot is an instruction in the body of a function or of an inlined instance. A Var is the entry of a variable. An Evaluator, begun at
// a spot, resolves entries: Resolve chooses the expression that holds there, evaluates it, asks the calling convention where a function
// begins, and asks package judge whether the value may be another one than was passed. An Answer has a location, or a reason.
//
// The package knows units, records and code, and no Site: package dwarfloc finds sites, and prints what is known of them.
package resolve

import (
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/caller"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/preempt"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/typesource"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Image is what resolving needs of an image with debug information.
type Image struct {
	File      *image.File
	Data      *dw.Data
	Index     *index.Index
	Code      *body.Image
	Types     typesource.DWARF[types.Type]
	Machine   abi.Machine
	Units     []Unit             // by number; set by Prepare
	Preempted *preempt.Variables // binds names as the dynamic linker does
	LeftOut   rule.Set           // by these rules nothing is recovered

	extents  extents // see unitExtents
	Controls Controls
}

// Unit is a unit of the image, with what has been derived from it.
type Unit struct {
	*index.Unit
	Img  *Image
	Body body.Unit

	assigned memo // what assignedIn returned, by function
	kept     memo // what keeping returned, likewise
	changed  memo // what changing returned, by function
	// described is what calls say of a value that a function is called with, by that: a wanted; callers are the unit's calls.
	described memo
	callers   atomic.Pointer[caller.Unit]
	function  atomic.Pointer[topFunction]
}

// Prepare sets Units. It is called once, when the index has them.
func (img *Image) Prepare() {
	img.Units = make([]Unit, len(img.Index.Units))
	for i := range img.Units {
		u := &img.Units[i]
		u.Unit, u.Img = &img.Index.Units[i], img
		u.Body.Unit, u.Body.Image = u.Unit, img.Code
	}
}

// Arch returns the architecture of the image's code.
func (img *Image) Arch() *arch.Arch { return img.Machine.Arch }

// Of returns the image's unit for a unit of the debug information.
func (img *Image) Of(u *dw.Unit) *Unit { return &img.Units[u.Number] }

// Relocate makes a location that of the variable that the dynamic linker binds a name to.
func (img *Image) Relocate(l *loc.Location) { img.Preempted.Relocate(img.File, l) }

// Executable reports whether an address is in a section with instructions. Linkers
// give the functions that they drop an address that is not (0, 1, -1). Where sections of a
// damaged file overlap, it is the one that SectionAt returns.
func (img *Image) Executable(addr uint64) bool {
	s := img.File.SectionAt(addr)
	return s != nil && s.Exec
}

// Forget frees what has been derived from the unit, and what was read of it.
func (u *Unit) Forget() {
	u.forgetRead()
	u.Img.Types.Forget(u.Unit.Unit)
}

// forgetRead frees what is equal when it is read again. Types are not: whoever compares them while somebody else walks through the unit finds
// one type twice.
func (u *Unit) forgetRead() {
	u.Unit.Forget()
	u.Body.Forget()
	u.assigned.Clear()
	u.kept.Clear()
	u.changed.Clear()
	u.described.Clear()
	u.callers.Store(nil)
	u.function.Store(nil)
}

// TypeOf returns the type that a reference names.
func (u *Unit) TypeOf(v dw.Value) (*types.Type, error) { return u.Img.Types.Of(u.Unit.Unit, v) }

// EachParam calls f with each formal parameter of a function's entry, as it is described
// there, until f returns false.
func (img *Image) EachParam(e dw.Entry, f func(x *Var) (more bool, err error)) error {
	return e.Children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagFormalParameter {
			return true, nil
		}
		x, err := img.Of(c.Unit).ReadVar(c)
		if err != nil {
			return false, err
		}
		return f(&x)
	})
}
