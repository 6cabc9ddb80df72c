package plan

import (
	"encoding/binary"
	"fmt"

	"github.com/bpfprologue/bpfprologue/prologue"
)

// Event is one hit, as a program reports it in the structure that Plan.Header declares.
type Event struct {
	Site   int     // index in Plan.Sites
	Again  bool    // the site may be hit again in one run: dwarfloc.Way.Again
	Err    uint64  // bit i is set if argument i was not fetched, or is doubtful and the plan's Doubt is DoubtKeep
	Doubt  uint64  // bit i is set if argument i was fetched all the same: it may not be what was passed
	Values []Value // they refer to the data
}

// The layout of an event: numbers are in the machine's byte order.
const (
	eventSite = 0 // the attach cookie
	eventErr  = 8
	eventArgs = 16 // the record, or up to three arguments of 8 bytes each
)

// Event reads an event, for example from a ring buffer. The site is in the attach cookie, unless
// instances.AttachOptions.Cookie made others.
//
// The error is for data that is too short, or no event of this plan.
func (p *Plan) Event(data []byte) (Event, error) {
	if len(data) < eventArgs {
		return Event{}, fmt.Errorf("an event of %d bytes: it has %d before its arguments", len(data), eventArgs)
	}
	cookie := binary.NativeEndian.Uint64(data[eventSite:])
	e := Event{Site: int(uint32(cookie)), Err: binary.NativeEndian.Uint64(data[eventErr:])}
	if e.Site >= len(p.Sites) || p.Sites[e.Site].Instance < 0 {
		return Event{}, fmt.Errorf("an event of site %d, where the plan has no program", e.Site)
	}
	s := &p.Sites[e.Site]
	size := 8 * len(s.Args)
	if p.Convention == prologue.ConventionRecord {
		size = s.Layout.Size
	}
	args := data[eventArgs:]
	if len(args) < size {
		return Event{}, fmt.Errorf("an event of %d bytes: at %v it has %d", len(data), s, eventArgs+size)
	}
	e.Again, e.Doubt, e.Values = s.Way.Again, p.doubtful(e.Site, e.Err, args), p.Values(e.Site, e.Err, args)
	return e, nil
}
