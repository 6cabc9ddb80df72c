package instances_test

import (
	"context"
	"fmt"
	"log"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// A loader with its own load path needs the preprocessor only.
func ExamplePreprocess() {
	data, err := fixtures.Bytes("basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		log.Fatal(err)
	}
	img, err := dwarfloc.FromBytes("toy kernel", data, nil)
	if err != nil {
		log.Fatal(err)
	}
	def, err := probe.ParseSection("func=my_func_two_abcd arg1")
	if err != nil {
		log.Fatal(err)
	}
	p, err := plan.New(context.Background(), img, def, plan.Options{})
	if err != nil {
		log.Fatal(err)
	}
	user := asm.Instructions{asm.Mov.Reg(asm.R0, asm.R3), asm.Return()}
	for i, in := range p.Instances {
		insns, err := instances.Preprocess(p, i, user)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d: %d sites, %d instructions\n", i, len(in.Sites), len(insns))
	}
	// Output:
	// 0: 1 sites, 4 instructions
	// 1: 1 sites, 5 instructions
	// 2: 1 sites, 4 instructions
}
