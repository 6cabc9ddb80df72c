package answers

import (
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/image"
)

// A compiler puts what a function seldom does elsewhere, and a stripped file has no symbol of such a part. But each has a frame description of
// its own, for exceptions, which says where it begins and ends. Whether it is a part of a function that jumps there, or another function that is
// called in its place, is known where no call can lead to it, and where it makes no difference.

// maxColdParts bounds the parts of one function: compilers make one or two.
const maxColdParts = 8

// framesOf returns the frame descriptions of a file without debug information.
func framesOf(f *image.File) func() *dw.Data {
	return sync.OnceValue(func() *dw.Data {
		const name = ".eh_frame"
		contents, err := f.SectionContents(name)
		if err != nil {
			return nil // nothing is known without them
		}
		s := dw.Sections{Path: f.Path(), BigEndian: f.BigEndian(), WordSize: f.Arch().WordSize, Errorf: errorf(f)}
		for _, section := range f.Sections() {
			if section.Name == name {
				s.EhFrameAddr = section.Addr
			}
		}
		return dw.New(s, map[string][]byte{name: contents})
	})
}

// whole follows a function with the parts that its symbols do not name.
func (t *Symbols) whole(x *symbolSite) *body.Code {
	parts := t.code(x)
	code := body.Alone(t.file, parts)
	for again := true; again && code.Why == ""; {
		again = false
		for _, e := range code.Exits() {
			part, is := t.part(x, parts, e)
			if !is || len(parts) == maxColdParts {
				continue
			}
			parts, again = append(parts, part), true
			code = body.Alone(t.file, parts)
			break
		}
	}
	return code
}

// part returns the code to which a function jumps, if that cannot be another function in which it ends.
func (t *Symbols) part(x *symbolSite, known []dw.Range, e body.Exit) (r dw.Range, is bool) {
	frames := t.frames()
	if frames == nil {
		return r, false
	}
	f, ok, err := frames.FrameOf(e.To)
	if err != nil || !ok {
		return r, false
	}
	if r = f.Range(); dw.Covers(known, r.Lo) {
		return r, false
	}
	if s := t.file.SymbolAt(e.To, ""); s != nil && s.Addr >= r.Lo {
		return r, false
	}
	// The frame that it has made itself is still there: its caller's is where a call would have it only without.
	entry, before, after := t.frameAt(x.Addr), t.frameAt(e.From), t.frameAt(e.To)
	if before != nil && after != nil && entry != nil && *before == *after && *before != *entry {
		return r, true
	}
	code := body.Alone(t.file, []dw.Range{{Lo: e.To, Hi: r.Hi}})
	if code.Why != "" {
		return r, false
	}
	// Nothing else jumps into the middle of a function.
	if slices.ContainsFunc(code.Exits(), func(back body.Exit) bool { return back.To != x.Addr && dw.Covers(known, back.To) }) {
		return r, true
	}
	leaves, why := code.Leaves()
	return r, why == "" && len(leaves) == 0 // whatever it is, nothing returns from it
}

// callFrame is where a frame begins: so many bytes after a register.
type callFrame struct {
	register uint64
	offset   int64
}

// frameAt returns the frame at an address, or nil if it is not known.
func (t *Symbols) frameAt(addr uint64) *callFrame {
	rule, ok, err := t.frames().CFA(addr)
	if err != nil || !ok || rule.Expr != nil {
		return nil
	}
	return &callFrame{rule.Reg, rule.Off}
}
