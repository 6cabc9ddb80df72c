package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/jsonline"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/share"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/internal/verify"
	"github.com/bpfprologue/bpfprologue/plan"
)

func verifyCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:   "verify IMAGE|'FUNC ARG...'",
		Short: "Load every distinct instance into the running kernel's verifier",
		Long: `verify makes the plan of a definition and loads each of its instances, with a
trivial program after the prologue that uses all arguments, into the running
kernel's verifier. Nothing is attached. For an IMAGE it does so with every distinct
prologue of all parameters at all sites, in registers or, with --convention record, in
records. It needs root, or CAP_BPF and CAP_PERFMON.`,
		Example: `  sudo prolog-dump -k vmlinux verify 'get_page page'
  sudo prolog-dump verify ./server`,
		ValidArgsFunction: s.completeDefinition,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bpfexec.Available(); errors.Is(err, bpfexec.ErrPrivilege) || errors.Is(err, bpfexec.ErrStuck) {
				return err
			}
			if len(args) == 0 || isFile(args) {
				path, err := s.OnlyImageOf(args)
				if err != nil {
					return err
				}
				return s.verifyImage(cmd, path)
			}
			if err := oneDefinition(cmd, args); err != nil {
				return &usage.Error{Err: err}
			}
			return s.withPlan(cmd, args[0], func(_ *subject, p *plan.Plan, w io.Writer) error {
				return s.verify(cmd, p, w)
			})
		},
	}, textOrJSON, join(planFlags, []string{"output"})...)
}

// isFile reports whether a command's arguments are an image, not a definition.
func isFile(args []string) bool {
	if len(args) != 1 {
		return false
	}
	st, err := os.Stat(args[0])
	return err == nil && st.Mode().IsRegular()
}

// verifyImage loads all of an image's prologues.
func (s *settings) verifyImage(cmd *cobra.Command, path string) error {
	img, err := s.Open(path, nil)
	if err != nil {
		return err
	}
	if err := verify.Native(img); err != nil {
		return err
	}
	o, err := s.options(true)
	if err != nil {
		return err
	}
	v, err := verify.Image(cmd.Context(), img, share.Options{Reads: o.Target.Reads, Convention: o.Convention})
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	err = s.answered(w, v, func() error {
		for _, r := range v.Rejected {
			terminal.Fprintf(w, "rejected: %s\n", r)
		}
		terminal.Fprintf(w, "%s: %d distinct prologues: %d accepted, %d rejected\n", path, v.Prologues, v.Accepted, len(v.Rejected))
		return nil
	})
	if err != nil {
		return err
	}
	if n := len(v.Rejected); n > 0 {
		return fmt.Errorf("the kernel's verifier rejected %s", screen.Count(n, "prologue"))
	}
	return nil
}

func (s *settings) verify(cmd *cobra.Command, p *plan.Plan, w io.Writer) error {
	if err := verify.Native(p.Image); err != nil {
		return err
	}
	rejected := 0
	err := verify.Plan(cmd.Context(), p, func(v *verify.Verdict) error {
		if !v.Accepted {
			rejected++
		}
		switch {
		case s.format == "json":
			return jsonline.Write(w, v)
		case !v.Accepted:
			terminal.Fprintf(w, "instance %d (%s): rejected: %s\n", v.Instance, p.Sites[p.Instances[v.Instance].Sites[0]].Site, v.Line)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if s.format != "json" {
		terminal.Fprintf(w, "%s: %s for %s: %d accepted, %d rejected\n", p.Definition,
			screen.Count(len(p.Instances), "instance"), screen.Count(len(p.Sites), "site"), len(p.Instances)-rejected, rejected)
	}
	if rejected > 0 {
		return fmt.Errorf("the kernel's verifier rejected %s", screen.Count(rejected, "instance"))
	}
	return nil
}
