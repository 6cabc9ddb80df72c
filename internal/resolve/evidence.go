package resolve

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/arithmetic"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/judge"
	"github.com/bpfprologue/bpfprologue/internal/motion"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/steady"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// evidence answers what package judge asks about a variable's location at a site.
type evidence struct {
	s *entries.Spot
	v *Answer
	x *entries.Var
	c *entries.Chosen

	ev *Evaluator
}

// judged sets why a location may be that of another value than the passed one.
func (ev *Evaluator) judged(v *Answer, x *entries.Var, c *entries.Chosen) error {
	s := ev.spot
	// The parts of a structure that are there are judged, whatever is missing.
	if !v.Located() && v.Loc.Kind != loc.KindPieces || !takesFirst(s, x) {
		return nil
	}
	e := &ev.evidence
	*e = evidence{s, v, x, c, ev}
	var err error
	if ev.candidate, err = e.candidate(); err != nil {
		return err
	}
	var told judge.Evidence = e
	if ev.plain {
		told = judge.Silent{}
	}
	doubt, row, err := judge.Judge(&ev.candidate, told)
	if !ev.plain && !ev.lacked && err == nil {
		var silent *judge.Row
		_, silent, err = judge.Judge(&ev.candidate, judge.Silent{})
		ev.lacked = row != silent
	}
	v.Loc.Doubt = cmp.Or(doubt, v.Loc.Doubt)
	if row != nil && (doubt != reasons.None || v.Because == "") {
		v.Because = row.Because
	}
	return err
}

// candidate returns what is known without evidence.
func (e *evidence) candidate() (judge.Candidate, error) {
	s, c := e.s, e.c
	out := judge.Candidate{Parameter: true, Entry: s.Kind == entries.Entry, Views: c.Viewed, Changed: c.Changed, Compiler: judge.LLVM}
	out.Constant = e.v.Type.IsConst() || e.x.Object
	if r, reference, err := e.v.Type.Reference(); err == nil {
		out.Pointer, out.Constant = r.Kind == types.Pointer, out.Constant || reference && !e.x.U.Body.GNU()
	}
	marked, err := e.marked()
	if err != nil {
		return out, err
	}
	if err := e.passPadding(); err != nil {
		return out, err
	}
	switch {
	case c.Expr == nil || e.x.Location.IsBlock():
		out.Note = judge.Whole
	case c.Rule == rule.First:
		out.Note = judge.First
	case c.Rule == rule.LaterView && (c.Later > 1 || !marked):
		out.Note = judge.Later
	case c.Lo < s.At.Addr && (c.Viewed || s.At.Addr-c.Lo > maxPadding || !s.U.Img.Code.Padding(c.Lo, s.At.Addr)):
		out.Note = judge.Before
	default:
		out.Note = judge.Here
	}
	if e.x.U.Body.GNU() || c.Viewed { // only GCC writes views
		// GCC with views has a list for all that changes, and leaves them out of a list in which all are 0.
		out.Views = c.Viewed || e.x.U.Body.Views()
		if out.Compiler = judge.Unmarked; marked {
			out.Compiler = judge.Marks
		}
		// A view says only with markers of statements whether it is before or after one.
		out.Views = out.Views && marked
	}
	out.Place, err = placeOf(&e.v.Loc, e.v.Type)
	if n := e.v.Loc.Expr; e.v.Loc.Kind == loc.KindConstant && n.Op == ops.Const && n.K > 1 {
		r, err := e.v.Type.Resolve()
		out.Impossible = err == nil && r.Kind == types.Bool
	}
	if out.Entry && (out.Note == judge.Whole || out.Note == judge.Later) { // else it does not matter
		marks := s.CloneMarks()
		// A number in a clone that is also one of constants is that of the callers, if views show where it begins: GCC writes the only note without that.
		constants := (out.Views || out.Place != judge.Fixed) && slices.Contains(marks, entries.CloneOfConstant)
		out.Clone, out.Removed = len(marks) > 0, slices.Contains(marks, entries.CloneRemoved) && !constants
	}
	if out.Compiler == judge.LLVM {
		out.Counted = counted(&e.v.Loc, e.v.Type)
	} else {
		out.Counted = distance(&e.v.Loc)
	}
	if out.Compiler == judge.LLVM && !out.Entry && out.Place == judge.Held && (converts(&e.v.Loc) || loadsPart(&e.v.Loc, e.v.Type)) {
		out.Place = judge.Computed
	}
	return out, err
}

