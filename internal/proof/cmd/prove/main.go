// Command prove executes generated prologues for real, over random registers and memory, and compares each value with what a second
// reader of the image and a second evaluator of DWARF, which share no code with the first ones, say it must be.
//
//	prove IMAGE                          every distinct prologue of all parameters at all sites; a kernel takes a minute or two
//	prove -x IMAGE 'walk n->name:string' the instances of a definition
//
// It needs Linux 5.14 and root, or CAP_BPF and CAP_PERFMON. It prints one line, or JSON, and fails if a value differs.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/proof/prove"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "prove: %v\n", err)
		os.Exit(1)
	}
}

// run prints to out, and returns an error too if that fails.
func run(ctx context.Context, args []string, out io.Writer) error {
	w := bufio.NewWriter(out)
	cmd := command()
	cmd.SetArgs(args)
	cmd.SetOut(w)
	return errors.Join(cmd.ExecuteContext(ctx), w.Flush())
}

// flags are what the command line says.
type flags struct {
	image, convention, reads string
	json                     bool
	o                        prove.Options
}

func command() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "prove IMAGE | prove -x IMAGE DEFINITION", Args: cobra.MinimumNArgs(1),
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args, cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVarP(&f.image, "exec", "x", "", "the image of a definition: a kernel, a module, a program")
	cmd.Flags().StringVar(&f.convention, "convention", "registers", "registers, or record: all parameters of a site by one prologue")
	cmd.Flags().StringVar(&f.reads, "reads", "helper", "helper, or cast: kernel memory is loaded")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	cmd.Flags().Uint64Var(&f.o.Seed, "seed", 0, "seed of the random registers and memory (default: the time)")
	cmd.Flags().IntVar(&f.o.States, "states", 3, "sets of registers for each prologue")
	return cmd
}

func (f *flags) run(ctx context.Context, args []string, w io.Writer) (err error) {
	if err := prove.Available(); err != nil {
		return err
	}
	if f.o.Seed == 0 {
		f.o.Seed = uint64(time.Now().UnixNano())
	}
	conventions := map[string]prologue.Convention{"registers": prologue.ConventionRegisters, "record": prologue.ConventionRecord}
	convention, known := conventions[f.convention]
	if !known {
		return fmt.Errorf("unknown convention %q: registers or record", f.convention)
	}
	switch f.reads {
	case "helper":
	case "cast":
		f.o.Reads = prologue.ReadCast
	default:
		return fmt.Errorf("unknown way to read %q: helper or cast", f.reads)
	}
	path := f.image
	if path == "" {
		path = args[0]
	}
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	file, err := prove.Second(ctx, img)
	if err != nil {
		return err
	}
	var r *prove.Report
	if f.image == "" {
		f.o.Convention = convention
		r, err = prove.Image(ctx, img, file, f.o)
	} else {
		def, perr := probe.Parse(strings.Join(args, " "))
		if perr != nil {
			return perr
		}
		p, perr := plan.New(ctx, img, def, plan.Options{Convention: convention, Target: plan.Target{Reads: f.o.Reads}})
		if perr != nil {
			return perr
		}
		r, err = prove.Plan(ctx, p, file, f.o)
	}
	if err != nil {
		return err
	}
	return f.print(w, r)
}

func (f *flags) print(w io.Writer, r *prove.Report) error {
	if f.json {
		if err := json.NewEncoder(w).Encode(r); err != nil {
			return err
		}
	} else {
		for _, d := range r.Disagreements {
			fmt.Fprintln(w, d)
		}
		fmt.Fprintf(w, "%v; seed %d\n", r, f.o.Seed)
	}
	switch n := r.Values - r.Agreed; {
	case n > 0:
		return fmt.Errorf("%d of %d values disagree", n, r.Values)
	case r.Values == 0 && r.Unchecked > 0:
		return fmt.Errorf("nothing is proven: no value could be compared, and %d were not, since the second reader does not read them", r.Unchecked)
	}
	return nil
}
