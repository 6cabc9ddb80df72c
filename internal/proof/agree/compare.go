package agree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/proof/exprtest"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
	"github.com/bpfprologue/bpfprologue/internal/proof/walk"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Findings gathers differences by kind, with examples, and counts.
type Findings struct {
	Count    map[string]int      // differences of a kind
	Examples map[string][]string // of a kind
	Totals   map[string]int      // what there is
}

// NewFindings returns findings of nothing.
func NewFindings() *Findings {
	return &Findings{Count: make(map[string]int), Examples: make(map[string][]string), Totals: make(map[string]int)}
}

// MaxExamples is how many examples there are of a kind of difference.
const MaxExamples = 8

func (f *Findings) differ(kind, format string, args ...any) {
	if f.Count[kind]++; f.Count[kind] <= MaxExamples {
		f.Examples[kind] = append(f.Examples[kind], fmt.Sprintf(format, args...))
	}
}

// Add adds others.
func (f *Findings) Add(g *Findings) {
	for k, n := range g.Count {
		f.Count[k] += n
		f.Examples[k] = append(f.Examples[k], g.Examples[k]...)
	}
	for k, n := range g.Totals {
		f.Totals[k] += n
	}
}

// Options are options of Compare.
type Options struct {
	Units  []oracle.Unit // to compare; nil means all
	Random bool          // expressions are generated
}

// Compare reads an image both ways.
func Compare(ctx context.Context, img *dwarfloc.Image, file *oracle.File, o Options) (*Findings, error) {
	units := file.Units
	if o.Units != nil {
		units = slices.Clone(o.Units)
		slices.SortFunc(units, func(a, b oracle.Unit) int { return cmp.Compare(a.Off, b.Off) })
	}
	workers := make([]comparer, runtime.GOMAXPROCS(0))
	for i := range workers {
		r, err := file.NewReader()
		if err != nil {
			return nil, err
		}
		workers[i] = comparer{
			Findings: NewFindings(), img: img, file: file, reader: r, random: o.Random,
			entries: make(map[entryKey]bool), read: make(map[uint64]bool), seen: make(map[uint64]bool),
		}
	}
	err := walk.Answers(ctx, img, func(worker int, s *dwarfloc.Site, params []*dwarfloc.Variable) error {
		i, _ := slices.BinarySearchFunc(units, s.DIE, func(u oracle.Unit, die uint64) int { return cmp.Compare(u.End, die+1) })
		if i == len(units) || s.DIE < units[i].Off {
			workers[worker].entry(s)
			return nil
		}
		return workers[worker].answer(&units[i], s, params)
	})
	if err != nil {
		return nil, err
	}
	all := &workers[0]
	for i := range workers[1:] {
		all.merge(&workers[1+i])
	}
	return all.Findings, all.missing(units)
}

// entryKey is what an entry of a function has in common with its copies.
type entryKey struct {
	name string
	addr uint64
}

// comparer is one goroutine's part of a comparison.
type comparer struct {
	*Findings
	img    *dwarfloc.Image
	file   *oracle.File
	reader *oracle.Reader
	random bool // expressions are generated

	entries map[entryKey]bool // that dwarfloc has, also in units that were not chosen
	read    map[uint64]bool   // offsets of units that the other reader has read
	others  []other           // all sites of these
	seen    map[uint64]bool   // entries of the sites that dwarfloc has
}

// other is a site of the other reader.
type other struct {
	entryKey
	die     uint64
	inlined bool
}

// merge adds what another goroutine has found.
func (c *comparer) merge(o *comparer) {
	c.Add(o.Findings)
	maps.Copy(c.entries, o.entries)
	maps.Copy(c.read, o.read)
	maps.Copy(c.seen, o.seen)
	c.others = append(c.others, o.others...)
}

// entry notes where dwarfloc has an entry.
func (c *comparer) entry(d *dwarfloc.Site) {
	if d.Kind != dwarfloc.SiteEntry {
		return
	}
	c.entries[entryKey{d.Function, d.Addr}] = true
	if ranges, err := d.Ranges(); err == nil && len(ranges) > 0 { // the site is after a prologue
		c.entries[entryKey{d.Function, ranges[0][0]}] = true
	}
}

