package entries

import (
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Kind says what a spot is to its body.
type Kind uint8

const (
	// Entry is where a function's own, out-of-line code begins.
	Entry Kind = iota
	// Inline is where an inlined instance begins.
	Inline
	// Line is where a source line begins in a body.
	Line
	// Inside is any other instruction of a body.
	Inside
)

// Place is a link-time address, and a location view there.
type Place struct{ Addr, View uint64 }

// Entered says whether a place where runs of a body begin is that of its first statement.
type Entered uint8

// Zero: nobody has looked.
const (
	First Entered = 1 + iota
	Midway
)

// Spot is an instruction in the body that a record describes. Its exported fields may be set to those of another instruction of the body.
type Spot struct {
	U    *Unit
	Rec  int32
	Kind Kind
	// Addr is the link-time address of the instruction: where a probe is.
	Addr uint64
	// At is where variables are resolved: the state of the machine is the same there.
	At Place
	// Body is where the body begins, for a Line.
	Body uint64
	// Inlined is set if the body is that of an inlined instance.
	Inlined bool
	// AfterPrologue is set if an Entry is after the function's prologue, Early if a spot is in it.
	AfterPrologue, Early bool
	// Again is set if a probe there also fires without a run of the body.
	Again bool
	// Behind is set if straight code leads there from a loop that is not the body's.
	Behind bool
	// Entered is what is known of At, as that of a way into the body.
	Entered Entered
	// Own is set if it is as Read has made it.
	Own bool

	PCs      dw.PCs
	Origin   dw.Value // DW_AT_abstract_origin
	CallFile uint64
	CallLine int
	// CallColumn is 0 if the debug information does not say it.
	CallColumn uint32

	// Fun is the function of the record, unless it is inlined.
	Fun Function
}

// Function is what is known of the function out of line that has a spot's code.
type Function struct {
	Start uint64   // link-time address of its first instruction
	Frame dw.Value // DW_AT_frame_base
}

// topFunction is the function of a record.
type topFunction struct {
	Function
	rec int32
}

// Read makes s the spot at which a record's body begins, after the prologue of code that was built without optimization. ok is false for
// code that is not in the image: linkers drop functions, but not their debug information.
func (u *Unit) Read(rec int32, s *Spot) (ok bool, err error) {
	r := &u.Recs[rec]
	*s = Spot{U: u, Rec: rec, Inlined: r.Flags&index.Inlined != 0}
	if s.Inlined {
		s.Kind = Inline
	}
	e, err := u.Entry(u.Off + uint64(r.Off))
	if err != nil {
		return false, err
	}
	var frame dw.Value
	b := e.Data()
	for _, at := range e.Specs() {
		v := u.ReadAttr(&b, at)
		if b.Bad {
			return false, u.DamagedAttr(e.Off, at)
		}
		switch at.Name {
		case dw.AttrCallFile:
			s.CallFile = v.U
		case dw.AttrCallLine:
			s.CallLine = int(v.U)
		case dw.AttrCallColumn:
			s.CallColumn = uint32(v.U)
		case dw.AttrFrameBase:
			frame = v
		case dw.AttrAbstractOrigin:
			s.Origin = v
		default:
			s.PCs.Take(at.Name, v)
		}
	}
	addr, ok, err := u.Start(&s.PCs)
	if err != nil || !ok || !u.Img.Executable(addr) {
		return false, err
	}
	s.Addr, s.At = addr, Place{addr, s.PCs.EntryView}
	if !s.Inlined {
		s.Fun = Function{Start: addr, Frame: frame}
		err = s.passPrologue(e)
		s.At.Addr = s.Addr
	}
	return true, err
}

// Entry returns the entry of the spot's body.
func (s *Spot) Entry() (dw.Entry, error) { return s.U.Entry(s.DIE()) }

// DIE returns the offset of the entry of the spot's body in .debug_info.
func (s *Spot) DIE() uint64 { return s.U.Off + uint64(s.U.Recs[s.Rec].Off) }

// Start returns the link-time address of the function's first instruction, for a body that is not inlined.
func (s *Spot) Start() uint64 { return s.Fun.Start }

// Function returns the function out of line that has the spot's code.
func (s *Spot) Function() (*Function, error) {
	if !s.Inlined {
		return &s.Fun, nil
	}
	u := s.U
	top := u.Body.Outermost(s.Rec)
	if last := u.function.Load(); last != nil && last.rec == top {
		return &last.Function, nil
	}
	e, err := u.Entry(u.Off + uint64(u.Recs[top].Off))
	if err != nil {
		return nil, err
	}
	fun := topFunction{rec: top}
	var pcs dw.PCs
	err = e.Attrs(func(a dw.Attr, v dw.Value) {
		if a == dw.AttrFrameBase {
			fun.Frame = v
			return
		}
		pcs.Take(a, v)
	})
	if err != nil {
		return nil, err
	}
	if fun.Start, _, err = u.Start(&pcs); err != nil {
		return nil, err
	}
	u.function.Store(&fun) // of the next spot too, mostly
	return &fun.Function, nil
}

// Abstract returns the entry that describes the function itself, without addresses:
// the origin of an inlined instance or a clone. ok is false if the spot's own entry is
// all there is.
func (s *Spot) Abstract() (e dw.Entry, ok bool, err error) {
	origin := s.Origin
	u := s.U
	for i := 0; origin.Form != 0 && i < index.MaxOrigins; i++ {
		if e, err = u.Target(origin); err != nil {
			return dw.Entry{}, false, err
		}
		u, ok, origin = s.U.Img.Of(e.Unit), true, dw.Value{}
		if err := e.Attrs(func(a dw.Attr, v dw.Value) {
			if a == dw.AttrAbstractOrigin {
				origin = v
			}
		}); err != nil {
			return dw.Entry{}, false, err
		}
	}
	return e, ok, nil
}

// Inlined reports whether a record is of an inlined body.
func Inlined(r *index.Rec) bool { return r.Flags&index.HasPC != 0 && r.Flags&index.Inlined != 0 }
