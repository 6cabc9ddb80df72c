package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/internal/inside"
)

// answer is where a verb's answer goes, and how it looks there.
type answer struct {
	output  string // file; "" is standard output
	color   string // see colorNames
	noPager bool

	colored bool
	width   int // of lines; 0: any

	file    *output
	printed *printed // to the file
	pager   *pager
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
		if err := s.useDebuginfod(cmd.Context()); err != nil {
			return err
		}
	}
	screen := stdoutTerminal() && s.output == ""
	if has("color") {
		var err error
		if s.colored, err = chooseColor(s.color, screen); err != nil {
			return err
		}
	}
	switch {
	case s.output != "":
		f, err := newOutput(s.output, cmd.Name() == "trace" || cmd.Name() == "stat")
		if err != nil {
			return err
		}
		s.file, s.printed = f, &printed{w: f, colored: s.colored}
		cmd.SetOut(s.printed)
	case screen && has("no-pager") && !s.noPager:
		p, err := startPager()
		if err != nil {
			return fmt.Errorf("pager: %w", err)
		}
		if p != nil {
			s.pager = p
			cmd.SetOut(&printed{w: p, colored: s.colored})
			break
		}
		fallthrough
	default:
		if s.colored {
			setColored(stdout)
		}
	}
	if screen {
		s.width = stdoutWidth()
	}
	return nil
}

// end closes what begin has opened. done is set if the verb has done its work.
func (s *settings) end(done bool) error {
	var errs []error
	if s.file != nil {
		failed := s.printed.failed()
		if done {
			errs = append(errs, failed)
		}
		errs = append(errs, s.file.close(done && failed == nil))
	}
	if s.pager != nil {
		errs = append(errs, s.pager.wait())
	}
	if done {
		for _, img := range s.images {
			_ = inside.KeepDerived(img) // the next time it is found again
		}
	}
	return errors.Join(errs...)
}
