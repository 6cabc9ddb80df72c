// Command preprocessor is a loader with its own load path. It gets the instructions of each
// instance from instances.Preprocess, as from a callback of libbpf's bpf_program__set_prep,
// and loads them itself. It attaches nothing.
//
//	preprocessor IMAGE 'EVENT=FUNC ARG...'
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/terminal"
)

func check[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func main() {
	if len(os.Args) != 3 {
		log.Fatalf("usage: %s IMAGE 'EVENT=FUNC ARG...'", os.Args[0])
	}
	img := check(dwarfloc.Open(os.Args[1], nil))
	def := check(probe.ParseSection(os.Args[2]))
	p := check(plan.New(context.Background(), img, def, plan.Options{Convention: prologue.ConventionRegisters}))

	// The program: it returns err.
	user := asm.Instructions{asm.Mov.Reg(asm.R0, asm.R2), asm.Return()}
	for n, instance := range p.Instances {
		insns := check(instances.Preprocess(p, n, user))
		prog := check(ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: fmt.Sprintf("%.9s_%d", def.Event, n), Type: ebpf.Kprobe, License: "GPL", Instructions: insns,
		}))
		terminal.Fprintf(os.Stdout, "instance %d: %d instructions, descriptor %d, for", n, len(insns), prog.FD())
		for _, i := range instance.Sites {
			terminal.Fprintf(os.Stdout, " %s", p.Sites[i].SymbolOffset())
		}
		terminal.Fprintf(os.Stdout, "\n")
	}
}
