package probed

import (
	"encoding/hex"
	"testing"
)

// TestUprobe has instructions of the C library and of other programs, with what uprobes of Linux 6.18 do with them.
func TestUprobe(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		does       Uprobe
	}{
		{"lock xadd", "f04c0fc13fbd0800", UprobeRefuses},
		{"a long NOP with %cs", "662e0f1f84000000000000", UprobeRefuses},
		{"vmovdqu32 of AVX-512", "62f17f486f2062f3", UprobeRefuses},
		{"vpcmpeqb of AVX-512", "62f37d483fc20062", UprobeRefuses},
		{"vpxor", "c5f1efc9", UprobeRefuses},
		{"vmovdqu", "c5fe6f06", UprobeRefuses},
		{"in", "ec", UprobeRefuses},
		{"mov to %ss", "8ed0", UprobeRefuses},
		{"a jump of 16 bits", "66e908000000", UprobeRefuses},
		{"int3", "cc", UprobeHarms},
		{"pushf", "9c", UprobeHarms},
		{"pushf with REX", "489c", UprobeHarms},
		{"syscall", "0f05", UprobeHarms},
		{"xchg %rax,%r8", "4990", UprobeHarms},
		{"vzeroupper", "c5f877", UprobeHarms},
		{"vzeroall", "c5fc7790", UprobeHarms},
		{"vpermi2ps", "62f27d4877c1", UprobeHarms},
		{"vpcmpeqb", "c5fd74c1", UprobeHarms},
		{"vpor", "c5f9ebd1", UprobeHarms},
		{"vpshufd", "c5f970da00", UprobeHarms},
		{"a store of vmovq", "c4e1f97ed8", UprobeHarms},
		{"vpcmpeqb of AVX-512", "62f17d4874c1", UprobeHarms},
		{"vpsubsb", "c5d9e8e4", UprobeHarms},
		{"vpgatherdd", "c4e2499014a8", UprobeHarms},
		{"vcmpps", "c5f0c2d100", UprobeHarms},
		{"vfnmadd132ss", "c4e2799de1", UprobeHarms},
		{"movntss to what is relative", "f30f2b05e0100010", UprobeHarms},
		{"cmovne with F2 of what is relative", "f20f4505e0100010", UprobeHarms},
		{"rep stos", "f348ab", UprobeRepeats},
		{"repne scas", "f2ae", UprobeRepeats},
		{"a NOP of 5 bytes", "0f1f440000", UprobeCalls},
		{"one with prefixes", "6666666690", UprobeCalls},
		{"one with an operand of 16 bits", "660f1f4000", UprobeCalls},
		{"one with REX", "480f1f4000", UprobeCalls},
		{"pause with prefixes", "6666f36690", UprobeCalls},
		{"a NOP of 6 bytes", "660f1f440000", UprobeSteps},
		{"one of 5 bytes that is not the usual one", "0f1f4c0000", UprobeSteps},
		{"lea of 5 bytes that does nothing", "488d642400", UprobeSteps},
		{"a short NOP", "6690", UprobeSkips},
		{"pause", "f390", UprobeSkips},
		{"a jump", "eb10", UprobeEmulates},
		{"a jump with a condition", "0f8410000000", UprobeEmulates},
		{"a call", "e810000000", UprobeEmulates},
		{"a push", "55", UprobeEmulates},
		{"a 64-bit push by REX", "4157", UprobeEmulates},
		{"endbr64", "f30f1efa", UprobeSteps},
		{"a NOP of 4 bytes", "0f1f4000", UprobeSteps},
		{"mov of %fs:0x28", "64488b042528000000", UprobeSteps},
		{"stos", "48ab", UprobeSteps},
		{"movss of what is relative", "f30f1005e0100010", UprobeSteps},
		{"movntss to %rax", "f30f2b00", UprobeSteps},
		{"vaddps", "c5f058e8", UprobeSteps},
		{"vpshufb", "c4e26900d5", UprobeSteps},
		{"pshufd", "660f70da00", UprobeSteps},
		{"por", "660febd1", UprobeSteps},
	} {
		code, err := hex.DecodeString(tt.code)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := For("amd64").Uprobe(code); got != tt.does {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.does)
		}
	}
}

