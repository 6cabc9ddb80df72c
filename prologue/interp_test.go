package prologue_test

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/proof/exprtest"
	"github.com/bpfprologue/bpfprologue/internal/references"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// errEnded is interpret's error for a prologue that ends the program.
var errEnded = errors.New("the program was ended")

// interpret runs a prologue in a world, on either byte order and without a
// kernel. It is as strict as the verifier about what the instructions use: ctx,
// registers and stack that were set, aligned, forward.
func (w *world) interpret(p *prologue.Prologue, args int) (res bpfexec.Result, err error) {
	const (
		ctx   = 0x1000000000000000 // values of R1 and R10, recognised in addresses
		stack = 0x2000000000000000
		size  = 512

		counter = 0x3000000000000000 // the address of the value of MissingCounter
	)
	var (
		r       [11]uint64
		known   = uint16(1<<1 | 1<<10)
		mem     [size]byte
		set     [size]bool // bytes of the stack that were written
		insns   = map[int]*asm.Instruction{}
		pc      int
		end     int
		calls   int
		faulted bool
		pointer bool // R0 is what CastFunction returned
		pt      = w.ptRegs()
	)
	r[1], r[10] = ctx, stack
	iter := p.Insns.Iterate()
	for iter.Next() {
		insns[int(iter.Offset)] = iter.Ins
		end = int(iter.Offset) + int(iter.Ins.Width())
	}
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("at %d: %v", pc, e)
		}
	}()
	get := func(reg asm.Register) uint64 {
		if known>>reg&1 == 0 {
			panic(fmt.Sprintf("r%d is read and was not set", reg))
		}
		return r[reg]
	}
	put := func(reg asm.Register, v uint64) {
		if reg > 9 {
			panic("r10 is written")
		}
		if reg == asm.R0 {
			pointer = false
		}
		r[reg] = v
		known |= 1 << reg
	}
	// at is where on the stack an access goes.
	at := func(addr uint64, n int) int {
		off := int64(addr-stack) + size
		if off < int64(size-p.Stack) || off+int64(n) > size {
			panic(fmt.Sprintf("%d bytes at r10%+d, of a stack of %d", n, off-size, p.Stack))
		}
		return int(off)
	}
	aligned := func(addr uint64, n int) {
		if addr%uint64(n) != 0 {
			panic("an access that is not aligned")
		}
	}
	if at := unreachable(insns, end); at >= 0 {
		return res, fmt.Errorf("nothing leads to %d", at)
	}
	for pc != end {
		ins, ok := insns[pc]
		if !ok {
			return res, fmt.Errorf("a jump to %d, in the middle of an instruction or outside", pc)
		}
		pc += int(ins.Width())
		n := ins.OpCode.Size().Sizeof()
		switch class := ins.OpCode.Class(); class {
		case asm.LdClass:
			if ins.Reference() == references.MissingCounter {
				put(ins.Dst, counter+uint64(ins.Constant>>32))
				break
			}
			put(ins.Dst, uint64(ins.Constant))
		case asm.LdXClass:
			addr := get(ins.Src) + uint64(ins.Offset)
			v := func() uint64 {
				if pointer && ins.Src == asm.R0 {
					if ins.Offset%int16(n) != 0 {
						panic("an offset that is not aligned")
					}
					b, _ := w.read(addr, n) // a fault is 0
					return w.number(b)
				}
				aligned(addr, n)
				if addr == counter+references.FalseCounter && n == 8 {
					return w.excluded
				}
				if off := addr - ctx; off < uint64(len(pt)) {
					return w.number(pt[off:][:n])
				}
				off := at(addr, n)
				for i := range n {
					if !set[off+i] {
						panic("stack is read and was not set")
					}
				}
				return w.number(mem[off:][:n])
			}()
			if ins.OpCode.Mode() == asm.MemSXMode {
				if n == 8 {
					panic("a load that extends the sign of 8 bytes")
				}
				v = exprtest.Extend(v, n, true)
			}
			put(ins.Dst, v)
		case asm.StClass, asm.StXClass:
			v := uint64(ins.Constant)
			if class == asm.StXClass {
				v = get(ins.Src)
			}
			addr := get(ins.Dst) + uint64(ins.Offset)
			if addr == counter && ins.OpCode.Mode() == asm.AtomicMode {
				w.missing += v
				break
			}
			aligned(addr, n)
			if addr == counter+references.FalseCounter && n == 8 {
				w.excluded = v
				break
			}
			off := at(addr, n)
			copy(mem[off:], w.bytes(v, n))
			for i := range n {
				set[off+i] = true
			}
		case asm.ALUClass, asm.ALU64Class:
			op := ins.OpCode.ALUOp()
			src := uint64(ins.Constant)
			if ins.OpCode.Source() == asm.RegSource {
				src = get(ins.Src)
			}
			if class == asm.ALUClass {
				if op != asm.Mov {
					panic("a 32-bit operation other than a move")
				}
				put(ins.Dst, uint64(uint32(src)))
				break
			}
			if size, is := map[asm.ALUOp]int{asm.MovSX8: 1, asm.MovSX16: 2, asm.MovSX32: 4, asm.Mov: 8}[op]; is {
				put(ins.Dst, exprtest.Extend(src, size, true))
				break
			}
			v, err := alu(op, get(ins.Dst), src)
			if err != nil {
				return res, fmt.Errorf("at %d: %w", pc, err)
			}
			put(ins.Dst, v)
		case asm.JumpClass:
			op := ins.OpCode.JumpOp()
			if ins.IsKfuncCall() {
				if ins.Reference() != references.CastFunction || get(asm.R2) != 0 {
					panic("a call of " + ins.Reference())
				}
				addr := get(asm.R1)
				known &^= 0x3e // R1 to R5
				put(asm.R0, addr)
				pointer = true
				break
			}
			if op == asm.Exit {
				if get(asm.R0) != 0 {
					panic("an end with another result than 0")
				}
				return res, errEnded
			}
			if v, is := w.task[asm.BuiltinFunc(ins.Constant)]; op == asm.Call && is {
				known &^= 0x3e // R1 to R5
				put(asm.R0, v)
				break
			}
			if op == asm.Call {
				calls++
				n := int(get(asm.R2))
				off := at(get(asm.R1), n)
				var b []byte
				ok := true
				result := uint64(0)
				switch helper := asm.BuiltinFunc(ins.Constant); helper {
				case asm.FnGetCurrentComm:
					clear(mem[off : off+n])
					b = []byte(w.comm)
				case asm.FnProbeReadKernelStr, asm.FnProbeReadUserStr, asm.FnProbeReadStr:
					// What is after the NUL is left as it was.
					if b, ok = w.str(get(asm.R3), n); !ok {
						clear(mem[off : off+n])
					}
					result = uint64(len(b))
				case asm.FnProbeReadKernel, asm.FnProbeReadUser, asm.FnProbeRead, asm.FnCopyFromUser:
					b, ok = w.read(get(asm.R3), n)
					clear(mem[off : off+n])
				default:
					panic(fmt.Sprintf("a call of %v", helper))
				}
				if w.helper != nil {
					w.helper(asm.BuiltinFunc(ins.Constant), ok)
				}
				copy(mem[off:], b)
				for i := range n {
					set[off+i] = true
				}
				known &^= 0x3e // R1 to R5
				put(asm.R0, result)
				if !ok {
					faulted = true
					put(asm.R0, 1<<64-14)
				}
				break
			}
			if ins.Offset < 0 {
				panic("a jump backwards")
			}
			taken := op == asm.Ja
			if !taken {
				src := uint64(ins.Constant)
				if ins.OpCode.Source() == asm.RegSource {
					src = get(ins.Src)
				}
				taken = compare(op, get(ins.Dst), src)
			}
			if taken {
				pc += int(ins.Offset)
			}
		default:
			panic("an instruction of an unexpected class")
		}
	}
	if calls > p.Helpers && !faulted {
		return res, fmt.Errorf("%d helper calls, at most %d are announced", calls, p.Helpers)
	}
	if get(asm.R1) != ctx {
		return res, fmt.Errorf("r1 is %#x in the end, not ctx", r[1])
	}
	res.Err = get(asm.R2)
	if n := p.Layout.Size; p.Convention == prologue.ConventionRecord {
		off := at(get(asm.R3), n)
		for i := range n {
			if !set[off+i] {
				return res, fmt.Errorf("byte %d of the record was not set", i)
			}
		}
		res.Record = string(mem[off : off+n])
		return res, nil
	}
	for i := range args {
		res.Values[i] = get(asm.R3 + asm.Register(i))
	}
	return res, nil
}

