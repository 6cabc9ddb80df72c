// Package series is how the commands in bench begin that make and try many builds: which of them,
// in which folder, and until when.
package series

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
)

// Series is what a command was asked for.
type Series struct {
	name string
	only []string // parts of names
	dir  string
}

// Main runs a command that has the name. things are what its flag -only chooses, and separator is what its
// texts are separated by. Other flags must be defined before. An interrupt ends ctx, and an error the process.
func Main(name, things, separator string, run func(ctx context.Context, s *Series) error) {
	only := flag.String("only", "", fmt.Sprintf("only %s whose names contain one of these `TEXTS`, separated by %q", things, separator))
	dir := flag.String("dir", "", "`FOLDER` for the sources and programs, which are kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, &Series{name: name, only: strings.Split(*only, separator), dir: *dir})
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Has reports whether a thing with a name is chosen.
func (s *Series) Has(name string) bool {
	return slices.ContainsFunc(s.only, func(part string) bool { return strings.Contains(name, part) })
}

// Folder returns the folder, and what removes it if it is temporary.
func (s *Series) Folder() (dir string, remove func(), err error) {
	if s.dir != "" {
		return s.dir, func() {}, nil
	}
	dir, err = os.MkdirTemp("", s.name)
	return dir, func() { _ = os.RemoveAll(dir) }, err
}
