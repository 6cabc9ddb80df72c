package insn

import (
	"math"
	bits64 "math/bits"
)

// A value is what a register holds on one path through the code: a constant plus multiples of
// symbols, modulo 2^64.
type value struct {
	c     uint64
	terms [2]term // in order of their symbols; unused ones are zero
}

type term struct {
	sym   int32 // index of a symbol; 0 is none
	scale uint64
}

// A symbol is a number that is not a constant. Equal ones have the same index, so that what a
// comparison says about one copy of a number holds for all copies.
type symbol struct {
	kind symbolKind
	of   value // what is cut or extended, or the address that is loaded from
	bits uint8 // width before the extension, or of what is loaded
	// which tells registers, loads before and after a store, and unknown numbers apart.
	which int32
}

type symbolKind uint8

const (
	unknownNumber  symbolKind = iota
	returnedNumber            // unknown: a register that a call leaves without a meaning
	calledNumber              // unknown: a register with a call's result
	inputRegister             // what a register held where the path begins
	zeroExtended
	signExtended
	loaded // from memory, and zero-extended
	partly // in its lower bits what it is of; the others are not known
)

// limits are the least and the greatest number that a symbol can be. implied means that only
// an operation such as AND, or the width of a load, says so, and not a comparison.
type limits struct {
	lo, hi  uint64
	implied bool
}

func (l limits) count() uint64 { return l.hi - l.lo + 1 } // 0 for all 2^64

// trace is the state of a processor on one path through the code.
type trace struct {
	symbols []symbol // the first is none
	index   map[symbol]int32
	known   map[int32]limits // from comparisons and masks
	regs    [32]value        // by DWARF number
	memory  map[place]value  // what is known to be there
	stores  int32
	flags   comparison
	frame   Registers          // that point into the frame
	spills  map[value]value    // what 64 bits of the frame were set to, by their addresses
	decided map[int32]decision // symbols that are 1 if a condition holds, and otherwise 0
	branch  comparison         // what the last branch depends on
	fields  [8]comparison      // as flags, of processors that have several
	far     value              // what a register holds that is none of the general ones
	astray  bool               // nothing was known of an instruction
}

// comparison is what the flags are from.
type comparison struct {
	a, b  value // that were compared
	bits  uint8
	valid bool
	// unsigned is set if the comparison was one of unsigned numbers, on processors where it says so.
	unsigned bool
}

type decision struct {
	comparison
	holds condition
}

// place is memory: an address, and a number of bits.
type place struct {
	addr value
	bits uint8
}

func newTrace(frame Registers, width uint8) *trace {
	t := &trace{frame: frame, spills: make(map[value]value), symbols: make([]symbol, 1), index: make(map[symbol]int32), known: make(map[int32]limits), memory: make(map[place]value), decided: make(map[int32]decision)}
	for i := range t.regs {
		t.regs[i] = t.symbol(symbol{kind: inputRegister, which: int32(i)})
		if width == 32 {
			t.known[t.regs[i].single()] = limits{0, mask(32), true}
		}
	}
	t.far = t.unknown()
	return t
}

func constant(c uint64) value { return value{c: c} }

func (v value) isConstant() bool { return v.terms[0].sym == 0 }

// single returns the symbol that a value is, or 0.
func (v value) single() int32 {
	if v.c == 0 && v.terms[0].scale == 1 && v.terms[1].sym == 0 {
		return v.terms[0].sym
	}
	return 0
}

func (t *trace) symbol(s symbol) value {
	id, ok := t.index[s]
	if !ok {
		id = int32(len(t.symbols))
		t.symbols = append(t.symbols, s)
		t.index[s] = id
	}
	return value{terms: [2]term{{id, 1}}}
}

func (t *trace) unknown() value {
	return t.symbol(symbol{kind: unknownNumber, which: int32(len(t.symbols))})
}

// upTo returns an unknown number that some operation limits.
func (t *trace) upTo(hi uint64) value {
	v := t.unknown()
	t.known[v.single()] = limits{0, hi, true}
	return v
}

// plus returns a + b*scale, or an unknown number if that has more than two terms.
func (t *trace) plus(a, b value, scale uint64) value {
	out, ok := sum(a, b, scale)
	if !ok {
		return t.unknown()
	}
	return out
}

