package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/internal/hits"
	"github.com/bpfprologue/bpfprologue/internal/outfile"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/recording"
)

func recordCommand(s *settings) *cobra.Command {
	var o traceOptions
	var path string
	cmd := &cobra.Command{
		Use:   "record -o FILE 'FUNC ARG...'... [-- COMMAND...]",
		Short: "Keep hits in a file, which trace -i prints anywhere",
		Long: `record is trace, but keeps hits in a file. trace -i FILE prints them, as text or JSON:
the lines that trace would have printed. That needs neither the image nor privileges.`,
		Example: `  prolog-dump -x ./server record -o server.hits 'walk n->name:string i' -- ./server
  prolog-dump trace -i server.hits`,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, command, err := o.who.Words(args, cmd.ArgsLenAtDash())
			if err != nil {
				return err
			}
			return s.record(cmd, args, command, &o, path)
		},
	}
	s.use(cmd, []string{"text"}, join(planFlags, []string{"attachable", "quiet", "verbose"})...)
	s.severalImages(cmd)
	cmd.Flags().StringVarP(&path, "output", "o", "", "the file; another one of that name is replaced")
	_ = cmd.MarkFlagRequired("output")
	traceFlags(cmd, &o)
	return cmd
}

// record traces definitions into a file. If nothing can be traced, a file of that name stays as it is.
func (s *settings) record(cmd *cobra.Command, texts, command []string, o *traceOptions, path string) (err error) {
	var f *outfile.File
	done := false
	var b *bufio.Writer
	var w *recording.Writer
	defer func() {
		if f != nil {
			err = errors.Join(err, f.Close(done))
		}
	}()
	return s.trace(cmd, texts, command, o, &sink{
		open: func() (err error) {
			if f, err = outfile.Create(path, false); err != nil {
				return err
			}
			b = bufio.NewWriter(f)
			w, err = recording.NewWriter(b)
			return err
		},
		show: func(h *recording.Hit) error { return w.Write(h) },
		close: func(t recording.Totals) error {
			err := screen.Flush(b, w.Close(t))
			done = err == nil
			return err
		},
	})
}

// replay prints a recording.
func (s *settings) replay(out io.Writer, path string, o *traceOptions) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := recording.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	w := bufio.NewWriter(out)
	form, err := s.form(o)
	if err != nil {
		return err
	}
	if o.clock == "wall" {
		return usage.Errorf("--time wall: a recording has times since the machine started")
	}
	show, end := hits.Printer(w, form)
	defer func() {
		end(err == nil)
		err = screen.Flush(w, err)
	}()
	for n := 0; ; n++ {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			totals := r.Totals()
			hits.PrintTotals(s.reports(), n, &totals)
			return nil
		case err != nil:
			terminal.Fprintf(screen.Stderr, "%s\n", screen.Count(n, "hit"))
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := show(h); err != nil {
			return err
		}
	}
}
