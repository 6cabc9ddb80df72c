package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/proof/mutate"
)

// measureMutate damages images of many compilers, asks this module everything about them, and prints a
// page about what came of it. Findings go to standard error, each with the number that makes it again:
//
//	go run ./internal/proof/cmd/measure mutate -seed 1 -only 4711 -dir FOLDER
func measureMutate() {
	if os.Getenv(mutate.WorkerVariable) != "" {
		exit(mutate.Work(os.Stdin, os.Stdout))
	}
	seed := flag.Uint64("seed", 1, "`NUMBER` that all variants depend on")
	n := flag.Int("n", 20500, "`NUMBER` of variants")
	only := flag.Int("only", -1, "only the variant with this `NUMBER`: its file and the two answers stay in the folder")
	dir := flag.String("dir", "", "`FOLDER` for the files")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(mutateRun(ctx, *seed, *n, *only, *dir))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func mutateRun(ctx context.Context, seed uint64, n, only int, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "mutate"); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
	} else if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	logged := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	r := mutate.Run{Seed: seed, Dir: dir, Command: []string{self}, Workers: runtime.NumCPU(), Log: logged, Verify: true}
	if err := bpfexec.Available(); err != nil {
		r.Verify = false
		logged("prologues are not verified: %v", err)
	}
	for i := range n {
		r.Numbers = append(r.Numbers, i)
	}
	if only >= 0 {
		r.Numbers, r.Explain = []int{only}, true
	}
	subjects := mutate.Subjects()
	results, err := r.Do(ctx, subjects)
	if err != nil {
		return err
	}
	fmt.Print("# What damaged files do\n\nWritten by `measure mutate` (`make mutate`). `go doc ./internal/proof/mutate` says what is done and what a finding is.\n\n")
	fmt.Printf("Seed %d. ", seed)
	mutate.WriteTable(os.Stdout, subjects, results)
	if found := mutate.Findings(results); found > 0 {
		return fmt.Errorf("%d variants have findings", found)
	}
	return nil
}