// counted reports whether a number is made by a division, or by a multiplication that makes no address.
func counted(l *loc.Location, t *types.Type) (found bool) {
	r, err := t.Resolve()
	if err != nil || l.Kind != loc.KindValue {
		return false
	}
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) {
			switch n.Op {
			case ops.Div, ops.UDiv:
				found = found || n.A.Op != ops.Sub || n.A.B.Op == ops.Const // the distance of two pointers is divided by what they point to
			case ops.Mul:
				found = found || r.Kind != types.Pointer && n.B.Op == ops.Const && n.B.K > 1
			}
		})
	})
	return found
}

// distance reports whether a number is made by a division without a sign, by a number, of what a register has more than a number. Pointers begin at an address, which is in
// another register or in the image: no instance was seen where one falls.
func distance(l *loc.Location) (found bool) {
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) {
			found = found || n.Op == ops.UDiv && n.B.Op == ops.Const && (n.A.Op == ops.Add || n.A.Op == ops.Sub) && n.A.A.Op == ops.Reg && n.A.B.Op == ops.Const
		})
	})
	return found
}

// maxPadding is how many bytes compilers put before a loop's beginning at most.
const maxPadding = 64

// passPadding makes a note that begins in front of the padding before the probe, at a view that only rows behind that have, one that begins at the probe's address. GCC writes a
// label there, in front of a loop that it aligns, and takes it for the loop's first statements too: ".LVL220: .p2align 4; .L135: .loc 1 33 2 view .LVU1497", and a list that
// begins at .LVL220 with .LVU1497.
func (e *evidence) passPadding() error {
	s, c := e.s, e.c
	at := s.At
	if !c.Viewed || c.Rule != rule.View || c.Lo >= at.Addr || c.VLo <= at.View || at.Addr-c.Lo > maxPadding || !s.U.Img.Code.Padding(c.Lo, at.Addr) {
		return nil
	}
	rows, err := s.U.RowsIn(dw.Range{Lo: c.Lo, Hi: at.Addr})
	if err != nil || slices.ContainsFunc(rows, func(r dw.Row) bool { return r.Addr == c.Lo && uint64(r.View) == c.VLo }) {
		return err
	}
	c.Rule, c.Lo, c.Later = rule.LaterView, at.Addr, c.VLo-at.View
	return nil
}

// converts reports whether a location, or a part of it, is a number that is cut or extended. LLVM writes so what is left of a conversion that it
// removed, and may have computed fewer bits than that had: those that the rest of the body needs.
func converts(l *loc.Location) bool {
	if l.Kind == loc.KindValue && (l.Expr.Op == ops.ZExt || l.Expr.Op == ops.SExt || l.Expr.Op == ops.And) {
		return true
	}
	return slices.ContainsFunc(l.Pieces, func(p loc.Piece) bool { return converts(&p.Loc) })
}

// loadsPart reports whether a location is a number that is loaded from fewer bytes than its type has.
func loadsPart(l *loc.Location, t *types.Type) bool {
	size, err := t.ByteSize()
	return err == nil && l.Kind == loc.KindValue && l.Expr.Op == ops.Deref && int64(l.Expr.Size) < size
}

// marked reports whether the function that has the site has markers of statements.
func (e *evidence) marked() (bool, error) {
	u := e.s.U
	if !u.Body.GNU() {
		return false, nil
	}
	of := markedOf{u, e.s.Rec}
	if e.ev.markedOf == of {
		return e.ev.marked, nil
	}
	marked, err := u.Body.MarksStatements(e.s.Rec)
	if err == nil {
		e.ev.marked, e.ev.markedOf = marked, of // of the next site too, mostly
	}
	return marked, err
}

