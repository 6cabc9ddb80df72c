package twin

import (
	"cmp"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/tracer"
	"github.com/bpfprologue/bpfprologue/types"
)

const (
	// buffer is the room for hits in the kernel. A hit that finds none is an error.
	buffer = 1 << 27
	// most is how many hits a program may have: they are kept in memory.
	most = 3_000_000
	// limit is how long a program may run.
	limit = 2 * time.Minute
)

// Function is a function of a program: static ones of several files may have one name.
type Function struct{ Name, File string }

// seen is what is known of a function in one build.
type seen struct {
	sites []*site
	hits  []hit
}

// site is a place where a function's runs begin.
type site struct {
	*plan.Site
	of   *seen  // the function
	name string // of the function, with its classes and namespaces
	// params has for each argument of the plan the number of the parameter, or -1 if its values are not compared.
	params  []int
	place   string
	absent  map[int]string // why a parameter has no value that is sure, by its number
	number  int            // of parameters of the function in all builds so far
	refused bool           // the kernel takes no probe there
}

// hit is one hit: the values by the numbers of parameters, each the number of a text, or 0 where none can be compared.
type hit struct {
	site   *site
	values []int32
	run    int // its index in trace.runs
}

// names numbers parameters, by function, and the texts of values, alike in all builds of a program.
type names struct {
	params map[Function][]string
	texts  []string
	number map[string]int32
}

func newNames() *names {
	return &names{params: make(map[Function][]string), texts: []string{""}, number: make(map[string]int32)}
}

// param numbers a function's parameter.
func (n *names) param(f Function, name string) int {
	for i, p := range n.params[f] {
		if p == name {
			return i
		}
	}
	n.params[f] = append(n.params[f], name)
	return len(n.params[f]) - 1
}

// text numbers a value's text.
func (n *names) text(s string) int32 {
	i, ok := n.number[s]
	if !ok {
		i = int32(len(n.texts))
		n.texts = append(n.texts, s)
		n.number[s] = i
	}
	return i
}

// trace is what was seen of a program.
type trace struct {
	functions map[Function]*seen
	output    string // what it printed
	hits      int
	runs      []run // all hits, in their order, if the trace has callers
	symbols   symbolTable
}

// trace runs the program with a probe at every site of every function. With callers, hits have the addresses to which they return.
func (w *work) trace(ctx context.Context, n *names, path string, callers, random bool) (*trace, error) {
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		return nil, err
	}
	defer img.Close()
	running, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		return nil, err
	}
	definition := "* $params"
	switch {
	case w.ends:
		definition = "*%exit $params"
	case callers:
		definition = "* $caller $params"
	}
	def, err := probe.Parse(definition)
	if err != nil {
		return nil, err
	}
	p, err := plan.New(ctx, img, def, plan.Options{Target: running.Target(), Doubt: plan.DoubtMark})
	if err != nil {
		return nil, err
	}
	t := &trace{functions: make(map[Function]*seen)}
	sites, err := t.describe(n, p)
	if err != nil {
		return nil, err
	}
	if t.symbols, err = symbols(path); err != nil {
		return nil, err
	}
	session, err := tracer.Open(ctx, running, []*plan.Plan{p}, tracer.Options{Buffer: buffer})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	for _, r := range session.Attachments[0].Refused {
		sites[r.Site].refused = true
	}
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	done := make(chan error, 1)
	go func() {
		var err error
		t.output, err = w.run(ctx, path, random)
		done <- err
		stop()
	}()
	err = session.Run(ctx, func(h *tracer.Hit) error {
		if t.hits++; t.hits > most {
			return fmt.Errorf("%s: more than %d hits", path, most)
		}
		t.add(n, sites[h.Site], h.Values, callers)
		return nil
	})
	stop()
	if err := errors.Join(err, <-done); err != nil {
		return nil, err
	}
	if not, err := session.Unreported(); not.Lost != 0 || err != nil {
		return nil, fmt.Errorf("%s: %d hits did not fit into the buffer (%v)", path, not.Lost, err)
	}
	return t, nil
}