// answer compares a site with the other reader's.
func (c *comparer) answer(u *oracle.Unit, d *dwarfloc.Site, params []*dwarfloc.Variable) error {
	c.entry(d)
	list, err := c.reader.Around(d.DIE)
	if err != nil {
		return err
	}
	if !c.read[u.Off] {
		c.list(u, slices.Collect(maps.Values(list)))
	}
	c.seen[d.DIE] = true
	if s := list[d.DIE]; s != nil {
		c.site(s, d, params)
	} else {
		c.differ("site only in dwarfloc", "%v, entry %#x", d, d.DIE)
	}
	return nil
}

// list notes all sites of a unit.
func (c *comparer) list(u *oracle.Unit, sites []*oracle.Site) {
	c.read[u.Off] = true
	for _, s := range sites {
		c.others = append(c.others, other{entryKey{s.Function, s.Addr}, s.DIE, s.Inlined})
	}
}

// missing finds the sites that only the other reader has.
func (c *comparer) missing(units []oracle.Unit) error {
	for i := range units {
		if c.read[units[i].Off] {
			continue
		}
		sites, err := c.reader.Sites(units[i])
		if err != nil {
			return err
		}
		c.list(&units[i], sites)
	}
	for _, s := range c.others {
		switch {
		case c.seen[s.die]:
		case !s.inlined && c.entries[s.entryKey]:
			c.Totals["entries that dwarfloc leaves out as copies"]++
		default:
			c.differ("site missing in dwarfloc", "%s at %#x, entry %#x", s.name, s.addr, s.die)
		}
	}
	return nil
}

func (c *comparer) site(s *oracle.Site, d *dwarfloc.Site, params []*dwarfloc.Variable) {
	kind := "out-of-line"
	if s.Inlined {
		kind = "inlined"
	}
	c.Totals[kind+" sites"]++
	at := fmt.Sprintf("%s (entry %#x)", s.Function, s.DIE)
	if s.Function != d.Function {
		c.differ("name", "%s: dwarfloc %q", at, d.Function)
	}
	if s.Inlined != (d.Kind == dwarfloc.SiteInline) {
		c.differ("kind", "%s: dwarfloc %v", at, d.Kind)
	}
	if d.AfterPrologue {
		c.Totals[kind+" sites after a prologue"]++
		if s.Inlined || d.Addr < s.Addr {
			c.differ("prologue", "%s: starts at %#x, dwarfloc %#x", at, s.Addr, d.Addr)
		}
		// Only expressions for the whole scope are left to compare.
		s.Addr = d.Addr
	}
	probed := s.Addr
	if !d.AfterPrologue {
		probed = c.file.Probe(s.Addr)
	}
	if probed != d.Addr || d.LocalEntry != (probed != s.Addr) {
		c.differ("address", "%s: %#x, dwarfloc %#x", at, probed, d.Addr)
	}
	if d.LocalEntry {
		c.Totals[kind+" sites at local entries"]++
	}
	if s.View != d.View {
		c.differ("view", "%s: %d, dwarfloc %d", at, s.View, d.View)
	}
	names := func() (a, b []string) {
		for _, p := range s.Params {
			a = append(a, p.Name)
		}
		for _, p := range params {
			b = append(b, p.Name)
		}
		return a, b
	}
	if a, b := names(); len(a) > len(b) {
		s.Params = c.once(s.Params)
	}
	if a, b := names(); !slices.Equal(a, b) {
		c.differ("parameters", "%s: %q, dwarfloc %q", at, a, b)
		return
	}
	for i := range s.Params {
		if d.AfterPrologue && s.Params[i].Rule != oracle.RuleWhole {
			c.Totals["parameters in lists, at sites after a prologue"]++
			continue // the other reader has chosen an entry for the first instruction
		}
		c.param(at+" "+s.Params[i].Name, kind, s, &s.Params[i], d, params[i])
	}
}

