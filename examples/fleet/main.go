// Command fleet traces kernels of which it carries the answers: no host has their debug information. It prints each buffer
// of a network packet that is freed, with who frees it, while a command runs. It needs root.
//
//	fleet COMMAND...
//
// Which functions a kernel has differs: the definition names candidates, and the first one that the kernel has is probed,
// wherever it is inlined. "make fleet-packs" writes the packs again.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/pack"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/tracer"
)

//go:embed packs
var packs embed.FS

const definition = "sk_skb_reason_drop|kfree_skb_reason|kfree_skb skb->len"

func check[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// open opens the pack of the running kernel.
func open() *dwarfloc.Image {
	name := check(instances.KernelBuildID()) + pack.Extension
	d, err := packs.ReadFile(path.Join("packs", name))
	if errors.Is(err, fs.ErrNotExist) {
		known := check(fs.Glob(packs, "packs/*"+pack.Extension))
		log.Fatalf("this is none of the %d kernels that are known here: add packs/%s, written by \"prolog-dump pack\" from the kernel's vmlinux", len(known), name)
	}
	return check(dwarfloc.FromBytes(name, check(d, err), &dwarfloc.Options{KernelTypes: instances.KernelTypes}))
}

func main() {
	if len(os.Args) < 2 {
		log.Fatalf("usage: %s COMMAND...", os.Args[0])
	}
	ctx, cancel := context.WithCancel(context.Background())
	img := open()
	running := check(instances.Find(img, instances.FindOptions{}))
	p := check(plan.New(ctx, img, check(probe.Parse(definition)), plan.Options{Target: running.Target()}))
	session := check(tracer.Open(ctx, running, []*plan.Plan{p}, tracer.Options{}))
	fmt.Printf("%s: probes at %d of %d sites\n", p.Definition.Point.Function, len(session.Attachments[0].Attached), len(p.Sites))
	go func() {
		cmd := exec.Command(os.Args[1], os.Args[2:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		check(0, cmd.Run())
		cancel()
	}()
	check(0, session.Run(ctx, func(h *tracer.Hit) error {
		_, err := fmt.Printf("%s: %v: %v bytes\n", h.Comm, p.Sites[h.Site].Site, h.Values[0])
		return err
	}))
	check(0, session.Close())
}
