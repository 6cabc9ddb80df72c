// Package disasm prints the instructions of prologues as the kernel's verifier does in its
// log.
package disasm

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
)

var aluSigns = map[asm.ALUOp]string{
	asm.Add: "+=", asm.Sub: "-=", asm.Mul: "*=", asm.Div: "/=", asm.Mod: "%=", asm.And: "&=", asm.Or: "|=",
	asm.Xor: "^=", asm.LSh: "<<=", asm.RSh: ">>=", asm.ArSh: "s>>=", asm.Mov: "=",
}

// signMoves are moves of so many bits, the sign of which is extended.
var signMoves = map[asm.ALUOp]int{asm.MovSX8: 8, asm.MovSX16: 16, asm.MovSX32: 32}

var jumpSigns = map[asm.JumpOp]string{
	asm.JEq: "==", asm.JNE: "!=", asm.JGT: ">", asm.JGE: ">=", asm.JLT: "<", asm.JLE: "<=",
	asm.JSGT: "s>", asm.JSGE: "s>=", asm.JSLT: "s<", asm.JSLE: "s<=",
}

// Text returns the text of an instruction from package prologue, without its comment.
func Text(ins *asm.Instruction) string {
	op := ins.OpCode
	switch op.Class() {
	case asm.ALUClass, asm.ALU64Class:
		bank := "r"
		if op.Class() == asm.ALUClass {
			bank = "w"
		}
		if op.ALUOp() == asm.Neg {
			return fmt.Sprintf("r%d = -r%d", ins.Dst, ins.Dst)
		}
		if bits, is := signMoves[op.ALUOp()]; is {
			return fmt.Sprintf("r%d = (s%d)r%d", ins.Dst, bits, ins.Src)
		}
		if op.Source() == asm.RegSource {
			return fmt.Sprintf("%s%d %s %s%d", bank, ins.Dst, aluSigns[op.ALUOp()], bank, ins.Src)
		}
		return fmt.Sprintf("%s%d %s %d", bank, ins.Dst, aluSigns[op.ALUOp()], ins.Constant)
	case asm.LdClass:
		if ins.Src == asm.PseudoMapValue {
			return fmt.Sprintf("r%d = map[%s][0]+%d ll", ins.Dst, ins.Reference(), uint64(ins.Constant)>>32)
		}
		return fmt.Sprintf("r%d = %#x ll", ins.Dst, uint64(ins.Constant))
	case asm.LdXClass:
		kind := 'u'
		if op.Mode() == asm.MemSXMode {
			kind = 's'
		}
		return fmt.Sprintf("r%d = *(%c%d *)(r%d %+d)", ins.Dst, kind, 8*op.Size().Sizeof(), ins.Src, ins.Offset)
	case asm.StXClass:
		if op.Mode() == asm.AtomicMode {
			return fmt.Sprintf("lock *(u%d *)(r%d %+d) += r%d", 8*op.Size().Sizeof(), ins.Dst, ins.Offset, ins.Src)
		}
		return fmt.Sprintf("*(u%d *)(r%d %+d) = r%d", 8*op.Size().Sizeof(), ins.Dst, ins.Offset, ins.Src)
	case asm.StClass:
		return fmt.Sprintf("*(u%d *)(r%d %+d) = %d", 8*op.Size().Sizeof(), ins.Dst, ins.Offset, ins.Constant)
	case asm.JumpClass:
		switch op.JumpOp() {
		case asm.Call:
			if ins.IsKfuncCall() {
				return "call " + ins.Reference()
			}
			return "call " + helperNames[asm.BuiltinFunc(ins.Constant)]
		case asm.Exit:
			return "exit"
		case asm.Ja:
			return fmt.Sprintf("goto pc%+d", ins.Offset)
		}
		if op.Source() == asm.RegSource {
			return fmt.Sprintf("if r%d %s r%d goto pc%+d", ins.Dst, jumpSigns[op.JumpOp()], ins.Src, ins.Offset)
		}
		return fmt.Sprintf("if r%d %s %d goto pc%+d", ins.Dst, jumpSigns[op.JumpOp()], ins.Constant, ins.Offset)
	}
	return fmt.Sprint(*ins)
}

var helperNames = map[asm.BuiltinFunc]string{
	asm.FnProbeReadKernel:    "bpf_probe_read_kernel",
	asm.FnProbeReadUser:      "bpf_probe_read_user",
	asm.FnProbeRead:          "bpf_probe_read",
	asm.FnProbeReadKernelStr: "bpf_probe_read_kernel_str",
	asm.FnProbeReadUserStr:   "bpf_probe_read_user_str",
	asm.FnProbeReadStr:       "bpf_probe_read_str",
	asm.FnCopyFromUser:       "bpf_copy_from_user",
	asm.FnGetCurrentComm:     "bpf_get_current_comm",
	asm.FnGetCurrentPidTgid:  "bpf_get_current_pid_tgid",
	asm.FnGetCurrentUidGid:   "bpf_get_current_uid_gid",
	asm.FnGetSmpProcessorId:  "bpf_get_smp_processor_id",
	asm.FnGetCurrentCgroupId: "bpf_get_current_cgroup_id",
	asm.FnKtimeGetNs:         "bpf_ktime_get_ns",
}