// TestRedZone has functions that keep something below the stack pointer, or do not.
func TestRedZone(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		below      bool
	}{
		{"nothing", "8d470190c3", false},
		{"a store below %rsp", "897c24fcc3", true},
		{"with an index", "c64434c401c3", true},
		{"lea -0x80(%rsp),%rax", "488d442480c3", true},
		{"above it", "4883ec18897c2408", false},
		{"below %rbp, %rsp as it was", "554889e5897dfc5dc3", true},
		{"below %rbp, %rsp lowered", "554889e54883ec10897dfcc9c3", false},
		{"below %rbp, not lowered as far", "554889e54883ec10897dd8c9c3", true},
		{"with a call", "554889e553897df4e800000000", false},
		{"%rsp copied", "4889e08978fcc3", true},
		{"r12 is not %rsp", "41897c24fcc3", false},
		{"AVX-512, its displacement in vectors", "62f17c48114424ff", true},
		{"what does not decode", "06", true},
	} {
		code, err := hex.DecodeString(tt.code)
		if err != nil {
			t.Fatal(err)
		}
		if got := For("amd64").BelowStack(code); got != tt.below {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.below)
		}
	}
}

// TestKprobe has instructions that kprobes run as other ones, and some that look like these.
func TestKprobe(t *testing.T) {
	for _, tt := range []struct {
		name, arch, code string
		harms            bool
	}{
		{"vmovdqa to memory", "amd64", "c5fd7f0600", true},
		{"vpor", "amd64", "c5f9ebd1", true},
		{"vpshufd", "amd64", "c5f970da00", true},
		{"vpsubd, as cli", "amd64", "c5f9fac1", true},
		{"vpxor", "amd64", "c5f9efc1", false},
		{"vmovntdq", "amd64", "c5fde706", false},
		{"movdqa to memory", "amd64", "660f7f06", false},
		{"mulx", "amd64", "c4e2fbf6c1", false},
		{"a call", "amd64", "e8599b6700", false},
		{"a call with CS", "amd64", "2ee8599b6700", true},
		{"a jump with CS", "amd64", "2ee9599b6700", false},
		{"an indirect call", "amd64", "41ffd0", false},
		{"a long indirect call", "amd64", "41ff90e8000000", false},
		{"vmovdqa to a register", "i386", "c5fd7fc1", true},
		{"lds", "i386", "c5467f9090", false},
	} {
		code, err := hex.DecodeString(tt.code)
		if err != nil {
			t.Fatal(err)
		}
		if why := For(tt.arch).Kprobe(code); why != "" != tt.harms {
			t.Errorf("%s: %q", tt.name, why)
		}
	}
}

// FuzzRules: a probe harms for a reason, and no code makes the rules fail.
func FuzzRules(f *testing.F) {
	for _, code := range []string{"\x0f\x1f\x44\x00\x00", "\xc5\xf8\x77", "\x2e\xe8\xfb\xff\xff\xff", "\x62\xf1\x7c\x48\x28\x00", "\xa0\x00\x20\xd4", "\x1f\x20\x03\xd5"} {
		f.Add([]byte(code))
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		for name, r := range all {
			if does, why := r.Uprobe(code); (does == UprobeHarms) != (why != "") {
				t.Fatalf("%s: % x: %d for %q", name, code, does, why)
			}
			r.Kprobe(code)
			r.BelowStack(code)
			r.CannotStep(code)
			for _, refusal := range r.Refusals {
				refusal.Is(code)
			}
			ChecksGoStack(code)
		}
	})
}
