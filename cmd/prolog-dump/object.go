package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// runObject loads an object file, attaches its programs at their definitions, and
// waits until the command or the context ends.
func (s *settings) runObject(cmd *cobra.Command, object string, command []string, o tracer.Options) error {
	spec, err := ebpf.LoadCollectionSpec(object)
	if err != nil {
		return fmt.Errorf("%s: %w", object, err)
	}
	ctx := cmd.Context()
	kernel := make(map[*dwarfloc.Image]bool)
	images := make(map[string]*dwarfloc.Image)
	defer func() {
		for _, img := range images {
			_ = img.Close()
		}
	}()
	loader, err := instances.Open(ctx, spec, func(def *probe.Definition) (instances.Target, error) {
		path, isKernel, err := s.imagePath(&def.Options)
		if err != nil {
			return instances.Target{}, err
		}
		if images[path] == nil {
			if images[path], err = s.open(path); err != nil {
				return instances.Target{}, err
			}
		}
		t := instances.Target{Image: images[path]}
		if t.Options, err = s.options(isKernel); err == nil && isKernel {
			kernel[t.Image] = true
			t.Slide, err = instances.KernelSlide(t.Image)
		}
		return t, err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", object, err)
	}
	if len(loader.Plans) == 0 {
		return fmt.Errorf("%s: no program's section name is a definition, such as \"func=get_page page\"", object)
	}
	c, err := loader.Load(ebpf.CollectionOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", object, err)
	}
	defer c.Close()
	for _, name := range slices.Sorted(maps.Keys(c.Plans)) {
		plan := c.Plans[name]
		a, err := c.Attach(ctx, name, instances.AttachOptions{Kernel: kernel[plan.Image], PID: o.PID, Force: o.Force})
		if err != nil {
			return fmt.Errorf("%s: program %s: %w", object, name, err)
		}
		defer a.Close()
		tellAttached(plan, a)
	}
	running, told, err := start(ctx, command)
	if err != nil {
		return err
	}
	<-running.Done()
	told(ctx)
	if len(command) > 0 || errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return ctx.Err()
}

// tellAttached says where a plan is attached, and where the kernel refused.
func tellAttached(p *instances.Plan, a *instances.Attachment) {
	for _, r := range a.Refused {
		fmt.Fprintf(os.Stderr, "not attached: %v: %v\n", &p.Sites[r.Site], r.Err)
	}
	fmt.Fprintf(os.Stderr, "%v: attached at %d of %s\n", p.Definition, len(a.Attached), count(len(a.Attached)+len(a.Refused), "site"))
}
