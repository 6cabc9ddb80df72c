// Command hits loads an object file whose program's section name is a probe definition. It
// attaches the program wherever a matching function runs, inlined or not, runs a command,
// and prints a table of functions, sites and hits. IMAGE is a program with debug information
// or the running kernel's vmlinux. It needs root.
//
//	hits bpf/hits.o IMAGE COMMAND...
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"text/tabwriter"

	"github.com/cilium/ebpf"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/probe"
)

func check[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func main() {
	if len(os.Args) < 4 {
		log.Fatalf("usage: %s OBJECT IMAGE COMMAND...", os.Args[0])
	}
	ctx := context.Background()
	img := check(dwarfloc.Open(os.Args[2], nil))
	subject := instances.Subject{Image: img, Running: check(instances.Find(img, instances.FindOptions{}))}
	spec := check(instances.Expand(ctx, check(ebpf.LoadCollectionSpec(os.Args[1])),
		func(*probe.Definition) (instances.Subject, error) { return subject, nil }))
	loaded := check(instances.NewCollection(spec, ebpf.CollectionOptions{}))
	attached := check(loaded.Attach(ctx, instances.AttachOptions{}))["func"]

	cmd := exec.Command(os.Args[3], os.Args[4:]...)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	check(0, cmd.Run())
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FUNCTION\tSITE\tHITS\tSUM\tWITHOUT A VALUE")
	for _, i := range attached.Attached {
		var c struct{ Hits, Sum, Missing uint64 }
		check(0, loaded.Maps["counts"].Lookup(uint32(i), &c))
		if site := loaded.Definitions["func"].Plan.Sites[i]; c.Hits > 0 {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\n", site.Function, site.SymbolOffset(), c.Hits, int64(c.Sum), c.Missing)
		}
	}
	check(0, t.Flush())
}
