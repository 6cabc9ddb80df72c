package tracer

import (
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// The layout of a hit in the ring buffer: a head, then the record. Numbers are in the machine's
// byte order.
const (
	atTime   = 0  // bpf_ktime_get_ns
	atCookie = 8  // the site's index in the lowest 32 bits, the plan's in the next 16
	atTask   = 16 // bpf_get_current_pid_tgid
	atComm   = 24
	atErr    = 40
	atRecord = 48 // then stacks

	commSize = 16
)

// maxPlans is how many plans a session can have.
const maxPlans = 1 << 16

// program returns the program that runs at each hit: it copies the record, or the arguments
// one after the other, into the ring buffer. With a record it uses no more stack than the 32
// bytes that every function is charged for, so that the record can have the rest.
func (s *Session) program(a *arch.Arch, c prologue.Convention, recordSize int, who processes) asm.Instructions {
	insns, stack := keepArgs(c, recordSize)
	insns = append(insns, who.filter(stack, labelExit)...)
	return append(insns, s.report(a, recordSize, stack, who, asm.Instructions{asm.Mov.Reg(asm.R1, asm.R6), asm.FnGetAttachCookie.Call()})...)
}

// keepArgs makes R6 the context, R7 err, and R8 the address of the arguments, which takes some bytes of
// the stack. It leaves R1 to R5 as they are.
func keepArgs(c prologue.Convention, recordSize int) (insns asm.Instructions, stack int) {
	insns = asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.Mov.Reg(asm.R7, asm.R2),
	}
	if c == prologue.ConventionRecord {
		return append(insns, asm.Mov.Reg(asm.R8, asm.R3)), 0
	}
	for at := 0; at < recordSize; at += 8 {
		insns = append(insns, asm.StoreMem(asm.RFP, int16(at-recordSize), asm.R3+asm.Register(at/8), asm.DWord))
	}
	return append(insns, asm.Mov.Reg(asm.R8, asm.RFP), asm.Add.Imm(asm.R8, int32(-recordSize))), recordSize
}

// report writes a hit into the ring buffer, and returns; labelExit is where it returns. cookie sets R0
// to what atCookie has. R9 is used too, and what is below the first stack bytes.
func (s *Session) report(a *arch.Arch, recordSize, stack int, who processes, cookie asm.Instructions) asm.Instructions {
	insns := asm.Instructions{
		asm.LoadMapPtr(asm.R1, s.events.FD()),
		asm.Mov.Imm(asm.R2, int32(atRecord+recordSize+s.stack.size())),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnRingbufReserve.Call(),
		asm.JEq.Imm(asm.R0, 0, labelFull),
		asm.Mov.Reg(asm.R9, asm.R0),

		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.R9, atTime, asm.R0, asm.DWord),
	}
	insns = append(insns, cookie...)
	insns = append(insns,
		asm.StoreMem(asm.R9, atCookie, asm.R0, asm.DWord),
	)
	insns = append(insns, who.store(stack)...)
	insns = append(insns,
		asm.Mov.Reg(asm.R1, asm.R9),
		asm.Add.Imm(asm.R1, atComm),
		asm.Mov.Imm(asm.R2, commSize),
		asm.FnGetCurrentComm.Call(),
		asm.StoreMem(asm.R9, atErr, asm.R7, asm.DWord),
	)
	insns = append(insns, copyWords(asm.R9, atRecord, asm.R8, 0, recordSize)...)
	insns = append(insns, s.stack.write(atRecord+recordSize, a)...)
	return append(insns,
		asm.Mov.Reg(asm.R1, asm.R9),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRingbufSubmit.Call(),
		asm.Ja.Label(labelExit),

		// The buffer is full: count the lost hit. The map has one value, to which a program
		// can have a pointer without a lookup.
		asm.LoadMapValue(asm.R1, s.lost.FD(), 0).WithSymbol(labelFull),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),

		asm.Mov.Imm(asm.R0, 0).WithSymbol(labelExit),
		asm.Return(),
	)
}

// filter jumps to a label for hits that are not reported: those by process self, if it is not nil, or reporting one
// would cause the next, those by other processes than only, if there are any, or outside of all groups, if there are any, and those beyond the limits. stack is how many bytes
// of the stack are in use.
func (who processes) filter(stack int, exit string) asm.Instructions {
	var insns asm.Instructions
	if who.self != nil {
		insns = append(who.self.load(stack), asm.JEq.Imm(asm.R0, int32(who.self.tgid), exit))
	}
	if len(who.only) > 0 {
		insns = append(insns, oneOf(who.only, stack, exit)...)
	}
	if len(who.groups) > 0 {
		insns = append(insns, inGroups(who.groups, exit)...)
	}
	if who.tree != nil {
		insns = append(insns, who.tree.filter(stack, exit)...)
	}
	return append(insns, who.limits.filter(exit)...)
}

// store stores the IDs of the current process and thread in the event at R9: in the namespace of process self,
// or if they are not in that one, in the initial one.
func (who processes) store(stack int) asm.Instructions {
	insns := asm.Instructions{
		asm.FnGetCurrentPidTgid.Call(),
		asm.StoreMem(asm.R9, atTask, asm.R0, asm.DWord),
	}
	if who.self == nil || who.self.ino == 0 || who.self.ino == initialNamespace {
		return insns
	}
	const other = "other-namespace"
	insns = append(insns, who.self.load(stack)...)
	// struct bpf_pidns_info has the thread first, as the number above has in its lower half.
	return append(insns,
		asm.JEq.Imm(asm.R0, 0, other),
		asm.LoadMem(asm.R0, asm.RFP, int16(-stack-8), asm.DWord),
		asm.StoreMem(asm.R9, atTask, asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(other),
	)
}

// copyWords copies size bytes, a multiple of 8, from an offset to another one.
func copyWords(to asm.Register, at int, from asm.Register, off, size int) (insns asm.Instructions) {
	for i := 0; i < size; i += 8 {
		insns = append(insns,
			asm.LoadMem(asm.R0, from, int16(off+i), asm.DWord),
			asm.StoreMem(to, int16(at+i), asm.R0, asm.DWord),
		)
	}
	return insns
}
