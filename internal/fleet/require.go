package fleet

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Requirement is what each definition must have on each kernel.
type Requirement struct {
	text string
	part float64 // of the probes that must be whole
	any  bool    // one is enough
	none bool
}

// ParseRequirement parses "none", "any", "all", and "90%" or "90 % of sites".
func ParseRequirement(text string) (r Requirement, err error) {
	r.text = text
	switch strings.TrimSpace(text) {
	case "none":
		r.none = true
		return r, nil
	case "any":
		r.any = true
		return r, nil
	case "all":
		r.part = 1
		return r, nil
	}
	number, rest, ok := strings.Cut(text, "%")
	if rest = strings.TrimSpace(rest); !ok || rest != "" && rest != "of sites" {
		return r, errors.New(`it is none, any, all, or a part as "90 % of sites"`)
	}
	percent, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(percent > 0 && percent <= 100) {
		return r, fmt.Errorf("%q is no number above 0, of at most 100", strings.TrimSpace(number))
	}
	r.part = percent / 100
	return r, nil
}

// Met reports whether a definition has on a kernel what is required.
func (r Requirement) Met(c *Cell) bool {
	switch {
	case r.none:
		return true
	case c.Error != "" || c.Whole == 0:
		return false
	}
	return r.any || float64(c.Whole) >= r.part*float64(c.Probes)
}

// String is the requirement as it was written.
func (r Requirement) String() string { return r.text }

// Met counts the pairs of a definition and a kernel, and those that have what is required.
func (t *Table) Met(r Requirement) (met, all int) {
	for i := range t.Definitions {
		for k := range t.Definitions[i].Cells {
			if all++; r.Met(&t.Definitions[i].Cells[k]) {
				met++
			}
		}
	}
	return met, all
}
