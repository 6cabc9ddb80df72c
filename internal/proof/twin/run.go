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
	y, err := w.yardstick(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	for i := range flavours {
		r, err := w.flavour(ctx, y, &flavours[i])
		if err != nil {
			err = fmt.Errorf("%s, %s: %w", p.Name, flavours[i].Name, err)
		}
		done(r, err)
	}
	return ctx.Err()
}

// yardstick builds A and runs it.
func (w *work) yardstick(ctx context.Context) (*yard, error) {
	check, err := w.build(ctx, &counted)
	if err != nil {
		return nil, err
	}
	calls, err := w.calls(ctx, check)
	if err != nil {
		return nil, err
	}
	path, err := w.build(ctx, &plain)
	if err != nil {
		return nil, err
	}
	n := newNames()
	a, err := w.trace(ctx, n, path, true, false)
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
	a.tree(c, lines)
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
