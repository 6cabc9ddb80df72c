package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// New finds the sites of a definition in an image, resolves its arguments there, and
// writes their prologues.
//
// Of a function with candidates (probe.Point.Candidates) the plan's definition has the one that is meant.
//
// An error about the definition is a *probe.Error, which points into its text. It may wrap
// a *sites.NotFoundError, a *sites.NoSourceError, dwarfloc.ErrNoFunction,
// ErrMissingArgument or ErrNeedsRecord.
// A record that is too large is a *prologue.StackError. If ctx ends, the error is its cause.
// Other errors are about damaged debug information or a file that cannot be read.
func New(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, o Options) (*Plan, error) {
	def, err := chosen(ctx, img, def, &o)
	if err != nil {
		return nil, err
	}
	p, err := begin(img, def, &o)
	if err != nil {
		return nil, err
	}
	found, err := expand(ctx, img, def, &o)
	if err != nil {
		return nil, err
	}
	if found, err = throughWays(ctx, img, def, found, &o); err != nil {
		return nil, err
	}
	p.Sites = make([]Site, 0, len(found))
	if err := p.resolve(ctx, found, &o); err != nil {
		return nil, err
	}
	// Checked first: a mistyped name causes other errors too.
	if err := p.checkNames(); err != nil {
		return nil, err
	}
	p.choose(&o)
	if err := p.fits(); err != nil {
		return nil, err
	}
	p.agree(p.shapes())
	err = p.write(ctx, &o)
	key := p.keySize(&o)
	if err == nil {
		err = p.keyFits(key)
	}
	var stack *prologue.StackError
	if errors.As(err, &stack) && o.LargeRecords {
		p.moveRecords(key)
		err = p.write(ctx, &o)
	}
	if err != nil {
		return nil, err
	}
	if err := img.Changed(); err != nil { // symbols and names of types are asked for without an error
		return nil, err
	}
	return p, nil
}

// moveRecords makes room for the records of all sites outside of the stack, each with a key.
func (p *Plan) moveRecords(key int) {
	p.Instances = nil
	for i := range p.Sites {
		p.RecordBytes = max(p.RecordBytes, prologue.RecordSize(p.Sites[i].appendArgs(nil), p.Doubt == DoubtKeep)+key)
	}
}

// keySize returns how many bytes the key of a summary needs at most, or 0 if it has a place of its own.
func (p *Plan) keySize(o *Options) (size int) {
	if len(o.Keys) == 0 || o.runs {
		return 0
	}
	for i := range p.Sites {
		s := &p.Sites[i]
		n := keyWords + keySize(s.Args, o)
		for k := range s.parts {
			if a := &s.parts[k]; slices.Contains(o.Keys, s.Args[a.of].Name) {
				n += prologue.RecordSize([]prologue.Arg{a.Arg}, false)
			}
		}
		size = max(size, n)
	}
	return size
}

// keyFits returns a *prologue.StackError if a key does not fit beside a record.
func (p *Plan) keyFits(size int) error {
	for i := range p.Instances {
		if err := p.Instances[i].Prologue.CheckStack(size); err != nil && size > 0 {
			return err
		}
	}
	return nil
}

// begin returns a plan without sites.
func begin(img *dwarfloc.Image, def *probe.Definition, o *Options) (*Plan, error) {
	if n := o.stringBytes(); n > prologue.MaxObject {
		return nil, fmt.Errorf("strings of %d bytes: a record holds at most %d", n, prologue.MaxObject)
	}
	kernel, err := place.IsKernel(img)
	if err != nil {
		return nil, err
	}
	target, err := o.Target.of(kernel)
	if err != nil {
		return nil, err
	}
	if o.registers = img.Arch().On(target.Kernel); o.registers == nil {
		return nil, fmt.Errorf("%s is for %s, and a kernel for %s does not run it", img.Path(), img.Arch().Name, target.Kernel.Name)
	}
	o.moves = inside.File(img).IsPositionIndependent() && !kernel
	if target.Reads == prologue.ReadCast {
		if o.stays, err = place.Stays(img); err != nil {
			return nil, err
		}
	}
	switch {
	case def.Options.KeepDoubt:
		o.Doubt = DoubtKeep
	case o.Doubt == DoubtKeep:
		own := *def // what is printed as a section name is what the programs are written for
		own.Options.KeepDoubt = true
		def = &own
	}
	return &Plan{Definition: def, Image: img, Target: target, Doubt: o.Doubt}, nil
}

// resolve appends sites to the plan's, where they have probes, with their arguments.
func (p *Plan) resolve(ctx context.Context, found []*dwarfloc.Site, o *Options) error {
	for _, s := range found {
		var memory []Argument
		if n := len(p.Sites); p.alone && n < cap(p.Sites) {
			memory = p.Sites[:n+1][n].Args[:0] // of a site that is done with
		}
		p.Sites = append(p.Sites, Site{Site: s, Instance: -1, Args: memory})
	}
	if err := p.atReturns(); err != nil {
		return err
	}
	if err := p.checkInstructions(); err != nil {
		return err
	}
	if err := checkArgs(p.Image, p.Definition); err != nil {
		return err
	}
	err := p.eachSite(ctx, o.Progress, func(_ int, s *Site) (err error) {
		if s.Args, err = arguments(s, p.Definition, o); err != nil {
			return err
		}
		if o.Parts || len(o.Keys) > 0 {
			if s.parts, err = partsOf(s.Args, o); err != nil {
				return err
			}
		}
		s.If, err = conditions(s, p.Definition, o)
		return err
	})
	if err != nil {
		return err
	}
	if err := p.beforeLoops(); err != nil {
		return err
	}
	if err := p.moveFromHarm(ctx); err != nil || o.Cost == nil {
		return err
	}
	return p.moveToCheaper(ctx, o.Cost)
}

// write writes the sites' prologues and makes an instance of each distinct one.
func (p *Plan) write(ctx context.Context, o *Options) error {
	numbers := make(map[string]int) // of instances, by the kind of their probes and their prologue's key
	var w writer
	for i := range p.Sites {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		s := &p.Sites[i]
		key, err := w.write(p, s, o)
		if err != nil {
			return err
		}
		if key == nil {
			continue
		}
		n, known := numbers[string(key)]
		if !known {
			n = len(p.Instances)
			numbers[string(key)] = n
			p.Instances = append(p.Instances, w.instance(s, n))
		}
		s.Instance = n
		in := &p.Instances[n]
		in.Sites = append(in.Sites, i)
	}
	return nil
}
