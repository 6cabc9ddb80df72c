package dwarfloc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/declared"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// holder is a body that holds an address.
type holder struct {
	rec   int32
	depth int // how many bodies enclose it
	file  string
	line  int    // where its function is declared
	view  uint64 // entry view, if the body is entered at the address
	// outside means that no instruction at the address belongs to the body: its code was
	// merged into its neighbours, or ends before the address with a statement that has
	// no code.
	outside bool
}

// maxHolders bounds how many pairs of bodies and places are examined in one unit. A
// kernel's largest unit has about a million if all its lines are wanted.
const maxHolders = 1 << 26

// holders calls visit for each place with the bodies of the unit that hold it, outer
// ones first. places must be sorted by address. A body that has several ranges may be
// visited more than once.
func (u *unit) holders(places []entries.Place, visit func(i int, h *holder)) error {
	pairs := 0
	depth := make([]int, len(u.Recs)) // number of enclosing bodies; -1: holds none of the places
	declarations := make(map[int32]holder)
	for i := range u.Recs {
		r := &u.Recs[i]
		if r.Parent >= 0 && entries.Inlined(r) {
			depth[i] = depth[r.Parent] // the code of one that is declared in another's text is not in that one's
		}
		if depth[i] < 0 || r.Flags&index.HasPC == 0 {
			continue // a record without an address may enclose one that has it
		}
		e, err := u.Entry(u.Off + uint64(r.Off))
		if err != nil {
			return err
		}
		var pcs dw.PCs
		if err := e.Attrs(pcs.Take); err != nil {
			return err
		}
		ranges, err := u.Extent(&pcs)
		if err != nil {
			return err
		}
		start, ok, err := u.Start(&pcs)
		if err != nil {
			return err
		}
		live := false
		for _, rg := range ranges {
			j, _ := slices.BinarySearchFunc(places, rg.Lo, func(p entries.Place, a uint64) int { return cmp.Compare(p.Addr, a) })
			for ; j < len(places) && places[j].Addr <= rg.Hi; j++ {
				live = true
				if pairs++; pairs > maxHolders {
					return u.Data.Errorf(".debug_info", u.Off, "the unit has more than %d pairs of functions and lines that overlap", maxHolders)
				}
				p := places[j]
				h := holder{rec: int32(i), depth: depth[i], outside: p.Addr == rg.Hi}
				if !ok {
					continue
				}
				if p.Addr == start {
					if h.view = pcs.EntryView; p.View < h.view {
						continue
					}
				}
				if h.file, h.line, err = u.declaration(int32(i), e, declarations); err != nil {
					return err
				}
				visit(j, &h)
			}
		}
		if depth[i]++; !live {
			depth[i] = -1
		}
	}
	return nil
}

// declaration returns where a record's function is declared. known caches the answers
// by root.
func (u *unit) declaration(i int32, e dw.Entry, known map[int32]holder) (string, int, error) {
	root := u.Recs[i].Root
	if h, ok := known[root]; ok && root >= 0 {
		return h.file, h.line, nil
	}
	file, line, err := declared.At(e)
	known[root] = holder{file: file, line: line}
	return file, line, err
}

// candidate is the body that a line most likely belongs to, among those considered so
// far.
type candidate struct {
	holder
	ok bool
}

// above returns the line at which the body's function is declared, if that is in the
// given file and not below the given line, or else -1.
func (h *holder) above(file string, line int) int {
	if h.file == file && h.line <= line {
		return h.line
	}
	return -1
}

// consider replaces the candidate if h is at least as likely.
func (c *candidate) consider(h *holder, file string, line int) {
	inside := func(h *holder) int {
		if h.outside {
			return 0
		}
		return 1
	}
	above := h.above(file, line)
	if above < 0 && h.outside {
		return
	}
	if !c.ok || cmp.Or(cmp.Compare(above, c.above(file, line)), cmp.Compare(inside(h), inside(&c.holder)), cmp.Compare(h.depth, c.depth), cmp.Compare(h.view, c.view)) >= 0 {
		c.holder, c.ok = *h, true
	}
}

// functionTexts holds, once it is needed, the line of the first function that a unit
// has in each file.
type functionTexts struct{ first map[string]int }

// has reports whether a line is not above the first function in its file.
func (t *functionTexts) has(u *unit, file string, line int) (bool, error) {
	if t.first == nil {
		t.first = make(map[string]int)
		for i := range u.Recs {
			if u.Recs[i].Root != int32(i) {
				continue
			}
			e, err := u.Entry(u.Off + uint64(u.Recs[i].Off))
			if err != nil {
				return false, err
			}
			f, l, err := declared.At(e)
			if err != nil {
				return false, err
			}
			if first, ok := t.first[f]; !ok || l < first {
				t.first[f] = l
			}
		}
	}
	first, ok := t.first[file]
	return ok && line >= first, nil
}