// once leaves out what describes a parameter a second time: in code of link-time optimization, that of
// another unit with the same inline function.
func (c *comparer) once(params []oracle.Param) (out []oracle.Param) {
	for _, p := range params {
		at := slices.IndexFunc(out, func(q oracle.Param) bool { return q.Name == p.Name && p.Name != "" })
		switch {
		case at < 0:
			out = append(out, p)
			continue
		case out[at].Source == oracle.NoLocation:
			out[at] = p
		}
		c.Totals["parameters that are described twice"]++
	}
	return out
}

func (c *comparer) param(at, kind string, s *oracle.Site, p *oracle.Param, d *dwarfloc.Site, v *dwarfloc.Variable) {
	c.Totals[kind+" parameters"]++
	if v.Located() {
		c.Totals[kind+" parameters, located"]++
	}
	c.types(at, p, v)
	switch {
	case v.Loc.Rule == rule.ABI && !s.Inlined:
		// What the debug information says is in doubt, and nothing else is read here.
		c.Totals["parameters by the calling convention"]++
		return
	case v.Loc.Rule >= rule.Caller:
		// The other reader looks neither at call sites (the programs of package guality run) nor at the kernel's tables and instructions
		// (TestStaticBranches and TestWitnesses of package dwarfloc).
		c.Totals["parameters by rule "+v.Loc.Rule.String()]++
		return
	case v.Reason.Code == reasons.NotAtSite && p.Rule == oracle.RuleLaterView:
		// Nothing shows that the location holds at the beginning of the body already.
		c.Totals["parameters at a later view that dwarfloc does not take"]++
		return
	case v.Reason.Code == reasons.Contradictory, v.Reason.Code == reasons.Reassigned:
		c.Totals["parameters of which dwarfloc says: "+v.Reason.Code.String()]++
		return
	}
	expr, section, off := v.Expression()
	// For an expression in the variable's entry, section and offset are the entry's.
	if d := c.file.Section(section); p.Rule != oracle.RuleWhole && expr != nil && (off > uint64(len(d)) || !bytes.HasPrefix(d[off:], expr)) {
		c.differ("offset of an expression", "%s: % x is not in %s at %#x", at, expr, section, off)
	}
	if !bytes.Equal(expr, p.Expr) {
		c.differ("expression", "%s: % x, dwarfloc % x", at, p.Expr, expr)
		return
	}
	if v.Loc.Kind != loc.KindNone && v.Loc.Rule.String() != string(p.Rule) {
		c.differ("rule", "%s: %s, dwarfloc %s", at, p.Rule, v.Loc.Rule)
	}
	verdict := "described"
	want := reasons.None
	switch p.Source {
	case oracle.NoLocation:
		verdict, want = "no location", reasons.OptimizedOut
	case oracle.NotAtSite:
		verdict, want = "not at the site", reasons.NotAtSite
		if v.Reason.Code == reasons.OptimizedOut { // an empty list
			want = reasons.OptimizedOut
		}
	case oracle.Constant:
		c.constant(at, p, v)
	case oracle.Expression:
		if v.Reason.Code == reasons.NotStoredYet {
			want = c.notStored(at, s, p, v)
			break
		}
		for seed := range uint64(2) {
			want = c.expression(at, State{Seed: mix(s.DIE ^ seed<<60), Arch: c.img.Arch()}, s, p, v, seed == 0)
		}
		switch want {
		case reasons.EntryValueOnly:
			verdict = "entry value only"
		case reasons.NotAtSite:
			verdict = "not at the site"
		}
	}
	if p.Source == oracle.Expression {
		c.Totals[kind+" parameters by rule "+string(p.Rule)]++
	}
	c.Totals[kind+" parameters, oracle: "+verdict]++
	if len(p.Others) > 0 {
		c.Totals[kind+" parameters with several entries"]++
		for _, o := range p.Others {
			if verdict == "not at the site" && (o.Source == oracle.Expression || o.Source == oracle.Constant) {
				c.Totals[kind+" parameters not at the site of which another entry is"]++
			}
		}
	}
	verdict = "described"
	switch v.Reason.Code {
	case reasons.OptimizedOut:
		verdict = "no location"
	case reasons.NotAtSite:
		verdict = "not at the site"
	case reasons.EntryValueOnly:
		verdict = "entry value only"
	case reasons.None:
	default:
		c.Totals[kind+" parameters described but not located: "+v.Reason.Code.String()]++
	}
	c.Totals[kind+" parameters, dwarfloc: "+verdict]++
	if v.Reason.Code != want {
		c.differ("reason", "%s: %q, dwarfloc %v (% x)", at, want, v.Reason, p.Expr)
	}
}

