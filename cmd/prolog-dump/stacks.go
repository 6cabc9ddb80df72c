package main

import (
	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/tracer"
)

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
	return choose("stack", flag, []string{"kernel", "user", "both", stackHere}, []tracer.Stacks{tracer.StackKernel, tracer.StackUser, tracer.StackKernel | tracer.StackUser, here})
}
