// Command hits loads bpf/hits.o, whose program's section name is a definition, attaches it
// at every place where a matching function runs, inlined or not, runs a command, and prints
// a table of functions, places and hits (as root): hits PROGRAM-WITH-DWARF COMMAND...
package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"log"
	"os"
	"os/exec"
	"text/tabwriter"

	"github.com/cilium/ebpf"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

//go:embed bpf/hits.o
var object []byte

func check[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func main() {
	if len(os.Args) < 3 {
		log.Fatalf("usage: %s PROGRAM COMMAND...", os.Args[0])
	}
	ctx := context.Background()
	img := check(dwarfloc.Open(os.Args[1]))
	running := check(instances.InFile(img, "", false))
	spec := check(ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object)))
	loader := check(instances.Open(ctx, spec, func(*probe.Definition) (instances.Target, error) {
		return instances.Target{Image: img, Options: instances.Options{Reads: prologue.ReadUser}, Running: running}, nil
	}))
	loaded := check(loader.Load(ebpf.CollectionOptions{}))
	check(loaded.Attach(ctx, "func", instances.AttachOptions{}))

	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	check(0, cmd.Run())
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FUNCTION\tSITE\tHITS\tSUM OF KEY\tWITHOUT A KEY")
	for i, site := range loaded.Plans["func"].Sites {
		var c struct{ Hits, Sum, Missing uint64 }
		check(0, loaded.Maps["counts"].Lookup(uint32(i), &c))
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\n", site.Function, site.Place(), c.Hits, int64(c.Sum), c.Missing)
	}
	check(0, t.Flush())
}
