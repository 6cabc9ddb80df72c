package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/otlp"
	"github.com/bpfprologue/bpfprologue/recording"
)

// export traces definitions, and sends the hits to an endpoint or a file.
func (s *settings) export(cmd *cobra.Command, texts, command []string, o *traceOptions, to string) error {
	hits, ended := make(chan *recording.Hit), make(chan error, 1)
	begun, failed := false, false
	err := s.trace(cmd, texts, command, o, &sink{
		open: func() error {
			begun = true
			go func() {
				ended <- otlp.Export(cmd.Context(), to, "", func(yield func(*recording.Hit) bool) {
					for h := range hits {
						if !yield(h) {
							return
						}
					}
				})
			}()
			return nil
		},
		show: func(h *recording.Hit) error {
			select {
			case hits <- h:
				return nil
			case err := <-ended:
				failed = true
				return err
			}
		},
	})
	close(hits)
	if begun && !failed {
		err = errors.Join(err, <-ended)
	}
	return err
}
