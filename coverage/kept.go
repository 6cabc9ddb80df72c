package coverage

import (
	"encoding/json"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
)

// kept returns the report that was kept with an image's index, or nil.
func kept(img *dwarfloc.Image) *Report {
	b, r := inside.Kept(img), new(Report)
	if b == nil || json.Unmarshal(b, r) != nil {
		return nil // it is measured again
	}
	r.Image, r.BuildID = img.Path(), img.BuildID()
	for _, c := range []*Counts{&r.Entry, &r.Inline} {
		for _, n := range c.ByKind {
			c.Located += n
		}
	}
	return r
}

func keep(img *dwarfloc.Image, r *Report) {
	if b, err := json.Marshal(r); err == nil {
		inside.Keep(img, b)
	}
}
