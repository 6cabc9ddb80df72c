package insn_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// TestState: what a register, or a slot of the frame, holds after some instructions, compared with what RDI held before them.
func TestState(t *testing.T) {
	const rdi, rax, rbx, rsp = 5, 0, 3, 7
	for _, tt := range []struct {
		what          string
		code          []string
		register      uint64
		slot          int64 // of the stack, if register is rsp
		plus          uint64
		same, differs bool
		computes      bool
	}{
		{what: "moved", code: []string{"4889f8"}, register: rax, same: true},                                       // mov %rdi,%rax
		{what: "moved twice", code: []string{"4889fb", "4889d8"}, register: rax, same: true},                       // mov %rdi,%rbx; mov %rbx,%rax
		{what: "added to", code: []string{"488d4708"}, register: rax, differs: true, computes: true},               // lea 8(%rdi),%rax
		{what: "counted, and told so", code: []string{"48ffc7"}, register: rdi, plus: ^uint64(0), same: true},      // inc %rdi
		{what: "counted", code: []string{"48ffc7"}, register: rdi, differs: true, computes: true},                  // inc %rdi
		{what: "shifted", code: []string{"48c1ef03"}, register: rdi, differs: true, computes: true},                // shr $3,%rdi
		{what: "shifted to the left, in 32 bits", code: []string{"89f8", "c1e004"}, register: rax, computes: true}, // mov %edi,%eax; shl $4,%eax
		{what: "masked", code: []string{"83e701"}, register: rdi, differs: true, computes: true},                   // and $1,%edi
		{what: "cut", code: []string{"400fb6c7"}, register: rax},                                                   // movzbl %dil,%eax
		{what: "spilled", code: []string{"48897c2408"}, register: rsp, slot: 8, same: true},                        // mov %rdi,8(%rsp)
		{what: "spilled, and read again", code: []string{"48897c2408", "488b442408"}, register: rax, same: true},   // and mov 8(%rsp),%rax
		{what: "another slot", code: []string{"48897c2408"}, register: rsp, slot: 16},
		{what: "another register", code: []string{"90"}, register: rbx}, // it may be a copy
		{what: "the result of a call", code: []string{"e800000000"}, register: rax, differs: true},
		{what: "an argument over a call", code: []string{"4889fb", "e800000000"}, register: rbx, same: true},
		{what: "from memory", code: []string{"488b07"}, register: rax, differs: true},                    // mov (%rdi),%rax
		{what: "a constant", code: []string{"b805000000"}, register: rax, computes: true},                // mov $5,%eax
		{what: "of the processor", code: []string{"0fa2"}, register: rax, differs: true, computes: true}, // cpuid
		{what: "not known", code: []string{"cd80"}, register: rax, computes: true},                       // int $0x80
	} {
		s := insn.For("amd64").State()
		before, _ := s.Register(rdi)
		for _, code := range tt.code {
			s.Step(dwarftest.Hex(t, code), 0x1000)
		}
		after, _ := s.Register(tt.register)
		if tt.register == rsp {
			after = s.Load(s.Plus(after, s.Constant(uint64(tt.slot)), 1), 64)
		}
		after = s.Plus(after, s.Constant(tt.plus), 1)
		if same, differs := before == after, s.Differs(before, after, 64); same != tt.same || differs != tt.differs {
			t.Errorf("%s: same %v, differs %v", tt.what, same, differs)
		}
		if computes, _ := s.Computes(after); tt.register != rsp && computes != tt.computes {
			t.Errorf("%s: computes %v", tt.what, computes)
		}
	}
}
