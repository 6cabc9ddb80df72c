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
		{what: "counted, less the count", code: []string{"48ffc7"}, register: rdi, plus: ^uint64(0), same: true},   // inc %rdi
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

// TestBits: how many lower bits of a register may not be 0 after some instructions, and whose they are.
func TestBits(t *testing.T) {
	const rdi, rax, rbx = 5, 0, 3
	for _, tt := range []struct {
		what, code string
		register   uint64
		bits       uint8
		of         uint64
		inherits   bool
	}{
		{"as it was", "90", rdi, 64, rdi, true},
		{"moved", "4889f8", rax, 64, rdi, true},                     // mov %rdi,%rax
		{"32 bits of it", "89f8", rax, 32, rdi, true},               // mov %edi,%eax
		{"a byte of it", "400fb6c7", rax, 8, rdi, true},             // movzbl %dil,%eax
		{"sign-extended", "4863c7", rax, 64, 0, false},              // movslq %edi,%rax
		{"a sum of 32 bits", "01df", rdi, 32, 0, false},             // add %ebx,%edi
		{"16 bits of memory", "0fb707", rax, 16, 0, false},          // movzwl (%rdi),%eax
		{"masked", "83e307", rbx, 3, rbx, true},                     // and $7,%ebx
		{"the result of a call", "e800000000", rax, 64, 0, false},   // call
		{"a constant", "b805000000", rax, 3, 0, false},              // mov $5,%eax
		{"the result of a comparison", "0f94c0", rax, 64, 0, false}, // sete %al: the rest is as it was
	} {
		s := insn.For("amd64").State()
		for code := dwarftest.Hex(t, tt.code); len(code) > 0; {
			in, ok := insn.For("amd64").Next(code)
			if !ok {
				t.Fatal(tt.what)
			}
			s.Step(code[:in.Size], 0x1000)
			code = code[in.Size:]
		}
		v, _ := s.Register(tt.register)
		bits, of, inherits := s.Bits(v)
		if bits != tt.bits || inherits != tt.inherits || inherits && of != tt.of {
			t.Errorf("%s: %d bits, of %d, %v", tt.what, bits, of, inherits)
		}
	}
}

// TestCounts: of branches, those that count change a register.
func TestCounts(t *testing.T) {
	for _, tt := range []struct {
		architecture, what, code string
		register                 uint64
		changes                  bool
	}{
		{"amd64", "jge", "7d05", 2, false},
		{"amd64", "loop", "e205", 2, true},
		{"arm64", "cbz", "01010034", 1, false},
		{"s390x", "jne", "a7740010", 7, false},
		{"s390x", "brct", "a7260010", 2, true},
		{"s390x", "brctg", "a7270010", 2, true},
		{"s390x", "brcth", "cc2600000010", 2, true},
		{"s390x", "brxle", "85240010", 2, true},
		{"s390x", "brxle, the step", "85240010", 4, false},
		{"s390x", "brxhg", "ec2400100044", 2, true},
		{"s390x", "cgrje", "ec2400108064", 2, false},
	} {
		s := insn.For(tt.architecture).State()
		was, _ := s.Register(tt.register)
		s.Step(dwarftest.Hex(t, tt.code), 0x1000)
		if is, known := s.Register(tt.register); (is != was) != tt.changes || !known {
			t.Errorf("%s: %s: changes the register: %v, want %v", tt.architecture, tt.what, is != was, tt.changes)
		}
	}
}
