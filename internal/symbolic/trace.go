package symbolic

// Trace is the state of a processor on one path through the code.
type Trace struct {
	Symbols []Symbol // the first is none
	index   map[Symbol]int32
	known   map[int32]Limits // from comparisons and masks
	Regs    [32]Value        // by DWARF number
	memory  map[place]Value  // what is known to be there
	stores  int32
	lost    int32   // stores at the last write to memory that may be anywhere
	written []place // by the stores since
	bits    uint8   // of a register
	Flags   Comparison
	frame   Registers          // that point into the frame
	spills  map[Value]Value    // what 64 bits of the frame were set to, by their addresses
	Decided map[int32]Decision // symbols that are 1 if a condition holds, and otherwise 0
	Branch  Comparison         // what the last branch depends on
	Fields  [8]Comparison      // as flags, of processors that have several
	Far     Value              // what a register holds that is none of the general ones
	Last    Operation          // the last one of which the width makes a difference
	astray  bool               // nothing was known of an instruction
}

// Operation is a shift to the right or a division, of which the result depends on how wide it is, as an instruction makes it.
type Operation struct {
	Of, By  Value // their lower bits
	Bits    uint8
	Signed  bool
	Divides bool
}

// Symbol is a number that is not a constant. Equal ones have the same index, so that what a
// comparison says about one copy of a number holds for all copies.
type Symbol struct {
	Kind Kind
	Of   Value // what is cut or extended, or the address that is loaded from
	Bits uint8 // width before the extension, or of what is loaded
	// Which tells registers, loads before and after a store, and unknown numbers apart.
	Which int32
}

// Kind says where a symbol is from.
type Kind uint8

// The kinds.
const (
	UnknownNumber  Kind = iota
	ReturnedNumber      // unknown: a register that a call leaves without a meaning
	calledNumber        // unknown: a register with a call's result
	InputRegister       // what a register held where the path begins
	ZeroExtended
	SignExtended
	Loaded // from memory, and zero-extended
	Partly // in its lower bits what it is of; the others are not known
)

// New returns the state where a path begins, of a processor of which some registers point into the frame, and all have so many bits.
func New(frame Registers, bits uint8) *Trace {
	t := &Trace{frame: frame, bits: bits, spills: make(map[Value]Value), index: make(map[Symbol]int32), known: make(map[int32]Limits), memory: make(map[place]Value), Decided: make(map[int32]Decision)}
	t.Symbols = make([]Symbol, 0, 2*len(t.Regs))
	t.begin()
	return t
}

// begin makes the symbols of the registers, which are the first ones.
func (t *Trace) begin() {
	t.Symbols = append(t.Symbols, Symbol{})
	for i := range t.Regs {
		t.Regs[i] = t.add(Symbol{Kind: InputRegister, Which: int32(i)})
		if t.bits == 32 {
			t.known[t.Regs[i].Single()] = Limits{0, Mask(32), true}
		}
	}
	t.Far = t.Unknown()
}

// Restart makes the state again what New returns, in the same memory.
func (t *Trace) Restart() {
	clear(t.spills)
	clear(t.index)
	clear(t.known)
	clear(t.memory)
	clear(t.Decided)
	*t = Trace{frame: t.frame, bits: t.bits, spills: t.spills, Symbols: t.Symbols[:0], index: t.index, known: t.known, memory: t.memory, written: t.written[:0], Decided: t.Decided}
	t.begin()
}

// Symbol returns a symbol as a value.
func (t *Trace) Symbol(s Symbol) Value {
	if s.Kind == InputRegister && s.Which >= 0 && int(s.Which) < len(t.Regs) {
		return Value{Terms: [2]Term{{1 + s.Which, 1}}} // as begin has made them
	}
	if id, ok := t.index[s]; ok {
		return Value{Terms: [2]Term{{id, 1}}}
	}
	t.index[s] = int32(len(t.Symbols))
	return t.add(s)
}

// add returns a symbol that no other one is equal to.
func (t *Trace) add(s Symbol) Value {
	t.Symbols = append(t.Symbols, s)
	return Value{Terms: [2]Term{{int32(len(t.Symbols) - 1), 1}}}
}

// Unknown returns a number of its own.
func (t *Trace) Unknown() Value {
	return t.add(Symbol{Kind: UnknownNumber, Which: int32(len(t.Symbols))})
}

// UpTo returns an unknown number that some operation limits.
func (t *Trace) UpTo(hi uint64) Value {
	v := t.Unknown()
	t.known[v.Single()] = Limits{0, hi, true}
	return v
}

// Lose makes the registers of a set unknown.
func (t *Trace) Lose(set Registers) {
	for i := range t.Regs {
		if set.Has(uint64(i)) {
			t.Regs[i] = t.Unknown()
		}
	}
}

// LoseAll follows an instruction of which nothing is known.
func (t *Trace) LoseAll() {
	t.Lose(^Registers(0))
	t.Forget()
	t.Flags.Valid, t.astray = false, true
}

// Call follows a call that does not preserve some registers. A few of them have its results.
func (t *Trace) Call(lost, results Registers) {
	for i := range t.Regs {
		if lost.Has(uint64(i)) {
			t.Regs[i] = t.add(Symbol{Kind: ReturnedNumber, Which: int32(len(t.Symbols))})
		}
	}
	for i := range t.Regs {
		if results.Has(uint64(i)) {
			t.Regs[i] = t.add(Symbol{Kind: calledNumber, Which: int32(len(t.Symbols))})
		}
	}
	t.Forget()
	t.Flags.Valid = false
}
