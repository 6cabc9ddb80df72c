package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
)

func verifyCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "verify 'FUNC ARG...'",
		Short: "Load every distinct instance into the running kernel's verifier",
		Long: `verify makes the plan of a definition and loads each of its instances, with a
trivial program behind the prologue that uses all arguments, into the running
kernel's verifier. Nothing is attached. It needs root, or CAP_BPF and
CAP_PERFMON.`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeFunctions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bpfexec.Available(); err != nil && errors.Is(err, bpfexec.ErrPrivilege) {
				return err
			}
			return s.withPlan(cmd, args, func(p *instances.Plan, w io.Writer) error {
				return s.verify(cmd, p, w)
			})
		},
	}
}

// verdictJSON is one line of verify --format json.
type verdictJSON struct {
	Instance int    `json:"instance"`
	Sites    int    `json:"sites"`
	Accepted bool   `json:"accepted"`
	Line     string `json:"line,omitempty"` // the telling line of the verifier's log
}

func (s *settings) verify(cmd *cobra.Command, p *instances.Plan, w io.Writer) error {
	rejected := 0
	enc := json.NewEncoder(w)
	for i := range p.Instances {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		in := &p.Instances[i]
		v := verdictJSON{Instance: i, Sites: len(in.Sites), Accepted: true}
		err := bpfexec.Verify(bpfexec.Code{Insns: in.Prologue.Insns, Args: len(p.Definition.Args)})
		var no *bpfexec.Rejected
		switch {
		case errors.As(err, &no):
			rejected++
			v.Accepted, v.Line = false, no.Line
		case err != nil:
			return fmt.Errorf("instance %d: %w", i, err)
		}
		if s.format == "json" {
			if err := enc.Encode(v); err != nil {
				return err
			}
			continue
		}
		if !v.Accepted {
			fmt.Fprintf(w, "instance %d (%s): rejected: %s\n", i, p.Sites[in.Sites[0]].Site, v.Line)
		}
	}
	if s.format != "json" {
		fmt.Fprintf(w, "%s: %s for %s: %d accepted, %d rejected\n", p.Definition,
			count(len(p.Instances), "instance"), count(len(p.Sites), "site"), len(p.Instances)-rejected, rejected)
	}
	if rejected > 0 {
		return fmt.Errorf("the kernel's verifier rejected %s", count(rejected, "instance"))
	}
	return nil
}
