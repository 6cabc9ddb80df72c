package index

import "github.com/bpfprologue/bpfprologue/internal/dw"

// EachOrigin calls take, if not nil, with the attributes of an entry, then with those of its
// origin, and so on, while more, if not nil, returns true. It returns the last entry read.
func EachOrigin(e dw.Entry, take func(dw.Attr, dw.Value), more func() bool) (dw.Entry, error) {
	for range MaxOrigins {
		var origin dw.Value
		err := e.Attrs(func(a dw.Attr, v dw.Value) {
			if a == dw.AttrAbstractOrigin || a == dw.AttrSpecification {
				origin = v
			}
			if take != nil {
				take(a, v)
			}
		})
		if err != nil || origin.Form == 0 || more != nil && !more() {
			return e, err
		}
		if e, err = e.Unit.Target(origin); err != nil {
			return e, err
		}
	}
	return e, nil
}
