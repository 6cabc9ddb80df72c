package answers

import (
	"fmt"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Numbered is Values of a place where arguments have numbers, and no names.
type Numbered interface {
	Values
	// Argument returns the one with a number, from 1.
	Argument(at Place, n int) (Value, error)
}

// symbolValues are the words that a function gets, by the calling convention: nobody says how many they are. A number in a vector
// register, and a structure, are not among them.
type symbolValues struct {
	t *Symbols
	s *symbolSite
}

// doubt returns why the convention may not hold for the function. One that other files can call has it. Others the compiler may
// have changed: LLVM leaves out parameters that are not used, and does not say it in the symbol's name.
func (v symbolValues) doubt() loc.ReasonCode {
	if v.s.Global && v.s.Size > 0 && !v.t.isGo(v.s.Name) {
		return reasons.None
	}
	return reasons.NotDescribed
}

// Argument returns where the calling convention has a word.
func (v symbolValues) Argument(at Place, n int) (x Value, err error) {
	if v.t.isGo(v.s.Name) {
		x, err = v.goWord(at, n)
	} else {
		x, err = Word(at, v.t.machine, n)
	}
	if err != nil {
		return x, err
	}
	if v.s.lost() {
		x.Loc, x.Reason = loc.Location{}, notDescribed("which parameters the clone "+v.s.Name+" has")
	}
	v.judge(&x)
	return x, nil
}

// goWord returns the nth word that a function of Go gets: in the registers of Go's convention for its own functions.
func (v symbolValues) goWord(at Place, n int) (x Value, err error) {
	x = Value{Name: fmt.Sprintf("arg%d", n), Entries: 1, Type: word(v.t.machine)}
	next := abi.NewGo(v.t.machine.Arch, !strings.HasSuffix(v.s.Name, ".abi0"))
	if !at.Entry {
		x.Reason = atEntryOnly
		return x, nil
	}
	for range n {
		if x.Loc, x.Reason, err = next.Place(x.Type); err != nil {
			return x, err
		}
	}
	if x.Loc.Kind != loc.KindRegister || !v.t.goKnown {
		x.Loc, x.Reason = loc.Location{}, loc.Reason{Code: reasons.Unsupported, Detail: "where words of this function of Go are on the stack is not known"}
	}
	return x, nil
}

// atEntryOnly is the reason for arguments elsewhere.
var atEntryOnly = loc.Reason{Code: reasons.NotAtSite, Detail: "the calling convention says where arguments are only where a function begins"}

// Word returns the nth word, from 1, that a function gets by the calling convention.
func Word(at Place, m abi.Machine, n int) (x Value, err error) {
	x = Value{Name: fmt.Sprintf("arg%d", n), Entries: 1, Type: word(m)}
	if !at.Entry {
		x.Reason = atEntryOnly
		return x, nil
	}
	pass, known, err := abi.PassingOf(x.Type, dw.LangC, m)
	if err != nil {
		return x, err
	}
	if !known || len(m.Args) == 0 {
		x.Reason = loc.Reason{Code: reasons.Unsupported, Detail: "how arguments are passed is not known"}
		return x, nil
	}
	next := abi.NewAssigner(m)
	for range n {
		x.Loc, x.Reason = next.Next(&pass)
	}
	x.Loc = loaded(x.Loc, m.WordSize)
	x.Loc.Rule = rule.ABISymbol
	return x, nil
}

// loaded returns the location of a word that may be an address: one in memory is loaded, since what is at a place in memory that a definition
// names is a text, if that is asked for, and no pointer to one.
func loaded(l loc.Location, word int) loc.Location {
	if l.Kind != loc.KindMemory {
		return l
	}
	return loc.Location{Kind: loc.KindValue, Expr: &loc.Expr{Op: ops.Deref, Size: uint8(word), A: l.Expr}}
}

// word is the type of what is passed.
func word(m abi.Machine) *types.Type {
	return &types.Type{Kind: types.Int, Name: "unsigned long", Size: int64(m.WordSize)}
}

// judge says where a location comes from, and whether it is sure.
func (v symbolValues) judge(x *Value) {
	if x.Reason.Code == reasons.None {
		x.Loc.Rule, x.Loc.Doubt = rule.ABISymbol, v.doubt()
	}
}

// Params returns nothing.
func (symbolValues) Params(Place) ([]Value, error) { return nil, nil }

// Result returns $retval as a word.
func (v symbolValues) Result(Place) (x Value, err error) {
	x.Type = word(v.t.machine)
	if v.s.lost() {
		x.Reason = notDescribed("whether the clone " + v.s.Name + " has a result")
		return x, nil
	}
	if v.t.isGo(v.s.Name) {
		x, err = v.goWord(Place{Entry: true}, 1) // the first result is where the first argument was
		v.judge(&x)
		return x, err
	}
	x.Loc, x.Reason, err = abi.Returned(x.Type, dw.LangC, v.t.machine)
	v.judge(&x)
	return x, err
}

// Frame returns $frame.
func (v symbolValues) Frame(at Place) (Value, error) {
	if !at.Entry && !at.Return {
		return Value{Reason: notDescribed("where the frame is inside of a function")}, nil
	}
	return entryFrame(v.t.machine.Arch), nil
}

// Pointee returns an error: a symbol has no implicit pointers.
func (v symbolValues) Pointee(Place, uint64) (Value, error) {
	return Value{}, fmt.Errorf("%s: a symbol has no implicit pointers", v.s.Name)
}

// Symbol returns the entry's own.
func (v symbolValues) Symbol(addr uint64) (string, uint64) { return v.s.Name, addr - v.s.Addr }

// Code returns the bytes of the instruction at an address, and some after it.
func (v symbolValues) Code(addr uint64) []byte { return codeAt(v.t.file, addr) }
