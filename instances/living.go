package instances

import (
	"errors"
	"fmt"
)

// Close ends all probes. It returns when all are gone, or AttachOptions.End has returned, and may be
// called again.
func (a *Attachment) Close() error {
	links := a.links
	a.links, a.Attached = nil, nil
	if len(links) == 0 {
		return nil
	}
	var silent error
	if a.power != nil && a.w.o.End != nil {
		silent = a.Silence(true)
	}
	return errors.Join(silent, a.w.end(links))
}

// Silence makes all probes do nothing, at once, or work again. They stay where they are. The error
// wraps ErrNotDispatched if the plan is not dispatched.
func (a *Attachment) Silence(on bool) error {
	if a.power == nil {
		return fmt.Errorf("%w: its programs have no switch", ErrNotDispatched)
	}
	a.power.off = on
	return a.power.set()
}