// placeOf says what a location is, for a type. To cut or extend a number to the type's size computes nothing.
func placeOf(l *loc.Location, t *types.Type) (judge.Place, error) {
	depends, computes, fixed := false, false, false
	size, err := t.ByteSize()
	if err != nil {
		return judge.Held, nil //nolint:nilerr // the type is asked for elsewhere
	}
	at := uint64(0)
	for i := range l.Pieces {
		piece := &l.Pieces[i]
		if piece.Loc.Kind == loc.KindNone {
			at += piece.BitSize
			continue // it is missing
		}
		p, err := placeOf(&piece.Loc, types.VoidType)
		if err != nil {
			return judge.Held, err
		}
		if p == judge.Fixed {
			if padding, err := t.Padding(at, at+piece.BitSize); err != nil || padding {
				p = judge.Held //nolint:nilerr // the type is asked for elsewhere
			}
		}
		fixed, computes = fixed || p == judge.Fixed, computes || p == judge.Computed
		at += piece.BitSize
	}
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) { depends = depends || n.Op == ops.Reg || n.Op == ops.Deref })
	})
	switch l.Kind {
	case loc.KindMemory:
		if l.Expr.Op == ops.Addr {
			return judge.Global, nil
		}
	case loc.KindValue:
		e := l.Expr
		for e.Op == ops.ZExt || e.Op == ops.SExt || e.Op == ops.And && e.B.Op == ops.Const {
			bytes := int64(e.Size)
			if e.Op == ops.And {
				bytes = arithmetic.MaskBytes(e.B.K)
			}
			if bytes == 0 || bytes < size {
				break
			}
			e = e.A
		}
		computes = computes || e.Op != ops.Reg && e.Op != ops.Deref && e.Op != ops.Const && e.Op != ops.Addr
	}
	switch {
	case computes:
		return judge.Computed, nil
	case fixed, !depends && l.Kind != loc.KindMemory:
		return judge.Fixed, nil
	}
	return judge.Held, nil
}

func (e *evidence) Statements() (int, error) {
	return e.s.U.Body.Statements(e.s.Rec, e.s.At.Addr, 0, math.MaxUint64)
}

func (e *evidence) Begun() (bool, error) {
	at := e.s.At
	n, err := e.s.U.Body.Statements(e.s.Rec, at.Addr, at.View, e.c.Later)
	return n > 0, err
}

func (e *evidence) Over() (bool, error) {
	if e.v.Loc.Kind == loc.KindPieces {
		return false, nil // the members of a structure have places of their own, which change one by one
	}
	return overStatement(e.s, e.x, e.c)
}

func (e *evidence) Assigned() (judge.Assignment, error) {
	if e.x.U.Body.Views() {
		return e.assignedWithViews()
	}
	a, err := e.assignedWithoutViews()
	return a.how, err
}

// assignedWithoutViews returns what the function's bodies in the unit show by lists without views.
func (e *evidence) assignedWithoutViews() (assigns, error) {
	u, function := e.s.U, e.s.U.Recs[e.s.Rec].Root
	assigned, err := entries.Remembered(&u.Derived, assignedOf(function), func() (map[uint64]assigns, error) { return assignedIn(u, function, e.ev) })
	if err != nil {
		return assigns{}, err
	}
	root, err := e.x.Ultimate(nil)
	return assigned[root], err
}

// assignedWithViews looks at the function's bodies in the unit. GCC with views goes on with a value, which it computes or knows, where the
// parameter's place holds another one; without an assignment it does so only for want of a place.
func (e *evidence) assignedWithViews() (judge.Assignment, error) {
	root, err := e.x.Ultimate(nil)
	if err != nil {
		return judge.Never, err
	}
	u, function := e.s.U, e.s.U.Recs[e.s.Rec].Root
	changed, err := entries.Remembered(&u.Derived, changedOf(function), func() (map[uint64]bool, error) { return changing(u, function) })
	if changed[root] {
		return judge.Between, nil
	}
	return judge.Never, err
}

// assignedOf, changedOf and keptOf are keys of what a unit's bodies of a function show, by the function's record.
type (
	assignedOf int32
	changedOf  int32
	keptOf     int32
)

