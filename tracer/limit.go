package tracer

import (
	"fmt"
	"math"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/kernelerr"
)

// limits lets only some of the hits through, before anything is made of them. A hit is chosen at
// random: every Nth one would be always the same of a pattern that repeats.
type limits struct {
	sample  int       // one of so many hits
	perSec  int       // at most so many of these in a second; 0 is no limit
	windows *ebpf.Map // nil without perSec
}

// The value of limits.windows.
const (
	windowNow     = 0 // the second since the machine started in the upper half, hits in the lower
	windowDropped = 8
	windowSize    = 16
)

// windowTries is how often a program tries to count its hit while other processors count theirs.
const windowTries = 8

func (o *Options) limits() (l limits, err error) {
	switch {
	case o.Sample < 0 || o.Sample > math.MaxInt32:
		return l, fmt.Errorf("a sample of 1 of %d hits: the number is from 1 to %d", o.Sample, math.MaxInt32)
	case o.MaxRate < 0 || o.MaxRate > math.MaxInt32:
		return l, fmt.Errorf("at most %d hits in a second: the number is from 1 to %d", o.MaxRate, math.MaxInt32)
	}
	l.sample, l.perSec = o.Sample, o.MaxRate
	if l.perSec > 0 {
		l.windows, err = ebpf.NewMap(&ebpf.MapSpec{Name: "windows", Type: ebpf.Array, KeySize: 4, ValueSize: windowSize, MaxEntries: 1})
		if err != nil {
			return l, fmt.Errorf("make the counter of hits in a second: %w", kernelerr.Explain(err))
		}
	}
	return l, nil
}

// filter jumps to a label for a hit that is not let through. It uses R0 to R5.
func (l *limits) filter(exit string) asm.Instructions {
	var insns asm.Instructions
	if l.sample > 1 {
		insns = append(insns,
			asm.FnGetPrandomU32.Call(), // 32 bits
			asm.LoadImm(asm.R1, (1<<32)/int64(l.sample), asm.DWord),
			asm.JGE.Reg(asm.R0, asm.R1, exit),
		)
	}
	if l.perSec == 0 {
		return insns
	}
	const drop, passed = "rate_drop", "rate_passed"
	insns = append(insns,
		asm.FnKtimeGetNs.Call(),
		asm.LoadImm(asm.R1, int64(time.Second), asm.DWord),
		asm.Div.Reg(asm.R0, asm.R1),
		asm.LSh.Imm(asm.R0, 32),
		asm.Mov.Reg(asm.R5, asm.R0), // this second, without hits
		asm.LoadMapValue(asm.R4, l.windows.FD(), 0),
		asm.LoadMem(asm.R0, asm.R4, windowNow, asm.DWord),
	)
	for i := range windowTries {
		same, try, next := fmt.Sprintf("rate_same_%d", i), fmt.Sprintf("rate_try_%d", i), fmt.Sprintf("rate_next_%d", i)
		insns = append(insns,
			asm.Mov.Reg(asm.R1, asm.R0), // what is there
			asm.Mov.Reg(asm.R2, asm.R0),
			asm.RSh.Imm(asm.R2, 32),
			asm.LSh.Imm(asm.R2, 32),
			asm.JGE.Reg(asm.R2, asm.R5, same), // later, if another processor was faster
			asm.Mov.Reg(asm.R3, asm.R5),
			asm.Ja.Label(try),
			asm.Mov.Reg(asm.R3, asm.R1).WithSymbol(same),
			asm.Mov.Reg(asm.R2, asm.R1),
			asm.LSh.Imm(asm.R2, 32),
			asm.RSh.Imm(asm.R2, 32),
			asm.JGE.Imm(asm.R2, int32(l.perSec), drop),
			asm.Add.Imm(asm.R3, 1).WithSymbol(try),
			compareExchange(asm.R4, asm.R3, windowNow), // R0 is what was there
			asm.JNE.Reg(asm.R0, asm.R1, next),
			asm.Ja.Label(passed),
			asm.Mov.Reg(asm.R0, asm.R0).WithSymbol(next),
		)
	}
	return append(insns,
		asm.Mov.Imm(asm.R1, 1).WithSymbol(drop),
		asm.AddAtomic.Mem(asm.R4, asm.R1, asm.DWord, windowDropped),
		asm.Ja.Label(exit),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(passed),
	)
}

// compareExchange stores src at an offset from dst if R0 is there, and sets R0 to what was there.
func compareExchange(dst, src asm.Register, at int) asm.Instruction {
	ins := asm.CmpXchg.Mem(dst, src, asm.DWord, int16(at))
	ins.Constant = int64(asm.CmpXchg >> 8) // which cilium/ebpf 0.22 forgets: it writes an addition
	return ins
}

// dropped returns how many hits were not let through by the rate.
func (l *limits) dropped() (uint64, error) {
	if l.windows == nil {
		return 0, nil
	}
	var value [windowSize / 8]uint64
	err := l.windows.Lookup(uint32(0), &value)
	return value[windowDropped/8], err
}

func (l *limits) close() error {
	if l.windows == nil {
		return nil
	}
	return l.windows.Close()
}
