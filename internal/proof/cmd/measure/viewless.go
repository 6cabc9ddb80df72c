package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/proof/viewless"
)

// measureViewless reads an image as if it had no location views, as those of some machines have none, and prints how many parameters are then believed, and which
// of them the views say are elsewhere.
//
//	go run ./internal/proof/cmd/measure viewless -k VMLINUX
func measureViewless() {
	path := flag.String("k", "", "the image")
	flag.Parse()
	if err := viewlessRun(context.Background(), *path); err != nil {
		fmt.Fprintln(os.Stderr, "viewless:", err)
		os.Exit(1)
	}
}

func viewlessRun(ctx context.Context, path string) (err error) {
	dir, err := os.MkdirTemp("", "viewless")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	stripped := filepath.Join(dir, filepath.Base(path))
	if err := viewless.Strip(path, stripped); err != nil {
		return err
	}
	with, err := dwarfloc.Open(path, nil)
	if err != nil {
		return err
	}
	defer with.Close()
	without, err := dwarfloc.Open(stripped, nil)
	if err != nil {
		return err
	}
	defer without.Close()
	r, err := viewless.Compare(ctx, with, without)
	if err != nil {
		return err
	}
	r.Print(os.Stdout)
	return nil
}
