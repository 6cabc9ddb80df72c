package truth

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// RandomMatrix returns the builds of random programs: a few of each compiler of C.
func RandomMatrix() []Build {
	var all []Build
	for _, compiler := range slices.Concat(gccs, clangs, others) {
		for _, options := range []string{"-O0 -no-pie", "-Og -pie -fPIE", "-O2 -no-pie", "-O3 -pie -fPIE", "-Os -no-pie"} {
			all = append(all, Build{Language: C, Compiler: compiler, Options: strings.Fields(options)})
		}
		if slices.Contains(gccs, compiler) {
			all = append(all, withoutViews(C, compiler)...)
		}
	}
	return all
}

// withoutViews returns builds in which the debug information says less about the order of assignments.
func withoutViews(l Language, compiler string) (all []Build) {
	for _, options := range []string{"-O2 -no-pie -gno-variable-location-views", "-O2 -no-pie -flto", "-O3 -no-pie -gno-statement-frontiers"} {
		all = append(all, Build{Language: l, Compiler: compiler, Options: strings.Fields(options)})
	}
	return all
}

// RunRandom traces the program of a seed in each build, and compares as Run does. Builds that are not of C are an error.
// The program's folder is dir; done is called as by Run.
func RunRandom(ctx context.Context, dir string, builds []Build, seeds []uint64, done func(b *Build, seed uint64, r *Result, err error)) error {
	w, err := newWorkshop(ctx, dir)
	if err != nil {
		return err
	}
	var all []Build // each as often as there are seeds
	for _, b := range builds {
		for range seeds {
			all = append(all, b)
		}
	}
	seed := func(i int) uint64 { return seeds[i%len(seeds)] }
	return each(ctx, all, func(ctx context.Context, b *Build, i int) (*Result, error) {
		return w.runRandom(ctx, b, Random(seed(i)), i)
	}, func(i int, r *Result, err error) { done(&all[i], seed(i), r, err) })
}

// runRandom makes a program twice: as the build says, and so that it records its runs.
func (w *workshop) runRandom(ctx context.Context, b *Build, p *Program, number int) (*Result, error) {
	if b.Language != C {
		return nil, fmt.Errorf("%v: random programs are in C", b)
	}
	folder := fmt.Sprintf("random%d", number)
	if err := os.MkdirAll(filepath.Join(w.dir, folder, string(C)), 0o755); err != nil {
		return nil, err
	}
	source := filepath.Join(folder, string(C), "random.c")
	if err := os.WriteFile(filepath.Join(w.dir, source), []byte(p.Source), 0o600); err != nil {
		return nil, err
	}
	path, err := w.make(ctx, b, folder, filepath.Join(folder, "program"))
	if err != nil {
		return nil, err
	}
	says := filepath.Join(folder, "records")
	if err := w.command(ctx, nil, recorder, "-O0", "-fwrapv", "-w", "-Irecord", "-DRECORD", "-o", says, source, "truth.o"); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(w.dir, says)).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", says, err)
	}
	rec, err := readRecord(bytes.NewReader(out))
	if err != nil {
		return nil, err
	}
	marks, err := definitionsIn(string(recorded))
	if err != nil {
		return nil, err
	}
	t, _, err := tracedRun(ctx, path, append(marks, p.Definitions...))
	if err != nil {
		return nil, fmt.Errorf("%v: seed %d: %w", b, p.Seed, err)
	}
	return compare(b, t, rec, true), nil
}
