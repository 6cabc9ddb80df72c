package twin

import (
	"context"
	"errors"
	"fmt"
)

// Result is what was seen of a program in one flavour.
type Result struct {
	Program  string
	Flavour  string
	Sites    int
	Verdicts []Verdict
	// Off are the functions that could not be compared, and why: the same in each flavour.
	Off map[Function]string
}

// Compare builds a program, in a folder, as A and in some flavours, runs all, and compares. done is called for each flavour.
func Compare(ctx context.Context, dir string, p *Program, sources string, flavours []Flavour, done func(*Result, error)) error {
	w := &work{Program: p, sources: sources, dir: dir}
	return w.compare(ctx, flavours, done)
}

// CompareEnds is Compare for what parameters are where runs end: which of A's runs has an end in B no rule says, but the values of two that are paired are
// compared.
func CompareEnds(ctx context.Context, dir string, p *Program, sources string, flavours []Flavour, done func(*Result, error)) error {
	w := &work{Program: p, sources: sources, dir: dir, ends: true}
	return w.compare(ctx, flavours, done)
}

func (w *work) compare(ctx context.Context, flavours []Flavour, done func(*Result, error)) error {
	y, err := w.yardstick(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", w.Name, err)
	}
	for i := range flavours {
		r, err := w.flavour(ctx, y, &flavours[i])
		if err != nil {
			err = fmt.Errorf("%s, %s: %w", w.Name, flavours[i].Name, err)
		}
		done(r, err)
	}
	return ctx.Err()
}

// yardstick builds A and runs it.
func (w *work) yardstick(ctx context.Context) (*yard, error) {
	var calls map[string]int
	if !w.ends {
		check, err := w.build(ctx, &counted)
		if err != nil {
			return nil, err
		}
		if calls, err = w.calls(ctx, check); err != nil {
			return nil, err
		}
	}
	path, err := w.build(ctx, &plain)
	if err != nil {
		return nil, err
	}
	n := newNames()
	a, err := w.trace(ctx, n, path, !w.ends, false)
	if err != nil {
		return nil, err
	}
	again, err := w.trace(ctx, n, path, false, true)
	if err != nil {
		return nil, err
	}
	c, err := readCode(ctx, path)
	if err != nil {
		return nil, err
	}
	lines, err := readLines(path)
	if err != nil {
		return nil, err
	}
	if !w.ends {
		a.tree(c, lines)
	}
	return measure(n, a, again, c, calls), nil
}

// flavour builds B and runs it.
func (w *work) flavour(ctx context.Context, y *yard, f *Flavour) (*Result, error) {
	path, err := w.build(ctx, f)
	if err != nil {
		return nil, err
	}
	b, err := w.trace(ctx, y.names, path, false, false)
	if err != nil {
		return nil, err
	}
	if b.output != y.output {
		return nil, errors.New("the unoptimized build prints something else")
	}
	c, err := readCode(ctx, path)
	if err != nil {
		return nil, err
	}
	if f.Compiler != plain.Compiler {
		c.near = ofOthers
	}
	c.inline(b)
	r := &Result{Program: w.Name, Flavour: f.Name, Verdicts: y.compare(b, c), Off: y.off}
	for _, s := range b.functions {
		r.Sites += len(s.sites)
	}
	return r, nil
}
