package origin

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/procfile"
	"github.com/bpfprologue/bpfprologue/internal/selected"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
)

// ProgramsOf returns the paths of the programs of a command, or else of processes, of which a function or a line is meant, and otherwise
// none: the kernel is meant then.
func (f *Finder) ProgramsOf(ctx context.Context, defs []*probe.Definition, command []string, pids []int) []string {
	if len(command) > 0 {
		path, err := exec.LookPath(command[0]) // as launch.Start: a file of that name here does not run
		if err != nil || !f.hasAny(ctx, path, defs) {
			return nil
		}
		return []string{path}
	}
	var out []string
	for _, pid := range pids {
		path := fmt.Sprintf("/proc/%d/exe", pid)
		if !slices.ContainsFunc(out, func(other string) bool { return procfile.Same(other, path) }) && f.hasAny(ctx, path, defs) {
			out = append(out, path)
		}
	}
	return out
}

// AlsoThere adds to the error for a function that the kernel does not have why it is not one of the program, and to that for a statically
// defined probe that the program does not have where others are.
func (f *Finder) AlsoThere(err error) error {
	var missing *sites.NotFoundError
	switch {
	case !errors.As(err, &missing) && !errors.Is(err, dwarfloc.ErrNoDWARF):
	case f.anyProbe:
		return usage.Advise(err, "-x FILE names the program or library that has the probe")
	case f.notThere != nil && missing != nil:
		return usage.Advise(err, fmt.Sprintf("and %v", f.notThere))
	}
	return err
}

// hasAny reports whether a program has a function, or a file of source lines, that a definition names, or is meant without it: kernels
// have no statically defined probes.
func (f *Finder) hasAny(ctx context.Context, path string, defs []*probe.Definition) bool {
	if slices.ContainsFunc(defs, func(def *probe.Definition) bool { return def.Point.Provider != "" }) {
		f.anyProbe = true
		return true
	}
	o := f.ImageOptions(nil)
	o.Symbols = true
	img, err := dwarfloc.Open(path, &o)
	if err != nil {
		f.notThere = err
		return false
	}
	defer img.Close()
	return slices.ContainsFunc(defs, func(def *probe.Definition) bool {
		p := &def.Point
		if p.Function == "" && p.Source == "" {
			return p.Address>>63 == 0 // the upper half of addresses is the kernel's
		}
		sel, err := selected.Of(def, nil)
		if p.Function == "" {
			sel.Source = p.Source
			sel.Functions, err = glob.Compile("*")
		}
		if err != nil {
			return false
		}
		list, err := sites.List(ctx, img, sel)
		if missing := (*sites.NotFoundError)(nil); errors.As(err, &missing) {
			f.notThere = err
		}
		return err == nil && list.Len() > 0
	})
}
