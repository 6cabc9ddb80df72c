package sites

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// A Function is one function of an image: one name, declared at one place.
type Function struct {
	Name string
	// Qualified is the name as dwarfloc's Site.QualifiedName returns it: Name in most languages.
	Qualified string
	File      string // that declares it; "" if unknown
	Line      int    // of the declaration, from 1
	OutOfLine int    // sites at entries of its own code and of its clones
	Inlined   int    // sites of inlined instances
}

// Functions returns the selected functions with the number of their sites, sorted by name
// and place. It uses Selection.Functions, Filter, Source and EntriesOnly. The errors are those
// of Select.
func Functions(ctx context.Context, img *dwarfloc.Image, sel Selection) ([]Function, error) {
	groups, err := groupsOf(ctx, img, sel)
	if err != nil {
		return nil, err
	}
	out := make([]Function, len(groups))
	for i := range groups {
		out[i] = groups[i].Function
	}
	return out, nil
}

// group is a function with its sites.
type group struct {
	Function
	sites []*dwarfloc.Site
}

func groupsOf(ctx context.Context, img *dwarfloc.Image, sel Selection) ([]group, error) {
	sites, err := Select(ctx, img, sel)
	if err != nil {
		return nil, err
	}
	return grouped(sites)
}

// grouped groups sites by function.
func grouped(sites []*dwarfloc.Site) ([]group, error) {
	index := make(map[declaration]int)
	var out []group
	for _, s := range sites {
		file, line, err := s.Declared()
		if err != nil {
			return nil, err
		}
		name, err := s.QualifiedName()
		if err != nil {
			return nil, err
		}
		d := declaration{name, file, line}
		i, ok := index[d]
		if !ok {
			i = len(out)
			index[d] = i
			out = append(out, group{Function: Function{Name: s.Function, Qualified: name, File: file, Line: line}})
		}
		g := &out[i]
		g.sites = append(g.sites, s)
		if s.Inlined() {
			g.Inlined++
		} else {
			g.OutOfLine++
		}
	}
	radix.By(out, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return out, nil
}

// FunctionLines is a function with its source lines, or a source file, which has no name and no
// declaration: its lines are counted from 1.
type FunctionLines struct {
	Function
	// Lines are the lines with sites. If the source file was found, they are all lines from
	// the function's declaration to its last line with sites, and the closing brace after it.
	Lines   []SourceLine
	HasText bool // the source file was found
}

// A SourceLine is one line of a function.
type SourceLine struct {
	Number int    // counted from the function's declaration
	Sites  int    // number of sites of a probe at the line
	Text   string // without the end of the line
}

// LinesOf returns the lines of the selected functions, or without Selection.Functions those of the
// source files that Selection.Source names, with the number of sites of each. If a
// source file is not found its lines have no text; that is not an error. The errors are
// those of Functions.
func LinesOf(ctx context.Context, img *dwarfloc.Image, sel Selection, sources Sources) ([]FunctionLines, error) {
	if sel.Functions == nil {
		return linesOfFiles(ctx, img, sel, sources)
	}
	groups, err := groupsOf(ctx, img, sel)
	if err != nil {
		return nil, err
	}
	out := make([]FunctionLines, len(groups))
	for i := range groups {
		g := &groups[i]
		sites, err := img.LineSites(ctx, g.sites, func(_ *dwarfloc.Site, file string, line int) bool {
			return file == g.File && line >= g.Line
		})
		if err != nil {
			return nil, err
		}
		counts := make(map[int]int)
		last := -1
		for _, s := range sites {
			counts[s.Line-g.Line]++
			last = max(last, s.Line-g.Line)
		}
		f := &out[i]
		f.Function = g.Function
		text, found, err := sources.ifFound(img, g.File)
		if err != nil {
			return nil, err
		}
		f.HasText = found && g.File != "" && g.Line >= 1 && g.Line <= len(text)
		if f.HasText && last >= 0 && last < len(text)-g.Line && text[g.Line+last] == "}" {
			last++
		}
		if f.HasText {
			for n := 0; n <= min(last, len(text)-g.Line); n++ {
				f.Lines = append(f.Lines, SourceLine{Number: n, Sites: counts[n], Text: text[g.Line+n-1]})
			}
		}
		// A "#line" directive may say any number, so these are not counted up to.
		for _, n := range slices.Sorted(maps.Keys(counts)) {
			if n >= len(f.Lines) {
				f.Lines = append(f.Lines, SourceLine{Number: n, Sites: counts[n]})
			}
		}
	}
	return out, nil
}

// linesOfFiles is LinesOf for files, each to its last line with sites.
func linesOfFiles(ctx context.Context, img *dwarfloc.Image, sel Selection, sources Sources) ([]FunctionLines, error) {
	m, err := compileFile(sel.Source)
	if err != nil {
		return nil, err
	}
	at, err := img.FileLineSites(ctx, m)
	if err != nil {
		return nil, err
	}
	at = sel.keep(at)
	files := make(map[string]*FunctionLines)
	counts := make(map[string]map[int]int)
	for _, s := range at {
		f := files[s.File]
		if f == nil {
			f = &FunctionLines{Function: Function{File: s.File}}
			files[s.File], counts[s.File] = f, make(map[int]int)
		}
		counts[s.File][s.Line]++
		if s.Inlined() {
			f.Inlined++
		} else {
			f.OutOfLine++
		}
	}
	if len(files) == 0 {
		all, err := img.SourceFiles(ctx)
		if err != nil {
			return nil, err
		}
		return nil, &NotFoundError{Image: img.Path(), Pattern: sel.Source, Why: noSuchFile, Nearest: nearestFiles(sel.Source, all)}
	}
	var out []FunctionLines
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		text, found, err := sources.ifFound(img, name)
		if err != nil {
			return nil, err
		}
		f.HasText = found
		numbers := slices.Sorted(maps.Keys(counts[name]))
		for n := 1; n <= min(numbers[len(numbers)-1], len(text)); n++ {
			f.Lines = append(f.Lines, SourceLine{Number: n, Sites: counts[name][n], Text: text[n-1]})
		}
		for _, n := range numbers {
			if n > len(text) {
				f.Lines = append(f.Lines, SourceLine{Number: n, Sites: counts[name][n]})
			}
		}
		out = append(out, *f)
	}
	return out, nil
}