// changing returns the parameters of a function, by the entries that declare them, whose lists go on with a value.
func changing(u *entries.Unit, function int32) (map[uint64]bool, error) {
	out, roots := make(map[uint64]bool), make(map[uint64]uint64)
	for i := range u.Recs {
		r := &u.Recs[i]
		if r.Root != function || r.Flags&index.HasPC == 0 {
			continue
		}
		entry, err := u.Entry(u.Off + uint64(r.Off))
		if err != nil {
			return nil, err
		}
		constants := false // of what a clone is made for
		if r.Flags&index.Inlined == 0 {
			s := new(entries.Spot)
			ok, err := u.Read(int32(i), s)
			if err != nil {
				return nil, err
			}
			constants = !ok || slices.Contains(s.CloneMarks(), entries.CloneOfConstant)
		}
		err = u.Img.EachParam(entry, func(x *entries.Var) (bool, error) {
			if x.Constant.Form != 0 && r.Flags&index.Inlined == 0 && !constants {
				root, err := x.Ultimate(roots) // not by the callers: no clone was made for what they pass
				out[root] = true
				return true, err
			}
			if x.Location.Form == 0 || x.Location.IsBlock() {
				return true, nil
			}
			var last []byte
			l := u.Locations(x.Location, x.Views)
			for v := (dw.LocEntry{}); l.Next(&v); last = v.Expr {
				if last != nil && !bytes.Equal(last, v.Expr) && isValue(u, v.Expr) {
					root, err := x.Ultimate(roots)
					out[root] = true
					return true, err
				}
			}
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// isValue reports whether an expression says what a variable is, and not where: but not that it is what it was at the function's entry.
func isValue(u *entries.Unit, expr []byte) bool {
	value, entry, computes := false, false, false
	for at := 0; at < len(expr); {
		o, err := eval.Decode(expr, at, u.Encoding())
		if err != nil {
			return false
		}
		entry = entry || o.Code == eval.OpEntryValue || o.Code == eval.OpGNUEntryValue
		c := op.Opcode(o.Code)
		computes = computes || computesNumber(c) || c == op.DW_OP_shr
		value = value || o.IsImplicitValue() || op.Opcode(o.Code) == op.DW_OP_stack_value
		at = o.Next
	}
	return value && (!entry || computes)
}

// Ran looks at the addresses from where the note begins.
func (e *evidence) Ran() (bool, error) {
	n, err := e.s.U.Body.StatementsBetween(e.s.Rec, e.c.Lo, e.s.At.Addr)
	return n > 0, err
}

// Stepped looks for a register and a number in the value.
func (e *evidence) Stepped() (stepped bool, _ error) {
	if e.v.Loc.Kind != loc.KindValue {
		return false, nil
	}
	e.v.Loc.Exprs(func(x *loc.Expr) {
		x.Walk(func(n *loc.Expr) {
			if n.Op == ops.Add && n.A.Op == ops.Reg && n.B.Op == ops.Const && n.A.K != uint64(e.ev.Arch.SP) {
				stepped = stepped || e.s.U.Img.Code.Stepped(n.A.K, e.s.At.Addr) == int64(n.B.K)
			}
		})
	})
	return stepped, nil
}

func (e *evidence) Looped() (bool, error) { return updatedInLoop(e.s, &e.v.Loc, e.c) }

// Overtaken looks at bodies with instructions before the place where they begin, to which GCC moved them. It asks whether a register was
// written since then, and held a variable of a caller before that has no place any more: GCC can go on to say that the parameter, which was
// that variable, is there (LZ4_putIndexOnHash's h, where the next one is computed in the same register).
func (e *evidence) Overtaken() (bool, error) {
	s, at := e.s, e.s.At.Addr
	if s.Kind != entries.Inline || s.Again || e.v.Loc.Kind != loc.KindRegister || e.v.Loc.Expr.K >= 64 || e.c.Lo != at || e.c.Hi != at {
		return false, nil
	}
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil {
		return false, err
	}
	written := func(r dw.Range) bool {
		return r.Lo < at && r.Hi > r.Lo && s.U.Img.Code.WritesBetween(r.Lo, at, 1<<e.v.Loc.Expr.K, ranges)
	}
	if !slices.ContainsFunc(ranges, written) {
		return false, nil
	}
	return s.OfCallers(func(x *entries.Scoped) (bool, error) {
		if x.Location.Form == 0 || x.Location.IsBlock() {
			return false, nil
		}
		l := s.U.Locations(x.Location, x.Views)
		was, is := false, false
		for v := (dw.LocEntry{}); l.Next(&v); {
			same := bytes.Equal(v.Expr, e.c.Expr)
			was = was || same && v.Hi < at && s.U.Img.Code.Straight(v.Hi, at)
			is = is || v.Lo <= at && at < v.Hi
		}
		return was && !is, nil
	})
}

func (e *evidence) Hoisted() (bool, error) {
	s := e.s
	noted := e.c.Rule == rule.LaterView && e.c.Later > 1
	if s.Kind != entries.Inline || s.PCs.Ranges.Form == 0 {
		return false, nil
	}
	marked := s.PCs.Entry.Form != 0 && !noted
	if marked {
		if near, err := e.changedNear(); !near || err != nil {
			return false, err
		}
	}
	var slot *body.Slot
	register := uint64(0)
	if e.v.Loc.Kind == loc.KindRegister {
		register = e.v.Loc.Expr.K
	} else if m, ok := e.ev.frameSlot(&e.v.Loc, e.v.Type); ok {
		slot = &m
	} else {
		return false, nil
	}
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil || len(ranges) == 1 {
		return false, err
	}
	c, err := e.ev.instructionsOf(s)
	if err != nil {
		return false, err
	}
	size, err := e.v.Type.ByteSize()
	if err != nil || size < 1 || size > 8 {
		size = 8
	}
	from, is := c.Hoisted(ranges, register, slot, s.Addr, uint8(8*size))
	if !is || !marked {
		return is, nil
	}
	// What makes an argument can be in the body's ranges too, by the row of the function's declaration.
	rows, err := s.U.Body.Rows()
	row := dw.RowAt(rows, from)
	if row == nil || err != nil {
		return false, err
	}
	is = false
	err = s.U.Body.EachStatement(s.Rec, s.Addr, s.Addr+1, func(p body.Place, _, _ uint64) { is = is || p.File == row.File && p.Line == row.Line })
	return is, err
}

// changedNear reports whether an instruction writes the register of a parameter's only note behind the beginning of a part of the body in front of the place where the debug information
// says that it is entered: GCC writes that note as the whole body's, wherever it begins. A list would say that. A caller's variable in the register refutes it.
func (e *evidence) changedNear() (bool, error) {
	s, at := e.s, e.s.At.Addr
	if e.v.Loc.Kind != loc.KindRegister || e.v.Loc.Expr.K >= body.Followed || s.Again || !e.x.Location.IsBlock() {
		return false, nil
	}
	if start, ok, err := s.U.Start(&s.PCs); !ok || start != at || err != nil {
		return false, err
	}
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil {
		return false, err
	}
	for _, r := range ranges {
		if r.Lo < at && at-r.Lo < maxNear && r.Hi > r.Lo && s.U.Img.Code.WritesBetween(r.Lo, at, 1<<e.v.Loc.Expr.K, nil) {
			its, err := e.PassedOn()
			return !its, err
		}
	}
	return false, nil
}

// maxNear is how many bytes before a body are looked at where the debug information says where it begins.
const maxNear = 64

func (e *evidence) Alone() (bool, error) {
	if e.s.Kind != entries.Inline || e.v.Loc.Kind != loc.KindRegister || !e.x.Location.IsBlock() {
		return false, nil
	}
	if passed, err := e.PassedOn(); passed || err != nil {
		return false, err
	}
	if e.s.U.Img.Code.Sets(e.s.Addr, e.v.Loc.Expr.K) {
		return true, nil
	}
	tracked, err := tracked(e.s.U, e.s.U.Body.Outermost(e.s.Rec))
	return !tracked, err
}

// tracked reports whether a parameter of a function out of line, or of what is inlined into it, has a list of locations: GCC tracks the variables of a
// function, or does not.
func tracked(u *entries.Unit, top int32) (tracked bool, err error) {
	for i := top; err == nil && !tracked && int(i) < len(u.Recs) && (i == top || u.Recs[i].Parent >= top); i++ {
		var e dw.Entry
		if e, err = u.Entry(u.Off + uint64(u.Recs[i].Off)); err != nil {
			return false, err
		}
		err = u.Img.EachParam(e, func(x *entries.Var) (bool, error) {
			tracked = x.Location.Form != 0 && !x.Location.IsBlock()
			return !tracked, nil
		})
	}
	return tracked, err
}

func (e *evidence) Joined() (bool, error) {
	s, c := e.s, e.c
	if s.Kind != entries.Inline || s.Addr != s.At.Addr || c.Hi != s.Addr || c.Lo == s.Addr && !s.Again {
		return false, nil
	}
	code, err := e.ev.codeOf(s)
	if err != nil || c.Lo == s.Addr {
		return err == nil && motion.Joined(code, s.Rec, s.Addr), err
	}
	// A note that comes from before the probe is not that of a path on which the body has computed something for itself, by what it was passed, unless it is noted there too.
	return motion.JoinedFrom(code, s.Rec, s.Addr, func(last uint64) bool {
		l := s.U.Locations(e.x.Location, e.x.Views)
		for v := (dw.LocEntry{}); l.Next(&v); {
			if v.Lo <= last && last < v.Hi && bytes.Equal(v.Expr, c.Expr) {
				return false
			}
		}
		return true
	}), nil
}

// updatedInLoop reports whether a location depends on a register that the body updates in a
// loop around its beginning, where the location still holds. rustc 1.63 with opt-level=s
// describes the n of "while (n--)" by one register for the whole body, which is decremented
// before the body begins.
func updatedInLoop(s *entries.Spot, l *loc.Location, c *entries.Chosen) (bool, error) {
	if s.Kind != entries.Inline {
		return false, nil
	}
	var used []uint64
	eachRegister(l, func(n uint64) {
		if n != uint64(s.U.Img.Arch().SP) {
			used = append(used, n)
		}
	})
	if len(used) == 0 {
		return false, nil
	}
	updated, err := loopUpdates(s, c)
	return slices.ContainsFunc(used, updated.Has), err
}

// loopUpdates returns the registers that an inlined body updates in loops around its
// beginning, where the Chosen entry holds.
func loopUpdates(s *entries.Spot, c *entries.Chosen) (body.Registers, error) {
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil {
		return 0, err
	}
	fun, err := s.Function()
	if err != nil {
		return 0, err
	}
	return s.U.Img.Code.LoopUpdates(ranges, s.At.Addr, fun.Start, c.Lo, c.Hi), nil
}

// Placed asks the code where a body has several parts and no entry: LLVM writes the parts by address, whichever of them runs first.
func (e *evidence) Placed() (bool, error) {
	if e.s.Kind != entries.Inline || e.s.PCs.Entry.Form != 0 || e.s.PCs.Ranges.Form == 0 {
		return true, nil
	}
	c, err := e.ev.codeOf(e.s)
	return err != nil || !c.Astray(), err
}

// Elsewhere looks at where the debug information says that the body is entered, which is at its first statement if that has a view.
func (e *evidence) Elsewhere() (bool, error) {
	s := e.s
	if s.Kind != entries.Inline || !s.PCs.Viewed {
		return false, nil
	}
	start, ok, err := s.U.Start(&s.PCs)
	return ok && start != s.At.Addr, err
}

// Steady asks the function's other bodies.
func (e *evidence) Steady() (bool, error) {
	k, err := e.ev.memory().facts.Function(e.s.U, e.s.Rec)
	if err != nil {
		return false, err
	}
	name, err := e.x.Text()
	if err != nil {
		return false, err
	}
	return steady.Of(e.s.U.Img).Leaves(e.s, &k, name)
}

// PassedNumber asks the other bodies of the call.
func (e *evidence) PassedNumber() (bool, error) {
	k, err := e.ev.memory().facts.Function(e.s.U, e.s.Rec)
	if err != nil {
		return false, err
	}
	return steady.Of(e.s.U.Img).Passes(e.s, &k, e.x, e.c.Expr)
}

func (e *evidence) Midway() (bool, error) {
	if e.s.Entered != 0 {
		return e.s.Entered == entries.Midway, nil
	}
	// Where GCC noted that a body begins, with a view, it begins with its first statement.
	if e.s.PCs.Entry.Form != 0 && e.s.U.Body.GNU() && e.s.U.Body.Views() {
		if start, ok, err := e.s.U.Start(&e.s.PCs); err != nil || ok && start == e.s.At.Addr {
			return false, err
		}
	}
	if !e.ev.midwayRead {
		first, known, err := e.s.U.Body.BeginsAt(e.s.Rec, e.s.At.Addr)
		if err != nil {
			return false, err
		}
		e.ev.midway, e.ev.midwayRead = known && !first, true
	}
	return e.ev.midway, nil
}
