package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/internal/whose"
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

// targetFlags are the flags that say whose hits are meant.
func targetFlags(cmd *cobra.Command, h *whose.Target) {
	f := cmd.Flags()
	f.IntSliceVarP(&h.PIDs, "pid", "p", nil, "trace a process, until it ends; may be repeated; a path that -x names is as the process sees it")
	f.StringVar(&h.Comm, "comm", "", "trace tasks whose names match a pattern")
	f.StringVar(&h.User, "uid", "", "trace tasks of a user, by number or name")
	f.Var((*texts)(&h.Groups), "cgroup", "trace what is in a control group (version 2) or below, by its directory, also what begins later; may be repeated")
	f.Var((*texts)(&h.Containers), "container", "trace a container, by its ID or name, as --cgroup; a name or path that -x names is the container's; may be repeated")
	f.Var((*texts)(&h.Pods), "pod", "trace a pod, as NAMESPACE/NAME; as --container")
	f.StringVarP(&h.Command, "command", "c", "", "the command line to run and trace, split into words as a shell does, with nothing expanded; or after --, word by word")
	f.BoolVar(&h.All, "all", false, "trace all processes, not only COMMAND and what it starts")
	f.IntVar(&h.MaxSites, "max-sites", whose.UsualMaxSites, "trace no definitions with more sites than this; 0: any number")
	f.DurationVar(&h.Duration, "duration", 0, "end after this time, such as 10s; COMMAND goes on")
}

// stackHere is the value of --stack without one.
const stackHere = "here"

// stackFlag is the flag that chooses stacks. Its value is empty without it.
func stackFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "stack", "", "where hits come from: the stack of the kernel, of the user's program, or both; without a value, that where the probe is")
	cmd.Flags().Lookup("stack").NoOptDefVal = stackHere
	_ = cmd.RegisterFlagCompletionFunc("stack", cobra.FixedCompletions([]string{"kernel", "user", "both"}, cobra.ShellCompDirectiveNoFileComp))
}

// stacksOf returns the stacks that a flag names.
func stacksOf(flag string, kernel bool) (tracer.Stacks, error) {
	here := tracer.StackUser
	if kernel {
		here = tracer.StackKernel
	}
	if flag == "" {
		return 0, nil
	}
	return usage.Choose("stack", flag, []string{"kernel", "user", "both", stackHere}, []tracer.Stacks{tracer.StackKernel, tracer.StackUser, tracer.StackKernel | tracer.StackUser, here})
}
