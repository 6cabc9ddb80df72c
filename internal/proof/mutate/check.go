package mutate

import (
	"go/parser"
	"go/token"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// What holds for every answer about every file, however damaged:
//
//   - A site is in a section of instructions, and so is each way into and out of a body.
//   - The code of a site is ranges that do not end before they begin.
//   - A variable has a type, and either a whole location with the rule by which it was chosen,
//     or a reason that has a text.
//   - A location names registers of the architecture, which a probe sees. It reads 1 to 8
//     bytes at a time. Its pieces have bits, and are read; only padding is not.
//   - What is exported is text: UTF-8, without control characters. Go is Go.
//
// That a location is the right one cannot be known of a damaged file: there is no other truth
// than what it says. For good files, internal/proof/oracle is the second opinion.

// address checks where a site is.
func (a *asker) address(what string, s *dwarfloc.Site) {
	sec := inside.File(a.img).SectionAt(s.Addr)
	switch {
	case sec == nil:
		a.fault("wrong", "%s %v at %#x is in no section", what, s, s.Addr)
	case !sec.Exec:
		a.fault("wrong", "%s %v at %#x is in section %s, which holds no instructions", what, s, s.Addr, sec.Name)
	}
}

// site asks a site everything.
func (a *asker) site(s *dwarfloc.Site) {
	a.address("site", s)
	a.say("%v %s %#x %d %#x %s %s+%#x %v %s:%d %+v", s, s.Kind, s.Addr, s.View, s.DIE, s.Section, s.Symbol, s.Offset, s.AfterPrologue, s.CallFile, s.CallLine, s.Callers)
	ranges, err := s.Ranges()
	a.failed("ranges", err)
	for _, r := range ranges {
		if r[0] > r[1] {
			a.fault("wrong", "the code of %v is %#x to %#x", s, r[0], r[1])
		}
	}
	file, line, err := s.Declared()
	a.failed("declared", err)
	a.say("%x %s:%d", ranges, file, line)
	a.variables(s)
	if s.Kind == dwarfloc.SiteEntry {
		returns, moved, err := inside.Returns(s, false)
		a.failed("returns", err)
		a.say("%d returns, %v", len(returns), moved)
		for _, r := range returns {
			a.address("return", r)
		}
	}
	v, err := compute.Resolve(s, &syntax.Expr{Kind: syntax.KindRetval})
	if !a.failed("result", err) {
		a.variable(v)
	}
	again, err := inside.Clone(s)
	if !a.failed("clone", err) && again.String() != s.String() {
		a.fault("wrong", "the clone of %v is %v", s, again)
	}
}

// variables asks a site for its variables, and steps to what they consist of.
func (a *asker) variables(s *dwarfloc.Site) {
	vars, err := s.Variables()
	if a.failed("variables", err) {
		return
	}
	for _, v := range vars {
		a.variable(v)
		for _, kind := range []syntax.StepKind{syntax.StepDot, syntax.StepArrow, syntax.StepIndex} {
			step := syntax.Step{Kind: kind, Member: "?"}
			part, err := compute.Follow(v, []syntax.Step{step})
			if a.failed("follow", err) {
				continue
			}
			if part.Wrong == nil {
				a.variable(part)
				continue
			}
			for _, m := range compute.Wrong(part).Members[:min(2, len(compute.Wrong(part).Members))] {
				step.Member = m
				if part, err := compute.Follow(v, []syntax.Step{step}); !a.failed("member", err) {
					a.variable(part)
				}
			}
		}
		if v.Loc.Kind == loc.KindImplicitPointer {
			if to, err := compute.Pointee(v); !a.failed("pointee", err) && to.Type != nil {
				a.variable(to)
			}
		}
	}
}

// variable checks a variable and its type.
func (a *asker) variable(v *dwarfloc.Variable) {
	if v.Type == nil {
		a.fault("wrong", "%s has no type", v.Name)
		return
	}
	size, err := v.Type.ByteSize()
	a.failed("size", err)
	where := v.Loc.Text(a.img.Arch())
	a.say("%s %s %s %d %s %s %v %s %d", v.Role, v.Name, v.Type, size, where, v.Loc.Rule, v.Reason, v.ExpressionText(), v.Bits)
	a.typeOf(v.Type, 0)
	if v.Located() == (v.Reason.Code != reasons.None) {
		a.fault("wrong", "%s is located (%v) and has the reason %v", v.Name, v.Located(), v.Reason)
	}
	if !v.Located() {
		if v.Reason.Code.Describe() == "" {
			a.fault("wrong", "%s has the reason %v, which has no text", v.Name, v.Reason)
		}
		return
	}
	if v.Loc.Kind == loc.KindNone || where == "" || v.Loc.Rule == rule.None {
		a.fault("wrong", "%s is located, but where (%q) and by which rule (%v)?", v.Name, where, v.Loc.Rule)
	}
	a.location(v, &v.Loc)
}

// location checks a whole location.
func (a *asker) location(v *dwarfloc.Variable, l *loc.Location) {
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(e *loc.Expr) {
			switch e.Op {
			case ops.Reg:
				if a.img.Arch().Register(e.K) == nil {
					a.fault("wrong", "%s is in register %d", v.Name, e.K)
				}
			case ops.Deref, ops.ZExt, ops.SExt:
				if e.Size == 0 || e.Size > 8 {
					a.fault("wrong", "%s takes %d bytes at a time", v.Name, e.Size)
				}
			}
		})
	})
	if l.Kind == loc.KindRegister && l.Expr.Op != ops.Reg {
		a.fault("wrong", "%s is in the register %s", v.Name, l.Expr.Text(a.img.Arch()))
	}
	for i := range l.Pieces {
		p := &l.Pieces[i]
		if p.BitSize == 0 || p.Loc.Kind == loc.KindNone && p.Reason.Code != reasons.None {
			a.fault("wrong", "%s is whole, but piece %d of it has %d bits, %v, %v", v.Name, i, p.BitSize, p.Loc.Kind, p.Reason)
		}
	}
}