func sum(a, b value, scale uint64) (value, bool) {
	out := value{c: a.c + b.c*scale}
	var terms [4]term
	n := 0
	add := func(x term) {
		for i := range terms[:n] {
			if terms[i].sym == x.sym {
				terms[i].scale += x.scale
				return
			}
		}
		terms[n] = x
		n++
	}
	for _, x := range a.terms {
		add(x)
	}
	for _, x := range b.terms {
		add(term{x.sym, x.scale * scale})
	}
	k := 0
	for _, x := range terms[:n] {
		if x.sym == 0 || x.scale == 0 {
			continue
		}
		if k == len(out.terms) {
			return value{}, false
		}
		out.terms[k] = x
		k++
	}
	if k == 2 && out.terms[0].sym > out.terms[1].sym {
		out.terms[0], out.terms[1] = out.terms[1], out.terms[0]
	}
	return out, true
}

func mask(bits uint8) uint64 {
	if bits >= 64 {
		return math.MaxUint64
	}
	return 1<<bits - 1
}

func signed(v uint64, bits uint8) uint64 {
	return uint64(int64(v<<(64-bits)) >> (64 - bits))
}

// modulo drops extensions that do not matter to the lower bits of a value.
func (t *trace) modulo(v value, bits uint8) value {
	for range 4 { // more are not nested
		again := false
		for _, x := range v.terms {
			s := t.symbols[x.sym]
			if s.kind != zeroExtended && s.kind != signExtended && s.kind != partly || s.bits < bits {
				continue
			}
			rest, _ := sum(v, value{terms: [2]term{x}}, math.MaxUint64)
			if inner, ok := sum(rest, s.of, x.scale); ok {
				v, again = inner, true
				break
			}
		}
		if !again {
			break
		}
	}
	v.c = signed(v.c, bits)
	return v
}

// low returns the lower bits of a value, zero-extended.
func (t *trace) low(v value, bits uint8) value {
	if bits >= 64 {
		return v
	}
	if v.isConstant() {
		return constant(v.c & mask(bits))
	}
	if l := t.limits(v); l.hi <= mask(bits) {
		return v
	}
	return t.symbol(symbol{kind: zeroExtended, of: t.modulo(v, bits), bits: bits})
}

// lowSigned returns the lower bits of a value, sign-extended.
func (t *trace) lowSigned(v value, bits uint8) value {
	if bits >= 64 {
		return v
	}
	if v.isConstant() {
		return constant(signed(v.c, bits))
	}
	if l := t.limits(v); l.hi <= mask(bits-1) {
		return v
	}
	return t.symbol(symbol{kind: signExtended, of: t.modulo(v, bits), bits: bits})
}

// partly returns a number of which only the lower bits are known to be those of v.
func (t *trace) partly(v value, bits uint8) value {
	if bits >= 64 {
		return v
	}
	return t.symbol(symbol{kind: partly, of: t.modulo(v, bits), bits: bits, which: int32(len(t.symbols))})
}

// shiftRight returns the lower bits of v, shifted.
func (t *trace) shiftRight(v value, by, bits uint8) value {
	v = t.low(v, bits)
	if v.isConstant() {
		return constant(v.c >> by)
	}
	// What was shifted to the left before loses its upper bits: so compilers extend an index.
	if x := v.terms[0]; bits == 64 && v.c == 0 && v.terms[1].sym == 0 && x.scale != 0 && x.scale&(x.scale-1) == 0 {
		if left := uint8(bits64.TrailingZeros64(x.scale)); left >= by && left > 0 {
			inner := t.low(value{terms: [2]term{{x.sym, 1}}}, 64-left)
			return t.plus(constant(0), inner, 1<<(left-by))
		}
	}
	return t.upTo(mask(bits - by))
}

// limits returns what is known about a value.
func (t *trace) limits(v value) limits {
	x := v.terms[0]
	switch {
	case x.sym == 0:
		return limits{lo: v.c, hi: v.c}
	case v.terms[1].sym != 0:
		return limits{hi: math.MaxUint64}
	}
	l := t.symbolLimits(x.sym)
	if x.scale == 1 && v.c == 0 {
		return l
	}
	if x.scale == 0 || x.scale > 1<<32 || l.hi >= 1<<31 {
		return limits{hi: math.MaxUint64}
	}
	lo, hi := l.lo*x.scale+v.c, l.hi*x.scale+v.c
	if lo > hi {
		return limits{hi: math.MaxUint64} // it is less than 0 for some
	}
	return limits{lo, hi, l.implied}
}

