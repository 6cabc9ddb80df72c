// Package selected says which functions and lines of an image a definition names.
package selected

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
)

// Of returns the selection of a definition's functions, or of its statically defined probes.
func Of(def *probe.Definition, filter glob.Matcher) (sites.Selection, error) {
	p := &def.Point
	pattern, err := glob.Compile(p.Function)
	// An offset into a function and its return mean nothing inside an inlined
	// instance, whose code is scattered.
	entries := !def.Options.Inlines || p.Offset != 0 || p.Return
	sel := sites.Selection{Functions: pattern, Filter: filter, Source: p.Source, EntriesOnly: entries}
	if p.Provider != "" && err == nil {
		sel.Provider, err = glob.Compile(p.Provider)
	}
	return sel, err
}

// Functions is Of for a definition that must not name a place in functions.
func Functions(def *probe.Definition, filter glob.Matcher) (sel sites.Selection, err error) {
	p := def.Point
	if p.Function == "" || p.HasLine || p.Lazy != "" || p.Offset != 0 || p.Return || p.Exit {
		return sel, probe.Errorf(def, p.Pos, "expected a function name or pattern, FUNC or FUNC@SRC")
	}
	return Of(def, filter)
}

// Lines returns lines of a function or a file. As in perf, a name with a period or a slash, of which
// lines are wanted, is first a file; there are functions with such names too.
func Lines(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, filter glob.Matcher, sources sites.Sources, only Range) ([]sites.FunctionLines, error) {
	sel, err := Functions(def, filter)
	if err != nil {
		return nil, err
	}
	ways := []sites.Selection{sel}
	if p := def.Point; p.Source == "" && strings.ContainsAny(p.Function, "./") {
		file := sel
		file.Functions, file.Source = nil, p.Function
		ways = append(ways, file)
		if only != everyLine {
			slices.Reverse(ways)
		}
	}
	var missing error
	for _, sel := range ways {
		all, err := sites.LinesOf(ctx, img, sel, sources)
		var none *sites.NotFoundError
		if !errors.As(err, &none) {
			return only.of(all), err
		}
		if missing == nil || sel.Functions == nil {
			missing = err // most such names are files
		}
	}
	return nil, probe.Errorf(def, def.Point.Pos, "%w", missing)
}

// Range is which lines are wanted.
type Range struct{ from, to int }

var everyLine = Range{0, math.MaxInt}

var rangeSyntax = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([^\s:]*(?:::[^\s:]+)*[^\s:]):(\d+)(?:([-+])(\d+))?$`)
})

// ParseRange takes what says which lines are wanted from a probe point, as perf's -L does.
func ParseRange(point string) (rest string, r Range, err error) {
	m := rangeSyntax().FindStringSubmatch(point)
	if m == nil {
		return point, everyLine, nil
	}
	r = everyLine
	from, err := strconv.ParseInt(m[2], 10, 32)
	if err != nil {
		return "", r, fmt.Errorf("%s: line %s: %w", point, m[2], errors.Unwrap(err))
	}
	r.from = int(from)
	if m[4] != "" {
		n, err := strconv.ParseInt(m[4], 10, 32)
		if err != nil {
			return "", r, fmt.Errorf("%s: line %s: %w", point, m[4], errors.Unwrap(err))
		}
		r.to = int(n)
		if m[3] == "+" {
			r.to += r.from - 1
		}
		if r.to < r.from {
			return "", r, fmt.Errorf("%s: the first line is after the last", point)
		}
	}
	return m[1], r, nil
}

// of keeps the lines of a range.
func (r Range) of(all []sites.FunctionLines) []sites.FunctionLines {
	for i := range all {
		all[i].Lines = slices.DeleteFunc(all[i].Lines, func(l sites.SourceLine) bool { return l.Number < r.from || l.Number > r.to })
	}
	return all
}
