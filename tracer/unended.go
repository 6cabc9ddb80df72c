package tracer

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Why a run has no end: see Hit.Outcome.
const (
	beganAgain = "began again"
	notEnded   = "not ended"
)

// cookieAgain is in an event in place of the cookie of a run's end: another run began in the same frame.
const cookieAgain = -1

// told reports whether runs of a span that have no end are reported. A condition on $duration or $retval cannot be computed for them.
func (x *spans) told(span int) bool {
	p := x.plans[span]
	return p.If == nil || len(p.If.All) == 0
}

// report writes how a run is reported that was open where another one begins: R9 is what is stored of it. Without a session it is not.
func (x *spans) report(s *Session, span int, prefix string) asm.Instructions {
	if s == nil || !x.told(span) {
		return nil
	}
	began := x.missingAt(span)
	insns := asm.Instructions{
		asm.LoadMapPtr(asm.R1, s.events.FD()),
		asm.Mov.Imm(asm.R2, int32(began+endRecord)),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnRingbufReserve.Call(),
		asm.JEq.Imm(asm.R0, 0, prefix+labelFull),
		asm.Mov.Reg(asm.R6, asm.R0),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.R6, int16(began+endDuration), asm.R1, asm.DWord),
		asm.StoreMem(asm.R6, int16(began+endErr), asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, cookieAgain),
		asm.StoreMem(asm.R6, int16(began+endCookie), asm.R1, asm.DWord),
	}
	insns = append(insns, copyWords(asm.R6, 0, asm.R9, 0, began)...)
	return append(insns,
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRingbufSubmit.Call(),
		asm.Ja.Label(prefix+"reported"),
		asm.LoadMapValue(asm.R1, s.lost.FD(), 0).WithSymbol(prefix+labelFull),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(prefix+"reported"),
	)
}

// unended reports the runs of this session, and of those that are with it, that have not ended, in the order in which they began.
func (s *Session) unended(f func(*Hit) error) error {
	if s.spans == nil {
		return nil
	}
	var open []*Hit
	for _, of := range s.all() {
		for span, m := range of.spans.open {
			if !of.spans.told(span) {
				continue
			}
			var key [spanKeySize]byte
			value := make([]byte, of.spans.entrySize(span))
			entries := m.Iterate()
			for entries.Next(&key, &value) {
				h, cookie, err := head(value)
				if err != nil {
					return err
				}
				if err := of.spans.begun(h, cookie, span, slices.Clone(value)); err != nil {
					return err
				}
				h.Outcome = notEnded
				open = append(open, h)
			}
			if err := entries.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
				return err
			}
		}
	}
	slices.SortFunc(open, func(a, b *Hit) int { return cmp.Compare(a.Time, b.Time) })
	for _, h := range open {
		if err := f(h); err != nil {
			return err
		}
	}
	return nil
}

// begun decodes where a run began, of which the head is decoded.
func (x *spans) begun(h *Hit, cookie uint64, span int, d []byte) error {
	site := int(cookie & (1<<siteBits - 1))
	if span >= len(x.plans) || site >= len(x.plans[span].Begin.Sites) || len(d) < atRecord+x.sizes[span] {
		return fmt.Errorf("an event with the unknown cookie %#x", cookie)
	}
	p := x.plans[span]
	h.Plan, h.Site, h.Span, h.End = p.Begin, site, p, -1
	h.Values = p.Begin.Values(site, h.Err, d[atRecord:])
	before := 0 // of what the condition needs
	if p.If != nil {
		before = len(p.If.Begin)
	}
	h.Err >>= before
	h.Values = h.Values[before : len(h.Values)-1] // without the frame
	return nil
}

// endOf decodes where it ended.
func (x *spans) endOf(h *Hit, end []byte) error {
	p := h.Span
	cookie := binary.NativeEndian.Uint64(end[endCookie:])
	if int64(cookie) == cookieAgain {
		h.Outcome = beganAgain
		return nil
	}
	last := int(cookie & (1<<siteBits - 1))
	if last >= len(p.End.Sites) {
		return fmt.Errorf("an event with the unknown cookie %#x", cookie)
	}
	h.End, h.Duration = last, time.Duration(binary.NativeEndian.Uint64(end[endDuration:]))
	h.Results = p.End.Values(last, binary.NativeEndian.Uint64(end[endErr:]), end[endRecord:])
	after := 0 // of what the condition needs
	if p.If != nil {
		after = len(p.If.End)
	}
	h.Results = h.Results[after : len(h.Results)-1] // without the frame
	return nil
}
