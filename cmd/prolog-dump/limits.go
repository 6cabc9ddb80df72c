package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/tracer"
)

// limitFlags are the flags that let only some of the hits through.
func limitFlags(cmd *cobra.Command, o *tracer.Options) {
	cmd.Flags().Var(&affixed{n: &o.Sample, before: "1/", usual: "1/1"}, "sample", "let one of N hits through, chosen at random: 1/N")
	cmd.Flags().Var(&affixed{n: &o.MaxRate, after: "/s"}, "max-rate", "let at most N hits through in each second: N/s")
}

// affixed is a number that is written with what it is a number of.
type affixed struct {
	n             *int
	before, after string
	usual         string // the text of 0
}

func (a *affixed) String() string {
	if a.n == nil || *a.n == 0 {
		return a.usual
	}
	return a.before + strconv.Itoa(*a.n) + a.after
}

func (a *affixed) Type() string { return a.before + "N" + a.after }

func (a *affixed) Set(text string) error {
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(text, a.before), a.after))
	if err != nil || n < 1 {
		return fmt.Errorf("%q: it looks like %s100%s", text, a.before, a.after)
	}
	*a.n = n
	return nil
}
