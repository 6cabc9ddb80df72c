// Package fleet asks whether definitions work on many kernels: for each definition and kernel, how many sites there are, which arguments are
// fetched there and why not the others, which probes the kernel refuses, and what differs from the first kernel.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/sites"
)

// Table is definitions by kernels.
type Table struct {
	Kernels     []Kernel     `json:"kernels"`
	Definitions []Definition `json:"definitions"`
}

// Definition is a row.
type Definition struct {
	Text    string `json:"definition"`
	Program string `json:"program,omitempty"` // of an object file
	Cells   []Cell `json:"kernels"`           // one for each kernel that the definition is about, in their order
}

// Cell is what becomes of a definition on a kernel.
type Cell struct {
	Kernel string `json:"kernel"`
	// Error is why nothing can be probed: the kernel has no such function, or no function of it such an argument.
	Error string `json:"error,omitempty"`
	// OutOfLine and Inlined are sites. Probes are more where a body has several ways in, and Whole those at which all arguments are
	// fetched and the kernel takes a probe.
	OutOfLine int `json:"out_of_line"`
	Inlined   int `json:"inlined"`
	Probes    int `json:"probes"`
	Whole     int `json:"whole"`
	// Refused are probes that the kernel does not take, or that would do harm, by cause.
	Refused map[string]int `json:"refused,omitempty"`
	Args    []Arg          `json:"args,omitempty"`
	// Record is set if the program gets its arguments in a record.
	Record bool `json:"record,omitempty"`
	// Changed is what a program that was compiled for the first kernel finds changed.
	Changed []string `json:"changed,omitempty"`
	// Candidates are function names with which the definition would also work here: "kfree_skb_reason|kfree_skb".
	Candidates string `json:"candidates,omitempty"`

	err        error
	shape      shape
	candidates []candidate
}

// Arg is an argument, over all probes.
type Arg struct {
	Name    string         `json:"name"`
	Types   []string       `json:"types,omitempty"` // sorted; functions can differ
	Fetched int            `json:"fetched"`
	Lost    map[string]int `json:"lost,omitempty"` // by reason
	forms   map[form]bool
}

// form is how a program sees an argument.
type form struct {
	typ          string
	kind         prologue.ArgKind
	size, offset int
	members      string // of a structure that is fetched as a whole: see membersOf
}

// Want is a definition to check.
type Want struct {
	*probe.Definition
	Program string // of an object file, or ""
}

// Options are how kernels are opened and definitions planned.
type Options struct {
	Image dwarfloc.Options
	Plan  plan.Options
	// Progress, if not nil, is called with the number of kernels that have been checked.
	Progress func(done, total int)
}

// Check makes the table. One kernel is open at a time.
func Check(ctx context.Context, sources []Source, wants []Want, o Options) (*Table, error) {
	var columns []column
	seen := make(map[string]string) // paths by build ID
	for i := range sources {
		x, err := checkKernel(ctx, &sources[i], wants, seen, &o)
		if err != nil {
			return nil, err
		}
		if x != nil {
			columns = append(columns, *x)
		}
		if o.Progress != nil {
			o.Progress(i+1, len(sources))
		}
	}
	if len(columns) == 0 {
		return nil, errors.New("none of the images is a kernel's: all are programs'")
	}
	radix.By(columns, func(a, b *column) int { return compareKernels(&a.kernel, &b.kernel) })
	nameApart(columns)
	return tableOf(columns, wants)
}

// column is what becomes of all definitions on one kernel.
type column struct {
	kernel Kernel
	cells  []*Cell // nil for a definition that is not about this image
}

// tableOf turns columns into rows.
func tableOf(columns []column, wants []Want) (*Table, error) {
	t := &Table{Definitions: []Definition{}}
	for i := range columns {
		t.Kernels = append(t.Kernels, columns[i].kernel)
	}
	for i := range wants {
		d := Definition{Text: wants[i].String(), Program: wants[i].Program}
		for k := range columns {
			if c := columns[k].cells[i]; c != nil {
				c.Kernel = columns[k].kernel.Name
				d.Cells = append(d.Cells, *c)
			}
		}
		if d.Cells == nil {
			return nil, fmt.Errorf("%v: none of the images is of module %s", wants[i].Definition, wants[i].Options.Module)
		}
		compare(d.Cells)
		choose(d.Cells)
		t.Definitions = append(t.Definitions, d)
	}
	return t, nil
}

