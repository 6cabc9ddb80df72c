package entries

import (
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/rule"
)

// passPrologue moves the site of a function that was built without optimization to the
// first address after its prologue, which stores the parameters in their stack slots (one
// DW_OP_fbreg expression for the whole scope).
func (s *Spot) passPrologue(e dw.Entry) error {
	u := s.U
	if u.Body.Optimized() {
		return nil
	}
	// GCC says that it did not optimize, and clang does not say whether it optimized.
	// Optimized parameters have location lists or registers; if all have slots, and there is
	// one at least, the code is not optimized; but it is where the function has no frame yet behind its prologue, and makes one later.
	slots, others, declared, err := s.slots(e)
	if err != nil || slots == 0 && others == 0 || !u.Body.Unoptimized() && (slots == 0 || others > 0) {
		return err
	}
	ranges, err := u.Extent(&s.PCs)
	if err != nil {
		return err
	}
	// With -fsanitize=address, GCC copies parameters to other slots after what is elsewhere
	// the prologue's end. That code has the position of the parameter's declaration.
	copies := func(r *dw.Row) bool {
		return r.Column != 0 && slices.Contains(declared, declPosition{r.Line, r.Column})
	}
	for _, r := range ranges {
		if s.Addr < r.Lo || s.Addr >= r.Hi {
			continue
		}
		end, ok, err := u.PrologueEnd(s.Addr, r.Hi, copies)
		if err != nil {
			return err
		}
		if ok && !u.Body.Unoptimized() {
			rules, known, err := new(dw.CFARules).Rules(u.Img.Data, s.Addr)
			if err != nil || known && end < rules.Code.Hi && rules.Unset(end) {
				return err
			}
		}
		// Where the function begins with a loop, a probe after the prologue would count its turns. At the first instruction the
		// calling convention says where the parameters are.
		if ok && u.Img.Executable(end) && !u.Img.Code.Repeats(end, r.Hi) {
			s.Addr, s.AfterPrologue = end, true
		}
	}
	return nil
}

// declPosition is where a parameter is declared, in the function's source file.
type declPosition struct{ line, column uint32 }

// slots returns how many parameters of the site's function have slots in its frame, how many
// are elsewhere, and where all are declared. A parameter that the caller passed on the stack
// does not count, nor does one whose list does not cover the function's first instruction:
// rustc describes structures so without optimization.
func (s *Spot) slots(e dw.Entry) (slots, others int, declared []declPosition, err error) {
	u := s.U
	err = e.Children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagFormalParameter {
			return true, nil
		}
		var at declPosition
		defer func() { declared = append(declared, at) }()
		return true, c.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrDeclLine:
				at.line = uint32(v.U)
			case dw.AttrDeclColumn:
				at.column = uint32(v.U)
			}
			if a != dw.AttrLocation {
				return
			}
			if !v.IsBlock() {
				c, err := u.Choose(v, dw.Value{}, Place{s.Addr, 0}, true)
				if err != nil || c.Rule != rule.None {
					others++ // damage is reported where the parameter is asked for
				}
				return
			}
			inFrame, own := u.InFrame(v, s.Fun.Frame)
			switch {
			case own:
				slots++
			case !inFrame, u.Body.Unoptimized():
				// Above the frame GCC has what the caller passed, or, with the convention of
				// another system, a place where the function stores it.
				others++
			}
		})
	})
	return slots, others, declared, err
}

// InFrame reports whether a location is at a fixed place relative to the frame, and
// whether that is, or may be, one of the function's own slots: below the canonical
// frame address, or relative to a register that the prologue sets (clang's frame base
// is the stack pointer or the frame pointer itself).
func (u *Unit) InFrame(v, frame dw.Value) (yes, own bool) {
	expr := v.Bytes()
	if !v.IsBlock() || len(expr) == 0 {
		return false, false
	}
	o, err := eval.Decode(expr, 0, u.Encoding())
	if err != nil {
		return false, false
	}
	switch op.Opcode(o.Code) {
	case op.DW_OP_fbreg:
		return true, int64(o.A) < 0 || InRegister(frame)
	case op.DW_OP_breg6:
		return true, int64(o.A) < 0
	case op.DW_OP_breg0 + op.Opcode(u.Img.Arch().SP):
		return true, true // GCC, if a function needs a frame pointer only for variable arguments
	}
	return false, false
}

// InRegister reports whether an expression is a register: DW_OP_reg7.
func InRegister(v dw.Value) bool {
	expr := v.Bytes()
	return v.IsBlock() && len(expr) == 1 && expr[0] >= uint8(op.DW_OP_reg0) && expr[0] <= uint8(op.DW_OP_reg31)
}
