package resolve

import (
	"bytes"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/judge"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// ChosenSince looks at the lists of the variables around the site that are what the function was called with: at where one ends to be in a register.
func (e *evidence) ChosenSince() (bool, error) {
	entry := entryValueIn(e.c.Expr)
	if e.s.Kind != entries.Inline {
		return false, nil
	}
	if entry == nil {
		if chosen, err := e.chosenCopy(); chosen || err != nil {
			return chosen, err
		}
		return e.chosenFor()
	}
	c, err := e.ev.instructionsOf(e.s)
	if err != nil {
		return false, err
	}
	return e.s.OfCallers(func(x *entries.Scoped) (bool, error) {
		if x.Location.Form == 0 || x.Location.IsBlock() {
			return false, nil
		}
		chosen := false
		var last dw.LocEntry
		l := e.s.U.Locations(x.Location, x.Views)
		for v := (dw.LocEntry{}); l.Next(&v); last = v {
			if r, in := eval.RegisterOf(last.Expr); in && v.Lo == last.Hi && v.Lo <= e.s.At.Addr && bytes.Equal(entryValueIn(v.Expr), entry) {
				chosen = chosen || c.ChoosesBefore(r, v.Lo)
			}
		}
		return chosen, nil
	})
}

// chosenCopy is ChosenSince of an argument's register that the code has left as it is: behind the probe the note is the entry value. Of "if (n == 0) n = 16" GCC has made a move to
// another register, and a conditional move there.
func (e *evidence) chosenCopy() (bool, error) {
	s, r := e.s, e.v.Loc.Expr
	if e.v.Loc.Kind != loc.KindRegister || !slices.Contains(e.ev.Arch.Args, uint16(r.K)) || e.x.Location.Form == 0 || e.x.Location.IsBlock() {
		return false, nil
	}
	entered := false
	l := s.U.Locations(e.x.Location, e.x.Views)
	for v := (dw.LocEntry{}); !entered && l.Next(&v); {
		if entry := entryValueIn(v.Expr); entry != nil && v.Lo > s.At.Addr {
			was, in := eval.RegisterOf(entry[2:])
			entered = in && was == r.K
		}
	}
	if !entered {
		return false, nil
	}
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil {
		return false, err
	}
	c, err := e.ev.instructionsOf(s)
	return err == nil && c.ChosenCopy(r.K, s.At.Addr, ranges), err
}

// entryValueIn returns the operation with which an expression begins, if that is DW_OP_entry_value, as GCC writes it of a register.
func entryValueIn(expr []byte) []byte {
	if len(expr) < 3 || expr[0] != eval.OpEntryValue && expr[0] != eval.OpGNUEntryValue || int(expr[1]) > len(expr)-2 {
		return nil
	}
	return expr[:2+int(expr[1])]
}

// chosenFor asks whether an instruction in front of the body has chosen between what the note says and another number, in a register from which the body reads what it is passed: of
// "f(c ? x : y)" GCC notes one of both. It is that of the body's only parameter too if it is of the call's statement. A variable that is noted there, a parameter that is noted nowhere, and
// a note that has a choice itself, refute it: what was chosen is that.
func (e *evidence) chosenFor() (bool, error) {
	s := e.s
	// Of a register alone nothing is asked: it is the choice, or what the caller goes on with.
	if !e.v.Located() || e.v.Loc.Kind == loc.KindRegister || e.ev.candidate.Place == judge.Fixed || e.chooses() {
		return false, nil
	}
	if !e.ev.choiceRead {
		var err error
		if e.ev.choice, err = e.choice(); err != nil {
			return false, err
		}
		e.ev.choiceRead = true
	}
	c := &e.ev.choice
	if c.Passed == 0 {
		return false, nil
	}
	if c.alone {
		return true, nil
	}
	code, err := e.ev.instructionsOf(s)
	if err != nil || code.Graph == nil {
		return false, err
	}
	state, of := code.Held().Choice(c.Register, c.Addr, s.At.Addr)
	return of != nil && e.isOneOf(state, of), nil
}

// choice is one that is not explained, before a site.
type choice struct {
	body.Choice
	alone bool // it is of the call's statement, and the body has one parameter
}

// choice looks for the last one before the site. Passed is 0 if there is none, or if it is explained.
func (e *evidence) choice() (c choice, err error) {
	s := e.s
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil {
		return choice{}, err
	}
	may, certain := s.U.Body.Image.MayChoose(s.At.Addr, ranges)
	if may == 0 {
		return choice{}, nil
	}
	entry, err := s.Entry()
	if err != nil {
		return choice{}, err
	}
	var alone, explained bool
	if certain {
		if alone, explained, err = e.explained(entry, may); explained || err != nil {
			return choice{}, err
		}
	}
	code, err := e.ev.instructionsOf(s)
	if err != nil {
		return choice{}, err
	}
	for before := s.At.Addr; ; before = c.Addr {
		if c.Choice = code.ChoiceBefore(s.At.Addr, before, ranges); c.Addr == 0 {
			return choice{}, nil
		}
		if c.Passed != 0 && !certain {
			if alone, explained, err = e.explained(entry, c.Passed); err != nil {
				return choice{}, err
			}
		}
		if c.Passed != 0 && !explained {
			break
		}
	}
	if !alone {
		return c, nil
	}
	_, call, err := callOf(s.U, s.Rec, entry)
	if err != nil {
		return choice{}, err
	}
	rows, err := s.U.Rows()
	row := dw.RowAt(rows, c.Addr)
	c.alone = row != nil && call.File == row.File && call.Line == row.Line
	return c, err
}

// chooses reports whether the note has a choice.
func (e *evidence) chooses() (chooses bool) {
	e.v.Loc.Exprs(func(x *loc.Expr) { x.Walk(func(x *loc.Expr) { chooses = chooses || x.Op == ops.Select }) })
	return chooses
}

// isOneOf reports whether the note is, or is made of, one of some numbers that are no constants.
func (e *evidence) isOneOf(s *body.State, of []body.Number) (is bool) {
	const bits = 32 // of numbers that are as large as an int, or larger
	look := func(x *loc.Expr, memory bool) {
		n, known := numberOf(s, x)
		for i := range of {
			if !known || of[i].IsConstant() {
				continue
			}
			at, loaded := s.LoadedFrom(of[i])
			is = is || memory && loaded && s.Alike(at, n) || !memory && s.Alike(s.Low(of[i], bits), s.Low(n, bits))
		}
	}
	e.v.Loc.Exprs(func(x *loc.Expr) {
		if e.v.Loc.Kind == loc.KindMemory {
			look(x, true)
		}
		x.Walk(func(x *loc.Expr) {
			look(x, false)
			if x.Op == ops.Deref {
				look(x.A, true)
			}
		})
	})
	return is
}

// explained reports whether a variable in scope, or a parameter of the body, is noted in one of some registers, or a parameter nowhere. alone is set if the body has one parameter.
func (e *evidence) explained(entry dw.Entry, of body.Registers) (alone, is bool, err error) {
	in := func(its *entries.Chosen) bool {
		var l loc.Location
		r, err := e.ev.Locate(its.Expr, its.Sec, its.Off, &l)
		eachRegister(&l, func(n uint64) { is = is || of.Has(n) })
		return err == nil && r.Code == reasons.None
	}
	count := 0
	err = e.s.U.Img.EachParam(entry, func(x *entries.Var) (bool, error) {
		var its entries.Chosen
		switch {
		case x.Location.Form == 0:
		case x.Location.IsBlock():
			its.Expr = x.Location.Bytes()
		default:
			its, _ = x.U.Choose(x.Location, x.Views, e.s.At, true) // an error is reported where that parameter is asked for
		}
		count++
		if x.Constant.Form == 0 && (len(its.Expr) == 0 || !in(&its)) {
			is = true
		}
		return !is, nil
	})
	if is || err != nil {
		return count == 1, is, err
	}
	err = e.readCallers()
	for i := 0; i < len(e.ev.callers) && err == nil && !is; i++ {
		in(&e.ev.callers[i].Chosen)
	}
	return count == 1, is, err
}
