package truth

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// Compilers merge the code of two calls and describe neither: the debug information then has no instance for their lines. A run of such
// a call cannot be found, whoever looks. Which runs these are is taken from a build without optimization: a probe at the line of each
// call sees the number of the run that the call begins.

// callLine is a line of a program's source that calls a function.
type callLine struct {
	file string // without its folder
	line int
}

// calls are the lines of C's program that count their runs by function, and the run that each execution of them began, once they are known.
type calls struct {
	once sync.Once
	runs map[string][]callLine // by function; nil if some run has not just one
	err  error
}

// callsIn returns the lines that call a function, by its name. Calls are on lines that do not begin a function.
func callsIn(folder string, labels []string) (map[string][]callLine, error) {
	files, err := fs.Glob(programs, path.Join("testdata", folder, "*.c"))
	if err != nil {
		return nil, err
	}
	out := make(map[string][]callLine)
	for _, f := range files {
		text, err := programs.ReadFile(f)
		if err != nil {
			return nil, err
		}
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			if !strings.HasPrefix(line, "\t") {
				continue
			}
			for _, label := range labels {
				if at := strings.Index(line, label+"("); at > 0 && !isName(line[at-1]) {
					out[label] = append(out[label], callLine{path.Base(f), number})
				}
			}
		}
	}
	return out, nil
}

func isName(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// callsOf returns the line that called each run of C's functions, by the runs' numbers.
func (w *workshop) callsOf(ctx context.Context, defs []Definition) (map[string][]callLine, error) {
	w.calls.once.Do(func() { w.calls.runs, w.calls.err = w.traceCalls(ctx, defs) })
	return w.calls.runs, w.calls.err
}

func (w *workshop) traceCalls(ctx context.Context, defs []Definition) (map[string][]callLine, error) {
	labels := make([]string, len(defs))
	for i, d := range defs {
		labels[i] = d.Label
	}
	lines, err := callsIn(path.Join(counting, string(C)), labels)
	if err != nil {
		return nil, err
	}
	b := &Build{Language: C, Compiler: recorder, Options: []string{"-O0", "-no-pie", "-Dalways_inline=unused"}}
	file, err := w.make(ctx, b, counting, "calls")
	if err != nil {
		return nil, err
	}
	img, err := dwarfloc.Open(file, nil)
	if err != nil {
		return nil, err
	}
	defer img.Close()
	running, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		return nil, err
	}
	type called struct {
		label string
		callLine
	}
	of := make(map[*plan.Plan]called)
	var plans []*plan.Plan
	unclear := make(map[string]bool) // functions with a run that is not known to be of one call
	for label, all := range lines {
		for _, at := range all {
			def, err := probe.Parse(fmt.Sprintf("%s:%d number=@runs_%s:u64", at.file, at.line, label))
			if err != nil {
				return nil, err
			}
			p, err := plan.New(ctx, img, def, plan.Options{Target: running.Target()})
			var notFound *sites.NotFoundError
			if errors.As(err, &notFound) { // the call has no instruction of its own
				unclear[label] = true
				continue
			}
			if err != nil {
				return nil, err
			}
			plans, of[p] = append(plans, p), called{label, at}
		}
	}
	session, err := tracer.Open(ctx, running, plans, tracer.Options{Buffer: 1 << 24})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	began := make(map[string]map[uint64]callLine)
	counts, err := watch(ctx, session, file, func(h *tracer.Hit) {
		c := of[h.Plan]
		if began[c.label] == nil {
			began[c.label] = make(map[uint64]callLine)
		}
		n := binary.LittleEndian.Uint64(h.Values[0].Data)
		before, known := began[c.label][n]
		unclear[c.label] = unclear[c.label] || known && before != c.callLine
		began[c.label][n] = c.callLine
	})
	if err != nil {
		return nil, err
	}
	out := make(map[string][]callLine)
	for label, runs := range began {
		if unclear[label] {
			continue
		}
		for n := range uint64(counts[label]) {
			at, known := runs[n]
			if !known {
				delete(out, label)
				break
			}
			out[label] = append(out[label], at)
		}
	}
	return out, nil
}

// notDescribed sets NotDescribed of the functions of which only runs were missed whose calls have no record in the build.
func (w *workshop) notDescribed(ctx context.Context, b *Build, defs []Definition, bodies []Body) error {
	if b.Language != C {
		return nil
	}
	for i := range bodies {
		body := &bodies[i]
		if body.In.Missed == 0 || len(body.In.missed) != body.In.Missed || body.In.Twice > 0 {
			continue
		}
		all, err := w.callsOf(ctx, defs)
		if err != nil {
			return err
		}
		of := all[body.Label]
		body.NotDescribed = of != nil && !slices.ContainsFunc(body.In.missed, func(n int) bool {
			return n >= len(of) || body.records[of[n]]
		})
	}
	return nil
}

// noteRecord notes the line of an inlined place's call.
func (b *Body) noteRecord(s *dwarfloc.Site) {
	if b.records == nil {
		b.records = make(map[callLine]bool)
	}
	b.records[callLine{filepath.Base(s.CallFile), s.CallLine}] = true
}
