package main

import (
	"errors"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/plan"
)

// predictor predicts whether the kernel takes a probe at a site. A nil one predicts nothing.
type predictor func(s *plan.Site) attachable.Cause

// predictor returns what predicts probes, with --attachable.
func (s *settings) predictor(x *subject) (predictor, error) {
	if !s.attachable {
		return nil, nil
	}
	if !x.kernel {
		return nil, errors.New("--attachable is about kernels: an executable takes uprobes everywhere")
	}
	table, err := attachable.New(x.img)
	if err != nil {
		return nil, err
	}
	return func(s *plan.Site) attachable.Cause { return table.At(s.Addr) }, nil
}

func (p predictor) cause(s *plan.Site) attachable.Cause {
	if p == nil {
		return attachable.CauseNone
	}
	return p(s)
}
