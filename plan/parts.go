package plan

import (
	"slices"
	"strconv"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/argument"
	"github.com/bpfprologue/bpfprologue/internal/bpfstack"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/types"
)

// part is what an argument's value needs beyond its own bytes: a text or the elements of a slice that a structure refers to, or the
// address of a text, which tells NULL from what could not be read. It is fetched behind the arguments of the definition.
type part struct {
	Argument
	of   int    // index in Site.Args
	n    int    // index in Argument.Parts
	path string // in the argument: members, a point before each, and elements, [0]; "" for the address of a text
}

// What is fetched inside of one structure: so many texts and slices, in members of members to this depth. Each takes its room in the record.
const (
	maxParts     = 8
	maxPartDepth = 4
)

// keyWords is how many bytes the key of a summary has at most besides arguments, and keyRoom how many these may have: a map's key is
// no longer than the stack (kernel/bpf/hashtab.c).
const (
	keyWords = 120
	keyRoom  = bpfstack.Limit - keyWords
)

// partsOf returns the parts of arguments, and notes their places in these.
func partsOf(args []Argument, o *Options) (out []part, err error) {
	left := keyRoom - keySize(args, o)
	for i := range args {
		a := &args[i]
		if reasons.Mistaken(a.Variable.Reason.Code) || a.Length.Kind != loc.KindNone && a.Kind != prologue.KindSlice || !o.Parts && !slices.Contains(o.Keys, a.Name) {
			continue
		}
		l := partList{of: i, room: min(maxParts, prologue.MaxRecordArgs-len(args)-len(out)), o: o.shape()}
		switch a.Kind {
		case prologue.KindString, prologue.KindUserString:
			err = l.address(a.Variable)
		case prologue.KindObject:
			if a.Type.Kind == syntax.TypeNone {
				err = l.inside(a.Variable, "", 0, 0)
			}
		case prologue.KindSlice:
			if a.Type.Kind == syntax.TypeNone {
				l.slices = append(l.slices, slice{a.Arg, a.Variable, ""})
			}
		}
		for k := 0; err == nil && k < len(l.slices); k++ { // last: what is a member goes before
			err = l.elements(&l.slices[k])
		}
		if err != nil {
			return nil, err
		}
		for k := range l.parts {
			if n := prologue.RecordSize([]prologue.Arg{l.parts[k].Arg}, false); !o.Parts {
				if left -= n; left < 0 {
					break
				}
			}
			l.parts[k].n = len(a.Parts)
			a.Parts = append(a.Parts, l.places[k])
			out = append(out, l.parts[k])
		}
	}
	return out, nil
}

// keySize returns how many bytes the arguments that are keys have in one.
func keySize(args []Argument, o *Options) int {
	var keys []prologue.Arg
	for i := range args {
		if slices.Contains(o.Keys, args[i].Name) {
			keys = append(keys, args[i].Arg)
		}
	}
	return prologue.RecordSize(keys, false)
}

// partList collects the parts of one argument.
type partList struct {
	of, room int
	o        argument.Options
	parts    []part
	places   []prologue.Field // Argument.Parts
	slices   []slice          // of which the elements may be texts
}

// slice is one whose elements may be texts, and its path.
type slice struct {
	prologue.Arg
	v    *dwarfloc.Variable
	path string
}

// add adds what a variable is, or refers to.
func (l *partList) add(v *dwarfloc.Variable, path string, at prologue.Field) *part {
	l.parts, l.places = append(l.parts, part{of: l.of, path: path}), append(l.places, at)
	p := &l.parts[len(l.parts)-1]
	p.Variable = argument.Set(&p.Arg, v.Name, v, syntax.TypeSpec{}, l.o)
	return p
}

// address adds the pointer to a text.
func (l *partList) address(v *dwarfloc.Variable) error {
	t, err := v.Type.Resolve()
	if err == nil && t.Kind == types.Pointer && l.room > 0 {
		l.add(v, "", prologue.Field{})
	}
	return err
}

// inside adds the texts and slices in a structure, which begins so many bytes after the argument.
func (l *partList) inside(v *dwarfloc.Variable, path string, from, depth int) error {
	t, err := v.Type.Complete()
	if err != nil || t.Kind != types.Struct && t.Kind != types.Class || depth == maxPartDepth {
		return err
	}
	if _, variants, err := t.Variants(); err != nil || len(variants) > 0 {
		return err
	}
	members, err := t.Members()
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Name == "" || m.BitSize > 0 {
			continue
		}
		r, err := m.Type.Complete()
		if err != nil || r.Kind != types.Struct && r.Kind != types.Class {
			continue // damaged debug information is said of the argument itself
		}
		of, err := compute.Follow(v, []syntax.Step{{Kind: syntax.StepDot, Member: m.Name}})
		if err != nil {
			return err
		}
		if of.Wrong != nil || len(l.parts) == l.room {
			continue
		}
		at, offset := path+"."+m.Name, from+int(m.BitOffset/8)
		switch p := l.add(of, at, prologue.Field{Offset: offset, Size: int(max(r.Size, 0))}); p.Kind {
		case prologue.KindSlice:
			l.slices = append(l.slices, slice{p.Arg, of, at})
			continue
		case prologue.KindString, prologue.KindUserString:
			continue
		}
		l.parts, l.places = l.parts[:len(l.parts)-1], l.places[:len(l.places)-1]
		if err := l.inside(of, at, offset, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// elements adds the texts that a slice refers to, as many as there is room for its elements.
func (l *partList) elements(s *slice) error {
	n := s.MaxBytes / max(s.Size, 1)
	for i := range min(n, l.room-len(l.parts)) {
		of, err := compute.Follow(s.v, []syntax.Step{{Kind: syntax.StepIndex, Index: int64(i)}})
		if err != nil {
			return err
		}
		if of.Wrong != nil {
			return nil
		}
		kind := l.add(of, s.path+"["+strconv.Itoa(i)+"]", prologue.Field{}).Kind
		if kind != prologue.KindString && kind != prologue.KindUserString {
			l.parts, l.places = l.parts[:len(l.parts)-1], l.places[:len(l.places)-1]
			return nil
		}
	}
	return nil
}
