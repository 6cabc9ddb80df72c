// Command events loads an object file whose program reports each hit through the ring buffer
// "events", in the structure that "prolog-dump header" declares, runs a command meanwhile, and
// prints the hits with their values as their types say. IMAGE is a program with debug information
// or the running kernel's vmlinux. It needs root.
//
//	events bpf/events.o IMAGE COMMAND...
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/exec"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/terminal"
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
	subject := instances.Subject{Image: img, Running: check(instances.Find(img, instances.FindOptions{})), Dispatch: true}
	spec := check(instances.Expand(ctx, check(ebpf.LoadCollectionSpec(os.Args[1])),
		func(*probe.Definition) (instances.Subject, error) { return subject, nil }))
	loaded := check(instances.NewCollection(spec, ebpf.CollectionOptions{}))
	check(loaded.Attach(ctx, instances.AttachOptions{}))
	events := check(ringbuf.NewReader(loaded.Maps["events"]))

	cmd := exec.Command(os.Args[3], os.Args[4:]...)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	check(0, cmd.Start())
	go func() {
		check(0, cmd.Wait())
		check(0, events.Flush()) // what is there already is still read
	}()
	plan := loaded.Definitions["func"].Plan
	for {
		record, err := events.Read()
		if errors.Is(err, ringbuf.ErrFlushed) {
			return
		}
		e := check(plan.Event(check(record, err).RawSample))
		terminal.Fprintf(os.Stdout, "%v", &plan.Sites[e.Site])
		for _, v := range e.Values {
			terminal.Fprintf(os.Stdout, "  %s=%v", v.Name, v)
		}
		terminal.Fprintf(os.Stdout, "\n")
	}
}
