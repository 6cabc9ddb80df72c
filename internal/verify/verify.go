// Package verify asks the running kernel's verifier about all prologues of an image, and those of a plan.
package verify

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/share"
	"github.com/bpfprologue/bpfprologue/plan"
)

// Verdicts are the running kernel's verifier's results for prologues.
type Verdicts struct {
	Prologues int      `json:"prologues"` // distinct ones
	Accepted  int      `json:"accepted"`
	Rejected  []string `json:"rejected"` // site, and the decisive line of the log
}

// Image loads every distinct prologue of an image into the running kernel: for each
// site's parameters, up to three at a time in registers, or all of them in a record.
func Image(ctx context.Context, img *dwarfloc.Image, o share.Options) (*Verdicts, error) {
	if err := bpfexec.Available(); errors.Is(err, bpfexec.ErrPrivilege) || errors.Is(err, bpfexec.ErrStuck) {
		return nil, err
	}
	var (
		seen sync.Map
		mu   sync.Mutex
		v    Verdicts
	)
	_, err := share.EachDistinct(ctx, img, o, func(_ int, s *dwarfloc.Site, args []plan.Argument, _ int) error {
		pro, err := share.Emit(s, args, o)
		if err != nil {
			return err
		}
		if _, dup := seen.LoadOrStore(pro.Key(), struct{}{}); dup {
			return nil
		}
		err = bpfexec.Verify(bpfexec.CodeOf(pro, len(args)))
		var no *bpfexec.Rejected
		if err != nil && !errors.As(err, &no) {
			return fmt.Errorf("%v: %w", s, err)
		}
		mu.Lock()
		defer mu.Unlock()
		v.Prologues++
		if no == nil {
			v.Accepted++
		} else {
			v.Rejected = append(v.Rejected, fmt.Sprintf("%v: %s", s, no.Line))
		}
		return nil
	})
	slices.Sort(v.Rejected)
	return &v, err
}

// Verdict is the verifier's result for an instance of a plan.
type Verdict struct {
	Instance int    `json:"instance"`
	Sites    int    `json:"sites"`
	Accepted bool   `json:"accepted"`
	Line     string `json:"line,omitempty"` // the line of the verifier's log with the error
}

// Plan loads each instance of a plan into the running kernel, and calls each with what its verifier says.
func Plan(ctx context.Context, p *plan.Plan, each func(*Verdict) error) error {
	for i := range p.Instances {
		if err := ctx.Err(); err != nil {
			return err
		}
		in := &p.Instances[i]
		v := Verdict{Instance: i, Sites: len(in.Sites), Accepted: true}
		err := bpfexec.Verify(bpfexec.CodeOf(in.Prologue, len(p.Sites[in.Sites[0]].Args)))
		var no *bpfexec.Rejected
		switch {
		case errors.As(err, &no):
			v.Accepted, v.Line = false, no.Line
		case err != nil:
			return fmt.Errorf("instance %d: %w", i, err)
		}
		if err := each(&v); err != nil {
			return err
		}
	}
	return nil
}

// Native returns an error for images of other machines: the running kernel's verifier
// knows only its own struct pt_regs.
func Native(img *dwarfloc.Image) error {
	if a := img.Arch(); a.GOARCH != runtime.GOARCH {
		return fmt.Errorf("%s is for %s, and the verifier of this %s kernel would look for other registers", img.Path(), a.Name, runtime.GOARCH)
	}
	return nil
}
