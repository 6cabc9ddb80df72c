package dwarfloc_test

import (
	"context"
	"fmt"
	"log"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

func Example() {
	data, err := fixtures.Bytes("basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		log.Fatal(err)
	}
	img, err := dwarfloc.FromBytes("toy kernel", data, nil)
	if err != nil {
		log.Fatal(err)
	}
	sites, err := img.Sites(context.Background(), dwarfloc.Name("my_func_three_abcd"))
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range sites {
		v, err := s.Lookup("arg1")
		if err != nil {
			log.Fatal(err)
		}
		if v.Located() {
			fmt.Printf("%v: %v is %s\n", s, v.Type, v.Loc.Text(img.Arch()))
		} else {
			fmt.Printf("%v: %v\n", s, v.Reason)
		}
	}
	// Output:
	// my_func_three_abcd: s32 is %rdx
	// my_func_three_abcd inlined in call_my_funcs+0x3a: s32 is %rdi
	// my_func_three_abcd inlined in call_my_funcs+0x3e: s32 is (%rcx + %r8) + %r9
	// my_func_three_abcd inlined in call_my_funcs+0x45: optimized-out
}
