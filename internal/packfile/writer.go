package packfile

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Writer makes a pack.
type Writer struct {
	mu    sync.Mutex
	facts Facts
	sites []written

	strings interned[string] // all texts
	recent  [1 << 10]int32   // see text
	funs    interned[*Function]
	lately  [1 << 12]int32 // see function
	values  interned[*Value]
	tuples  interned[[]int32] // values of parameters
	chains  interned[chain]
	key     []byte
	list    []int32  // memory of valuesOf
	ways    [][]byte // see hold

	wayValues [][]*wrote // of sites that have some: by way in; nil where they are the site's
}

// interned numbers equal things.
type interned[T any] struct {
	ids map[string]int32
	all []T
}

// add returns the number of what has a key; fresh is called if it is new.
func (x *interned[T]) add(key []byte, fresh func() T) int32 {
	if id, known := x.ids[string(key)]; known {
		return id
	}
	if x.ids == nil {
		x.ids = map[string]int32{}
	}
	id := int32(len(x.all))
	x.ids[string(key)] = id
	x.all = append(x.all, fresh())
	return id
}

// chain is a caller, and those around it.
type chain struct {
	function, qualified, file, line int32
	next                            int32 // -1 for the outermost
}

// written is a site while a pack is made, with numbers in place of what it shares with others.
type written struct {
	at, in, of, addr, view, offset uint64
	fun, tuple, frame, result      int32
	symbol                         int32
	refused, bad                   int32
	callFile, callLine, chain      int32
	depth                          int32
	inline, afterPrologue, local   bool
	selfOnly                       bool // see Site.selfOnly
	prologue                       uint64
	held                           held  // see Writer.hold
	wayValues                      int32 // where they are among the writer's, from 1; 0: the values at all ways in are the site's
	released                       int32 // while its block is written, where its ways are among the encoder's, from 1; 0: it has none
}

// wrote is Values with numbers.
type wrote struct{ tuple, frame, result int32 }

// NewWriter returns a writer of a pack without sites, of which so many will be added.
func NewWriter(facts Facts, sites int) *Writer {
	return &Writer{facts: facts, sites: make([]written, 0, sites)}
}

// Add adds a site. at orders sites as their entries in the debug information are. Several goroutines may call it. s.In
// is such a number too, of the function that contains the code; s.Of can be any that tells functions apart. Nothing of s is kept
// but its texts.
func (w *Writer) Add(at uint64, s *Site) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text("")
	x := written{
		at: at, in: s.In, of: s.Of, addr: s.Addr, view: s.View, offset: s.Offset, inline: s.Inline, afterPrologue: s.AfterPrologue, prologue: s.Prologue, local: s.LocalEntry,
		symbol: w.text(s.Symbol), refused: w.text(s.Refused), bad: w.text(s.BadInstruction), callFile: w.text(s.CallFile), callLine: int32(s.CallLine),
		depth: int32(s.Depth), chain: -1,
	}
	for i := len(s.Callers) - 1; i >= 0; i-- {
		c := &s.Callers[i]
		n := chain{w.text(c.Function), w.text(c.Qualified), w.text(c.CallFile), int32(c.CallLine), x.chain}
		w.key = w.key[:0]
		for _, v := range []int32{n.function, n.qualified, n.file, n.line, n.next} {
			w.key = binary.AppendVarint(w.key, int64(v))
		}
		x.chain = w.chains.add(w.key, func() chain { return n })
	}
	x.fun = w.function(s.Of, s.Function)
	v, err := w.valuesOf(&s.Values)
	if err != nil {
		return err
	}
	x.tuple, x.frame, x.result = v.tuple, v.frame, v.result
	if s.Inline || s.Ways.Known {
		ways := s.Ways
		if x.selfOnly = s.selfOnly(); x.selfOnly {
			ways.In = nil
		}
		x.held = w.hold(&ways)
		for i := range ways.In {
			if y := ways.In[i].Values; y != nil {
				v, err := w.valuesOf(y)
				if err != nil {
					return err
				}
				if x.wayValues == 0 {
					w.wayValues = append(w.wayValues, make([]*wrote, len(ways.In)))
					x.wayValues = int32(len(w.wayValues))
				}
				w.wayValues[x.wayValues-1][i] = &v
			}
		}
	}
	w.sites = append(w.sites, x)
	return nil
}