// checkKernel checks definitions on one kernel. It returns nil for one that was checked before, and for a program among kernels.
func checkKernel(ctx context.Context, from *Source, wants []Want, seen map[string]string, o *Options) (_ *column, err error) {
	k, err := from.open(&o.Image)
	if err != nil || k == nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.img.Close()) }()
	if id := k.BuildID; id != "" {
		if seen[id] != "" {
			return nil, nil
		}
		seen[id] = k.Path
	}
	x := &column{kernel: *k, cells: make([]*Cell, len(wants))}
	err = parallel(len(wants), func(i int) error {
		def := wants[i].Definition
		if def.Options.Exec != "" {
			return probe.Errorf(def, 0, "exec=%s: this is about a program, and kernels are checked", def.Options.Exec)
		}
		if !k.isOf(def.Options.Module) {
			return nil
		}
		c, err := k.check(ctx, def, o.Plan)
		if err == nil {
			err = k.help(ctx, def, c, o.Plan)
		}
		x.cells[i] = c
		return err
	})
	if err == nil {
		err = k.img.Changed()
	}
	x.kernel.img, x.kernel.table = nil, nil
	return x, err
}

// parallel calls f for numbers up to n, on all processors, until one has an error.
func parallel(n int, f func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wait sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && failed.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wait.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// check plans a definition. What is wrong with it on this kernel is in the cell; the error is about the image.
func (k *Kernel) check(ctx context.Context, def *probe.Definition, options plan.Options) (*Cell, error) {
	c := new(Cell)
	var mu sync.Mutex
	err := plan.Each(ctx, k.img, def, options, plan.Visitor[struct{}]{
		Site: func(p *plan.Plan, s *plan.Site) (struct{}, error) {
			refused := refusal(k.table, s)
			mu.Lock()
			defer mu.Unlock()
			c.Record = p.Convention == prologue.ConventionRecord
			c.count(s, refused)
			return struct{}{}, nil
		},
		Next: func(struct{}, int) error { return nil },
	})
	if text, wrong := k.wrong(err); wrong {
		return &Cell{Error: text, err: err}, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range c.Args {
		c.Args[i].Types = typesOf(c.Args[i].forms)
	}
	return c, nil
}

// wrong returns what is wrong with a definition on this kernel, which need not be named. It reports whether that is what an error is
// about, and not the image.
func (k *Kernel) wrong(err error) (text string, is bool) {
	var at *probe.Error
	var large *prologue.StackError
	var source *sites.NoSourceError
	switch {
	case errors.As(err, &at):
		text = at.Msg
	case errors.As(err, &large), errors.As(err, &source), errors.Is(err, dwarfloc.ErrNotDescribed):
		text = err.Error()
	default:
		return "", false
	}
	return strings.TrimPrefix(text, k.Path+": "), true
}

// refusal returns why there is no probe at a site.
func refusal(t *attachable.Table, s *plan.Site) string {
	switch cause := t.Of(s.Site); {
	case cause != attachable.CauseNone:
		return cause.String()
	case s.Refused != nil:
		return "harmful"
	case s.Never != nil:
		return "condition"
	}
	return ""
}

func (c *Cell) count(s *plan.Site, refused string) {
	if c.Probes++; c.Probes == 1 {
		c.shape = shapeOf(s.Site)
	}
	if s.Way.Number <= 1 {
		if s.Inlined() {
			c.Inlined++
		} else {
			c.OutOfLine++
		}
	}
	whole := refused == ""
	if !whole {
		if c.Refused == nil {
			c.Refused = make(map[string]int)
		}
		c.Refused[refused]++
	}
	for i := range s.Args {
		a := &s.Args[i]
		if i == len(c.Args) {
			c.Args = append(c.Args, Arg{Name: a.Name, forms: make(map[form]bool)})
		}
		x := &c.Args[i]
		if x.Name != a.Name {
			x.Name = "argument " + strconv.Itoa(i+1) // with $params they differ from site to site
		}
		if a.Fetched() {
			x.Fetched++
			f := form{typ: a.TypeText(), kind: a.Kind, size: a.Size}
			if c.Record && i < len(s.Layout.Fields) {
				f.offset = s.Layout.Fields[i].Offset
			}
			if a.Kind == prologue.KindObject {
				f.members = membersOf(a.Variable.Type)
			}
			x.forms[f] = true
			continue
		}
		whole = false
		if x.Lost == nil {
			x.Lost = make(map[string]int)
		}
		x.Lost[a.Unfetched.Code.String()]++
	}
	if whole {
		c.Whole++
	}
}

func typesOf(forms map[form]bool) []string {
	types := make(map[string]bool)
	for f := range forms {
		types[f.typ] = true
	}
	return slices.Sorted(maps.Keys(types))
}
