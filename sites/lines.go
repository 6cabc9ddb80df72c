package sites

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/suggest"
)

// Lines selects source lines: one by its number, or those that a lazy pattern matches.
type Lines struct {
	Number  int     // in the file; with Selection.Functions counted from the declaration
	Lazy    string  // if not "", a lazy pattern, which white space does not matter to; Number is ignored
	Sources Sources // where to search for source files for Lazy
}

// selectLines finds the sites of lines in functions.
func selectLines(ctx context.Context, img *dwarfloc.Image, sel Selection) ([]*dwarfloc.Site, error) {
	l := sel.Lines
	bodies, err := selectFunctions(ctx, img, sel)
	if err != nil {
		return nil, err
	}
	d, err := declarations(bodies)
	if err != nil {
		return nil, err
	}
	texts, err := l.texts()
	if err != nil {
		return nil, err
	}
	if texts != nil {
		for _, s := range bodies { // in order, so that the error is always the same
			if file := d[s].file; file != "" {
				if err := texts.read(img, file); err != nil {
					return nil, err
				}
			}
		}
	}
	sites, err := img.LineSites(ctx, bodies, func(s *dwarfloc.Site, file string, line int) bool {
		decl := d[s]
		if file != decl.file || line < decl.line {
			return false
		}
		if texts != nil {
			return texts.match(file, line)
		}
		return line == decl.line+l.Number
	})
	if err != nil || len(sites) > 0 {
		return sites, err
	}
	missing := &NotFoundError{Image: img.Path(), Line: l.what(), Where: d.functions()}
	if texts != nil {
		return nil, missing
	}
	lines, err := linesWithCode(ctx, img, bodies, d)
	if err != nil {
		return nil, err
	}
	missing.Nearest = near(lines, l.Number)
	return nil, missing
}

// linesWithCode returns the lines of functions that have sites, counted from the function's
// declaration. A site does not say which declaration it belongs to. If functions of one
// name are declared in one file, as overloaded ones are, they are searched in turn.
func linesWithCode(ctx context.Context, img *dwarfloc.Image, bodies []*dwarfloc.Site, d declared) (map[int]bool, error) {
	lines := make(map[int]bool)
	for len(bodies) > 0 {
		type name struct{ function, file string }
		turn := make(map[name]declaration)
		var now, later []*dwarfloc.Site
		for _, s := range bodies {
			n := name{d[s].function, d[s].file}
			if first, ok := turn[n]; ok && first != d[s] {
				later = append(later, s)
				continue
			}
			turn[n] = d[s]
			now = append(now, s)
		}
		found, err := img.LineSites(ctx, now, func(s *dwarfloc.Site, file string, line int) bool {
			return file == d[s].file && line >= d[s].line
		})
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			lines[s.Line-turn[name{s.Function, s.File}].line] = true
		}
		bodies = later
	}
	return lines, nil
}

func (l *Lines) what() string {
	if l.Lazy != "" {
		return fmt.Sprintf("any line that matches %q", l.Lazy)
	}
	return fmt.Sprintf("line %d", l.Number)
}

// declaration is where a body's function is declared.
type declaration struct {
	function, file string
	line           int
}

type declared map[*dwarfloc.Site]declaration

func declarations(bodies []*dwarfloc.Site) (declared, error) {
	d := make(declared, len(bodies))
	for _, s := range bodies {
		file, line, err := s.Declared()
		if err != nil {
			return nil, err
		}
		d[s] = declaration{s.Function, file, line}
	}
	return d, nil
}

// functions describes the functions for an error: "vfs_read (fs/read_write.c:450)".
func (d declared) functions() string {
	var names []string
	for _, decl := range d {
		names = append(names, fmt.Sprintf("%s (%s:%d)", decl.function, decl.file, decl.line))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxNearest {
		names = append(names[:maxNearest], "...")
	}
	return strings.Join(names, ", ")
}

// near returns the numbers of the lines that are nearest to a line, sorted.
func near(lines map[int]bool, line int) []string {
	var all []int
	for l := range lines {
		all = append(all, l)
	}
	distance := func(l int) int { return max(l-line, line-l) }
	slices.SortFunc(all, func(a, b int) int { return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(a, b)) })
	all = all[:min(len(all), maxNearest)]
	slices.Sort(all)
	out := make([]string, len(all))
	for i, l := range all {
		out[i] = strconv.Itoa(l)
	}
	return out
}

