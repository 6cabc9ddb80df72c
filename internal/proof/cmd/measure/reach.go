package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/proof/agree"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
)

// kernel is an image of the table, with the figures of an earlier reading: sites, parameters and located ones.
type kernel struct {
	name, flavour, folder string
	entries, inlined      [3]int
}

var reachKernels = []kernel{
	{"amd64", "amd64", "", [3]int{}, [3]int{}},
	{"arm64", "cloud-arm64", "arm64", [3]int{}, [3]int{}},
	{"amd64", "cloud-amd64", "forky", [3]int{}, [3]int{}},
	{"arm64", "cloud-arm64", "forky", [3]int{}, [3]int{}},
	{"s390x", "s390x", "s390x", [3]int{33886, 78851, 78332}, [3]int{301136, 470284, 419528}},
	{"ppc64el", "powerpc64le", "ppc64el", [3]int{38439, 89279, 88751}, [3]int{309083, 455365, 393909}},
	{"riscv64", "riscv64", "riscv64", [3]int{44390, 103933, 103105}, [3]int{372215, 574001, 328848}},
	{"loong64", "loong64", "loong64", [3]int{}, [3]int{}},
	{"mips64el", "5kc-malta", "mips64el", [3]int{35260, 82991, 82076}, [3]int{270945, 399244, 363000}},
	{"i386", "686-pae", "i386", [3]int{41889, 92954, 92444}, [3]int{287861, 445916, 386282}},
	{"armhf", "armmp", "armhf", [3]int{44896, 98890, 98343}, [3]int{310055, 465464, 421086}},
}

// measureReach reads kernels of all architectures with dwarfloc and with the second reader, and prints a table: the sites
// of each, their parameters, and how many have a location, beside the figures of an earlier reading, and how many
// differences there are.
//
//	go run ./internal/proof/cmd/measure reach [-dir bench/.cache] [NAME...] >bench/REACH.md
//
// It ends with an error if there are differences.
func measureReach() {
	dir := flag.String("dir", "bench/.cache", "folder of the kernels")
	flag.Parse()
	if env := os.Getenv("BENCH_CACHE"); env != "" {
		*dir = env
	}
	if err := reachRun(context.Background(), os.Stdout, *dir, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "reach:", err)
		os.Exit(1)
	}
}

func reachRun(ctx context.Context, w io.Writer, dir string, names []string) error {
	fmt.Fprint(w, head)
	differences := 0
	for _, k := range reachKernels {
		if len(names) > 0 && !slices.Contains(names, k.name) {
			continue
		}
		n, err := k.row(ctx, w, dir)
		if err != nil {
			return err
		}
		differences += n
	}
	if differences > 0 {
		return fmt.Errorf("%d differences", differences)
	}
	return nil
}

const head = `# Kernels of all architectures

Written by ` + "`go run ./internal/proof/cmd/measure reach`" + `: sites, parameters, and parameters with a location, in Debian's kernels. Every site,
parameter, type, rule and expression is compared with ` + "`internal/proof/oracle`" + `, and each expression is evaluated by both in
two states of the machine. After a dash is what an earlier reading gave, which counted a parameter with several entries
several times: there are so many more entries out of line and inlined. "Beyond limits" are expressions of more than 1,024
operations or 16 branches, or with branches in pieces, which have a reason in place of a location.

| kernel | out of line | inlined | more entries | beyond limits | differences | seconds |
| --- | --- | --- | --- | ---: | ---: | ---: |
`

// row writes a kernel's row and returns the number of differences.
func (k *kernel) row(ctx context.Context, w io.Writer, dir string) (int, error) {
	paths, err := filepath.Glob(filepath.Join(dir, k.folder, "vmlinux-*[0-9]-"+k.flavour))
	if err != nil || len(paths) == 0 {
		return 0, fmt.Errorf("no vmlinux of the flavour %s in %s: run scripts/fetch-vmlinux.sh %s", k.flavour, filepath.Join(dir, k.folder), k.flavour)
	}
	path := slices.Max(paths)
	start := time.Now()
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		return 0, err
	}
	defer img.Close()
	file, err := oracle.Open(ctx, path, "")
	if err != nil {
		return 0, err
	}
	f, err := agree.Compare(ctx, img, file, agree.Options{})
	if err != nil {
		return 0, err
	}
	differences := 0
	for _, kind := range slices.Sorted(maps.Keys(f.Count)) {
		differences += f.Count[kind]
		fmt.Fprintf(os.Stderr, "%s: %s: %d\n", k.name, kind, f.Count[kind])
		for _, e := range f.Examples[kind][:min(len(f.Examples[kind]), 8)] {
			fmt.Fprintf(os.Stderr, "\t%s\n", e)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(f.Totals)) {
		fmt.Fprintf(os.Stderr, "%s: %d %s\n", k.name, f.Totals[kind], kind)
	}
	fmt.Fprintf(w, "| %s %s | %s | %s | %s, %s | %d | %d | %.0f |\n", k.name, strings.TrimPrefix(filepath.Base(path), "vmlinux-"),
		cell(f, "out-of-line", k.entries), cell(f, "inlined", k.inlined),
		thousands(f.Totals["out-of-line parameters with several entries"]), thousands(f.Totals["inlined parameters with several entries"]),
		f.Totals["expressions beyond dwarfloc's limits"], differences, time.Since(start).Seconds())
	return differences, nil
}

// cell is a cell of the table: three figures, beside those that were wanted.
func cell(f *agree.Findings, kind string, wanted [3]int) string {
	s := figures([3]int{f.Totals[kind+" sites"], f.Totals[kind+" parameters"], f.Totals[kind+" parameters, located"]})
	if wanted[0] > 0 {
		s += " – " + figures(wanted)
	}
	return s
}

func figures(n [3]int) string {
	parts := make([]string, len(n))
	for i, v := range n {
		parts[i] = thousands(v)
	}
	return strings.Join(parts, " / ")
}

// thousands writes a number with a comma after each three digits.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