func (c *comparer) types(at string, p *oracle.Param, v *dwarfloc.Variable) {
	size, err := v.Type.ByteSize()
	if err != nil {
		c.differ("type", "%s: %v", at, err)
		return
	}
	if size != p.Type.Size {
		c.differ("type size", "%s: %d, dwarfloc %d (%v)", at, p.Type.Size, size, v.Type)
	}
	t, err := v.Type.Resolve()
	if err != nil {
		c.differ("type", "%s: %v", at, err)
		return
	}
	if p.Type.Scalar && t.Signed != p.Type.Signed {
		c.differ("type sign", "%s: %v, dwarfloc %v (%v)", at, p.Type.Signed, t.Signed, v.Type)
	}
	scalar := false
	switch t.Kind {
	case types.Int, types.Bool, types.Char, types.Enum, types.Pointer:
		scalar = true
	}
	if scalar != p.Type.Scalar {
		c.differ("type kind", "%s: scalar %v, dwarfloc %v (%v)", at, p.Type.Scalar, t.Kind, v.Type)
	}
}

func (c *comparer) constant(at string, p *oracle.Param, v *dwarfloc.Variable) {
	st := State{Arch: c.img.Arch()}
	want := st.shorten(oracle.Result{Kind: oracle.IsBytes, Bytes: p.Const})
	got, ok := st.result(&v.Loc)
	if !ok || !reflect.DeepEqual(got, want) {
		c.differ("constant", "%s: %v, dwarfloc %v", at, want, got)
	}
}

// expression evaluates a parameter's expression in both ways and returns the
// reason that dwarfloc should give.
func (c *comparer) expression(at string, st State, s *oracle.Site, p *oracle.Param, v *dwarfloc.Variable, third bool) loc.ReasonCode {
	m := c.machine(at, s, st.Reg, st.Mem, st.bias())
	if early, err := s.TooEarly(p); err != nil {
		c.differ("frame", "%s: %v", at, err)
	} else if early {
		return reasons.NotAtSite
	}
	res, err := m.Eval(p.Expr)
	if errors.Is(err, oracle.ErrFrameNotSet) {
		return reasons.NotAtSite
	}
	if err != nil && !errors.Is(err, oracle.ErrFault) {
		return c.reason(err)
	}
	if third && c.img.Arch().WordSize == 8 && !c.img.Arch().BigEndian {
		c.third(at, st, m, p, res, err)
	}
	if res, err = pad(p, res, err); err != nil && !errors.Is(err, oracle.ErrFault) {
		c.differ("padding", "%s: %v", at, err)
	}
	got, ok := st.result(&v.Loc)
	switch {
	case v.Reason == eval.Overwritten && c.belowStack(at, st, s, p):
		return v.Reason.Code
	case v.Reason.Code == reasons.Unsupported && (strings.Contains(v.Reason.Detail, "more than") || strings.Contains(v.Reason.Detail, "a branch in a location with pieces")):
		if third {
			c.Totals["expressions beyond dwarfloc's limits"]++
		}
		return v.Reason.Code
	case c.random && err != nil && ok:
		// Nothing depends on the result of the division, so its fault may be dropped too.
		c.Totals["made-up expressions with a fault in dead code"]++
		return v.Reason.Code
	}
	if mask, cut := exprtest.CutInCode(&v.Loc); cut && ok && err == nil && !st.same(got, st.shorten(res)) {
		if n, err := m.Fetch(res, int(p.Type.Size), p.Type.Signed); err == nil && n&mask == got.Value {
			if third {
				c.Totals["bit-fields that dwarfloc says the code cuts"]++
			}
			return reasons.None
		}
	}
	if ok && err == nil && st.Small == 0 && !st.same(got, st.shorten(res)) && exprtest.AsInCode(&v.Loc) {
		if third {
			c.Totals["operations that dwarfloc says the code makes of 32 bits"]++
		}
		st.Small = exprtest.SmallFor(&v.Loc)
		return c.expression(at, st, s, p, v, false)
	}
	if ok && err == nil && st.Small == 1 && exprtest.AsInCode(&v.Loc) {
		// The factor has more bits, as those have that stand for exact divisions: the lower 32 bits are the same.
		if n, err := m.Fetch(res, int(p.Type.Size), p.Type.Signed); err == nil && uint32(n) == uint32(got.Value) {
			c.Totals["products that dwarfloc says the code makes of 32 bits, by these"]++
			return reasons.None
		}
	}
	if v.Loc.Kind == loc.KindNone || ok != (err == nil) || ok && !st.same(got, st.shorten(res)) {
		c.differ("value", "%s: % x: %+v, %v, dwarfloc %s %v: %+v, %v", at, p.Expr, res, err, v.Loc.Text(c.img.Arch()), v.Reason, got, ok)
		return v.Reason.Code
	}
	if err != nil {
		return reasons.None
	}
	if size := p.Type.Size; p.Type.Scalar && size >= 1 && size <= 8 {
		// The two are equal. Whether they are large enough is another question.
		if _, err := m.Fetch(res, int(size), p.Type.Signed); errors.Is(err, oracle.ErrTooLarge) {
			c.Totals["locations smaller than their type"]++
		}
	}
	switch res.Kind {
	case oracle.IsImplicit:
		return reasons.ImplicitPointer
	case oracle.InPieces:
		for _, x := range res.Pieces {
			if x.Kind == oracle.IsMissing || x.Kind == oracle.IsImplicit {
				return reasons.MissingPiece
			}
		}
	}
	return reasons.None
}

