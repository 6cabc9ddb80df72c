package plan

import (
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/argument"
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
	path string // in the argument's structure: members, a point before each; "" for the address of a text
}

// What is fetched inside of one structure: so many texts and slices, in members of members to this depth. Each takes its room in the record.
const (
	maxParts     = 8
	maxPartDepth = 4
)

// partsOf returns the parts of arguments.
func partsOf(args []Argument, o argument.Options) (out []part, err error) {
	for i := range args {
		a := &args[i]
		if reasons.Mistaken(a.Variable.Reason.Code) || a.Length.Kind != loc.KindNone {
			continue
		}
		l := partList{of: i, room: min(maxParts, prologue.MaxRecordArgs-len(args)-len(out)), o: o}
		switch a.Kind {
		case prologue.KindString, prologue.KindUserString:
			err = l.address(a.Variable)
		case prologue.KindObject:
			if a.Type.Kind == syntax.TypeNone {
				err = l.inside(a.Variable, "", 0)
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, l.parts...)
	}
	return out, nil
}

// partList collects the parts of one argument.
type partList struct {
	of, room int
	o        argument.Options
	parts    []part
}

// add adds what a variable is, or refers to.
func (l *partList) add(v *dwarfloc.Variable, path string) *part {
	l.parts = append(l.parts, part{of: l.of, path: path})
	p := &l.parts[len(l.parts)-1]
	p.Variable = argument.Set(&p.Arg, v.Name, v, syntax.TypeSpec{}, l.o)
	return p
}

// address adds the pointer to a text.
func (l *partList) address(v *dwarfloc.Variable) error {
	t, err := v.Type.Resolve()
	if err == nil && t.Kind == types.Pointer && l.room > 0 {
		l.add(v, "")
	}
	return err
}

// inside adds the texts and slices in a structure.
func (l *partList) inside(v *dwarfloc.Variable, path string, depth int) error {
	t, err := v.Type.Resolve()
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
		if r, err := m.Type.Resolve(); err != nil || r.Kind != types.Struct && r.Kind != types.Class {
			continue // damaged debug information is said of the argument itself
		}
		of, err := compute.Follow(v, []syntax.Step{{Kind: syntax.StepDot, Member: m.Name}})
		if err != nil {
			return err
		}
		if of.Wrong != nil || len(l.parts) == l.room {
			continue
		}
		at := path + "." + m.Name
		switch l.add(of, at).Kind {
		case prologue.KindString, prologue.KindUserString, prologue.KindSlice:
			continue
		}
		l.parts = l.parts[:len(l.parts)-1]
		if err := l.inside(of, at, depth+1); err != nil {
			return err
		}
	}
	return nil
}
