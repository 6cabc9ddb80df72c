package symbolic

import (
	"math"
	"testing"
)

func TestRegisters(t *testing.T) {
	if r := Registers(1 << 5); !r.Has(5) || r.Has(4) || r.Has(64) || r.Has(69) {
		t.Error("Has")
	}
}

// TestLimits: what a comparison says of a number holds for each copy of it, shifted and extended.
func TestLimits(t *testing.T) {
	s := New(0, 64)
	n := s.Regs[3]
	s.Branch = s.Compared(s.Plus(n, Constant(1), 1), Constant(9), 64, true)
	s.Assume(AtMost)
	if l := s.limits(n); l.Lo != 0 || l.Hi != math.MaxUint64 {
		t.Errorf("n + 1 <= 9 goes around: %+v", l)
	}
	low := s.Low(n, 32)
	s.Branch = s.Compared(n, Constant(7), 32, true)
	s.Assume(Below)
	if l := s.limits(low); l.Lo != 0 || l.Hi != 6 || l.Implied {
		t.Errorf("the lower half is %+v", l)
	}
	if l := s.limits(s.Plus(Constant(4), low, 8)); l.Lo != 4 || l.Hi != 52 {
		t.Errorf("4 + 8n is %+v", l)
	}
	if l := s.SymbolLimits(s.UpTo(255).Single()); l.Count() != 256 || !l.Implied {
		t.Errorf("a byte is %+v", l)
	}
	if (Limits{Hi: math.MaxUint64}).Count() != 0 {
		t.Error("all numbers")
	}
}

// TestMemory: a slot of the frame keeps what it was set to until something overlaps it, and other memory until anything may.
func TestMemory(t *testing.T) {
	const sp = 7
	s := New(1<<sp, 64)
	slot, other := s.Plus(s.Regs[sp], Constant(16), 1), s.Regs[2]
	s.Store(slot, 64, s.Regs[5])
	if s.Load(slot, 64) != s.Regs[5] {
		t.Error("a slot is lost")
	}
	s.Store(other, 8, Constant(1))
	if v := s.Load(slot, 64); v == s.Regs[5] {
		t.Error("a store elsewhere leaves what is known of memory")
	}
	h, ok := s.Holder(s.Load(slot, 64).Single())
	if v, held := s.Held(h); !ok || !held || v != s.Regs[5] {
		t.Errorf("the slot holds %+v, %v, %v", v, ok, held)
	}
	s.Store(s.Plus(slot, Constant(4), 1), 32, Constant(0))
	if v, _ := s.Held(h); v == s.Regs[5] {
		t.Error("a part of the slot was overwritten")
	}
}

// TestConditions: the opposite of the opposite, and the same of both numbers swapped twice, is the condition.
func TestConditions(t *testing.T) {
	for c := Always; c <= Greater; c++ {
		if c.Opposite().Opposite() != c || c.swapped().swapped() != c || c.UnsignedOf().UnsignedOf() != c.UnsignedOf() {
			t.Errorf("condition %d", c)
		}
	}
}