// machine returns the state that an evaluation at a site needs.
func (c *comparer) machine(at string, s *oracle.Site, reg func(uint64) (uint64, bool), mem func(uint64, []byte) bool, bias uint64) oracle.Machine {
	m := s.Machine()
	var err error
	if m.NoFrame, err = s.NoFrame(); err != nil {
		c.differ("frame", "%s: %v", at, err)
	}
	m.Reg, m.Mem, m.Bias = reg, mem, bias
	m.CFA = func() (uint64, error) {
		rule, err := c.file.CFA(s.Addr)
		if err != nil {
			return 0, err
		}
		return rule.Value(m)
	}
	return m
}

// belowStack reports whether the expression reads, or leads to, memory below the stack pointer, wherever that is.
func (c *comparer) belowStack(at string, st State, s *oracle.Site, p *oracle.Param) bool {
	const near = 1 << 40
	sp := uint64(1) << (8*c.img.Arch().WordSize - 2)
	below := false
	_ = c.visit(at, st, s, p, map[uint64]uint64{uint64(c.img.Arch().SP): sp}, func(addr uint64) { below = below || addr < sp && sp-addr < near })
	return below
}

// visit evaluates a parameter's expression where some registers point elsewhere, and calls look with each address that it reads or leads to.
func (c *comparer) visit(at string, st State, s *oracle.Site, p *oracle.Param, pointers map[uint64]uint64, look func(addr uint64)) error {
	reg := func(n uint64) (uint64, bool) {
		if v, ok := pointers[n]; ok {
			return v, true
		}
		return st.Reg(n)
	}
	mem := func(addr uint64, b []byte) bool {
		look(addr)
		return st.Mem(addr, b)
	}
	m := c.machine(at, s, reg, mem, st.bias())
	res, err := m.Eval(p.Expr)
	for _, x := range append(res.Pieces, oracle.Piece{Result: res}) {
		if x.Kind == oracle.InMemory {
			look(x.Value)
		}
	}
	return err
}

// NotStoredYet counts parameters that only dwarfloc rejects: it reads the code, which this
// reader does not.
const NotStoredYet = "parameters on the stack that dwarfloc says are not stored yet"

