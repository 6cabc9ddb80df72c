package convention

import (
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
)

// Exchanged reports whether notes at a function's first instruction have a part of a parameter in an argument register that comes before or after that of another part
// or parameter, where they are declared the other way round, or two of its own parts in one. Compilers that leave parameters of a local function out, or make several of
// one, keep their order: clang 14 to 22 note so what "t = a; a = b; b = t" makes of two parameters, in functions whose convention is not known to be the platform's.
func Exchanged(s *entries.Spot, x *entries.Var) (found bool, err error) {
	if !platforms(s.U.Lang) {
		return false, nil
	}
	e, err := s.Entry()
	if err != nil {
		return false, err
	}
	root, err := x.Ultimate(nil)
	if err != nil {
		return false, err
	}
	var before []int // numbers of the argument registers of the parameters before it
	var own []int
	met := false
	err = s.U.Img.EachParam(e, func(other *entries.Var) (bool, error) {
		r, err := other.Ultimate(nil)
		if err != nil {
			return false, err
		}
		expr, noted := note(s, other)
		if !noted {
			return true, nil
		}
		numbers := arguments(s, expr)
		switch {
		case r == root:
			met, own = true, numbers
			for i := range own {
				found = found || i > 0 && own[i] <= own[i-1] || slices.ContainsFunc(before, func(n int) bool { return n > own[i] })
			}
		case !met:
			before = append(before, numbers...)
		default:
			found = found || len(own) > 0 && slices.ContainsFunc(numbers, func(n int) bool { return n < slices.Max(own) })
		}
		return !found, nil
	})
	return found, err
}

// arguments returns the numbers of the argument registers that a note has for parts, in order.
func arguments(s *entries.Spot, expr []byte) (out []int) {
	for at := 0; at < len(expr); {
		o, err := eval.Decode(expr, at, s.U.Encoding())
		if err != nil {
			return nil
		}
		if c := op.Opcode(o.Code); c >= op.DW_OP_reg0 && c <= op.DW_OP_reg31 {
			if n := slices.Index(s.U.Img.Arch().Args, uint16(c-op.DW_OP_reg0)); n >= 0 {
				out = append(out, n)
			}
		}
		at = o.Next
	}
	return out
}
