package index

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// shape is what a unit's abbreviations can describe. They are a thirtieth of the entries, and tell of most units that a search through
// those would find nothing. Their bytes are searched, not read, and can match by chance: then a unit is searched or read without need.
type shape struct {
	// crosses: references to other units' functions, as with link-time optimization, and in deduplicated files.
	crosses bool
	// names: functions that have their names in their own entries, not in a section of strings. So it is in 111 of the 2,352 units of Debian's 6.1
	// kernel: GCC writes names of up to three characters there.
	names bool
}

var (
	crossing = [...]dw.Attr{dw.AttrAbstractOrigin, dw.AttrSpecification}
	// elsewhere are the forms of references that lead out of a unit, and which of their bytes is rare in abbreviations.
	elsewhere = [...]struct {
		form dw.Form
		rare int
	}{{dw.FormRefAddr, 0}, {dw.FormGNURefAlt, 1}, {dw.FormRefSup4, 0}, {dw.FormRefSup8, 0}}
	// named are the entries of which records are made: see (*abbrev).classify in internal/dw.
	named = [...]dw.Tag{dw.TagSubprogram, dw.TagInlinedSubroutine}
)

// shapesOf returns the shapes of all units.
func (x *Index) shapesOf() ([]shape, error) {
	x.shapesOnce.Do(func() {
		x.shapes = make([]shape, len(x.Units))
		x.Data.EachFile(func(d *dw.Data) {
			if x.shapesErr == nil {
				x.shapesErr = x.readShapes(d)
			}
		})
	})
	return x.shapes, x.shapesErr
}

// readShapes finds the shapes of the units of one file.
func (x *Index) readShapes(d *dw.Data) error {
	var starts []uint64
	for i := range x.Units {
		if x.Units[i].Data == d {
			starts = append(starts, x.Units[i].AbbrevOff)
		}
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	shapes := make([]shape, len(starts))
	err := x.Parallel(len(starts), func(_ *Scanner, i int) error {
		from, to := starts[i], uint64(len(d.Abbrev))
		if i+1 < len(starts) {
			to = min(to, starts[i+1])
		}
		if from < to {
			shapes[i] = shapeOf(d.Abbrev[from:to])
		}
		return nil
	})
	for i := range x.Units {
		if u := &x.Units[i]; u.Data == d {
			n, _ := slices.BinarySearch(starts, u.AbbrevOff)
			x.shapes[i] = shapes[n]
		}
	}
	return err
}

// shapeOf looks through the bytes of abbreviations.
func shapeOf(d []byte) shape {
	var s shape
	for _, e := range elsewhere {
		form := binary.AppendUvarint(nil, uint64(e.form))
		s.crosses = s.crosses || anyAt(d, form[e.rare], func(at int) bool {
			at -= e.rare
			return at > 0 && slices.Contains(crossing[:], dw.Attr(d[at-1])) && bytes.HasPrefix(d[at:], form)
		})
	}
	for _, tag := range named {
		s.names = s.names || anyAt(d, byte(tag), func(at int) bool {
			children := at + 1
			return children < len(d) && d[children] <= 1 && namesItself(bin.Reader{D: d, P: children + 1})
		})
	}
	return s
}

// anyAt reports whether a byte is in d where it is what is asked for.
func anyAt(d []byte, c byte, is func(at int) bool) bool {
	for p := 0; ; p++ {
		i := bytes.IndexByte(d[p:], c)
		if i < 0 {
			return false
		}
		if p += i; is(p) {
			return true
		}
	}
}

// namesItself reports whether the attributes of an abbreviation have a string in the entry itself, or may have.
func namesItself(b bin.Reader) bool {
	for !b.Bad {
		var attr uint64
		var form dw.Form
		if two := b.D[b.P:]; len(two) > 1 && two[0]|two[1] < 0x80 { // as nearly all are
			attr, form, b.P = uint64(two[0]), dw.Form(two[1]), b.P+2
		} else {
			attr, form = b.ULEB(), dw.Form(b.ULEB())
		}
		switch {
		case attr == 0:
			return false
		case form == dw.FormString || form == dw.FormIndirect:
			return true
		case form == dw.FormImplicitConst:
			b.ULEB()
		}
	}
	return false
}
