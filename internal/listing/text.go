package listing

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

func (o *Options) printSite(w *bytes.Buffer, p *plan.Plan, site *plan.Site) error {
	// What all sites have is written without a format: an answer can have thousands.
	w.Write(o.Styled(screen.RolePlace, site.Place()).Append(w.AvailableBuffer()))
	w.WriteString("  ")
	w.Write(o.Styled(screen.RoleAside, address(site.Site)).Append(w.AvailableBuffer()))
	if site.View != 0 {
		terminal.Fprintf(w, " view %d", site.View)
	}
	w.WriteString("  ")
	w.WriteString(terminal.Text(siteKind(site.Site)))
	w.WriteString(wayText(site.Site))
	w.WriteByte('\n')
	for i := range site.Callers {
		file, line := site.CallFile, site.CallLine
		if i > 0 {
			file, line = site.Callers[i-1].CallFile, site.Callers[i-1].CallLine
		}
		w.WriteString("    inlined into ")
		w.WriteString(terminal.Text(site.Callers[i].Qualified))
		w.WriteString(" at ")
		w.WriteString(terminal.Text(file))
		w.WriteByte(':')
		w.Write(strconv.AppendInt(w.AvailableBuffer(), int64(line), 10))
		w.WriteByte('\n')
	}
	t := screen.Table{Width: o.Width, Indent: "    "}
	for i := range site.Args {
		a := &site.Args[i]
		t.Row(o.Styled(screen.RoleName, a.Name), o.Styled(screen.RoleType, a.TypeText()), o.Styled(answerRole(a), answerText(p, a)))
		if !o.Explain {
			continue
		}
		if err := t.Print(w); err != nil {
			return err
		}
		for _, line := range explain(p, site, a) {
			terminal.Fprintf(w, "        %s\n", o.Styled(screen.RoleAside, line))
		}
	}
	for i := range site.If {
		c := &site.If[i]
		role := screen.RoleName
		if c == site.Never {
			role = screen.RoleMissing
		}
		t.Row(o.Styled(screen.RoleName, "if"), o.Styled(screen.RoleType, c.Expr.String()), o.Styled(role, conditionText(p, c)))
	}
	if err := t.Print(w); err != nil {
		return err
	}
	if site.MovedFrom != 0 {
		terminal.Fprintf(w, "    moved from %#x, where a probe costs more or would harm the program\n", site.MovedFrom)
	}
	if o.Explain {
		if text := returnText(p, site); text != "" {
			terminal.Fprintf(w, "    %s\n", o.Styled(screen.RoleAside, text))
		}
	}
	switch {
	case site.Instance >= 0: // its number is not known yet
	case site.Refused != nil:
		terminal.Fprintf(w, "    %s\n", o.Styledf(screen.RoleFault, "no probe: %v", site.Refused))
	case site.Never != nil:
		terminal.Fprintf(w, "    %s\n", o.Styledf(screen.RoleMissing, "no probe: %s never holds here", site.Never.Expr))
	default:
		terminal.Fprintf(w, "    %s\n", o.Styled(screen.RoleMissing, "skipped: an argument is missing"))
	}
	return nil
}

// returnText says what kind of probe sees a function's return at a site, or is "" for other sites.
func returnText(p *plan.Plan, site *plan.Site) string {
	at := &p.Definition.Point
	switch {
	case site.Return && p.Target.UserSpace():
		return "a return probe: not all ends of the function are return instructions, or they are not known; calls nested deeper than 64 are not seen"
	case site.Return:
		return "a return probe"
	case !at.Return && !at.Exit || site.Kind != dwarfloc.SiteInstruction:
		return ""
	case inside.Jumps(site.Site):
		return "a probe at a jump to another function, which returns in its place: there is no result yet"
	}
	return "a probe at a return instruction"
}

// conditionText is how a condition is computed at a site, or why it cannot be.
func conditionText(p *plan.Plan, c *plan.Condition) string {
	if !c.Variable.Located() {
		return c.Variable.Reason.String()
	}
	return c.Variable.Loc.Text(p.Image.Arch())
}

func hex(addr uint64) string { return "0x" + strconv.FormatUint(addr, 16) }

// functionName is the name of a site's function as people write it.
func functionName(s *dwarfloc.Site) string {
	if name, err := s.QualifiedName(); err == nil {
		return name
	}
	return s.Function // the debug information is damaged: it says nothing more
}

// siteKind describes a site in words.
func siteKind(s *dwarfloc.Site) string {
	var kind string
	switch s.Kind {
	case dwarfloc.SiteEntry:
		kind = "entry of " + functionName(s)
	case dwarfloc.SiteInline:
		kind = functionName(s) + " inlined"
	case dwarfloc.SiteExit:
		kind = "end of " + functionName(s) + " inlined"
	default:
		kind = inBody(s)
	}
	if s.AfterPrologue {
		kind += ", after its prologue (built without optimisation)"
	}
	if s.LocalEntry {
		kind += ", at its local entry"
	}
	if s.Section != "" && s.Section != ".text" {
		kind += ", in " + s.Section
	}
	return kind
}

