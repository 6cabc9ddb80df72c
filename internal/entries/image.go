// Package entries reads what an image's debug information says of functions and their variables, at an instruction: which entry describes what, and which
// expression of a list holds there.
//
// A Spot is an instruction in the body of a function or of an inlined instance. A Var is the entry of a variable, a Scope has those of a
// function's blocks. Unit.Choose picks from a location list what holds at a place. Nothing is evaluated here: package resolve does that.
package entries

import (
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/caller"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/eval"
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
	Alone     bool               // no other image completes its types

	outOfLine ByFunction[[]Body]
	asksAll   atomic.Bool

	Derived sync.Map // what rooms above have derived from all of it, by keys of their own types

	extents extents // see unitExtents
	plain   plainBodies
}

// AskAll says that most functions of the image will be asked for: what is learned of each from many bodies is learned of all of them together.
func (img *Image) AskAll() { img.asksAll.Store(true) }

// AsksAll reports whether most functions will be asked for.
func (img *Image) AsksAll() bool { return img.asksAll.Load() }

// Unit is a unit of the image, with what has been derived from it.
type Unit struct {
	*index.Unit
	Img  *Image
	Body body.Unit

	Derived  Memo // what rooms above have derived from the unit, by keys of their own types; see Forget
	calls    atomic.Pointer[caller.Unit]
	function atomic.Pointer[topFunction]
	given    atomic.Bool // GiveType was called
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
	u.Img.Types.Forget(u.Unit.Unit, nil)
}

// ForgetLearned is Forget for those who have walked through the unit and give nobody a type. Types that others were given are not forgotten: whoever compares them while
// somebody else walks through the unit would find one type twice. Those that nobody was given are a sixth of what a whole kernel's coverage keeps.
func (u *Unit) ForgetLearned() {
	u.Index.Walked(u.Unit)
	u.forgetRead()
	u.Img.Types.Forget(u.Unit.Unit, &u.given)
}

// forgetRead frees what is equal when it is read again.
func (u *Unit) forgetRead() {
	u.Unit.Forget()
	u.Body.Forget()
	u.Derived.Clear()
	u.calls.Store(nil)
	u.function.Store(nil)
}

// Plain reports whether it is known that the debug information lacks nothing of the parameters of a record's body where that begins, that its
// arithmetic is as it is written, that no witness says more, and that what the judge is told besides the debug information changes no verdict.
func (u *Unit) Plain(rec int32) bool { return u.Img.plain.has(u.Index, u.Unit, rec) }

// SetPlain notes that it is so.
func (u *Unit) SetPlain(rec int32) { u.Img.plain.set(u.Index, u.Unit, rec) }

// PlainBodies returns a form of what SetPlain has noted for the index, and whether there is more than that has.
func (img *Image) PlainBodies() (packed []byte, more bool) { return img.plain.pack() }

// TypeOf returns the type that a reference names.
func (u *Unit) TypeOf(v dw.Value) (*types.Type, error) { return u.Img.Types.Of(u.Unit.Unit, v) }

// GiveType is TypeOf for a type that is given to whoever asks for the image's parameters.
func (u *Unit) GiveType(v dw.Value) (*types.Type, error) {
	if !u.given.Load() {
		u.given.Store(true)
	}
	return u.TypeOf(v)
}

// Encoding returns how the unit's expressions are encoded.
func (u *Unit) Encoding() eval.Encoding {
	enc := eval.Encoding{BigEndian: u.Data.BigEndian, AddressSize: int(u.AddrSize), OffsetSize: u.OffsetSize()}
	if u.Version <= 2 {
		enc.OffsetSize = enc.AddressSize
	}
	return enc
}
