package export

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/cname"
	"github.com/bpfprologue/bpfprologue/internal/disasm"
	"github.com/bpfprologue/bpfprologue/plan"
)

// C writes BPF programs in C for clang, one for each instance: a macro that makes a
// program of a prologue in BPF assembly and a function of the user's that it calls, as
// Plan.Header declares it. That must be global, or static and noinline. A comment lists
// the sites that each is to be attached to. An instance with an address of the image,
// which moves when the kernel or a library is loaded, is left out: C has no place for
// what it is moved by.
func C(w io.Writer, p *plan.Plan, o Options) error {
	x, err := newExporter(p, o)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "/* Fetch prologues of %s\n *\n", cname.Comment(p.Definition.String()))
	fmt.Fprint(b, ` * The functions below get the arguments; bit i of err is set when argument i was not
 * fetched. For each instance, write
 *
 *     PROLOGUE_0(name, func, "kprobe/...")
 *
 * and attach the program "name" to the sites above the macro.
 */
#include <linux/types.h>

`)
	fmt.Fprint(b, p.Header())
	for i := range p.Instances {
		in := &p.Instances[i]
		fmt.Fprintf(b, "\n/* instance %d:\n", i)
		for _, n := range in.Sites {
			fmt.Fprintf(b, " *   %s\n", cname.Comment(x.cPlace(&p.Sites[n])))
		}
		if len(in.Prologue.Addrs) > 0 {
			fmt.Fprint(b, " * left out: it has an address of the image, which moves\n */\n")
			continue
		}
		fmt.Fprintf(b, " */\n#define PROLOGUE_%d(name, func, sec) \\\n", i)
		fmt.Fprint(b, "__attribute__((naked, used, section(sec))) int name(void) \\\n{ \\\n\tasm volatile( \\\n")
		for j := range in.Prologue.Insns {
			ins := &in.Prologue.Insns[j]
			line := fmt.Sprintf("\t\t\"%s;\"", cText(ins))
			if src := ins.Source(); src != nil {
				line += " /* " + cname.Comment(src.String()) + " */"
			}
			fmt.Fprintf(b, "%s \\\n", line)
		}
		fmt.Fprint(b, "\t\t\"call %[f];\" \\\n\t\t\"exit;\" \\\n\t\t: : [f] \"i\"(func)); \\\n}\n")
	}
	return b.Flush()
}

// cPlace is a site, by its symbol where that says where it is.
func (x *exporter) cPlace(s *plan.Site) string {
	place, err := x.tracePlace(s)
	if err != nil {
		place = fmt.Sprintf("%#x", s.Addr)
	}
	return place + "  " + s.String()
}

// cText is an instruction for clang's assembler, which writes jumps and calls of
// helpers in its own way. Clang 14 knows no store of a constant and no remainder:
// these are given by their bytes.
func cText(ins *asm.Instruction) string {
	op := ins.OpCode
	class := op.Class()
	switch {
	case class == asm.StClass, class == asm.ALU64Class && op.ALUOp() == asm.Mod, class == asm.ALUClass && op.ALUOp() == asm.Mod:
		word := uint64(uint8(op)) | uint64(ins.Dst&0xf)<<8 | uint64(ins.Src&0xf)<<12 | uint64(uint16(ins.Offset))<<16 | uint64(uint32(ins.Constant))<<32
		return fmt.Sprintf(".8byte %#x", word)
	case class == asm.JumpClass && op.JumpOp() == asm.Call:
		return fmt.Sprintf("call %d", ins.Constant)
	}
	return strings.Replace(disasm.Text(ins), "goto pc", "goto ", 1)
}
