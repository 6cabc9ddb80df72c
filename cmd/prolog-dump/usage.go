package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is an error of the command line: the tool was not asked a question that it knows. Its exit status is exitUsage.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef returns a usageError.
func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// usages makes errors of arguments and of required flags usage errors, for a command and all below it.
func usages(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &usageError{fmt.Errorf("%s: %w; usage: %s", verbName(cmd), err, cmd.UseLine())}
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

// imageOf returns the path of the image that a verb is about: its argument, or what -k or -x names. rest are the other arguments.
func (s *settings) imageOf(args []string) (path string, rest []string, err error) {
	switch {
	case s.vmlinux != "" && s.exec != "":
		return "", nil, usagef("-k and -x name two images")
	case s.vmlinux != "":
		return s.vmlinux, args, nil
	case s.exec != "":
		return s.exec, args, nil
	case len(args) == 0:
		return "", nil, usagef("no image: name it, or use -k or -x")
	}
	return args[0], args[1:], nil
}

// noMore returns an error for arguments that a verb has no use for.
func noMore(rest []string) error {
	if len(rest) > 0 {
		return usagef("%q: the image is already named", rest[0])
	}
	return nil
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