// typeOf asks a type for its parts, some steps deep.
func (a *asker) typeOf(t *types.Type, depth int) {
	if t == nil || depth > 3 || a.types[t] {
		return
	}
	a.types[t] = true
	members, err := t.Members()
	a.failed("members", err)
	for i, m := range members {
		a.say("%s %v", m.Name, m.Type)
		if i < 4 {
			a.typeOf(m.Type, depth+1)
		}
	}
	name, err := t.Enumerator(1)
	a.failed("enumerator", err)
	_, n, err := t.Count()
	a.failed("count", err)
	file, line, err := t.Declared()
	a.failed("declaration", err)
	_, variants, err := t.Variants()
	a.failed("variants", err)
	a.say("%s %d %s:%d %d", name, n, file, line, len(variants))
	el, err := t.Elem()
	a.failed("element", err)
	a.typeOf(el, depth+1)
}

// checkWays checks the ways into and out of a body.
func (a *asker) checkWays(s *dwarfloc.Site, w *runs.Ways) {
	for _, in := range inside.WaysIn(s, w, false) {
		a.address("way in", in)
	}
	for _, out := range inside.WaysOut(s, w) {
		a.address("way out", out)
	}
}

// checkExport checks a text in another tool's language.
func (a *asker) checkExport(language, text string) {
	if !utf8.ValidString(text) {
		a.fault("wrong", "%s: not UTF-8", language)
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
		a.fault("wrong", "%s: a control character: %q", language, text[max(0, i-40):min(len(text), i+20)])
	}
	switch language {
	case "go":
		if _, err := parser.ParseFile(token.NewFileSet(), "export.go", text, parser.SkipObjectResolution); err != nil {
			a.fault("wrong", "go: %v", err)
		}
	case "tracefs":
		for line := range strings.Lines(text) {
			if line != "\n" && !strings.ContainsRune("#pr", rune(line[0])) {
				a.fault("wrong", "tracefs: %q", line)
			}
		}
	}
}
