package mutate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/coverage"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/sites"
	"github.com/bpfprologue/bpfprologue/types"
)

// Fault is what is no answer and no error.
type Fault struct {
	Kind string // "panic", "wrong" and so on: see the package's comment
	Text string
}

// answer is what an image says, as far as answers are compared.
type answer struct {
	Digest string
	Err    string // why there is no answer at all
	Faults []Fault
	codes  []bpfexec.Code // of all prologues
}

// asker asks one image and checks what it says.
type asker struct {
	img    *dwarfloc.Image
	out    hash.Hash
	log    io.Writer // gets the answers as text, if not nil
	faults []Fault
	codes  []bpfexec.Code
	types  map[*types.Type]bool // that were asked
	limit  time.Duration        // of processor time for a question
}

// maxFaults of one variant are kept: they mostly have one cause.
const maxFaults = 8

func (a *asker) fault(kind, format string, args ...any) {
	if len(a.faults) < maxFaults {
		a.faults = append(a.faults, Fault{kind, fmt.Sprintf(format, args...)})
	}
}

// say adds to the answer.
func (a *asker) say(format string, args ...any) {
	fmt.Fprintf(a.out, format+"\n", args...)
	if a.log != nil {
		fmt.Fprintf(a.log, format+"\n", args...)
	}
}

// failed notes an error, which is an answer unless it hides a panic. It reports whether there
// was one.
func (a *asker) failed(what string, err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, mapping.ErrPanic) {
		a.fault("panic", "%s: %v", what, err)
	}
	a.say("%s: %v", what, err)
	return true
}

// question runs f. A panic there is a fault, and not the end.
func (a *asker) question(what string, f func()) {
	start := processorTime()
	defer func() {
		if took := processorTime() - start; took > a.limit {
			a.fault("slow", "%s took %v", what, took.Round(10*time.Millisecond))
		}
	}()
	defer func() {
		if r := recover(); r != nil {
			a.fault("panic", "%s: %v\n%s", what, r, debug.Stack())
		}
	}()
	f()
}

