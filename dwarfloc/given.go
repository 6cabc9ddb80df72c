package dwarfloc

import (
	"bytes"
	"debug/elf"
	"fmt"
)

// Some things to fetch are no variables of the program. They are variables here all
// the same, of the role Given, so that one kind of argument serves all.

// wordType is the type of what has none: a register, the memory at a symbol.
var wordType = &Type{Kind: TypeInt, Name: "unsigned long", Size: 8}

// RegisterVariable is what is in a register: by its name in the architecture's
// manual, or in the kernel's (ax for rax). It reports false for a name that is neither.
func (s *Site) RegisterVariable(name string) (*Variable, bool) {
	r := s.u.img.arch.RegisterByName(name)
	if r == nil {
		return nil, false
	}
	v := &Variable{Name: name, Role: Given, Type: wordType, Entries: 1}
	ev := s.evaluator()
	if st := ev.checkRegister(uint64(r.DWARF)); st != nil {
		v.Reason = st.reason
		return v, true
	}
	v.Loc = Location{Kind: KindRegister, Rule: RuleGiven, Expr: ev.register(uint64(r.DWARF), 0)}
	return v, true
}

// StackVariable is the nth word of the stack, counted from 0, or, for address, the
// address where the stack begins.
func (s *Site) StackVariable(n uint64, address bool) *Variable {
	a := s.u.img.arch
	ev := s.evaluator()
	v := &Variable{Name: "stack", Role: Given, Type: wordType, Entries: 1}
	e := ev.register(uint64(a.SP), int64(n)*int64(a.WordSize))
	if address {
		v.Loc = Location{Kind: KindValue, Rule: RuleGiven, Expr: e}
	} else {
		v.Loc = Location{Kind: KindMemory, Rule: RuleGiven, Expr: e}
	}
	return v
}

// MemoryVariable is the memory at a link-time address.
func (s *Site) MemoryVariable(name string, addr uint64) *Variable {
	v := &Variable{Name: name, Role: Given, Type: wordType, Entries: 1}
	if s.u.img.Type() == elf.ET_REL {
		v.Reason = Reason{Code: ModuleAddress}
		return v
	}
	v.Loc = Location{Kind: KindMemory, Rule: RuleGiven, Expr: &Expr{Op: OpAddr, K: addr}}
	return v
}

// ConstantVariable is a number.
func (s *Site) ConstantVariable(name string, value uint64) *Variable {
	return &Variable{
		Name: name, Role: Given, Type: wordType, Entries: 1,
		Loc: Location{Kind: KindConstant, Rule: RuleGiven, Expr: &Expr{Op: OpConst, K: value}},
	}
}

// Result is what the site's function returns, as it is when the function has
// returned: by the architecture's calling convention, in a register. What is
// returned in memory has a reason.
func (s *Site) Result() (*Variable, error) {
	v := &Variable{Name: "$retval", Role: Given, Type: voidType, Entries: 1}
	err := s.u.img.guard(func() error {
		e, err := s.u.entry(s.die)
		if err != nil {
			return err
		}
		t, err := resultType(e)
		if err != nil {
			return err
		}
		v.Type = t
		r, err := t.resolve(0)
		if err != nil {
			return err
		}
		a := s.u.img.arch
		switch {
		case r.Kind == TypeVoid:
			v.Reason = Reason{TypeMismatch, "the function returns nothing"}
			v.Wrong = &PathError{Msg: v.Reason.Detail}
		case r.Kind == TypeFloat:
			v.Reason = Reason{Code: VectorRegister}
		case isRecord(r), r.Kind == TypeArray, r.Size < 1, int(r.Size) > a.WordSize:
			v.Reason = Reason{Unsupported, fmt.Sprintf("%v is not returned in one register", t)}
		default:
			v.Loc = Location{Kind: KindRegister, Rule: RuleABI, Expr: &Expr{Op: OpReg, K: uint64(a.Return)}}
		}
		return nil
	})
	return v, err
}

// resultType is the type of a function's result: its own entry's, or its origin's.
func resultType(e entry) (*Type, error) {
	for range maxOrigins {
		var typ, origin value
		if err := e.attrs(func(a attrName, v value) {
			switch a {
			case attrType:
				typ = v
			case attrAbstractOrigin, attrSpecification:
				origin = v
			}
		}); err != nil {
			return nil, err
		}
		if typ.form != 0 || origin.form == 0 {
			return e.u.typeOf(typ)
		}
		var err error
		if e, err = e.u.target(origin); err != nil {
			return nil, err
		}
	}
	return voidType, nil
}

// AddressOf returns the link-time address of a symbol: code or data. A global one is
// preferred, then the first in the file.
func (img *Image) AddressOf(name string) (addr uint64, ok bool, err error) {
	all, err := img.AddressesOf(name)
	addr, ok = all[name]
	return addr, ok, err
}

// AddressesOf is AddressOf for several symbols in one pass over the symbol table.
// Those that are not there are left out.
func (img *Image) AddressesOf(names ...string) (map[string]uint64, error) {
	want := make(map[string]bool, len(names))
	longest := 0
	for _, n := range names {
		want[n] = true
		longest = max(longest, len(n))
	}
	out := make(map[string]uint64)
	local := make(map[string]bool)
	err := img.guard(func() error {
		d, strs := img.symbolSections()
		for b := (buf{d: d, be: img.be}); len(d)-b.p >= symSize; {
			at := uint64(b.u32())
			info := b.u8()
			b.u8()
			section := b.u16()
			value, _ := b.u64(), b.u64()
			if elf.SectionIndex(section) == elf.SHN_UNDEF || elf.SymType(info&0xf) == elf.STT_FILE || elf.SymType(info&0xf) == elf.STT_SECTION {
				continue
			}
			if at >= uint64(len(strs)) {
				continue
			}
			n := bytes.IndexByte(strs[at:min(at+uint64(longest)+1, uint64(len(strs)))], 0)
			if n < 0 || !want[string(strs[at:int(at)+n])] {
				continue
			}
			name := string(strs[at : int(at)+n])
			global := elf.SymBind(info>>4) != elf.STB_LOCAL
			if sections := img.symFile.Sections; img.LoadsApart() && int(section) < len(sections) {
				value += sections[section].Addr
			}
			if _, ok := out[name]; !ok || global && local[name] {
				out[name], local[name] = value, !global
			}
		}
		return nil
	})
	return out, err
}
