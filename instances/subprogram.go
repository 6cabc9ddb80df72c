package instances

import (
	"slices"
	"strconv"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/bpfprologue/bpfprologue/internal/bpfstack"
	"github.com/bpfprologue/bpfprologue/internal/choice"
	"github.com/bpfprologue/bpfprologue/internal/references"
)

// callFrom makes an instance's prologue the entry function of a program. The entry calls the
// program's first function and returns its result. Its name has the instance's number,
// because the kernel's symbols have names of functions, not of programs.
func callFrom(instance int, pro, original asm.Instructions, outside bool) asm.Instructions {
	return enter(instance, pro, original, "_fetch_", "ctx, err and the record", outside)
}

// enter puts an entry function before a program, which begins with the instructions before, calls
// the program's first function with what is in the registers then, and returns its result. Names of
// both have a number, the entry's after a mark; with is what the comment at the call says. outside is
// set if there is a record in a map.
func enter(number int, before, original asm.Instructions, mark, with string, outside bool) asm.Instructions {
	after := asm.Instructions{asm.Return()}
	if outside {
		after = asm.Instructions{references.ReleaseRecord(), asm.Return()}
	}
	return surround(number, before, after, original, mark, with)
}

// surround is enter with instructions after the call, which return.
func surround(number int, before, after, original asm.Instructions, mark, with string) asm.Instructions {
	name := original[0].Symbol()
	if name == "" {
		name = "program"
	}
	call := asm.Instruction{
		OpCode:   asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call),
		Src:      asm.PseudoCall,
		Constant: int64(choice.Size(after)), // the function after these
	}.WithSource(asm.Comment("call " + name + " with " + with))
	out := slices.Concat(before, asm.Instructions{call}, after, original)
	from := len(before) + 1 + len(after)
	entry, user := &out[0], &out[from]

	taken := make(map[string]bool)
	for i := range original {
		taken[original[i].Symbol()] = true
	}
	own := name + mark + strconv.Itoa(number)
	for taken[own] {
		own += "_"
	}
	*entry = entry.WithSymbol(own)
	if user.Symbol() == "" {
		*user = user.WithSymbol(name)
	}
	if fn := btf.FuncMetadata(user); fn != nil {
		// The kernel accepts types for all functions or for none.
		*entry = btf.WithFuncMetadata(*entry, entryType(own))
		static := named(fn, number)
		static.Linkage = btf.StaticFunc
		*user = btf.WithFuncMetadata(*user, static)
	}
	// The prologue's comments are line information. If there is any, every function must have
	// some at its first instruction (check_btf_line in kernel/bpf/verifier.c).
	for start := range functions(original) {
		if ins := &out[from+start]; ins.Source() == nil {
			text := ins.Symbol()
			if text == "" {
				text = "a function"
			}
			*ins = ins.WithSource(asm.Comment(text))
		}
	}
	return out
}

// entryType returns the type int name(void *ctx).
func entryType(name string) *btf.Func {
	return &btf.Func{
		Name: name,
		Type: &btf.FuncProto{
			Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed},
			Params: []btf.FuncParam{{Name: "ctx", Type: &btf.Pointer{Target: (*btf.Void)(nil)}}},
		},
		Linkage: btf.StaticFunc,
	}
}

// functions returns the indices of the first instructions of functions, and for each function
// those of the functions that it refers to: the ones that it calls or passes to helpers.
func functions(insns asm.Instructions) map[int][]int {
	bySymbol := make(map[string]int)
	byOffset := make(map[asm.RawInstructionOffset]int)
	offsets := make([]asm.RawInstructionOffset, len(insns))
	for i, iter := 0, insns.Iterate(); iter.Next(); i++ {
		if s := iter.Ins.Symbol(); s != "" {
			bySymbol[s] = i
		}
		byOffset[iter.Offset] = i
		offsets[i] = iter.Offset
	}
	starts := map[int][]int{0: nil}
	type edge struct{ from, to int }
	var edges []edge
	for i := range insns {
		ins := &insns[i]
		if !ins.IsFunctionReference() {
			continue
		}
		to, ok := bySymbol[ins.Reference()]
		if ins.Reference() == "" {
			to, ok = byOffset[offsets[i]+1+asm.RawInstructionOffset(ins.Constant)]
		}
		if ok {
			starts[to] = nil
			edges = append(edges, edge{i, to})
		}
	}
	for _, e := range edges {
		f := e.from
		for !begins(starts, f) {
			f--
		}
		starts[f] = append(starts[f], e.to)
	}
	return starts
}

func begins(starts map[int][]int, i int) bool {
	_, ok := starts[i]
	return ok
}

// stackOf estimates how much stack a program uses, as the kernel counts it: that of its first
// function and of the deepest chain of functions that it refers to. A function uses its frame
// down to the lowest access or address in it.
func stackOf(insns asm.Instructions) int {
	starts := functions(insns)
	var deepest func(f int, above []int) int
	deepest = func(f int, above []int) int {
		end := f + 1
		for end < len(insns) && !begins(starts, end) {
			end++
		}
		own := frameOf(insns[f:end])
		below := 0
		for _, g := range starts[f] {
			// The kernel takes no recursion, and a call depth of 8 at most.
			if g != f && !slices.Contains(above, g) && len(above) < maxCallDepth {
				below = max(below, bpfstack.Frame(deepest(g, append(above, f))))
			}
		}
		if below == 0 {
			return own
		}
		return bpfstack.Frame(own) + below
	}
	return deepest(0, nil)
}

// maxCallDepth is MAX_CALL_FRAMES of include/linux/bpf_verifier.h.
const maxCallDepth = 8

// frameOf returns how many bytes below R10 a function's instructions reach.
func frameOf(insns asm.Instructions) int {
	lowest := int64(0)
	frame := map[asm.Register]int64{asm.R10: 0} // offsets of registers that point into the frame
	for i := range insns {
		ins := &insns[i]
		op := ins.OpCode
		dst, isFrame := frame[ins.Dst]
		switch op.Class() {
		case asm.StClass, asm.StXClass:
			if isFrame {
				lowest = min(lowest, dst+int64(ins.Offset))
			}
		case asm.LdXClass, asm.LdClass:
			if src, ok := frame[ins.Src]; ok && op.Class() == asm.LdXClass {
				lowest = min(lowest, src+int64(ins.Offset))
			}
			delete(frame, ins.Dst)
		case asm.ALU64Class:
			src, fromFrame := frame[ins.Src]
			switch {
			case op.ALUOp() == asm.Mov && op.Source() == asm.RegSource && fromFrame:
				frame[ins.Dst] = src
			case op.ALUOp() == asm.Add && op.Source() == asm.ImmSource && isFrame:
				frame[ins.Dst] = dst + ins.Constant
				lowest = min(lowest, dst+ins.Constant)
			default:
				delete(frame, ins.Dst)
			}
		case asm.ALUClass:
			delete(frame, ins.Dst)
		case asm.JumpClass:
			if op.JumpOp() == asm.Call {
				for r := asm.R0; r <= asm.R5; r++ {
					delete(frame, r)
				}
			}
		}
	}
	return int(-lowest)
}