// valuesAt returns the values at a site's ways in, or nil if all are the site's.
func (w *Writer) valuesAt(s *written) []*wrote {
	if s.wayValues == 0 {
		return nil
	}
	return w.wayValues[s.wayValues-1]
}

// selfOnly reports whether a body is entered at the site alone. Most are, and nothing is kept of that way.
func (s *Site) selfOnly() bool {
	if len(s.Ways.In) != 1 || s.Ways.In[0].Values != nil {
		return false
	}
	y := &s.Ways.In[0]
	return y.Addr == s.Addr && y.View == s.View && y.Probe == s.Addr && !y.Again && len(y.Before) == 0 && y.Symbol == s.Symbol && y.Offset == s.Offset
}

// text returns the number of a text. A site asks for some ten, most of which the sites before it have: recent has their numbers, from 1, and
// a look there takes less than one into a map of all.
func (w *Writer) text(s string) int32 {
	x := &w.strings
	n := len(s)
	if n > 0 {
		n = 31*n + int(s[0]) + int(s[n/2])<<2 + int(s[n-1])<<5
	}
	last := &w.recent[n%len(w.recent)]
	if *last > 0 && x.all[*last-1] == s {
		return *last - 1
	}
	id, known := x.ids[s]
	if !known {
		if x.ids == nil {
			x.ids = map[string]int32{}
		}
		id = int32(len(x.all))
		x.ids[s], x.all = id, append(x.all, s) // one string for both
	}
	*last = id + 1
	return id
}

// own returns the writer's own string with a text.
func (w *Writer) own(s string) string { return w.strings.all[w.text(s)] }

// function returns the number of a site's function, which of tells apart: lately has those of sites before it, from 1.
func (w *Writer) function(of uint64, f *Function) int32 {
	last := &w.lately[of%uint64(len(w.lately))]
	if *last == 0 || !same(w.funs.all[*last-1], f) {
		*last = w.newFunction(f) + 1
	}
	return *last - 1
}

func same(a, b *Function) bool {
	return a.DeclLine == b.DeclLine && a.Name == b.Name && a.DeclFile == b.DeclFile && a.Qualified == b.Qualified && slices.Equal(a.Params, b.Params)
}

func (w *Writer) newFunction(f *Function) int32 {
	k := w.key[:0]
	for _, s := range []string{f.Name, f.Qualified, f.DeclFile} {
		k = binary.AppendVarint(k, int64(w.text(s)))
	}
	k = binary.AppendVarint(k, int64(f.DeclLine))
	for i := range f.Params {
		k = binary.AppendVarint(k, int64(w.text(f.Params[i].Name)))
		k = binary.AppendUvarint(k, uint64(f.Params[i].Type))
	}
	w.key = k
	return w.funs.add(k, func() *Function {
		c := Function{Name: w.own(f.Name), Qualified: w.own(f.Qualified), DeclFile: w.own(f.DeclFile), DeclLine: f.DeclLine, Params: slices.Clone(f.Params)}
		for i := range c.Params {
			c.Params[i].Name = w.own(c.Params[i].Name)
		}
		return &c
	})
}

func (w *Writer) valuesOf(v *Values) (out wrote, err error) {
	w.list = w.list[:0]
	for i := range v.Params {
		n, err := w.value(&v.Params[i])
		if err != nil {
			return out, err
		}
		w.list = append(w.list, n)
	}
	if out.frame, err = w.value(v.Frame); err != nil {
		return out, err
	}
	if out.result, err = w.value(v.Result); err != nil {
		return out, err
	}
	w.key = w.key[:0]
	for _, n := range w.list {
		w.key = binary.AppendUvarint(w.key, uint64(n))
	}
	out.tuple = w.tuples.add(w.key, func() []int32 { return slices.Clone(w.list) })
	return out, nil
}

