package attachable

import (
	"bytes"

	"golang.org/x/arch/x86/x86asm"
)

func nextX86(code []byte) (instruction, bool) {
	inst, err := x86asm.Decode(code, 64)
	// Where x86asm does not know what is behind a prefix, or code is cut short, it makes
	// the first byte an instruction, with no operation.
	if err != nil || inst.Op == 0 {
		prefixes, other := alike(code)
		if inst, err = x86asm.Decode(other, 64); err != nil || inst.Len < 3 {
			return instruction{}, false
		}
		return instruction{size: prefixes + inst.Len, onward: true}, true
	}
	in := instruction{size: inst.Len, onward: true}
	if rel, is := inst.Args[0].(x86asm.Rel); is && inst.Op != x86asm.CALL {
		in.branches, in.target = true, int64(inst.Len)+int64(rel)
	}
	switch inst.Op {
	case x86asm.JMP, x86asm.LJMP:
		in.onward, in.lost = false, !in.branches
	case x86asm.RET, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ, x86asm.SYSRET, x86asm.SYSEXIT:
		in.onward = false
	}
	// UD2 goes onward: it is the trap of a WARN too, behind which the kernel continues.
	return in, true
}

// alike is, behind the prefixes, an instruction of the same size in place of one of
// the groups 0F 01, 0F 1E, 0F AE and 0F C7, many of which x86asm does not know (ENCLS,
// ENDBR64, RDPKRU, VMGEXIT, XSAVES): all have a ModRM byte and no immediate, as IMUL, 0F AF, has. It is
// empty for others.
func alike(code []byte) (prefixes int, other []byte) {
	for prefixes < len(code) && bytes.IndexByte(x86Prefixes, code[prefixes]) >= 0 {
		prefixes++
	}
	other = bytes.Clone(code[min(prefixes, 15):min(len(code), 15)])
	at := 0
	if len(other) > 0 && other[0]&0xf0 == 0x40 {
		at = 1 // REX
	}
	if len(other) < at+3 || other[at] != 0x0f {
		return 0, nil
	}
	switch other[at+1] {
	case 0x01, 0x1e, 0xae, 0xc7:
		other[at+1] = 0xaf
		return prefixes, other
	}
	return 0, nil
}

// x86Prefixes are the prefixes of an instruction besides REX.
var x86Prefixes = []byte{0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3}