func (t *trace) symbolLimits(id int32) limits {
	s := &t.symbols[id]
	l := limits{hi: math.MaxUint64, implied: true}
	switch s.kind {
	case loaded:
		l = t.asSigned(value{terms: [2]term{{id, 1}}}, s.bits)
	case zeroExtended:
		l = t.asSigned(s.of, s.bits)
		if of := t.limits(s.of); of.hi <= l.hi {
			l = of
		}
	case signExtended:
		// If the sign bit is clear, both extensions are the same.
		zero, ok := t.index[symbol{kind: zeroExtended, of: s.of, bits: s.bits}]
		if of := t.limits(s.of); of.hi <= mask(s.bits-1) {
			l = of
		} else if ok {
			if z := t.symbolLimits(zero); z.hi <= mask(s.bits-1) {
				l = z
			}
		}
	}
	if l.implied && s.bits != 8 && (s.kind == zeroExtended || s.kind == inputRegister) {
		l = t.narrow(id, l)
	}
	if k, ok := t.known[id]; ok {
		if k.hi < l.hi || k.hi == l.hi && !k.implied {
			l.hi, l.implied = k.hi, k.implied
		}
		l.lo = max(l.lo, k.lo)
	}
	return l
}

// asSigned returns the limits that the lower bits of a value have by comparisons of their sign-extension: GCC compares an
// unsigned number of 32 bits in that form on machines that keep such numbers in it, and loads it again, zero-extended, as an
// index (loong64).
func (t *trace) asSigned(of value, bits uint8) limits {
	if id, ok := t.index[symbol{kind: signExtended, of: of, bits: bits}]; ok && bits > 1 {
		if k, ok := t.known[id]; ok && k.hi <= mask(bits-1) {
			return k
		}
	}
	return limits{hi: mask(bits), implied: true}
}

// narrow returns the limits of a number whose lower bits were compared. Compilers then know that
// the rest is zero: clang 14 compares %dil of an unsigned char that is passed, and uses %rdi.
func (t *trace) narrow(id int32, l limits) limits {
	s := t.symbols[id]
	of := s.of
	if s.kind == inputRegister {
		of = value{terms: [2]term{{id, 1}}}
	}
	for _, bits := range [...]uint8{8, 16, 32} {
		part, ok := t.index[symbol{kind: zeroExtended, of: of, bits: bits}]
		if ok && (s.kind == inputRegister || bits < s.bits) {
			if k, ok := t.known[part]; ok && !k.implied && k.hi < l.hi {
				return k
			}
		}
	}
	return l
}

// load returns what is in memory.
func (t *trace) load(addr value, bits uint8) value {
	at := place{addr, bits}
	v, ok := t.memory[at]
	if !ok {
		v = t.symbol(symbol{kind: loaded, of: addr, bits: bits, which: t.stores})
		t.memory[at] = v
	}
	return v
}

// mostMemory is how many places are kept in mind.
const mostMemory = 256

// store writes to memory. What is known about memory stays only if it has the same address but
// for a constant and does not overlap.
func (t *trace) store(addr value, bits uint8, v value) {
	t.stores++
	if len(t.memory) > mostMemory {
		clear(t.memory)
	}
	for p := range t.memory {
		d := int64(p.addr.c - addr.c)
		if p.addr.terms != addr.terms || d < int64(bits/8) && -d < int64(p.bits/8) {
			delete(t.memory, p)
		}
	}
	t.memory[place{addr, bits}] = t.low(v, bits)
	if !t.inFrame(addr) {
		return
	}
	for a := range t.spills {
		d := int64(a.c - addr.c)
		if a.terms == addr.terms && d < int64(bits/8) && -d < 8 {
			delete(t.spills, a)
		}
	}
	if bits == 64 {
		t.spills[addr] = v
	}
}

// inFrame reports whether an address is a constant from what a register of the frame held where
// the path begins.
func (t *trace) inFrame(addr value) bool {
	s := t.symbols[addr.terms[0].sym]
	return s.kind == inputRegister && addr.terms[0].scale == 1 && addr.terms[1].sym == 0 && t.frame.Has(uint64(s.which))
}