// FunctionVariables is a function with the variables that are in scope at some of its sites.
type FunctionVariables struct {
	Function
	Sites     int // number of the sites
	Variables []VariableSummary
}

// VariableSummary is a variable with the number of sites where it has a location.
type VariableSummary struct {
	Name    string
	Role    dwarfloc.Role
	Type    string                 // at the first site that has the variable in scope
	Located int                    // number of sites where it has a location
	Reasons map[loc.ReasonCode]int // number of the other sites by reason
}

// Variables returns the functions of some sites with their parameters and locals, parameters
// first, in the order of declaration. Variables of blocks that contain no site are left out.
// The error is the cause of ctx if that ends, or about damaged debug information.
func Variables(ctx context.Context, sites []*dwarfloc.Site) ([]FunctionVariables, error) {
	groups, err := grouped(sites)
	if err != nil {
		return nil, err
	}
	out := make([]FunctionVariables, len(groups))
	for i := range groups {
		g := &groups[i]
		f := &out[i]
		f.Function, f.Sites = g.Function, len(g.sites)
		at := make(map[string]int)
		for _, s := range g.sites {
			if err := ctx.Err(); err != nil {
				return nil, context.Cause(ctx)
			}
			if err := f.add(s, at); err != nil {
				return nil, err
			}
		}
		f.Variables = slices.DeleteFunc(f.Variables, func(v VariableSummary) bool { return v.Type == "" })
		for k := range f.Variables {
			// The debug information of a site may leave out a variable, name and all.
			v := &f.Variables[k]
			known := v.Located
			for _, n := range v.Reasons {
				known += n
			}
			if known < f.Sites {
				v.Reasons[reasons.OptimizedOut] += f.Sites - known
			}
		}
		radix.By(f.Variables, func(a, b *VariableSummary) int { return cmp.Compare(a.Role, b.Role) })
	}
	return out, nil
}

// add counts the variables of one site.
func (f *FunctionVariables) add(s *dwarfloc.Site, at map[string]int) error {
	params, err := s.Params()
	if err != nil {
		return err
	}
	vars, err := s.Variables()
	if errors.Is(err, dwarfloc.ErrNotDescribed) {
		vars, err = s.Params() // what takes the place of debug information has no others
	}
	if err != nil {
		return err
	}
	declared := func(v *dwarfloc.Variable) int {
		if i := slices.IndexFunc(params, func(p *dwarfloc.Variable) bool { return p.Name == v.Name }); i >= 0 {
			return i
		}
		return len(params)
	}
	slices.SortStableFunc(vars, func(a, b *dwarfloc.Variable) int { return cmp.Compare(declared(a), declared(b)) })
	for _, v := range vars {
		k, ok := at[v.Name]
		if !ok {
			k = len(f.Variables)
			at[v.Name] = k
			f.Variables = append(f.Variables, VariableSummary{Name: v.Name, Role: v.Role, Reasons: make(map[loc.ReasonCode]int)})
		}
		sum := &f.Variables[k]
		if v.Located() {
			sum.Located++
		} else {
			sum.Reasons[v.Reason.Code]++
		}
		if sum.Type == "" && (v.Located() || v.Type.String() != "void") {
			sum.Type = v.Type.String()
		}
		if v.Role == dwarfloc.RoleParameter {
			sum.Role = v.Role
		}
	}
	return nil
}