// notStored returns reasons.NotStoredYet for a parameter that may have it: it is on the
// stack or computed from there. At a function's entry that is below the stack pointer; at an
// inlined site it is near the stack or frame pointer, according to a list.
func (c *comparer) notStored(at string, s *oracle.Site, p *oracle.Param, v *dwarfloc.Variable) loc.ReasonCode {
	const near = 1 << 16
	a := c.img.Arch()
	sp, fp := uint64(a.SP), framePointers[a.Name]
	// Both are far from the other registers and from each other.
	pointers := map[uint64]uint64{fp: 1 << (8*a.WordSize - 3), sp: 1 << (8*a.WordSize - 2)}
	onStack := false
	err := c.visit(at, State{Seed: mix(s.DIE), Arch: c.img.Arch()}, s, p, pointers, func(addr uint64) {
		switch {
		case !s.Inlined:
			onStack = onStack || s.AtEntry() && addr < pointers[sp] && pointers[sp]-addr < near ||
				!s.AtEntry() && (addr < pointers[fp] && pointers[fp]-addr < near || addr-pointers[sp] < near) // in its frame
		case p.Rule != oracle.RuleWhole:
			onStack = onStack || addr-pointers[sp]+near < 2*near || addr-pointers[fp]+near < 2*near
		}
	})
	if err != nil || !onStack || v.Loc.Kind != loc.KindNone {
		return reasons.None
	}
	c.Totals[NotStoredYet]++
	return reasons.NotStoredYet
}

// framePointers are the registers that compilers use as frame pointers.
var framePointers = map[string]uint64{"amd64": 6, "arm64": 29, "armhf": 11, "i386": 5, "loong64": 22, "mips64el": 30, "ppc64el": 31, "riscv64": 8, "s390x": 11}

// pad fills the padding of a result, if there is one.
func pad(p *oracle.Param, res oracle.Result, err error) (oracle.Result, error) {
	if err != nil {
		return res, err
	}
	res.Pieces = slices.Clone(res.Pieces)
	return p.FillPadding(res)
}

// third asks delve about a result without a fault.
func (c *comparer) third(at string, st State, m oracle.Machine, p *oracle.Param, res oracle.Result, failed error) {
	if failed != nil {
		return
	}
	var cfa, base uint64
	if len(m.FrameBase) > 0 {
		if fb, err := m.Eval(m.FrameBase); err == nil {
			base = fb.Value
		}
	}
	if v, err := m.CFA(); err == nil {
		cfa = v
	}
	expr := p.Expr
	if m.GNU { // delve knows nothing of the widths of GCC's operands
		expr, m.GNU = oracle.AsMeant(expr), false
		var err error
		if res, err = m.Eval(expr); err != nil {
			return
		}
	}
	got, known, err := st.Delve(expr, base, cfa)
	if !known {
		c.Totals["expressions that delve does not know"]++
		return
	}
	c.Totals["expressions that delve evaluated"]++
	ops := make(map[byte]bool)
	if bytes.IndexByte(p.Expr, 0x1d) >= 0 {
		ops[0x1d] = true
	}
	if bytes.IndexByte(p.Expr, 0x2f) >= 0 { // skip, with which loops go back: delve adds the distance without its sign
		ops[0x2f] = true
	}
	if err != nil || !reflect.DeepEqual(st.shorten(got), st.shorten(res)) && !delveKnown(res, got, ops) {
		c.differ("delve", "%s: % x: %+v, delve %+v, %v", at, p.Expr, res, got, err)
	}
}

// reason is dwarfloc's reason for an evaluation that failed.
func (c *comparer) reason(err error) loc.ReasonCode {
	for _, r := range []struct {
		err  error
		code loc.ReasonCode
	}{
		{oracle.ErrEntryValue, reasons.EntryValueOnly},
		{oracle.ErrParameterRef, reasons.ParameterRef},
		{oracle.ErrThreadLocal, reasons.ThreadLocal},
		{oracle.ErrUnsupported, reasons.Unsupported},
		{oracle.ErrNoFrame, reasons.NoFrameInfo},
		{oracle.ErrBad, reasons.Damaged},
	} {
		if errors.Is(err, r.err) {
			return r.code
		}
	}
	var reg oracle.RegisterError
	if errors.As(err, &reg) {
		if r := c.img.Arch().Register(uint64(reg)); r != nil && r.Vector {
			return reasons.VectorRegister
		}
	}
	return reasons.NoRegister
}
