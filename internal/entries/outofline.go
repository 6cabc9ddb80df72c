package entries

import (
	"context"

	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Body is the record of a body.
type Body struct {
	U   *Unit
	Rec int32
}

// OutOfLine returns the bodies out of line of a function, in all units: those of a function in a header that was not inlined everywhere, and with link-time
// optimization all, in units that do not declare it.
func (img *Image) OutOfLine(k *FunctionKey) ([]Body, error) {
	return img.outOfLine.Of(k, 16, func() ([]Body, error) {
		sel, units, err := img.Index.Candidates(context.Background(), k)
		if err != nil {
			return nil, err
		}
		all, err := img.outOfLineIn(units, func(u *Unit, r *index.Rec) bool { return sel.Match(u.NameRefOf(r)) })
		return all[*k], err
	}, func() (map[FunctionKey][]Body, error) {
		return img.outOfLineIn(img.Index.AllUnits(), func(*Unit, *index.Rec) bool { return true })
	})
}

// outOfLineIn returns the bodies out of line in some units, of functions that are named.
func (img *Image) outOfLineIn(units []int, named func(u *Unit, r *index.Rec) bool) (map[FunctionKey][]Body, error) {
	in := make([]map[FunctionKey][]Body, len(units))
	err := img.Index.Parallel(len(units), func(scanner *index.Scanner, i int) error {
		u := &img.Units[units[i]]
		if u.IsType() {
			return nil
		}
		if err := scanner.Open(u.Unit); err != nil {
			return err
		}
		for rec := range u.Recs {
			r := &u.Recs[rec]
			if r.Flags&index.HasPC == 0 || Inlined(r) || !named(u, r) {
				continue
			}
			k, err := KeyOf(u, int32(rec))
			if err != nil {
				return err
			}
			if in[i] == nil {
				in[i] = make(map[FunctionKey][]Body)
			}
			in[i][k] = append(in[i][k], Body{u, int32(rec)})
		}
		return nil
	})
	out := make(map[FunctionKey][]Body)
	for _, m := range in {
		for k, bodies := range m {
			out[k] = append(out[k], bodies...)
		}
	}
	return out, err
}
