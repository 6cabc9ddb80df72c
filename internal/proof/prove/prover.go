package prove

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/proof/exprtest"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/internal/share"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// batchSize is how many prologues are loaded as one program: the fastest range is
// 10 to 200 (package bpfexec).
const batchSize = 100

// batchBytes limits the records of one program, in bytes, to far less than it can hold.
const batchBytes = 16 << 10

// prover is for one goroutine. The second reader reads a unit when its first site is added.
type prover struct {
	img    *dwarfloc.Image
	file   *oracle.File
	reader *oracle.Reader
	world  *world
	o      Options
	how    share.Options
	def    *probe.Definition // of a plan
	seen   *sync.Map         // keys of prologues, of all provers
	rng    *rand.Rand

	batch  []job
	bytes  int // of records in the batch
	report Report
}

// job is one prologue to run, and what to compare its values with.
type job struct {
	code   bpfexec.Code
	layout prologue.Layout // of a record
	site   *dwarfloc.Site
	second *oracle.Site
	addr   uint64 // where variables are resolved
	args   []expectation
	text   string // the prologue, for a disagreement
}

// value returns what the prologue delivered for an argument; in a record, the first 8 bytes
// of its field.
func (j *job) value(r *bpfexec.Result, i int) uint64 {
	if !j.code.IsRecord {
		return r.Values[i]
	}
	x := j.layout.Fields[i]
	if x.Size == 0 {
		return 0
	}
	b := []byte(r.Record[x.Offset:][:8])
	if j.code.BigEndian {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// expectation is the value that an argument must have.
type expectation struct {
	arg       plan.Argument
	unchecked bool
	value     func(m oracle.Machine) (v uint64, ok bool, err error)
}

// add adds a site's arguments to the batch, unless their prologue has been seen. first is the
// index of the first of them in the site's parameters, or -1 if they are those of a plan.
//
// way is where the variables of a site that is a way are resolved, or nil.
func (p *prover) add(s *dwarfloc.Site, way *runs.Way, args []plan.Argument, first int) error {
	pro, err := share.Emit(s, args, p.how)
	if err != nil {
		return err
	}
	// The key does not contain the reasons of arguments that are not fetched: they do not
	// change the values.
	key := pro.Key()
	if slices.ContainsFunc(args, func(a plan.Argument) bool { return byInstruction(&a) }) {
		key += fmt.Sprintf("%#x", s.Addr) // each site has a witness of its own
	}
	if _, dup := p.seen.LoadOrStore(key, struct{}{}); dup {
		return nil
	}
	site, err := p.second(s)
	if err != nil {
		return err
	}
	if addr, view := s.Addr, s.View; site != nil && (way != nil || s.AfterPrologue) {
		if way != nil {
			addr, view = way.Addr, way.View
		}
		if site, err = site.At(addr, view); err != nil {
			return fmt.Errorf("second reader: %w", err)
		}
	}
	j := job{code: bpfexec.CodeOf(pro, len(args)), layout: pro.Layout, site: s, second: site, addr: s.Addr, text: pro.String()}
	if way != nil {
		j.addr = way.Addr
	}
	j.code.Insns, j.code.BigEndian = pro.Slid(p.world.bias), inside.File(p.img).BigEndian()
	for i, a := range args {
		at := -1
		if first >= 0 {
			at = first + i
		}
		j.args = append(j.args, p.expect(s, site, a, at))
	}
	p.batch = append(p.batch, j)
	p.bytes += j.layout.Size
	if len(p.batch) >= batchSize || p.bytes >= batchBytes {
		return p.flush()
	}
	return nil
}

// derived reports whether an argument is computed from a variable or its part. The second
// reader knows only these.
func derived(a *plan.Argument) bool {
	number := a.Kind == prologue.KindScalar || a.Kind == prologue.KindObject
	return !number || a.Variable.Reference || a.Loc.Kind != a.Variable.Loc.Kind || a.Loc.Expr != a.Variable.Loc.Expr
}

// second returns the second reader's view of a site, where the debug information says that it
// is entered, or nil if it has no such site.
func (p *prover) second(s *dwarfloc.Site) (*oracle.Site, error) {
	if !p.reader.Reads(s.DIE) {
		// The machines of the unit before become invalid.
		if err := p.flush(); err != nil {
			return nil, err
		}
	}
	sites, err := p.reader.Around(s.DIE)
	if err != nil {
		return nil, fmt.Errorf("second reader: %w", err)
	}
	return sites[s.DIE], nil
}

// expect finds the second reader's value of an argument. at is its index in the site's
// parameters, or -1.
func (p *prover) expect(s *dwarfloc.Site, site *oracle.Site, a plan.Argument, at int) expectation {
	e := expectation{arg: a}
	if x := expression(p.def, &a); x != nil && site != nil {
		e.value = func(m oracle.Machine) (uint64, bool, error) { return second{s, site, &m}.value(x, a.Size, a.Signed) }
		return e
	}
	if a.DefinitionArg < 0 {
		e.unchecked = true
		return e
	}
	if value := p.witness(s, &a); value != nil {
		e.value = value
		return e
	}
	if r := a.Variable.Loc.Rule; site == nil || derived(&a) || r == rule.ABI || r >= rule.Caller {
		e.unchecked = true
		return e
	}
	name, steps, known := a.Name, []oracle.Step(nil), true
	if p.def != nil {
		d := &p.def.Args[a.DefinitionArg]
		if d.Expr.Kind == syntax.KindVariable {
			name = d.Expr.Name
		}
		steps, known = stepsOf(d.Expr.Path)
	}
	if q := parameter(site, name, at); q != nil && a.Variable.Role == dwarfloc.RoleParameter && known {
		e.value = func(m oracle.Machine) (uint64, bool, error) {
			if early, err := site.TooEarly(q); err != nil || early && !s.AfterPrologue {
				return 0, false, errors.Join(err, errNoValue)
			}
			if len(steps) > 0 {
				return p.part(q, &m, steps, a)
			}
			return param(q, &m, a)
		}
		return e
	}
	expr, _, _ := a.Variable.Expression()
	if expr == nil || a.Variable.Role == dwarfloc.RoleGlobal || len(steps) > 0 || !known {
		// The second reader reads parameters. A local's expression is checked, though
		// not how it was chosen; a global's may be in another unit.
		e.unchecked = true
		return e
	}
	e.value = func(m oracle.Machine) (uint64, bool, error) { return evaluate(&m, nil, expr, a) }
	return e
}

// parameter finds a parameter by its place, or else by its name. One without a name (Rust's
// patterns) can be found by its place only.
func parameter(site *oracle.Site, name string, at int) *oracle.Param {
	if at >= 0 && at < len(site.Params) && site.Params[at].Name == name {
		return &site.Params[at]
	}
	for i := range site.Params {
		if q := &site.Params[i]; q.Name == name && name != "" {
			return q
		}
	}
	return nil
}

// stepsOf returns a path as the second reader follows it. known is false if it does not: an
// index is a variable.
func stepsOf(path []syntax.Step) (steps []oracle.Step, known bool) {
	for _, p := range path {
		switch {
		case p.Kind != syntax.StepIndex:
			steps = append(steps, oracle.Step{Member: p.Member, Deref: p.Kind == syntax.StepArrow})
		case p.IndexBy != nil:
			return nil, false
		default:
			steps = append(steps, oracle.Step{Index: p.Index})
		}
	}
	return steps, true
}

// part returns the value of what a path leads to from a parameter.
func (p *prover) part(q *oracle.Param, m *oracle.Machine, steps []oracle.Step, a plan.Argument) (uint64, bool, error) {
	res := whole(q)
	var err error
	switch q.Source {
	case oracle.Constant:
	case oracle.Expression:
		res, err = m.Eval(q.Expr)
	default:
		err = errNoValue
	}
	var v uint64
	if err == nil {
		var o *oracle.Object
		if o, err = q.Follow(m, res, steps); err == nil {
			size, signed := 0, false // as the type has them
			if p.def.Args[a.DefinitionArg].Type.Kind != syntax.TypeNone {
				size, signed = a.Size, a.Signed
			}
			v, err = o.Value(size, signed)
		}
	}
	if errors.Is(err, oracle.ErrFault) {
		return 0, false, nil
	}
	return v, err == nil, err
}

func param(q *oracle.Param, m *oracle.Machine, a plan.Argument) (uint64, bool, error) {
	switch q.Source {
	case oracle.Constant:
		v, err := m.Fetch(q.Known(a.Size), a.Size, a.Signed)
		return v, err == nil, err
	case oracle.Expression:
		return evaluate(m, q, q.Expr, a)
	}
	return 0, false, errNoValue
}

// errNoValue is used if the debug information describes nothing at the site.
var errNoValue = errors.New("no location")

// whole returns the object that a constant parameter is.
func whole(q *oracle.Param) oracle.Result {
	if q.Type.Size < 0 {
		return q.Known(8)
	}
	return q.Known(int(q.Type.Size))
}

func evaluate(m *oracle.Machine, q *oracle.Param, expr []byte, a plan.Argument) (uint64, bool, error) {
	res, err := m.Eval(expr)
	if err == nil && q != nil {
		res, err = q.FillPadding(res)
	}
	var v uint64
	if err == nil {
		v, err = m.Fetch(res, a.Size, a.Signed)
	}
	if errors.Is(err, oracle.ErrFault) {
		return 0, false, nil
	}
	return v, err == nil, err
}

// flush runs the batch and compares.
func (p *prover) flush() error {
	if len(p.batch) == 0 {
		return nil
	}
	codes := make([]bpfexec.Code, len(p.batch))
	for i := range p.batch {
		codes[i] = p.batch[i].code
	}
	prog, err := bpfexec.Load(codes...)
	if err != nil {
		return fmt.Errorf("%v: %w", p.batch[0].site, err)
	}
	defer prog.Close()
	for state := range p.o.States {
		regs := p.registers(state)
		results, err := prog.Run(bpfexec.State{Regs: regs.bytes})
		if err != nil {
			return err
		}
		for i := range p.batch {
			if err := p.compare(&p.batch[i], regs, results[i], state == 0); err != nil {
				return err
			}
		}
	}
	p.report.Prologues += uint64(len(p.batch))
	if p.o.Each != nil {
		p.o.Each(uint64(len(p.batch)))
	}
	p.batch, p.bytes = p.batch[:0], 0
	return nil
}

// registers are the values of all registers: as struct pt_regs, and by number.
type registers struct {
	bytes []byte
	value map[uint64]uint64
}

func (p *prover) registers(state int) registers {
	r := registers{value: make(map[uint64]uint64)}
	for _, reg := range p.img.Arch().Registers() {
		if reg.Offset < 0 {
			continue
		}
		v := p.world.register(p.rng, state, reg.Offset)
		if need := reg.Offset + p.world.word; need > len(r.bytes) {
			r.bytes = append(r.bytes, make([]byte, need-len(r.bytes))...)
		}
		p.world.put(r.bytes[reg.Offset:], v)
		r.value[uint64(reg.DWARF)] = v
	}
	return r
}

// compare checks one run of one prologue. The first run also counts arguments without a
// value.
func (p *prover) compare(j *job, regs registers, got bpfexec.Result, first bool) error {
	for i := range j.args {
		e := &j.args[i]
		if e.unchecked {
			if first {
				p.report.Unchecked++
			}
			continue
		}
		stray := false
		m, err := p.machine(j, regs, &stray)
		if err != nil {
			return err
		}
		want, ok, err := e.value(m)
		if l := &e.arg.Loc; err == nil && l.Kind == loc.KindValue && exprtest.AsInCode(l) {
			// Package agree compares it with the second reader's, with numbers of which both widths make the same.
			want, ok = exprtest.Value(machine{m, p.img}, l.Expr)
			want = exprtest.Extend(want, e.arg.Size, e.arg.Signed)
		}
		if e.arg.LowBit {
			want &= 1
		}
		missing := got.Err>>i&1 == 1
		value := j.value(&got, i)
		switch {
		case stray:
			p.report.Stray++
			continue
		case errors.Is(err, oracle.ErrTooLarge), errors.Is(err, oracle.ErrNotRead), e.arg.Size > 8:
			if first {
				p.report.Unchecked++ // the registers convention carries 8 bytes
			}
			continue
		case err != nil && missing && !e.arg.Fetched() && value == 0:
			if first {
				p.report.NotFetched++
			}
			continue
		}
		if n := p.report.refused(e.arg.Unfetched.Code); n != nil && missing && value == 0 {
			if first {
				*n++
			}
			continue
		}
		p.report.Values++
		if ok == !missing && (ok && value == want || !ok && err == nil && value == 0) {
			p.report.Agreed++
			if !ok {
				p.report.Faults++
			}
			continue
		}
		if len(p.report.Disagreements) < MaxDisagreements {
			p.report.Disagreements = append(p.report.Disagreements, p.disagreement(j, i, regs, got, want, ok, err))
		}
	}
	return nil
}

// machine makes the second evaluator's state an exprtest.Machine.
type machine struct {
	m   oracle.Machine
	img *dwarfloc.Image
}

// Register returns a register.
func (m machine) Register(n uint64) (uint64, bool) { return m.m.Reg(n) }

// Address returns where an address of the image is.
func (m machine) Address(addr uint64) uint64 { return addr + m.m.Bias }

// Load reads memory.
func (m machine) Load(addr uint64, size int) (uint64, bool) {
	b := make([]byte, 8)
	if m.img.Arch().BigEndian {
		ok := m.m.Mem(addr, b[8-size:])
		return binary.BigEndian.Uint64(b), ok
	}
	ok := m.m.Mem(addr, b[:size])
	return binary.LittleEndian.Uint64(b), ok
}

// machine is the second evaluator's state at a site.
func (p *prover) machine(j *job, regs registers, stray *bool) (oracle.Machine, error) {
	site := j.second
	m := site.Machine()
	m.Reg = func(n uint64) (uint64, bool) { v, ok := regs.value[n]; return v, ok }
	m.Mem = func(addr uint64, b []byte) bool {
		ok := p.world.read(addr, b)
		if !ok && p.world.mapped(addr, len(b)) {
			// Sums of two addresses can name other memory of this process, which the
			// prologue reads, but which may change meanwhile.
			*stray = true
		}
		return ok
	}
	m.Bias = p.world.bias
	m.AtEntry = j.addr == site.FunctionStart
	m.CFA = func() (uint64, error) {
		rule, err := p.file.CFA(j.addr)
		if err != nil {
			return 0, err
		}
		return rule.Value(m)
	}
	if !j.site.AfterPrologue {
		var err error
		if m.NoFrame, err = site.NoFrame(); err != nil {
			return m, err
		}
	}
	return m, nil
}

// disagreement prints everything that is needed to investigate a difference.
func (p *prover) disagreement(j *job, i int, regs registers, got bpfexec.Result, want uint64, ok bool, err error) string {
	var b strings.Builder
	arg := &j.args[i].arg
	expr, sec, off := arg.Variable.Expression()
	terminal.Fprintf(&b, "%v (address %#x, view %d, entry .debug_info+%#x): argument %q, %d bytes, signed %v\n", j.site, j.site.Addr, j.site.View, j.site.DIE, arg.Name, arg.Size, arg.Signed)
	terminal.Fprintf(&b, "  location %s by %v, reason %q, from % x at %s+%#x\n", arg.Variable.Loc.Text(p.img.Arch()), arg.Variable.Loc.Rule, arg.Unfetched, expr, sec, off)
	terminal.Fprintf(&b, "  fetched %#x, err %#x; expected %#x, readable %v, %v\n  registers:", j.value(&got, i), got.Err, want, ok, err)
	for _, reg := range p.img.Arch().Registers() {
		if v, ok := regs.value[uint64(reg.DWARF)]; ok {
			terminal.Fprintf(&b, " %s=%#x", reg.Name, v)
		}
	}
	b.WriteString("\n" + j.text)
	return b.String()
}
