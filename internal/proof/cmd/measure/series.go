// Package series is how the commands in bench begin that make and try many builds: which of them,
// in which folder, and until when.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
)

// Series is what a command was asked for.
type Series struct {
	// Dir is the folder for what is built: of the flag -dir, or a temporary one.
	Dir  string
	only []string // parts of names
}

// Main runs the named command. things names what -only selects, and separator is between its texts. Other flags must be
// defined before. An interrupt ends ctx, and an error the process.
func Main(name, things, separator string, run func(ctx context.Context, s *Series) error) {
	only := flag.String("only", "", fmt.Sprintf("only %s whose names contain one of these `TEXTS`, separated by %q", things, separator))
	dir := flag.String("dir", "", "`FOLDER` for the sources and programs, which are kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := in(name, *dir, func(dir string) error {
		return run(ctx, &Series{Dir: dir, only: strings.Split(*only, separator)})
	})
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// in calls f with a folder: dir, or a temporary one if that is "".
func in(name, dir string, f func(dir string) error) error {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return f(dir)
	}
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		return err
	}
	return errors.Join(f(dir), os.RemoveAll(dir))
}

// Has reports whether a thing with a name is chosen.
func (s *Series) Has(name string) bool {
	return slices.ContainsFunc(s.only, func(part string) bool { return strings.Contains(name, part) })
}
