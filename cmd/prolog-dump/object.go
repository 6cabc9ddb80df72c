package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/probe"
)

// runObject loads an object file, attaches its programs at their definitions, and
// waits until the command or the context ends.
func (s *settings) runObject(cmd *cobra.Command, object string, command []string, force bool, pid int) (err error) {
	spec, err := ebpf.LoadCollectionSpec(object)
	if err != nil {
		return fmt.Errorf("%s: %w", object, err)
	}
	ctx := cmd.Context()
	type opened struct {
		*subject
		running *instances.Running
	}
	subjects := make(map[probe.Options]opened)
	about := make(map[*dwarfloc.Image]*subject)
	expanded, err := instances.Expand(ctx, spec, func(def *probe.Definition) (instances.Subject, error) {
		key := probe.Options{Exec: def.Options.Exec, Module: def.Options.Module}
		x, known := subjects[key]
		if !known {
			var err error
			if x.subject, err = s.subject(&def.Options); err != nil {
				return instances.Subject{}, err
			}
			about[x.img] = x.subject
			if x.running, err = x.subject.running(force); err != nil {
				return instances.Subject{}, err
			}
			subjects[key] = x
		}
		return instances.Subject{Image: x.img, Options: x.options, Running: x.running, Dispatch: true}, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", object, err)
	}
	if len(expanded.Definitions) == 0 {
		return fmt.Errorf("%s: no program's section name is a definition, such as \"func=get_page page\"", object)
	}
	// Kernels before 5.11 count maps against the limit of locked memory. On later ones an
	// error does not matter.
	_ = rlimit.RemoveMemlock()
	c, err := instances.NewCollection(expanded, ebpf.CollectionOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", object, err)
	}
	defer c.Close()
	// If another program is attached, it is no error that one is not. It is said below.
	ending := &ending{ctx: ctx}
	defer func() { err = errors.Join(err, ending.finish()) }()
	attached, err := c.Attach(ctx, instances.AttachOptions{PID: pid, End: ending.end, Progress: showAttaching(), None: len(c.Definitions) > 1})
	if err != nil {
		return fmt.Errorf("%s: %w", object, err)
	}
	probes := 0
	for _, name := range slices.Sorted(maps.Keys(attached)) {
		p, a := c.Definitions[name].Plan, attached[name]
		defer a.Close()
		probes += len(a.Attached)
		if err := about[p.Image].reportAttached(stderr, p, a); err != nil {
			return err
		}
	}
	if probes == 0 {
		return fmt.Errorf("%s: %w: at all sites of all programs", object, instances.ErrRefused)
	}
	running, child, err := start(ctx, command)
	if err != nil {
		return err
	}
	<-running.Done()
	if child != nil {
		return child.wait(ctx)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return ctx.Err()
}