// unreachable returns the offset of an instruction that nothing leads to, which the verifier
// refuses, or -1.
func unreachable(insns map[int]*asm.Instruction, end int) int {
	led := map[int]bool{0: true} // jumps go forward only
	for at := range end {
		ins := insns[at]
		if ins == nil {
			continue
		}
		if !led[at] {
			return at
		}
		next := at + int(ins.Width())
		op := ins.OpCode.JumpOp()
		if op == asm.Exit {
			continue
		}
		if op != asm.InvalidJumpOp && op != asm.Call {
			led[next+int(ins.Offset)] = true
		}
		if op != asm.Ja {
			led[next] = true
		}
	}
	return -1
}

func alu(op asm.ALUOp, a, b uint64) (uint64, error) {
	switch op {
	case asm.Add:
		return a + b, nil
	case asm.Sub:
		return a - b, nil
	case asm.Mul:
		return a * b, nil
	case asm.And:
		return a & b, nil
	case asm.Or:
		return a | b, nil
	case asm.Xor:
		return a ^ b, nil
	case asm.Neg:
		return -a, nil
	case asm.Div, asm.Mod:
		if b == 0 {
			return 0, fmt.Errorf("a division by 0")
		}
		q, rem := bits.Div64(0, a, b)
		if op == asm.Div {
			return q, nil
		}
		return rem, nil
	}
	if b > 63 {
		return 0, fmt.Errorf("a shift by %d", b)
	}
	switch op {
	case asm.LSh:
		return a << b, nil
	case asm.RSh:
		return a >> b, nil
	case asm.ArSh:
		return uint64(int64(a) >> b), nil
	}
	return 0, fmt.Errorf("operation %v, which old kernels lack", op)
}

func compare(op asm.JumpOp, a, b uint64) bool {
	switch op {
	case asm.JEq:
		return a == b
	case asm.JNE:
		return a != b
	case asm.JLT:
		return a < b
	case asm.JLE:
		return a <= b
	case asm.JGT:
		return a > b
	case asm.JGE:
		return a >= b
	case asm.JSLT:
		return int64(a) < int64(b)
	case asm.JSLE:
		return int64(a) <= int64(b)
	case asm.JSGT:
		return int64(a) > int64(b)
	case asm.JSGE:
		return int64(a) >= int64(b)
	}
	panic(fmt.Sprintf("jump %v, which old kernels lack", op))
}
