package plan

import (
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// writer writes the prologues of sites, one after the other.
type writer struct {
	emitter prologue.Emitter
	key     []byte
	wanted  []prologue.Arg

	conditions []*loc.Expr
}

// Flags in the first byte of an instance's key.
const (
	keyMulti = 1 << iota
	keyReturn
)

// write writes the prologue of a site of a plan, and says which arguments it does not fetch. It
// returns a key that is equal for sites of one instance, valid until the next call, or nil for a
// site that has no instance.
func (w *writer) write(p *Plan, s *Site, o *Options) (key []byte, err error) {
	po := prologue.Options{
		Arch: o.registers, BigEndian: inside.File(p.Image).BigEndian(), Reads: p.Target.Reads, Convention: p.Convention,
		SignExtends: p.Target.SignExtends, Moves: o.moves, At: s.Addr, Stays: o.stays,
		IfMissing: p.Definition.Options.Pass, CountMissing: o.CountMissing, RecordBytes: p.RecordBytes,
		Doubts: p.Doubt == DoubtKeep,
	}
	w.conditions = s.needed(w.conditions[:0], po.IfMissing)
	po.If = w.conditions
	w.wanted = s.appendArgs(w.wanted[:0])
	if err := w.emitter.Emit(w.wanted, &po); err != nil {
		return nil, fmt.Errorf("%v: %w", s.Site, err)
	}
	s.Layout = w.emitter.Layout
	for j, r := range w.emitter.Reasons {
		if j < len(s.Args) {
			s.Args[j].Unfetched = r
		} else {
			part := &s.parts[j-len(s.Args)]
			if part.Unfetched = r; !part.Fetched() {
				s.Args[part.of].Parts[part.n] = prologue.Field{} // it has its own bytes there
			}
		}
	}
	if s.Refused != nil || s.Never != nil {
		return nil, nil
	}
	if at := slices.IndexFunc(s.Args, func(a Argument) bool { return !a.Fetched() }); at >= 0 {
		switch o.Missing {
		case MissingSkip:
			return nil, nil
		case MissingFail:
			a := &s.Args[at]
			return nil, probe.Errorf(p.Definition, p.Definition.Args[a.DefinitionArg].Pos, "%w: %v: argument %q: %v", ErrMissingArgument, s.Site, a.Name, a.Unfetched)
		}
	}
	flags := byte(0)
	if p.Target.multi(s) {
		flags |= keyMulti
	}
	if s.Return {
		flags |= keyReturn
	}
	w.key = append(append(w.key[:0], flags), w.emitter.Key...)
	return w.key, nil
}

// instance returns the instance with the prologue that has just been written.
func (w *writer) instance(s *Site, n int) Instance {
	return Instance{Number: n, Prologue: w.emitter.Prologue(s.String()), Multi: w.key[0]&keyMulti != 0}
}

// appendArgs appends the arguments for package prologue, and their parts.
func (s *Site) appendArgs(to []prologue.Arg) []prologue.Arg {
	for i := range s.Args {
		to = append(to, s.Args[i].Arg)
	}
	for i := range s.parts {
		to = append(to, s.parts[i].Arg)
	}
	return to
}