// describe notes the sites of a plan.
func (t *trace) describe(n *names, p *plan.Plan) ([]*site, error) {
	all := make([]*site, len(p.Sites))
	for i := range p.Sites {
		name, err := p.Sites[i].QualifiedName()
		if err != nil {
			return nil, err
		}
		s := &site{Site: &p.Sites[i], name: name, place: p.Sites[i].String(), absent: make(map[int]string)}
		file, _, err := s.Declared()
		if err != nil {
			return nil, err
		}
		f := Function{name, file}
		for k := range s.Args {
			a := &s.Args[k]
			scalar, err := steady(a)
			if err != nil {
				return nil, err
			}
			number := -1
			if p.Definition.Args[a.DefinitionArg].Expr.Kind == syntax.KindParams && scalar {
				number = n.param(f, a.Name)
				switch {
				case !a.Fetched():
					s.absent[number] = a.Unfetched.Code.String()
				case a.Doubt() != reasons.None:
					s.absent[number] = doubtful + a.Doubt().String()
				}
			}
			s.params = append(s.params, number)
		}
		if t.functions[f] == nil {
			t.functions[f] = new(seen)
		}
		t.functions[f].sites = append(t.functions[f].sites, s)
		all[i] = s
	}
	for f, of := range t.functions {
		for _, s := range of.sites {
			s.of, s.number = of, len(n.params[f])
			for k := range n.params[f] {
				if _, ok := s.absent[k]; !ok && !slices.Contains(s.params, k) {
					s.absent[k] = "no such parameter at the site"
				}
			}
		}
	}
	return all, nil
}

// steady reports whether an argument's values are the same wherever the program is in memory, as far as its type says.
func steady(a *plan.Argument) (bool, error) {
	if a.Variable == nil || a.Variable.Type == nil {
		return false, nil
	}
	t, err := a.Variable.Type.Resolve()
	if err != nil {
		return false, err
	}
	switch t.Kind {
	case types.Int, types.Bool, types.Char, types.Enum, types.Float:
		return true, nil
	}
	return false, nil
}

// add notes a hit.
func (t *trace) add(n *names, s *site, values []plan.Value, callers bool) {
	h := hit{site: s, values: make([]int32, s.number), run: len(t.runs)}
	for i := range values {
		v := &values[i]
		if k := s.params[i]; k >= 0 && s.absent[k] == "" && !v.Lost {
			h.values[k] = n.text(v.String())
		}
		if callers && v.DefinitionArg == 0 {
			t.runs = append(t.runs, run{site: s, returns: binary.NativeEndian.Uint64(v.Data)})
		}
	}
	s.of.hits = append(s.of.hits, h)
}

// symbolTable is a program's functions in the order of their addresses.
type symbolTable []elf.Symbol

// at returns the name of the function at an address, or "".
func (t symbolTable) at(addr uint64) string {
	i, _ := slices.BinarySearchFunc(t, addr+1, func(s elf.Symbol, addr uint64) int { return cmp.Compare(s.Value, addr) })
	if i == 0 || addr >= t[i-1].Value+max(t[i-1].Size, 1) {
		return ""
	}
	return t[i-1].Name
}

func symbols(path string) (symbolTable, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	all, err := file.Symbols()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s elf.Symbol) bool { return elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Value == 0 })
	slices.SortFunc(all, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	return all, nil
}

// calls returns how often each function is called, by its name, as the build says that counts calls.
func (w *work) calls(ctx context.Context, path string) (counts map[string]int, err error) {
	file := filepath.Join(w.dir, "counts")
	if err := os.RemoveAll(file); err != nil {
		return nil, err
	}
	if _, err := w.run(ctx, path, false, "TWIN_COUNTS="+file); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	at, err := symbols(path)
	if err != nil {
		return nil, err
	}
	counts = make(map[string]int)
	for line := range strings.Lines(string(data)) {
		var addr uint64
		var n int
		if _, err := fmt.Sscanf(line, "0x%x %d", &addr, &n); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		name := at.at(addr)
		if name == "" {
			return nil, fmt.Errorf("%s: no function at %#x", path, addr)
		}
		counts[nameOf(name)] += n
	}
	return counts, nil
}
