package caller

import (
	"regexp"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// MaxCalls bounds how many calls of one function are looked at.
const MaxCalls = 128

// Call is a call of a function, which the debug information describes.
type Call struct {
	Return uint64 // the link-time address after it
	Caller int32  // the record of the function that calls, in Unit
	Unit   *dw.Unit
	// Entry, if it is not 0, is the link-time address of the function: the call is an indirect one, of what Target says, which may be another one.
	Entry uint64
	entry dw.Entry
	x     *Unit
}

// changed are the names of functions whose signature the compiler made for their direct callers alone (GCC's -fipa-sra, -fipa-cp and
// -fpartial-inlining).
var changed = regexp.MustCompile(`\.(isra|constprop|part)\.[0-9]+`)

// Of returns the described calls of the function that a record is. why says why none can speak. Whether what they say holds later, Again
// says.
func (x *Unit) Of(rec int32) (calls []Call, why string, err error) {
	of, err := x.callsOf(rec)
	if err != nil {
		return nil, "", err
	}
	return of.calls, of.why, nil
}

// Again reports why a function may have been entered since a call of it, with that call's return address, or "": its code is followed.
func (x *Unit) Again(rec int32) (why string, err error) {
	of, err := x.callsOf(rec)
	if err == nil {
		of.againOnce.Do(func() { of.again, of.againErr = x.enteredAgain(of.function, of.entry, of.clone) })
		why, err = of.again, of.againErr
	}
	return why, err
}

// callsOf is what is known of a function's calls.
type callsOf struct {
	calls []Call
	why   string

	function  function
	entry     uint64
	clone     bool // its symbol says that only direct calls can use its signature
	againOnce sync.Once
	again     string
	againErr  error
}

func (x *Unit) callsOf(rec int32) (*callsOf, error) {
	if k, ok := x.known.Load(rec); ok {
		return k.(*callsOf), nil
	}
	of := new(callsOf)
	var err error
	if of.calls, of.why, err = x.read(rec, of); err != nil {
		return nil, err
	}
	k, _ := x.known.LoadOrStore(rec, of)
	return k.(*callsOf), nil
}

func (x *Unit) read(rec int32, of *callsOf) (calls []Call, why string, err error) {
	var f function
	for _, g := range x.functions {
		if g.rec == rec {
			f = g
		}
	}
	entry, s := f.start, x.u.Image.SymbolAt(f.start, "")
	if s != nil && s.Addr < f.start && x.nothing(s.Addr, f.start) {
		entry = s.Addr
	}
	if second, ok := x.u.Image.LocalEntry(f.start); ok {
		entry = second // callers in the same image enter there
	}
	after := x.called(entry)
	if s != nil && s.Global {
		if all, ok := x.u.Image.CallsOf(entry); ok {
			slices.Sort(all)
			after = slices.Compact(all)
		}
	}
	of.function, of.entry = f, entry
	if f.Hi != 0 && len(after) == 0 && s != nil && s.Addr == f.start && !s.Global && !x.u.Image.Arch().LowBit {
		of.entry = f.start
		if calls, err = x.indirect(f.start); err != nil || len(calls) > 0 && len(calls) <= MaxCalls {
			return calls, "", err
		}
	}
	switch {
	case f.Hi == 0 || len(after) == 0:
		return nil, "no call of it is known", nil
	case len(after) > MaxCalls:
		return nil, "it has too many calls", nil
	}
	of.clone = s != nil && s.Addr <= f.start && changed.MatchString(s.Name)
	for _, at := range after {
		from := x
		if _, own := x.function(at - 1); !own {
			from, _ = x.others(at - 1)
		}
		if from == nil {
			continue
		}
		// Damage elsewhere is reported where that is asked for.
		if c, ok, err := from.At(at); ok && err == nil {
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		why = "the debug information describes no call"
	}
	return calls, why, nil
}

// indirect returns the unit's indirect calls of which the debug information says what they call, as calls of a function.
func (x *Unit) indirect(entry uint64) ([]Call, error) {
	x.indirectOnce.Do(func() {
		x.indirectErr = x.eachFunction(func(f *function, e dw.Entry) error {
			return x.eachCall(e, func(k dw.Entry, back uint64, target bool) {
				if target {
					x.indirectCalls = append(x.indirectCalls, Call{Return: back, Caller: f.rec, Unit: x.u.Unit.Unit, entry: k, x: x})
				}
			})
		})
		if x.indirectErr != nil {
			return
		}
		x.indirectCalls = radix.Sort(x.indirectCalls, func(c *Call) uint64 { return c.Return })
	})
	calls := slices.Clone(x.indirectCalls)
	for i := range calls {
		calls[i].Entry = entry
	}
	return calls, x.indirectErr
}

// eachFunction calls f with the first part of each of the unit's functions, and with the function's entry.
func (x *Unit) eachFunction(f func(part *function, e dw.Entry) error) error {
	seen := make(map[int32]bool)
	for i := range x.functions {
		part := &x.functions[i]
		if seen[part.rec] {
			continue
		}
		seen[part.rec] = true
		e, err := x.u.Entry(x.u.Off + uint64(x.u.Recs[part.rec].Off))
		if err == nil {
			err = f(part, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Target returns the address that an indirect call calls.
func (c *Call) Target() (v Value, ok bool, err error) {
	err = c.entry.Attrs(func(a dw.Attr, x dw.Value) {
		if (a == dw.AttrCallTarget || a == dw.AttrGNUCallTarget) && x.IsBlock() {
			v, ok = Value{x.Bytes(), c.entry.Off}, true
		}
	})
	return v, ok, err
}

// At returns the described call that returns to an address.
func (x *Unit) At(at uint64) (c Call, ok bool, err error) {
	f, ok := x.function(at - 1)
	if !ok {
		return c, false, nil
	}
	e, err := x.u.Entry(x.u.Off + uint64(x.u.Recs[f.rec].Off))
	if err != nil {
		return c, false, err
	}
	c = Call{Return: at, Caller: f.rec, Unit: x.u.Unit.Unit, x: x}
	found := 0
	err = x.eachCall(e, func(k dw.Entry, back uint64, _ bool) {
		if back == at {
			c.entry = k
			found++
		}
	})
	return c, found == 1, err // else they may say different things
}

// Passes reports whether the debug information says that the call passes something in a place.
func (c *Call) Passes(place []byte) (passes bool, err error) {
	err = c.each(func(p *parameter) error {
		passes = passes || string(p.place) == string(place)
		return nil
	})
	return passes, err
}

// Callee returns the entry of the function that is called. ok is false if the debug information names none.
func (c *Call) Callee() (e dw.Entry, ok bool, err error) {
	var origin dw.Value
	err = c.entry.Attrs(func(a dw.Attr, v dw.Value) {
		if a == dw.AttrCallOrigin || a == dw.AttrAbstractOrigin {
			origin = v
		}
	})
	if err != nil || origin.Form == 0 {
		return e, false, err
	}
	e, err = c.Unit.Target(origin)
	return e, err == nil, err
}

// nothing reports whether code does nothing: GCC's debug information leaves out what -fpatchable-function-entry puts at a function's
// beginning, where it is called (arm64).
func (x *Unit) nothing(from, to uint64) bool {
	code, err := x.u.Image.Bytes(from, to-from)
	for err == nil && len(code) > 0 {
		in, ok := x.arch.Next(code)
		if !ok || !in.Nop || in.Size > len(code) {
			return false
		}
		code = code[in.Size:]
	}
	return err == nil
}

// maxScopes bounds how deeply scopes nest.
const maxScopes = 256

// eachCall calls f with the entries of calls below a function's, which may be in that of an inlined instance; with where they return to, and
// whether they say what address is called.
func (x *Unit) eachCall(e dw.Entry, f func(k dw.Entry, back uint64, target bool)) error {
	return x.each(e, 0, func(k dw.Entry, at dw.Value, jumps, target bool) error {
		if at.Form == 0 || jumps {
			return nil
		}
		addr, err := x.u.Address(at)
		if err == nil {
			f(k, addr, target)
		}
		return err
	})
}

// each calls f with the entries of calls below a function's: with where they return to, if they say it, whether they are jumps, and whether they say what
// address is called.
func (x *Unit) each(e dw.Entry, depth int, f func(k dw.Entry, at dw.Value, jumps, target bool) error) error {
	if depth > maxScopes {
		return nil
	}
	return e.Children(func(k dw.Entry) (bool, error) {
		switch k.Tag() {
		case dw.TagLexicalBlock, dw.TagInlinedSubroutine:
			return true, x.each(k, depth+1, f)
		case dw.TagCallSite, dw.TagGNUCallSite:
		default:
			return true, nil
		}
		var at dw.Value
		jumps, target := false, false
		err := k.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrCallReturnPC, dw.AttrLowpc:
				at = v
			case dw.AttrCallTailCall, dw.AttrGNUTailCall:
				jumps = v.U != 0
			case dw.AttrCallTarget, dw.AttrGNUCallTarget:
				target = v.IsBlock()
			}
		})
		if err == nil {
			err = f(k, at, jumps, target)
		}
		return true, err
	})
}

// Value is an expression over the caller's frame.
type Value struct {
	Expr []byte
	Off  uint64 // of the entry that has it, in .debug_info
}

// parameter is the entry of what a call passes.
type parameter struct {
	off         uint64
	place       []byte // DW_AT_location
	of          dw.Value
	value, data dw.Value
}

// each calls f with what the call passes.
func (c *Call) each(f func(p *parameter) error) error {
	return c.entry.Children(func(k dw.Entry) (bool, error) {
		if t := k.Tag(); t != dw.TagCallParameter && t != dw.TagGNUCallParameter {
			return true, nil
		}
		p := parameter{off: k.Off}
		err := k.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrLocation:
				if v.IsBlock() {
					p.place = v.Bytes()
				}
			case dw.AttrCallParameter, dw.AttrAbstractOrigin:
				p.of = v
			case dw.AttrCallValue, dw.AttrGNUCallValue:
				p.value = v
			case dw.AttrCallDataValue, dw.AttrGNUDataValue:
				p.data = v
			}
		})
		if err == nil {
			err = f(&p)
		}
		return true, err
	})
}