// processorTime is what this process has used. Others that use the machine do not count.
func processorTime() time.Duration {
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// limitFor is the processor time that a question about a file of some bytes may take.
func limitFor(size int) time.Duration {
	limit := max(2*time.Second, time.Duration(size)*time.Second>>20)
	if races() {
		limit *= 20
	}
	return limit
}

// ask opens an image of some bytes and asks it everything. log may be nil.
func ask(ctx context.Context, size int, open func() (*dwarfloc.Image, error), log io.Writer) answer {
	a := &asker{out: sha256.New(), log: log, types: make(map[*types.Type]bool), limit: limitFor(size)}
	var result answer
	a.question("open", func() {
		img, err := open()
		if a.failed("open", err) {
			result.Err = err.Error()
			return
		}
		a.img = img
	})
	if a.img != nil {
		result.Err = a.everything(ctx)
		a.question("close", func() { a.failed("close", a.img.Close()) })
	}
	result.Digest, result.Faults, result.codes = hex.EncodeToString(a.out.Sum(nil)), a.faults, a.codes
	return result
}

// everything asks all questions. The result is why there is no answer, or "".
func (a *asker) everything(ctx context.Context) (damaged string) {
	var all []*dwarfloc.Site
	a.question("sites", func() {
		var err error
		if all, err = a.img.Sites(ctx, nil); a.failed("sites", err) {
			damaged = err.Error()
		}
	})
	if damaged != "" {
		return damaged
	}
	a.question("image", a.image)
	a.question("all sites", func() {
		for _, s := range all {
			a.question("site", func() { a.site(s) })
		}
	})
	a.question("attachable", func() { a.attachable(all) })
	a.question("names", func() { a.names(ctx, all) })
	a.question("lines", func() { a.lines(ctx, all) })
	a.question("ways", func() { a.ways(ctx, all) })
	a.question("coverage", func() { a.coverage(ctx) })
	for _, d := range definitions {
		a.question(d.text, func() { a.plan(ctx, d) })
	}
	return ""
}

// image asks for what needs no DWARF.
func (a *asker) image() {
	a.say("%s %v %v %s", a.img.BuildID(), inside.File(a.img).IsRelocatable(), inside.File(a.img).IsPositionIndependent(), inside.File(a.img).DebugPath())
	symbols := 0
	for s := range inside.File(a.img).Symbols() {
		if symbols++; symbols < 1000 {
			a.say("%s %#x", s.Name, s.Addr)
		}
	}
	for _, s := range inside.File(a.img).Sections() {
		name, lo, hi, ok := inside.File(a.img).CodeRange(s.Addr)
		at, err := inside.File(a.img).FileOffset(s.Addr)
		a.failed("offset", err)
		b, err := inside.File(a.img).Bytes(s.Addr, min(s.Size, 64))
		a.failed("bytes", err)
		a.say("%s %#x: %s %#x-%#x %v, %#x, %x", s.Name, s.Addr, name, lo, hi, ok, at, b)
	}
}

// attachable asks where a kernel accepts a probe.
func (a *asker) attachable(all []*dwarfloc.Site) {
	table, err := attachable.New(a.img)
	if a.failed("attachable", err) {
		return
	}
	for _, s := range all {
		a.say("%#x: %v %v", s.Addr, table.At(s.Addr), table.Method(s.Addr))
	}
	_, err = inside.CheckInstructions(a.img, all)
	a.failed("instructions", err)
}

// names asks what lists print.
func (a *asker) names(ctx context.Context, all []*dwarfloc.Site) {
	names, err := a.img.FunctionNames(ctx)
	if !a.failed("names", err) {
		a.say("%q", names)
	}
	functions, err := sites.Functions(ctx, a.img, sites.Selection{Functions: every{}})
	if !a.failed("functions", err) {
		a.say("%q", functions)
	}
	vars, err := sites.Variables(ctx, all)
	if !a.failed("variables", err) {
		a.say("%d functions", len(vars))
	}
}

// lines asks for source lines.
func (a *asker) lines(ctx context.Context, all []*dwarfloc.Site) {
	lines, err := a.img.LineSites(ctx, all, func(_ *dwarfloc.Site, _ string, line int) bool { return line%4 == 0 })
	if !a.failed("lines", err) {
		a.say("%d lines", len(lines))
		for i, s := range lines {
			a.address("line", s)
			if i%32 == 0 {
				a.variables(s)
			}
		}
	}
	files, err := a.img.FileLines(ctx, everyLine{})
	if !a.failed("lines of files", err) {
		a.say("%v", files)
	}
	names, err := a.img.SourceFiles(ctx)
	if !a.failed("files", err) {
		a.say("%q", names)
	}
}

// ways asks for the ways into and out of bodies.
func (a *asker) ways(ctx context.Context, all []*dwarfloc.Site) {
	ways, err := inside.Ways(a.img, ctx, all)
	if a.failed("ways", err) {
		return
	}
	for i := range ways {
		a.say("%+v", ways[i])
		a.checkWays(all[i], &ways[i])
	}
}

// coverage counts.
func (a *asker) coverage(ctx context.Context) {
	show := func(what string, report any, err error) {
		if a.failed(what, err) {
			return
		}
		text, err := json.Marshal(report)
		if !a.failed(what, err) {
			a.say("%s", text)
		}
	}
	report, err := coverage.Measure(ctx, a.img)
	show("coverage", report, err)
	if err == nil {
		report.Print(a.out)
	}
	report, err = coverage.MeasureAll(ctx, a.img)
	show("all of coverage", report, err)
}

// definition is a question for a plan.
type definition struct {
	text    string
	options plan.Options
	exports bool
}

var definitions = []definition{
	{"* $params", plan.Options{}, true},
	{"* $vars", plan.Options{Convention: prologue.ConventionRecord, EntryOnly: true}, false},
	{"*%return $retval", plan.Options{Target: plan.Target{SignExtends: true}}, true},
}

// plan makes a plan, checks its prologues, and exports it.
func (a *asker) plan(ctx context.Context, d definition) {
	def, err := probe.Parse(d.text)
	if a.failed(d.text, err) {
		return
	}
	p, err := plan.New(ctx, a.img, def, d.options)
	if a.failed(d.text, err) {
		return
	}
	a.say("%s: %d sites, %d instances", d.text, len(p.Sites), len(p.Instances))
	for i := range p.Instances {
		in := &p.Instances[i]
		a.say("%v", in.Prologue.Insns)
		a.codes = append(a.codes, bpfexec.CodeOf(in.Prologue, min(3, len(p.Sites[in.Sites[0]].Args))))
		for _, n := range in.Sites {
			a.address("probe", p.Sites[n].Site)
		}
	}
	a.say("%s", p.Header())
	if !d.exports {
		return
	}
	o := export.Options{Path: "/x"}
	a.exported("tracefs", p, func(w io.Writer, p *plan.Plan) error { return export.Tracefs(w, p, o) })
	a.exported("bpftrace", p, func(w io.Writer, p *plan.Plan) error { return export.Bpftrace(w, p, o) })
	a.exported("c", p, func(w io.Writer, p *plan.Plan) error { return export.C(w, p, o) })
	a.exported("go", p, export.Go)
}

// exported exports a plan.
func (a *asker) exported(language string, p *plan.Plan, write func(io.Writer, *plan.Plan) error) {
	var text strings.Builder
	if a.failed(language, write(&text, p)) {
		return
	}
	a.say("%s", text.String())
	a.checkExport(language, text.String())
}

// every matches all names, files and lines.
type every struct{}

func (every) String() string                    { return "*" }
func (every) Match(string) bool                 { return true }
func (every) Literal() (name string, only bool) { return "", false }

// everyLine matches all lines.
type everyLine struct{}

func (everyLine) MatchBase(string) bool  { return true }
func (everyLine) Match(string, int) bool { return true }
