package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
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
	for first, end := 0, 0; first < len(sites); first = end {
		end = first + apart(sites[first:])
		p := &plan.Plan{Definition: def, Image: img, Target: kernel.Target(), Instances: make([]plan.Instance, 1)}
		for i, addr := range sites[first:end] {
			p.Sites = append(p.Sites, plan.Site{Site: &dwarfloc.Site{Addr: addr}})
			p.Instances[0].Sites = append(p.Instances[0].Sites, i)
		}
		a, err := instances.Attach(context.Background(), p, []*ebpf.Program{prog}, kernel, instances.AttachOptions{})
		if err != nil {
			return err
		}
		states, err := listed()
		if err != nil {
			return errors.Join(err, a.Close())
		}
		for _, i := range a.Attached {
			line := refused(0, first+i, nil)
			addr := sites[first+i] + kernel.Target().Slide
			if line.State = states[addr]; line.State == "" {
				line.State = states[addr+4] // behind ENDBR64, where the kernel moves probes at functions
			}
			if err := r.line(guest.Line{Attach: line}); err != nil {
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

// apart returns how many of the first addresses can be probed at once, at most together: as many as
// are not so near each other that one keeps another from becoming a jump.
func apart(addrs []uint64) int {
	const near = 32
	taken := make(map[uint64]bool)
	for i, addr := range addrs[:min(together, len(addrs))] {
		at := addr / near
		if taken[at-1] || taken[at] || taken[at+1] {
			return i
		}
		taken[at] = true
	}
	return min(together, len(addrs))
}

// optimization is the sysctl that lets the kernel make jumps of kprobes.
const optimization = "/proc/sys/debug/kprobes-optimization"

// listed lets the kernel make jumps of the kprobes that can be optimised, for as long as it takes to
// read its list of kprobes. It returns what the list says of each, by address.
func listed() (states map[uint64]string, err error) {
	if err := os.WriteFile(optimization, []byte("1"), 0); err == nil {
		defer func() { err = errors.Join(err, os.WriteFile(optimization, []byte("0"), 0)) }()
	}
	var list []byte
	for {
		now, err := os.ReadFile("/sys/kernel/debug/kprobes/list")
		if err != nil {
			return nil, err
		}
		if bytes.Equal(now, list) {
			break // a delayed work makes the jumps
		}
		list = now
		time.Sleep(settle)
	}
	states = make(map[uint64]string)
	for line := range strings.Lines(string(list)) {
		var addr uint64
		if _, err := fmt.Sscanf(line, "%x", &addr); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		_, state, _ := strings.Cut(line, "[")
		states[addr] = strings.TrimSpace("[" + state)
	}
	return states, nil
}

// settle is longer than the kernel waits before it makes jumps: OPTIMIZE_DELAY in kernel/kprobes.c,
// five ticks.
const settle = 30 * time.Millisecond
