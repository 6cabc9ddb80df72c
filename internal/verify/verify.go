// Package verify asks the running kernel's verifier about all prologues of an image.
package verify

import (
	"context"
	"errors"
	"fmt"
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
