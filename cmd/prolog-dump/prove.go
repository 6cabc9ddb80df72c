package main

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/internal/prove"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/terminal"
)

func proveCommand(s *settings) *cobra.Command {
	var o prove.Options
	cmd := &cobra.Command{
		Use:   "prove IMAGE|'FUNC ARG...'",
		Short: "Execute prologues in the running kernel and compare what they fetch with an independent evaluator",
		Long: `prove executes generated prologues for real, over random registers and memory, and
compares each value with what a second reader of the image and a second evaluator
of DWARF, which share no code with the first ones, say it must be.

For an IMAGE that is every distinct prologue of all parameters at all sites; a
kernel takes a minute or two. With --convention record all parameters of a site are
fetched by one. For a definition it is the definition's instances,
in the image that -k or -x names. With --reads cast they load the memory of the
kernel; else a helper reads that of the process.

It needs Linux 5.14 and root, or CAP_BPF and CAP_PERFMON.`,
		Example: `  sudo prolog-dump -x ./server prove 'walk n->name:string i'
  sudo prolog-dump prove --states 10 ./server`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := prove.Available(); err != nil {
				return err
			}
			if o.Seed == 0 {
				o.Seed = uint64(time.Now().UnixNano())
			}
			if s.reads == prologue.ReadCast.String() {
				o.Reads = prologue.ReadCast
			}
			if isFile(args) {
				return s.proveImage(cmd, args[0], o)
			}
			return s.withPlan(cmd, args, func(_ *subject, p *plan.Plan, w io.Writer) error {
				file, err := prove.Second(cmd.Context(), p.Image)
				if err != nil {
					return err
				}
				r, err := prove.Plan(cmd.Context(), p, file, o)
				if err != nil {
					return err
				}
				return s.printProof(w, r, o.Seed)
			})
		},
	}
	s.use(cmd, textOrJSON, join(planFlags, []string{"output"})...)
	cmd.Flags().Uint64Var(&o.Seed, "seed", 0, "seed of the random registers and memory (default: the time)")
	cmd.Flags().IntVar(&o.States, "states", 3, "sets of registers for each prologue")
	return cmd
}

func (s *settings) proveImage(cmd *cobra.Command, path string, o prove.Options) error {
	how, err := s.options(true)
	if err != nil {
		return err
	}
	o.Convention = how.Convention
	img, err := s.open(path, nil)
	if err != nil {
		return err
	}
	file, err := prove.Second(cmd.Context(), img)
	if err != nil {
		return err
	}
	if onTerminal() {
		var total atomic.Uint64
		o.Each = func(n uint64) { terminal.Fprintf(drawn, "\r%d prologues ", total.Add(n)) }
		defer terminal.Fprintf(drawn, "\r                              \r")
	}
	r, err := prove.Image(cmd.Context(), img, file, o)
	if err != nil {
		return err
	}
	return s.printProof(cmd.OutOrStdout(), r, o.Seed)
}

func (s *settings) printProof(w io.Writer, r *prove.Report, seed uint64) error {
	if s.format == "json" {
		if err := printObject(w, r); err != nil {
			return err
		}
	} else {
		for _, d := range r.Disagreements {
			if _, err := io.WriteString(w, d+"\n"); err != nil {
				return err
			}
		}
		terminal.Fprintf(w, "%v; seed %d\n", r, seed)
	}
	if n := r.Values - r.Agreed; n > 0 {
		return fmt.Errorf("%d of %d values disagree", n, r.Values)
	}
	if r.Values == 0 && r.Unchecked > 0 {
		return fmt.Errorf("nothing is proven: no value could be compared, and %d were not, since the second reader does not read them", r.Unchecked)
	}
	return nil
}
