package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bpfprologue/bpfprologue/internal/jsonline"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/usage"
)

// usages makes errors of arguments and of required flags usage errors, for a command and all below it.
func usages(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &usage.Error{Err: fmt.Errorf("%s: %w; usage: %s", verbName(cmd), err, cmd.UseLine())}
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		usages(c)
	}
}

// oneDefinition accepts one definition.
func oneDefinition(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("no definition")
	case len(args) > 1:
		return fmt.Errorf("%d arguments: a definition is one argument, '%s'", len(args), strings.Join(args, " "))
	}
	return nil
}

// answered prints an answer as one JSON object, or as text.
func (s *settings) answered(w io.Writer, object any, text func() error) error {
	if s.format == "json" {
		return jsonline.Write(w, object)
	}
	return text()
}

// buffered calls f with a verb's buffered answer.
func buffered(cmd *cobra.Command, f func(w io.Writer) error) error {
	w := bufio.NewWriterSize(cmd.OutOrStdout(), 1<<16)
	return screen.Flush(w, f(w))
}

// moreFlags marks all flags of a verb but some as those that its help lists last.
func moreFlags(cmd *cobra.Command, first ...string) {
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		most, more := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
		most.SortFlags, more.SortFlags = false, false
		for _, name := range first {
			if f := cmd.Flags().Lookup(name); f != nil {
				most.AddFlag(f)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if most.Lookup(f.Name) == nil {
				more.AddFlag(f)
			}
		})
		_, err := io.WriteString(cmd.OutOrStderr(), "Usage:\n  "+cmd.UseLine()+"\n\nExamples:\n"+cmd.Example+
			"\n\nFlags:\n"+most.FlagUsages()+"\nMore flags:\n"+more.FlagUsages())
		return err
	})
}