func (w *Writer) value(v *Value) (int32, error) {
	var err error
	// Types have temporary numbers yet, but equal ones mean the same.
	w.key, err = appendValue(w.key[:0], v, func(s string) uint64 { return uint64(w.text(s)) }, func(t TypeID) uint64 { return uint64(t) })
	if err != nil {
		return 0, err
	}
	return w.values.add(w.key, func() *Value {
		c := *v
		c.Loc = cloneLoc(&v.Loc)
		for p := &c.Pointee; *p != nil; p = &(*p).Pointee {
			to := **p
			to.Loc = cloneLoc(&to.Loc)
			*p = &to
		}
		return &c
	}), nil
}

func cloneLoc(l *loc.Location) loc.Location {
	c := *l
	c.Expr, c.Bytes = CloneExpr(l.Expr), slices.Clone(l.Bytes)
	c.Pieces = slices.Clone(l.Pieces)
	for i := range c.Pieces {
		c.Pieces[i].Loc = cloneLoc(&c.Pieces[i].Loc)
	}
	return c
}

// CloneExpr returns a copy of an expression that shares nothing with it.
func CloneExpr(e *loc.Expr) *loc.Expr {
	if e == nil {
		return nil
	}
	c := *e
	c.A, c.B, c.C = CloneExpr(e.A), CloneExpr(e.B), CloneExpr(e.C)
	return &c
}

// Finish returns the section. final, if it is not nil, returns the number that a type has in the pack; it is called in an
// order that depends on the sites alone. types returns the contents of .BTF, after all types have their numbers.
func (w *Writer) Finish(final func(TypeID) TypeID, types func() []byte) ([]byte, error) {
	if final == nil {
		final = func(t TypeID) TypeID { return t }
	}
	w.sort()
	for i := 1; i < len(w.sites); i++ {
		if a, b := &w.sites[i-1], &w.sites[i]; a.in == b.in && a.at == b.at {
			return nil, fmt.Errorf("two sites have the entry %#x", a.at)
		}
	}
	w.funs.ids, w.values.ids, w.tuples.ids, w.chains.ids = nil, nil, nil, nil // all are known
	e := newEncoder(w, final)
	e.types()
	if err := e.blocks(); err != nil {
		return nil, err
	}
	return e.finish(types())
}

// sort puts the sites in the order of the blocks, and in these in that of their entries. They are large, so each is moved once.
func (w *Writer) sort() {
	order := make([]int32, len(w.sites))
	for i := range order {
		order[i] = int32(i)
	}
	order = radix.Sort(order, func(i *int32) uint64 { return w.sites[*i].at })
	order = radix.Sort(order, func(i *int32) uint64 { return w.sites[*i].in })
	for first := range order {
		if order[first] < 0 {
			continue // it is where it belongs
		}
		x := w.sites[first]
		at := first
		for {
			from := int(order[at])
			order[at] = -1
			if from == first {
				break
			}
			w.sites[at] = w.sites[from]
			at = from
		}
		w.sites[at] = x
	}
}

