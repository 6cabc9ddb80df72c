package prologue_test

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

func ExampleEmit() {
	rax := loc.Location{Kind: loc.KindRegister, Expr: &loc.Expr{Op: ops.Reg, K: 0}}
	p, err := prologue.Emit(
		[]prologue.Arg{{Name: "page", Loc: rax, Size: 8}},
		prologue.Options{Arch: arch.ByName("amd64"), Site: "get_page inlined in vdso_fault+93"},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(p)
	// Output:
	//   0: r3 = *(u64 *)(r1 +80)           ; page: %rax · get_page inlined in vdso_fault+93
	//   1: r2 = 0
}

// Two variables in the stack frame are read together; one that is not located has
// its bit set in err.
func ExampleEmit_stack() {
	p, err := prologue.Emit(
		[]prologue.Arg{
			{Name: "len", Loc: inMem(plus(reg(7), 28)), Size: 4, Signed: true},
			{Name: "pos", Loc: inMem(plus(reg(7), 8)), Size: 8},
			{Name: "flags", Reason: loc.Reason{Code: reasons.EntryValueOnly}, Size: 4},
		},
		prologue.Options{Arch: arch.ByName("amd64")},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(p)
	for i, r := range p.Reasons {
		if r.Code != reasons.None {
			fmt.Printf("argument %d: %s\n", i, r)
		}
	}
	// Output:
	//   0: r6 = r1                         ; len: [%rsp+28], pos: [%rsp+8]
	//   1: r3 = *(u64 *)(r6 +152)
	//   2: r3 += 8
	//   3: r1 = r10
	//   4: r1 += -24
	//   5: r2 = 24
	//   6: call bpf_probe_read_kernel
	//   7: r0 >>= 63
	//   8: r0 *= 3
	//   9: r2 = r0
	//  10: r3 = *(u32 *)(r10 -4)
	//  11: r3 <<= 32
	//  12: r3 s>>= 32
	//  13: r4 = *(u64 *)(r10 -24)
	//  14: r5 = 0                          ; flags: not fetched: entry-value-only
	//  15: r2 |= 4                         ; err: flags: entry-value-only
	//  16: r1 = r6
	// argument 2: entry-value-only
}

func ExamplePrologue_Slid() {
	global := loc.Location{Kind: loc.KindMemory, Expr: &loc.Expr{Op: ops.Addr, K: 0xffffffff82a00010}}
	p, err := prologue.Emit(
		[]prologue.Arg{{Name: "jiffies", Loc: global, Size: 8}},
		prologue.Options{Arch: arch.ByName("amd64")},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range p.Addrs {
		fmt.Printf("%#x becomes %#x\n", uint64(p.Insns[i].Constant), uint64(p.Slid(0x1c000000)[i].Constant))
	}
	// Output: 0xffffffff82a00010 becomes 0xffffffff9ea00010
}
