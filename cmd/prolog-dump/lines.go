package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
)

func linesCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:   "lines FUNC[@FILE][:LINES]|FILE[:LINES]",
		Short: "Show the source lines of a function or a file, and how many sites a probe at each has",
		Long: `lines lists the source lines of a function, counted from the line that declares it,
with the number of sites of each: of all bodies, out of line and inlined. A line
without a number has no code of its own. FUNC:LINE is a probe point. The lines of a
file are counted from 1. As in perf probe -L, LINES is FROM-TO, FROM+COUNT, or FROM
alone, which means to the end.

The text is shown where the sources are found: below a directory that --source
names, or where they were compiled, if that directory is the user's own.`,
		Example: `  prolog-dump -k vmlinux --source ~/linux lines vfs_read
  prolog-dump -k vmlinux lines vfs_read:5-10
  prolog-dump -k vmlinux lines vfs_read:5+3
  prolog-dump -k vmlinux lines fs/read_write.c:450-470
  prolog-dump -k vmlinux 'vfs_read:6 file pos'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, only, err := parseRange(args[0])
			if err != nil {
				return err
			}
			return s.withImage(cmd, text, func(x *subject, def *probe.Definition, w io.Writer) error {
				all, err := s.linesOf(cmd, x, def, only != everyLine)
				if err != nil {
					return err
				}
				return printEach(w, s.format, only.of(all), linesObject, s.printLines)
			})
		},
	}, textOrJSON, join(functionFlags, answerFlags)...)
}

// linesOf returns the lines of a function or a file. As in perf, a name with a period or a slash, of which
// lines are wanted, is first a file; there are functions with such names too.
func (s *settings) linesOf(cmd *cobra.Command, x *subject, def *probe.Definition, some bool) ([]sites.FunctionLines, error) {
	sel, err := functionsOf(x, def)
	if err != nil {
		return nil, err
	}
	ways := []sites.Selection{sel}
	if p := def.Point; p.Source == "" && strings.ContainsAny(p.Function, "./") {
		file := sel
		file.Functions, file.Source = nil, p.Function
		ways = append(ways, file)
		if some {
			slices.Reverse(ways)
		}
	}
	var missing error
	for _, sel := range ways {
		all, err := sites.LinesOf(cmd.Context(), x.img, sel, x.options.Sources)
		var none *sites.NotFoundError
		if !errors.As(err, &none) {
			return all, err
		}
		if missing == nil || sel.Functions == nil {
			missing = err // most such names are files
		}
	}
	return nil, probe.Errorf(def, def.Point.Pos, "%w", missing)
}

// functionsOf returns the selection of the functions that a probe point names. The point must not name a
// place in them.
func functionsOf(x *subject, def *probe.Definition) (sel sites.Selection, err error) {
	p := def.Point
	if p.Function == "" || p.HasLine || p.Lazy != "" || p.Offset != 0 || p.Return || p.Exit {
		return sel, probe.Errorf(def, p.Pos, "expected a function name or pattern, FUNC or FUNC@SRC")
	}
	return selectionOf(def, x.options.Filter)
}

// selectionOf returns the selection of a definition's functions, or of its statically defined probes.
func selectionOf(def *probe.Definition, filter glob.Matcher) (sites.Selection, error) {
	p := &def.Point
	entries := !def.Options.Inlines || p.Offset != 0 || p.Return
	sel := sites.Selection{Filter: filter, Source: p.Source, EntriesOnly: entries}
	pattern, err := glob.Compile(p.Function)
	if err != nil {
		return sel, err
	}
	sel.Functions = pattern
	if p.Provider != "" {
		sel.Provider, err = glob.Compile(p.Provider)
	}
	return sel, err
}

// lineRange is which lines are wanted.
type lineRange struct{ from, to int }

var everyLine = lineRange{0, math.MaxInt}

var rangeSyntax = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([^\s:]*(?:::[^\s:]+)*[^\s:]):(\d+)(?:([-+])(\d+))?$`)
})

// parseRange takes what says which lines are wanted from a probe point, as perf's -L does.
func parseRange(point string) (rest string, r lineRange, err error) {
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
func (r lineRange) of(all []sites.FunctionLines) []sites.FunctionLines {
	for i := range all {
		all[i].Lines = slices.DeleteFunc(all[i].Lines, func(l sites.SourceLine) bool { return l.Number < r.from || l.Number > r.to })
	}
	return all
}
