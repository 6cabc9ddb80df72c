package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/internal/outfile"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/usage"
)

// answer is where a verb's answer goes, and how it looks there.
type answer struct {
	output  string // file; "" is standard output
	color   string // see colorNames
	noPager bool

	screen.Look

	file    *outfile.File
	printed *screen.Printed // to the file
	pager   *screen.Pager
}

// answerFlags are flags of verbs that answer a question, in colors on a terminal and page by page.
var answerFlags = []string{"output", "color", "no-pager"}

// begin opens what a verb's answer goes to, before the verb runs.
func (s *settings) begin(cmd *cobra.Command) error {
	if err := s.checkFormat(cmd); err != nil {
		return err
	}
	has := func(flag string) bool { return cmd.Flags().Lookup(flag) != nil }
	if has("debug-dir") {
		if err := s.UseDebuginfod(cmd.Context()); err != nil {
			return err
		}
	}
	if has("pack-url") {
		if err := s.UsePackServers(cmd.Context()); err != nil {
			return err
		}
	}
	onScreen := screen.StdoutTerminal() && s.output == ""
	if has("color") {
		var err error
		if s.Colored, err = chooseColor(s.color, onScreen); err != nil {
			return err
		}
	}
	switch {
	case s.output != "":
		f, err := outfile.Create(s.output, cmd.Name() == "trace" || cmd.Name() == "stat")
		if err != nil {
			return err
		}
		s.file, s.printed = f, screen.NewPrinted(f, s.Colored)
		cmd.SetOut(s.printed)
	case onScreen && has("no-pager") && !s.noPager:
		p, err := screen.StartPager()
		if err != nil {
			return fmt.Errorf("pager: %w", err)
		}
		if p != nil {
			s.pager = p
			cmd.SetOut(screen.NewPrinted(p, s.Colored))
			break
		}
		fallthrough
	default:
		if s.Colored {
			screen.SetColored(screen.Stdout)
		}
	}
	if onScreen {
		s.Width = screen.StdoutWidth()
	}
	return nil
}

// end closes what begin has opened. done is set if the verb has done its work.
func (s *settings) end(done bool) error {
	var errs []error
	if s.file != nil {
		failed := s.printed.Failed()
		if done {
			errs = append(errs, failed)
		}
		errs = append(errs, s.file.Close(done && failed == nil))
	}
	if s.pager != nil {
		errs = append(errs, s.pager.Wait())
	}
	if done {
		s.Keep()
	}
	return errors.Join(errs...)
}

var colorNames = []string{"auto", "always", "never"}

// chooseColor reports whether standard output is colored. See https://no-color.org for NO_COLOR.
func chooseColor(flag string, onTerminal bool) (bool, error) {
	automatic := onTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return usage.Choose("color", flag, colorNames, []bool{automatic, true, false})
}
