package resolve

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/rule"
)

// maxPadding is how many bytes compilers put before a loop's beginning at most.
const maxPadding = 64

// behindPadding reports whether a note that begins in front of the padding before the probe begins behind it: at a view that only rows there have, and that is later than the probe's. GCC writes a
// label there, in front of a loop that it aligns, and takes it for the loop's first statements too: ".LVL220: .p2align 4; .L135: .loc 1 33 2 view .LVU1497", and a list that
// begins at .LVL220 with .LVU1497.
func behindPadding(s *entries.Spot, c *entries.Chosen) (bool, error) {
	at := s.At
	if !c.Viewed || c.Rule != rule.View || c.Lo >= at.Addr || c.VLo <= at.View || at.Addr-c.Lo > maxPadding || !s.U.Img.Code.Padding(c.Lo, at.Addr) {
		return false, nil
	}
	rows, err := s.U.RowsIn(dw.Range{Lo: c.Lo, Hi: at.Addr})
	return err == nil && !slices.ContainsFunc(rows, func(r dw.Row) bool { return r.Addr == c.Lo && uint64(r.View) == c.VLo }), err
}

// chooseBeforePadding chooses again, where the list's addresses are those in front of the padding before the probe: of "while (i--)" behind it, by their views, first what is passed, and then what is left.
func chooseBeforePadding(s *entries.Spot, x *entries.Var, c *entries.Chosen) error {
	behind, err := behindPadding(s, c)
	if !behind || err != nil {
		return err
	}
	again, err := x.U.Choose(x.Location, x.Views, entries.Place{Addr: c.Lo, View: s.At.View}, true)
	if err == nil && again.Rule == rule.View {
		*c = again
	}
	return err
}
