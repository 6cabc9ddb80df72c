// Command count runs a command while the program in ../libbpf/count.bpf.c counts:
//
//	count ./target
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/cilium/ebpf"
)

// The second line makes of bpf2go's object one that has the prologues of all places in ./target, which the generated code embeds.
//
//go:generate go tool bpf2go -tags linux count ../libbpf/count.bpf.c
//go:generate prolog-dump object count_bpfel.o -x ./target -o count_bpfel.o

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
}

func run(command []string) (err error) {
	spec, err := loadCount()
	if err != nil {
		return err
	}
	if err := Prepare(spec); err != nil {
		return err
	}
	var objects countObjects
	if err := spec.LoadAndAssign(&objects, nil); err != nil {
		return err
	}
	defer objects.Close()
	attached, err := Attach(spec, map[string]*ebpf.Program{"func": objects.Func})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, attached.Close()) }()
	fmt.Printf("%d probes, %d refused\n", attached.Probes, attached.Refused)
	if len(command) > 0 {
		if err := exec.Command(command[0], command[1:]...).Run(); err != nil {
			return err
		}
	}
	var hits, missing, sum int64
	if err := errors.Join(objects.Hits.Get(&hits), objects.Missing.Get(&missing), objects.Sum.Get(&sum)); err != nil {
		return err
	}
	fmt.Printf("%d hits, %d without the argument, sum %d\n", hits, missing, sum)
	return nil
}