// selectFileLines finds the sites of lines of source files.
func selectFileLines(ctx context.Context, img *dwarfloc.Image, sel Selection) ([]*dwarfloc.Site, error) {
	source, l := sel.Source, sel.Lines
	f, err := compileFile(source)
	if err != nil {
		return nil, err
	}
	texts, err := l.texts()
	if err != nil {
		return nil, err
	}
	var all map[string][]int
	if texts == nil {
		f.lines = func(_ string, line int) bool { return line == l.Number }
	} else {
		if all, err = img.FileLines(ctx, f); err != nil {
			return nil, err
		}
		for _, file := range slices.Sorted(maps.Keys(all)) {
			if err := texts.read(img, file); err != nil {
				return nil, err
			}
		}
		f.lines = texts.match
	}
	sites, err := img.FileLineSites(ctx, f)
	if err != nil {
		return nil, err
	}
	found := len(sites)
	sites = sel.keep(sites)
	switch {
	case len(sites) > 0:
		return sites, nil
	case found > 0 && sel.EntriesOnly:
		return nil, &NotFoundError{Image: img.Path(), Pattern: source, Why: "the line's sites are in inlined instances, which the definition excludes, or in functions that the filter does"}
	case found > 0:
		return nil, &NotFoundError{Image: img.Path(), Pattern: source, Why: fmt.Sprintf("the line's functions do not match the filter %q", sel.Filter)}
	}
	f.lines = nil
	if all == nil {
		if all, err = img.FileLines(ctx, f); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		files, err := img.SourceFiles(ctx)
		if err != nil {
			return nil, err
		}
		return nil, &NotFoundError{Image: img.Path(), Pattern: source, Why: noSuchFile, Nearest: nearestFiles(source, files)}
	}
	lines := make(map[int]bool)
	var names []string
	for file, has := range all {
		names = append(names, file)
		for _, n := range has {
			lines[n] = true
		}
	}
	slices.Sort(names)
	missing := &NotFoundError{Image: img.Path(), Line: l.what(), Where: strings.Join(names, ", ")}
	if texts == nil {
		missing.Nearest = near(lines, l.Number)
	}
	return nil, missing
}

const noSuchFile = "no code of such a source file"

// keep returns the sites that a selection does not exclude.
func (sel *Selection) keep(sites []*dwarfloc.Site) []*dwarfloc.Site {
	return slices.DeleteFunc(sites, func(s *dwarfloc.Site) bool {
		return sel.EntriesOnly && s.Inlined() || sel.Filter != nil && !sel.Filter.Match(s.Function)
	})
}

// nearestFiles suggests files for a path that no file has: similar whole paths first, then
// similar names without directories.
func nearestFiles(source string, files []string) []string {
	byName := make(map[string][]string)
	for _, f := range files {
		byName[path.Base(f)] = append(byName[path.Base(f)], f)
	}
	names := func(yield func(string) bool) {
		for n := range byName {
			if !yield(n) {
				return
			}
		}
	}
	var out []string
	for _, n := range suggest.Nearest(glob.Plain(path.Base(source)), names, maxNearest) {
		out = append(out, byName[n]...)
	}
	out = append(suggest.Nearest(glob.Plain(source), slices.Values(files), maxNearest), out...)
	seen := make(map[string]bool)
	out = slices.DeleteFunc(out, func(f string) bool {
		again := seen[f]
		seen[f] = true
		return again
	})
	return out[:min(len(out), maxNearest)]
}

// filePattern selects source files by a pattern, and lines of them.
type filePattern struct {
	whole glob.Matcher
	base  glob.Matcher // of the last component
	n     int          // components
	lines func(file string, line int) bool
}

func compileFile(source string) (*filePattern, error) {
	whole, err := glob.Compile(source)
	if err != nil {
		return nil, err
	}
	f := &filePattern{whole: whole, n: strings.Count(source, "/") + 1}
	// A "*" matches "/" too, and so may a class: where the last component begins is known
	// only if it has neither.
	last := source[strings.LastIndexByte(source, '/')+1:]
	if !strings.ContainsAny(last, "*?[]") && last != "" {
		f.base, err = glob.Compile(last)
	}
	return f, err
}

func (f *filePattern) MatchBase(base string) bool { return f.base == nil || f.base.Match(base) }

func (f *filePattern) Match(file string, line int) bool {
	if f.lines != nil && !f.lines(file, line) {
		return false
	}
	return matchesTail(f.whole, file, f.n)
}