// slot returns the address that a symbol was loaded from, if it is 64 bits of the frame. What
// compilers spill there is changed by nothing else.
func (t *trace) slot(id int32) (addr value, ok bool) {
	s := t.symbols[id]
	return s.of, s.kind == loaded && s.bits == 64 && t.inFrame(s.of)
}

// forget is a write to memory that may be anywhere.
func (t *trace) forget() {
	t.stores++
	clear(t.memory)
}

// lose makes the registers of a set unknown.
func (t *trace) lose(set Registers) {
	for i := range t.regs {
		if set.Has(uint64(i)) {
			t.regs[i] = t.unknown()
		}
	}
}

// loseAll follows an instruction of which nothing is known.
func (t *trace) loseAll() {
	t.lose(^Registers(0))
	t.forget()
	t.flags.valid, t.astray = false, true
}

// call follows a call that does not preserve some registers. A few of them have its results.
func (t *trace) call(lost, results Registers) {
	for i := range t.regs {
		if lost.Has(uint64(i)) {
			t.regs[i] = t.symbol(symbol{kind: returnedNumber, which: int32(len(t.symbols))})
		}
	}
	for i := range t.regs {
		if results.Has(uint64(i)) {
			t.regs[i] = t.symbol(symbol{kind: calledNumber, which: int32(len(t.symbols))})
		}
	}
	t.forget()
	t.flags.valid = false
}

// compare sets the flags by a comparison of the lower bits of two values.
func (t *trace) compare(a, b value, bits uint8) {
	t.flags = comparison{a: t.low(a, bits), b: t.low(b, bits), bits: bits, valid: true}
}

// condition is what the flags say of the values that were compared last.
type condition uint8

const (
	always condition = iota // or nothing that matters
	below
	atLeast
	atMost
	above
	equal
	different
	less
	notLess
	notGreater
	greater
)

// opposite returns the condition that holds where c does not.
func (c condition) opposite() condition {
	return [...]condition{always: always, below: atLeast, atLeast: below, atMost: above, above: atMost, equal: different,
		different: equal, less: notLess, notLess: less, notGreater: greater, greater: notGreater}[c]
}

// swapped returns the condition of b and a that is c of a and b.
func (c condition) swapped() condition {
	return [...]condition{always: always, below: above, atLeast: atMost, atMost: atLeast, above: below, equal: equal,
		different: different, less: greater, notLess: notGreater, notGreater: notLess, greater: less}[c]
}

// unsigned are the conditions of signed numbers, as conditions of numbers that are not negative.
var unsigned = map[condition]condition{less: below, notLess: atLeast, notGreater: atMost, greater: above}

// assume says that a condition of the last branch holds.
func (t *trace) assume(c condition) {
	if !t.branch.valid {
		return
	}
	a, b := t.branch.a, t.branch.b
	if a.isConstant() {
		a, b, c = b, a, c.swapped()
	}
	if a.isConstant() || !b.isConstant() {
		return
	}
	n := b.c
	if u, ok := unsigned[c]; ok {
		if half := mask(t.branch.bits - 1); t.limits(a).hi > half || n > half {
			return
		}
		c = u
	}
	switch {
	case c == below && n > 0:
		t.limit(a, 0, n-1)
	case c == atMost:
		t.limit(a, 0, n)
	case c == equal:
		t.limit(a, n, n)
	case c == atLeast:
		t.limit(a, n, math.MaxUint64)
	case c == above && n < math.MaxUint64:
		t.limit(a, n+1, math.MaxUint64)
	}
}

// limit says that a value is between two numbers.
func (t *trace) limit(v value, lo, hi uint64) {
	x := v.terms[0]
	if x.scale != 1 || v.terms[1].sym != 0 {
		return
	}
	// n + 5 <= 9 is n <= 4, or n >= 2^64 - 5; such ranges that go around are left out.
	if lo, hi = lo-v.c, hi-v.c; lo > hi {
		return
	}
	k, ok := t.known[x.sym]
	if !ok {
		k = limits{hi: math.MaxUint64, implied: true}
	}
	if hi <= k.hi && hi < math.MaxUint64 {
		k.hi, k.implied = hi, false
	}
	k.lo = max(k.lo, lo)
	t.known[x.sym] = k
}