// At returns the value of what is at a place that an expression is, a register: or with data, what memory has at the address in it. ok is
// false if the call says nothing of it, or more than one thing.
func (c *Call) At(place []byte, data bool) (v Value, ok bool, err error) {
	return c.only(func(p *parameter) (bool, dw.Value, error) {
		from := p.value
		if data {
			from = p.data
		}
		return string(p.place) == string(place), from, nil
	})
}

// Parameter returns the value of the parameter whose entry is at an offset in .debug_info.
func (c *Call) Parameter(off uint64) (v Value, ok bool, err error) {
	return c.only(func(p *parameter) (bool, dw.Value, error) {
		if p.of.Form == 0 {
			return false, dw.Value{}, nil
		}
		_, at, err := c.x.u.Ref(p.of)
		return at == off, p.value, err
	})
}

// Named calls f with the entries of the parameters that the call says the values of by these: what the function is not passed.
func (c *Call) Named(f func(u *dw.Unit, off uint64) error) error {
	return c.each(func(p *parameter) error {
		if p.of.Form == 0 {
			return nil
		}
		u, at, err := c.x.u.Ref(p.of)
		if err != nil {
			return err
		}
		return f(u, at)
	})
}

// only returns the value of the only parameter that is the one.
func (c *Call) only(is func(p *parameter) (is bool, value dw.Value, err error)) (v Value, ok bool, err error) {
	found := 0
	err = c.each(func(p *parameter) error {
		one, value, err := is(p)
		if err != nil || !one || value.Form == 0 || !value.IsBlock() {
			return err
		}
		found++
		v = Value{value.Bytes(), p.off}
		return nil
	})
	return v, found == 1, err
}
