package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/bpfprologue/bpfprologue/coverage"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/proof/agree"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
	"github.com/bpfprologue/bpfprologue/internal/proof/truth"
)

// measureProducers writes the table of compilers in docs/limits.md: for each, without and with optimization,
// how many sites and parameters its debug information has, how many of these are located, whether an
// independent reader agrees, and whether what probes fetched is what the programs passed.
//
//	go run ./internal/proof/cmd/measure producers [-only TEXTS] [-dir FOLDER] [-w docs/limits.md]
//
// The programs are those of internal/proof/truth, with all their builds. Without -w the table is printed. It
// ends with an error if readers differ, or if a value is wrong that was not known to be.
func measureProducers() {
	page := flag.String("w", "", "`PAGE` in which the table is replaced")
	Main("producers", "builds", ",", func(ctx context.Context, s *Series) error { return producersRun(ctx, s, *page) })
}

// row is one compiler with one way of compiling.
type producersRow struct {
	language truth.Language
	compiler string
	options  string
	version  string

	builds, sites, params, located, differ int
	truth                                  []*truth.Result
}

func producersRun(ctx context.Context, s *Series, page string) error {
	builds := truth.Chosen(s.Has)
	results := make([]*truth.Result, len(builds))
	var failed []error
	finished := 0
	err := truth.Run(ctx, s.Dir, builds, func(i int, r *truth.Result, err error) {
		finished++
		fmt.Fprintf(os.Stderr, "%d/%d %v\n", finished, len(builds), &builds[i])
		if err != nil {
			failed = append(failed, err)
			return
		}
		results[i] = r
		for k := range r.Wrong {
			if r.Wrong[k].Known() == "" {
				failed = append(failed, fmt.Errorf("%v", &r.Wrong[k]))
			}
		}
	})
	if err != nil {
		return err
	}
	var rows []*producersRow
	for i := range builds {
		if results[i] == nil {
			continue
		}
		r := rowOf(&rows, &builds[i])
		r.truth = append(r.truth, results[i])
		if err := r.read(ctx, filepath.Join(s.Dir, fmt.Sprintf("program%d", i))); err != nil {
			failed = append(failed, fmt.Errorf("%v: %w", &builds[i], err))
		}
	}
	var table bytes.Buffer
	write(&table, rows)
	if page == "" {
		_, err = table.WriteTo(os.Stdout)
	} else {
		err = replace(page, table.String())
	}
	for _, e := range failed {
		fmt.Fprintln(os.Stderr, e)
	}
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("%d builds failed, or values are wrong", len(failed))
	}
	return err
}

// rowOf returns the row that a build belongs to.
func rowOf(rows *[]*producersRow, b *truth.Build) *producersRow {
	options := "optimized"
	switch text := strings.Join(b.Options, " "); {
	case strings.Contains(text, "lto"):
		options = "LTO"
	case strings.Contains(text, "-O0"), strings.Contains(text, "opt-level=0"), strings.Contains(text, "-N"):
		options = "not optimized"
	}
	for _, r := range *rows {
		if r.language == b.Language && r.compiler == b.Compiler && r.options == options {
			return r
		}
	}
	r := &producersRow{language: b.Language, compiler: b.Compiler, options: options, version: b.Version()}
	*rows = append(*rows, r)
	return r
}

// read counts what a program's debug information has, and compares with the other reader.
func (r *producersRow) read(ctx context.Context, path string) error {
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		return err
	}
	defer img.Close()
	report, err := coverage.Measure(ctx, img)
	if err != nil {
		return err
	}
	r.builds++
	for _, c := range []*coverage.Counts{&report.Entry, &report.Inline} {
		r.sites += c.Sites
		r.params += c.Parameters
		r.located += c.Located
	}
	file, err := oracle.Open(ctx, path, "")
	if err != nil {
		return err
	}
	found, err := agree.Compare(ctx, img, file, agree.Options{})
	if err != nil {
		return err
	}
	n := 0
	for kind, k := range found.Count {
		n += k
		fmt.Fprintf(os.Stderr, "%s %s: %d %s, for example %s\n", r.compiler, r.options, k, kind, found.Examples[kind][0])
	}
	if r.differ += n; n > 0 {
		return fmt.Errorf("%d differences", n)
	}
	return nil
}

func write(w io.Writer, rows []*producersRow) {
	fmt.Fprint(w, "| compiler | code | builds | sites | parameters | located | other reader differs | values compared | wrong |\n")
	fmt.Fprint(w, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range rows {
		sum := truth.Sum(r.truth)
		fmt.Fprintf(w, "| %s | %s, %s | %d | %d | %d | %.1f %% | %d | %d | %d |\n", name(r), languages[r.language], r.options, r.builds,
			r.sites, r.params, 100*float64(r.located)/float64(max(r.params, 1)), r.differ, sum.Compared, sum.Count.Wrong)
	}
}

var languages = map[truth.Language]string{truth.C: "C", truth.CPP: "C++", truth.Rust: "Rust", truth.Go: "Go"}

// name returns a compiler's name with its version.
func name(r *producersRow) string {
	for _, word := range strings.Fields(r.version) {
		word = strings.TrimPrefix(word, "go")
		if strings.Count(word, ".") >= 1 && word[0] >= '0' && word[0] <= '9' {
			base, _, _ := strings.Cut(r.compiler, "-")
			if r.language == truth.Go {
				base = "go"
			}
			return base + " " + strings.Trim(word, ",()")
		}
	}
	return r.compiler
}

// begin and end enclose the table in a page.
const begin, end = "<!-- producers -->\n", "<!-- end of producers -->\n"

// replace replaces the table in a page.
func replace(page, table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s: no lines %q and %q", page, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(page, []byte(before+begin+table+end+after), 0o644)
}
