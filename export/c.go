package export

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/cname"
	"github.com/bpfprologue/bpfprologue/internal/disasm"
	"github.com/bpfprologue/bpfprologue/internal/references"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// C writes BPF programs in C for clang: for each instance a macro that makes a program from
// the prologue, in BPF assembly, and a call of the user's function, which is declared as
// Plan.Header does, but static: the verifier takes a global function with such a parameter for none
// that it knows. A comment lists the sites
// to attach each program to. An instance that holds an address of the image is left out: the
// address moves when the kernel or a library is loaded, and C has no place for the offset. A plan
// with prologue.ReadCast is an error.
func C(w io.Writer, p *plan.Plan, o Options) error {
	if err := checkReads(p); err != nil {
		return err
	}
	x, err := newExporter(p, o)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "/* Fetch prologues of %s\n *\n", cname.Comment(p.Definition.String()))
	fmt.Fprint(b, " * The functions below get the arguments; bit i of err is set when argument i was not\n * fetched")
	if p.Doubt == plan.DoubtKeep {
		fmt.Fprint(b, ", or may not be what was passed: then it is there, and "+doubtBit(p))
	}
	fmt.Fprint(b, `. For each instance, write
 *
 *     PROLOGUE_0(name, func, "kprobe/...")
 *
 * and attach the program "name" to the sites above the macro. The functions are static, and not inlined:
 * the verifier follows the arguments into them from the call. A global one would have to stand for itself.
 */
#include <linux/types.h>

#pragma GCC diagnostic ignored "-Wunused-function"

`)
	fmt.Fprint(b, static.ReplaceAllString(p.Header(), "static __attribute__((noinline)) $0"))
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
			text, err := cText(ins)
			if err != nil {
				return err
			}
			line := fmt.Sprintf("\t\t\"%s;\"", text)
			if src := ins.Source(); src != nil {
				line += " /* " + cname.Comment(src.String()) + " */"
			}
			fmt.Fprintf(b, "%s \\\n", line)
		}
		fmt.Fprint(b, "\t\t\"call %[f];\" \\\n\t\t\"exit;\" \\\n\t\t: : [f] \"i\"(func)); \\\n}\n")
	}
	return x.end(b)
}

// static finds the declarations of functions.
var static = regexp.MustCompile(`(?m)^int `)

// doubtBit says where a program finds which arguments are there and doubtful.
func doubtBit(p *plan.Plan) string {
	if p.Convention == prologue.ConventionRecord {
		return "bit i of args->doubt says so"
	}
	return fmt.Sprintf("bit %d+i of err says so", prologue.DoubtShift)
}

// cPlace describes a site by its symbol, or by its address if the symbol is ambiguous.
func (x *exporter) cPlace(s *plan.Site) string {
	place, err := x.tracePlace(s)
	if err != nil {
		place = fmt.Sprintf("%#x", s.Addr)
	}
	return place + "  " + s.String()
}

// checkReads returns an error for a plan whose prologues call a function of the running kernel: its
// number is known where they are loaded.
func checkReads(p *plan.Plan) error {
	if p.Target.Reads == prologue.ReadCast {
		return fmt.Errorf("prologues with %v reads call %s, whose number only the kernel that loads them knows; those with kernel reads can be exported",
			p.Target.Reads, references.CastFunction)
	}
	return nil
}

// asBytes reports whether clang 14 has no text for an instruction: stores of constants, remainders,
// and what extends signs.
func asBytes(op asm.OpCode) bool {
	switch op.Class() {
	case asm.StClass:
		return true
	case asm.LdXClass:
		return op.Mode() == asm.MemSXMode
	case asm.ALUClass, asm.ALU64Class:
		switch op.ALUOp() {
		case asm.Mod, asm.MovSX8, asm.MovSX16, asm.MovSX32:
			return true
		}
	}
	return false
}

// cText returns an instruction for clang's assembler, which has its own syntax for jumps and
// calls of helpers.
func cText(ins *asm.Instruction) (string, error) {
	switch op := ins.OpCode; {
	case asBytes(op):
		var word bytes.Buffer
		if _, err := ins.Marshal(&word, binary.LittleEndian); err != nil {
			return "", err
		}
		return fmt.Sprintf(".8byte %#x", binary.LittleEndian.Uint64(word.Bytes())), nil
	case op.JumpOp() == asm.Call:
		return fmt.Sprintf("call %d", ins.Constant), nil
	}
	return strings.Replace(disasm.Text(ins), "goto pc", "goto ", 1), nil
}
