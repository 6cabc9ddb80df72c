package probe

import (
	"math"
	"strconv"

	"github.com/bpfprologue/bpfprologue/internal/syntax"
)

// units are those of times, in nanoseconds.
var units = map[string]uint64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}

// time parses a time, 250us or 1.5ms, which is a number of nanoseconds. ok is false for anything else.
func (s *scanner) time(e *syntax.Expr) (ok bool, err error) {
	text := s.rest()
	end := floatLen(text)
	whole := end == 0
	for whole && end < len(text) && isDigit(text[end]) {
		end++
	}
	unit := text[end : end+identifierLen(text[end:])]
	scale, known := units[unit]
	if end == 0 || !known {
		return false, nil
	}
	e.Kind, e.Name = syntax.KindNumber, text[:end+len(unit)]
	if n, err := strconv.ParseUint(text[:end], 10, 64); err == nil && n <= math.MaxInt64/scale {
		e.Number = n * scale
	} else if f, err := strconv.ParseFloat(text[:end], 64); err == nil && !whole && f*float64(scale) < math.MaxInt64 {
		e.Number = uint64(math.Round(f * float64(scale)))
	} else {
		return true, s.errorf(s.pos, "expected a time of up to 292 years, found %q", e.Name)
	}
	s.pos += len(e.Name)
	return true, nil
}