// sitesOfRows returns the sites for rows, given by their sorted indices, by the rules in
// lines.go.
func (u *unit) sitesOfRows(rows []dw.Row, picked []int, accept func(rec int32, r *dw.Row) bool) ([]*Site, error) {
	places := make([]entries.Place, len(picked))
	for i, p := range picked {
		places[i] = entries.Place{Addr: rows[p].Addr, View: uint64(rows[p].View)}
	}
	position := func(i int) (string, int) { return u.File(uint64(rows[picked[i]].File)), int(rows[picked[i]].Line) }
	owners := make([]candidate, len(picked))
	err := u.holders(places, func(i int, h *holder) {
		file, line := position(i)
		owners[i].consider(h, file, line)
	})
	if err != nil {
		return nil, err
	}
	type spot struct {
		rec  int32
		addr uint64
		file uint32
		line uint32
	}
	taken := make(map[spot]bool)
	var texts functionTexts
	var out []*Site
	last, lastRec, used := -2, int32(-1), false // last picked row, its body, whether its run has its site
	for i, p := range picked {
		r := &rows[p]
		h := &owners[i]
		file, line := position(i)
		if h.ok && h.above(file, line) < 0 {
			// No function here contains the line. It may be in a macro's file, or in a file
			// included in a body, but not in another function's text: its variables would
			// be looked up in the wrong function.
			other, err := texts.has(u, file, line)
			if err != nil {
				return nil, err
			}
			h.ok = !other
		}
		if !h.ok || !accept(h.rec, r) {
			last = -2
			continue
		}
		if p != last+1 || h.rec != lastRec || rows[last].Line != r.Line || rows[last].File != r.File {
			used = false
		}
		last, lastRec = p, h.rec
		if used || !r.Stmt || !u.img.r.Executable(r.Addr) {
			continue
		}
		used = true
		s, err := u.lineSite(h.rec, file, line, places[i])
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		if at := (spot{h.rec, s.Addr, r.File, r.Line}); !taken[at] {
			taken[at] = true
			out = append(out, s)
		}
	}
	return out, nil
}

// bodySite returns the start of a record's body as a site of kind SiteLine or
// SiteInstruction, or nil for code that is not in the image. That is the site of the line
// that declares the function; for other places callers move it. Callers may keep it.
func (u *unit) bodySite(rec int32, kind SiteKind, file string, line int) (*Site, error) {
	s := new(Site)
	ok, err := u.site(rec, s)
	if err != nil || !ok {
		return nil, err
	}
	s.body, s.inside = s.Addr, s.Kind == SiteInline
	s.keep()
	s.Kind, s.File, s.Line = kind, file, line
	return s, nil
}

// lineSite returns the site of a line at a place in a record's body, or nil. In code
// built without optimization, a site inside the function's prologue moves to its end,
// because parameters are not in their locations before.
func (u *unit) lineSite(rec int32, file string, line int, p entries.Place) (*Site, error) {
	s, err := u.bodySite(rec, SiteLine, file, line)
	if err != nil || s == nil {
		return nil, err
	}
	if s.AfterPrologue {
		s.body = s.spot.Start()
		if p.Addr >= s.body && p.Addr < s.Addr {
			return s, nil
		}
	}
	if s.LocalEntry && p.Addr == s.state.Addr {
		s.state = p // callers in the same image enter after it
		return s, nil
	}
	s.moveTo(p)
	return s, nil
}

// ErrNoFunction is wrapped by SiteAt's error if no function holds the address.
var ErrNoFunction = errors.New("no function holds the address")

// SiteAt returns the site of the instruction at a link-time address, in the innermost
// body that holds it. Variables are as they are right before the instruction, after all
// views of the address. The error wraps ErrNoFunction, and says why, if no function
// holds the address.
func (img *Image) SiteAt(ctx context.Context, addr uint64) (*Site, error) {
	return img.by.siteAt(ctx, addr)
}

func (img dwarfImage) siteAt(ctx context.Context, addr uint64) (*Site, error) {
	none := func(why string) error {
		return fmt.Errorf("%s: %w %#x: %s", img.Path(), ErrNoFunction, addr, why)
	}
	if !img.r.Executable(addr) {
		return nil, none("no section of instructions holds it")
	}
	if err := img.prepare(true); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var best *Site
	err := img.r.Index.Parallel(len(img.units), func(w *index.Scanner, i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s, err := img.units[i].siteAt(w, addr)
		if err != nil || s == nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if best == nil || s.DIE < best.DIE {
			best = s
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if best == nil {
		why := "the debug information describes no code there"
		if sym := img.file.SymbolAt(addr, ""); sym != nil {
			why += fmt.Sprintf("; it is %s+%#x", sym.Name, addr-sym.Addr)
		}
		return nil, none(why)
	}
	if err := best.by.describe(best); err != nil {
		return nil, err
	}
	return best, img.Changed()
}

// siteAt is SiteAt for one unit. It returns nil if the unit has no function there.
func (u *unit) siteAt(w *index.Scanner, addr uint64) (*Site, error) {
	if u.IsType() {
		return nil, nil
	}
	if err := u.Begin(&w.Table); err != nil {
		return nil, err
	}
	ranges, bounded, err := u.Code()
	if err != nil {
		return nil, err
	}
	if bounded && !dw.Covers(ranges, addr) {
		return nil, nil
	}
	if err := w.Open(u.Unit.Unit); err != nil {
		return nil, err
	}
	rows, err := u.Rows()
	if err != nil {
		return nil, err
	}
	at := -1 // the last row at or before the address
	for i := range rows {
		if rows[i].Addr > addr {
			break
		}
		if at = i; rows[i].End {
			at = -1
		}
	}
	var view uint64
	if at >= 0 && rows[at].Addr == addr {
		view = uint64(rows[at].View)
	}
	in := holder{rec: -1}
	err = u.holders([]entries.Place{{Addr: addr, View: view}}, func(_ int, h *holder) {
		if !h.outside && (in.rec < 0 || h.depth >= in.depth) {
			in = *h
		}
	})
	if err != nil || in.rec < 0 {
		return nil, err
	}
	file, line := "", 0
	if at >= 0 {
		file, line = u.File(uint64(rows[at].File)), int(rows[at].Line)
	}
	s, err := u.bodySite(in.rec, SiteInstruction, file, line)
	if err != nil || s == nil {
		return nil, err
	}
	s.early = s.AfterPrologue && addr < s.Addr
	s.moveTo(entries.Place{Addr: addr, View: view})
	return s, nil
}
