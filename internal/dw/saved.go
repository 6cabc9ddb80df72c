package dw

// SavedKind says where a function has what a register held when it was called.
type SavedKind uint8

// The kinds (DWARF 5 section 6.4.1).
const (
	// SavedNowhere means that it is lost, or that nothing is said of the register.
	SavedNowhere SavedKind = iota
	// SavedSame means in the register itself.
	SavedSame
	// SavedAt means in memory, Off bytes from the canonical frame address.
	SavedAt
	// SavedValue means that it is the canonical frame address plus Off.
	SavedValue
	// SavedIn means in the register Reg.
	SavedIn
	// SavedBy means by an expression, which is not followed.
	SavedBy
)

// RegisterRule says where a function has what a register held when it was called.
type RegisterRule struct {
	Kind SavedKind
	Off  int64
	Reg  uint64
}

// Frame is what the call frame information says at an address, apart from the canonical frame address itself.
type Frame struct {
	// Returns is the column of the return address.
	Returns uint64
	// First is the rule of the canonical frame address where the function is called.
	First CFARule
	// Signed is set where arm64's return address has a signature in its upper bits.
	Signed bool
	// Interrupts is set for what is not called, but interrupts.
	Interrupts bool

	rules map[uint64]RegisterRule
	saves map[uint64]bool
}

// Saves reports whether the function saves a register in memory, there or elsewhere.
func (f *Frame) Saves(n uint64) bool { return f.saves[n] }

// Register returns the rule of a register. known is false if nothing is said.
func (f *Frame) Register(n uint64) (r RegisterRule, known bool) {
	r, known = f.rules[n]
	return r, known
}

// savedRegisters are the rules that a run has seen.
type savedRegisters struct {
	rules, first map[uint64]RegisterRule // first are those of the CIE
	firstCFA     CFARule
	signed       bool
	saves        map[uint64]bool
}

// FrameAt returns what the frame description that covers a link-time address says there. ok is false if none covers it.
func (d *Data) FrameAt(addr uint64) (frame Frame, ok bool, err error) {
	f, ok, err := d.FrameOf(addr)
	if !ok || err != nil {
		return Frame{}, false, err
	}
	saved := savedRegisters{rules: make(map[uint64]RegisterRule), saves: make(map[uint64]bool)}
	rule, err := d.runSaving(&f, addr, &saved, nil)
	if err != nil || !rule.defined {
		return Frame{}, false, err
	}
	all := savedRegisters{rules: make(map[uint64]RegisterRule), saves: make(map[uint64]bool)}
	if _, err := d.runSaving(&f, f.hi, &all, nil); err != nil {
		return Frame{}, false, err
	}
	return Frame{
		Returns: f.cie.returns, First: saved.firstCFA, Signed: saved.signed, Interrupts: f.cie.interrupts, rules: saved.rules, saves: all.saves,
	}, true, nil
}

// save runs an instruction that says where a register is saved. low is its operand in the lower 6 bits.
func (r *frameRun) save(op cfaOp, low uint64) {
	b, s := &r.b, r.saved
	factor := r.f.cie.dataAlign
	set := func(n uint64, rule RegisterRule) {
		if n >= maxRegister {
			return // no architecture has it
		}
		s.rules[n] = rule
		s.saves[n] = s.saves[n] || rule.Kind == SavedAt
	}
	restore := func(n uint64) {
		if first, ok := s.first[n]; ok {
			s.rules[n] = first
		} else {
			delete(s.rules, n)
		}
	}
	switch op {
	case cfaOffset:
		set(low, RegisterRule{Kind: SavedAt, Off: int64(b.ULEB()) * factor})
	case cfaOffsetExtended:
		n := b.ULEB()
		set(n, RegisterRule{Kind: SavedAt, Off: int64(b.ULEB()) * factor})
	case cfaOffsetExtendedSF:
		n := b.ULEB()
		set(n, RegisterRule{Kind: SavedAt, Off: b.SLEB() * factor})
	case cfaGNUNegOffsetExtended:
		n := b.ULEB()
		set(n, RegisterRule{Kind: SavedAt, Off: -int64(b.ULEB()) * factor})
	case cfaValOffset:
		n := b.ULEB()
		set(n, RegisterRule{Kind: SavedValue, Off: int64(b.ULEB()) * factor})
	case cfaValOffsetSF:
		n := b.ULEB()
		set(n, RegisterRule{Kind: SavedValue, Off: b.SLEB() * factor})
	case cfaRestore:
		restore(low)
	case cfaRestoreExtended:
		restore(b.ULEB())
	case cfaUndefined:
		set(b.ULEB(), RegisterRule{})
	case cfaSameValue:
		set(b.ULEB(), RegisterRule{Kind: SavedSame})
	case cfaRegister:
		n := b.ULEB()
		set(n, RegisterRule{Kind: SavedIn, Reg: b.ULEB()})
	case cfaExpression, cfaValExpression:
		set(b.ULEB(), RegisterRule{Kind: SavedBy})
		b.Skip(b.ULEB())
	case cfaGNUArgsSize:
		b.ULEB()
	case cfaNegateRAState:
		s.signed = !s.signed
	}
}

// maxRegister bounds the numbers of registers: s390x and riscv64 have some thousands for control registers.
const maxRegister = 1 << 13