// appendExpr appends an expression, an operation before its operands.
func appendExpr(b []byte, x *loc.Expr) ([]byte, error) {
	if !inLocation(x.Op) {
		return nil, fmt.Errorf("a location has an operation that no debug information has")
	}
	b = append(b, byte(x.Op))
	switch x.Op {
	case ops.Const:
		return binary.AppendVarint(b, int64(x.K)), nil
	case ops.Reg, ops.Addr:
		return binary.AppendUvarint(b, x.K), nil
	case ops.Deref, ops.ZExt, ops.SExt:
		b = append(b, x.Size)
	case ops.Caller:
		return appendCaller(b, x)
	}
	for _, y := range []*loc.Expr{x.A, x.B, x.C}[:operands(x.Op)] {
		var err error
		if b, err = appendExpr(b, y); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// inLocation reports whether locations have an operation. Those between ops.Caller and ops.Clz are of definitions; an ops.Arm is a part of its ops.Caller.
func inLocation(op loc.Op) bool { return op <= ops.Caller || op == ops.Clz }

// appendCaller appends what follows the operation: how many arms there are, for each its number, less that of the one before, and its value,
// and the return address.
func appendCaller(b []byte, x *loc.Expr) (_ []byte, err error) {
	arms := uint64(0)
	for arm := x.B; arm != nil; arm = arm.B {
		arms++
	}
	b = binary.AppendUvarint(b, arms)
	before := uint64(0)
	for arm := x.B; arm != nil; arm = arm.B {
		b = binary.AppendUvarint(b, arm.K-before)
		before = arm.K
		if b, err = appendExpr(b, arm.A); err != nil {
			return nil, err
		}
	}
	return appendExpr(b, x.A)
}

// operands is how many operands an operation has.
func operands(op loc.Op) int {
	switch op {
	case ops.Const, ops.Reg, ops.Addr:
		return 0
	case ops.Deref, ops.ZExt, ops.SExt, ops.Neg, ops.Not, ops.Clz:
		return 1
	case ops.Select:
		return 3
	}
	return 2
}

// Flags of a value.
const (
	valueAbsent = 1 << iota
	valueLowBit
	valueOwn
	valueEntries // they are not 1
	valueReason
	valuePointee
)

// appendValue appends a value. A location is its kind and its rule in one byte, its doubt if it has one, and
// what its kind has.
func appendValue(b []byte, v *Value, text func(string) uint64, typ func(TypeID) uint64) (_ []byte, err error) {
	flags := byte(0)
	for _, f := range []struct {
		set bool
		bit byte
	}{{v.Absent, valueAbsent}, {v.LowBit, valueLowBit}, {v.Own, valueOwn}, {v.Entries != 1, valueEntries}, {v.Reason != loc.Reason{}, valueReason}, {v.Pointee != nil, valuePointee}} {
		if f.set {
			flags |= f.bit
		}
	}
	b = append(b, flags)
	if v.Own {
		b = binary.AppendUvarint(b, typ(v.Type))
	}
	if v.Entries != 1 {
		b = binary.AppendUvarint(b, uint64(v.Entries))
	}
	if v.Reason != (loc.Reason{}) {
		b = appendReason(b, v.Reason, text)
	}
	if b, err = appendLoc(b, &v.Loc, text); err != nil {
		return nil, err
	}
	for p := v.Pointee; p != nil; p = p.Pointee {
		b = binary.AppendUvarint(b, text(p.Name))
		b = binary.AppendUvarint(b, typ(p.Type))
		b = appendReason(b, p.Reason, text)
		if b, err = appendLoc(b, &p.Loc, text); err != nil {
			return nil, err
		}
		more := byte(0)
		if p.Pointee != nil {
			more = 1
		}
		b = append(b, more)
	}
	return b, nil
}

func appendReason(b []byte, r loc.Reason, text func(string) uint64) []byte {
	return binary.AppendUvarint(append(b, byte(r.Code)), text(r.Detail))
}

// A location's first byte has its kind, locDoubt if its doubt follows, or with ofPointee that of what it points to, and in the upper half its rule, or furtherRule if
// that follows then.
const (
	locDoubt    = 8
	ofPointee   = 128
	furtherRule = 15
)

func appendLoc(b []byte, l *loc.Location, text func(string) uint64) (_ []byte, err error) {
	b = append(b, byte(l.Kind)|byte(min(l.Rule, furtherRule))<<4)
	switch {
	case l.Doubt != reasons.None: // what is read through it is doubtful with it
		b[len(b)-1] |= locDoubt
		b = append(b, byte(l.Doubt))
	case l.Pointee != reasons.None:
		b[len(b)-1] |= locDoubt
		b = append(b, byte(l.Pointee)|ofPointee)
	}
	if l.Rule >= furtherRule {
		b = append(b, byte(l.Rule))
	}
	switch l.Kind {
	case loc.KindRegister, loc.KindMemory, loc.KindConstant:
		return appendExpr(b, l.Expr)
	case loc.KindValue:
		return appendExpr(append(b, l.Size), l.Expr)
	case loc.KindBytes:
		b = binary.AppendUvarint(b, uint64(len(l.Bytes)))
		return append(b, l.Bytes...), nil
	case loc.KindImplicitPointer:
		return binary.AppendVarint(binary.AppendUvarint(b, l.Target), l.TargetOffset), nil
	case loc.KindPieces:
		b = binary.AppendUvarint(b, uint64(len(l.Pieces)))
		for i := range l.Pieces {
			p := &l.Pieces[i]
			b = binary.AppendUvarint(b, p.BitSize)
			b = binary.AppendUvarint(b, p.BitOffset)
			b = appendReason(b, p.Reason, text)
			if b, err = appendLoc(b, &p.Loc, text); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}