// wayText describes which way into or out of an inlined body a site is, if it is not the only
// one.
func wayText(s *dwarfloc.Site) string {
	text := ""
	if s.Way.Of > 1 {
		text = fmt.Sprintf(", way %d of %d", s.Way.Number, s.Way.Of)
	}
	switch {
	case s.Way.Shared:
		text += ", shares its code with another function"
	case s.Way.Again && s.Kind == dwarfloc.SiteEntry && !body.IsPart(s.Symbol):
		text += ", also reached while it runs: a loop begins there"
	case s.Way.Again && s.Kind == dwarfloc.SiteEntry:
		text += ", the rest of runs that may begin elsewhere"
	case s.Way.Again && s.Kind == dwarfloc.SiteExit:
		text += ", also reached without running it"
	case s.Way.Again:
		text += ", also reached while it runs, or without running it"
	}
	return text
}

// inBody describes which line of which function a site is at.
func inBody(s *dwarfloc.Site) string {
	at := functionName(s)
	if file, line, err := s.Declared(); err == nil && file == s.File && s.Line >= line && file != "" {
		at += ":" + strconv.Itoa(s.Line-line)
	}
	if s.File != "" {
		at += fmt.Sprintf(" (%s:%d)", s.File, s.Line)
	}
	if s.Inlined() {
		at += " inlined"
	}
	return at
}

// answerRole is whether an argument has a location that is fetched.
func answerRole(a *plan.Argument) screen.Role {
	if a.Fetched() {
		return screen.RoleFound
	}
	return screen.RoleMissing
}

// answerText is an argument's location or the reason for its absence.
func answerText(p *plan.Plan, a *plan.Argument) string {
	switch {
	case a.Doubt() != reasons.None:
		return fmt.Sprintf("~%s (%s)", sureText(p, a), a.Doubt())
	case a.Fetched():
		return locationText(p, a)
	case a.Variable.Located():
		return fmt.Sprintf("%s, not fetched: %v", locationText(p, a), a.Unfetched)
	}
	return a.Unfetched.String()
}

// sureText returns where the bytes of an argument are, or would be if it were not doubtful.
func sureText(p *plan.Plan, a *plan.Argument) string {
	if a.Fetched() || a.Doubt() == reasons.None {
		return locationText(p, a)
	}
	return a.Variable.Loc.Text(p.Image.Arch())
}

// locationText returns where the fetched bytes of an argument are.
func locationText(p *plan.Plan, a *plan.Argument) string {
	if a.Kind == prologue.KindComm {
		return "the task's name"
	}
	return a.Loc.Text(p.Image.Arch())
}

// decided returns a line that says what decided whether an argument is sure.
func decided(a *plan.Argument) []string {
	if a.Variable.Because == "" {
		return nil
	}
	return []string{"decided by: " + a.Variable.Because}
}

// explain returns lines that say how the answer was found.
func explain(p *plan.Plan, site *plan.Site, a *plan.Argument) []string {
	if d := a.Doubt(); d != reasons.None {
		lines := []string{"doubtful because " + d.Describe(), "by " + a.Variable.Loc.Rule.String() + ": " + a.Variable.Loc.Rule.Describe()}
		return append(lines, decided(a)...)
	}
	if r := a.Unfetched; r.Code != reasons.None && r.Code.Describe() != "" {
		var lines []string
		if r.Code != reasons.NotAtSite || r.Detail == "" { // a detail is another cause than the list
			lines = append(lines, "because "+r.Code.Describe())
		}
		if a.Variable.Loc.Kind == loc.KindImplicitPointer {
			if o, err := compute.Pointee(a.Variable); err == nil && o.Loc.Kind != loc.KindNone {
				lines = append(lines, fmt.Sprintf("it points to %s %s+%d, which is %s", o.Type, o.Name, a.Variable.Loc.TargetOffset, o.Loc.Text(p.Image.Arch())))
			}
		}
		return lines
	}
	lines := []string{"by " + a.Variable.Loc.Rule.String() + ": " + a.Variable.Loc.Rule.Describe()}
	if expr, sec, off := a.Variable.Expression(); expr != nil {
		lines = append(lines, fmt.Sprintf("from %s (%s+%#x)", a.Variable.ExpressionText(), sec, off))
	}
	return append(lines, decided(a)...)
}

// instanceText is an instance, printed but for what is not known before the last site.
type instanceText struct {
	text  string // what follows the number of sites
	sites int
}

func newInstanceText(p *plan.Plan, in *plan.Instance) instanceText {
	var w strings.Builder
	terminal.Fprintf(&w, ", %s, %s", screen.Count(len(in.Prologue.Insns), "instruction"), screen.Count(in.Prologue.Helpers, "helper call"))
	if p.Convention == prologue.ConventionRecord {
		terminal.Fprintf(&w, ", a record of %s at r3", screen.Count(in.Prologue.Layout.Size, "byte"))
	}
	terminal.Fprintf(&w, "\n")
	for line := range strings.Lines(in.Prologue.String()) {
		w.WriteString("    ")
		w.WriteString(terminal.Text(strings.TrimSuffix(line, "\n")))
		w.WriteByte('\n')
	}
	return instanceText{text: w.String()}
}

// address returns where a site is: its link-time address, or, in a module, the sections of
// which have no addresses, the bytes from its section's start.
func address(site *dwarfloc.Site) string {
	img := site.Image
	if sec := inside.File(img).SectionAt(site.Addr); inside.File(img).IsRelocatable() && sec != nil {
		return sec.Name + "+" + hex(site.Addr-sec.Addr)
	}
	return hex(site.Addr)
}
