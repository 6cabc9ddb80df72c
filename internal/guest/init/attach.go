package main

import (
	"context"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/guest"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// together is the number of sites that are attached at once: with more, each costs more.
const together = 100

// attach tries to attach an empty probe at each of some addresses, and reports the kernel's
// answers.
func attach(sites []uint64, img *dwarfloc.Image, kernel *instances.Running, r *reporter) error {
	if len(sites) == 0 {
		return nil
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 4 * together, Max: 4 * together}); err != nil {
		return err
	}
	def, err := probe.Parse(guest.Marker)
	if err != nil {
		return err
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "nothing", Type: ebpf.Kprobe, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return err
	}
	defer prog.Close()
	for first := 0; first < len(sites); first += together {
		p := &plan.Plan{Definition: def, Image: img, Target: kernel.Target(), Instances: make([]plan.Instance, 1)}
		for i, addr := range sites[first:min(first+together, len(sites))] {
			p.Sites = append(p.Sites, plan.Site{Site: &dwarfloc.Site{Addr: addr}})
			p.Instances[0].Sites = append(p.Instances[0].Sites, i)
		}
		a, err := instances.Attach(context.Background(), p, []*ebpf.Program{prog}, kernel, instances.AttachOptions{})
		if err != nil {
			return err
		}
		for _, i := range a.Attached {
			if err := r.line(guest.Line{Attach: refused(0, first+i, nil)}); err != nil {
				return err
			}
		}
		for _, x := range a.Refused {
			if err := r.line(guest.Line{Attach: refused(0, first+x.Site, x.Err)}); err != nil {
				return err
			}
		}
		if err := a.Close(); err != nil {
			return err
		}
	}
	return nil
}
