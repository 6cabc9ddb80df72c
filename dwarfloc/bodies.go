package dwarfloc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// holder is a body that holds an address.
type holder struct {
	rec   int32
	depth int // how many bodies are around it
	file  string
	line  int    // where its function is declared
	view  uint64 // entry view, when the address is the one that the body is entered at
	// outside: no instruction of the body is at the address. Its code was merged into its
	// neighbours, or ends before the address: a last statement without code is there.
	outside bool
}

// place is an address and a view.
type place struct{ addr, view uint64 }

// maxHolders bounds how many pairs of bodies and places are looked at in one unit. A
// kernel's largest unit has some million, for all its lines.
const maxHolders = 1 << 26

// holders calls visit with the bodies of a unit that hold each of some places, which
// are in order of their addresses: for each place, the outer ones first. A body of
// several ranges may come more than once.
func (u *unit) holders(places []place, visit func(i int, h *holder)) error {
	pairs := 0
	depth := make([]int, len(u.Recs)) // of the bodies that are around; -1: holds none of the places
	declarations := make(map[int32]holder)
	for i := range u.Recs {
		r := &u.Recs[i]
		if r.Parent >= 0 {
			depth[i] = depth[r.Parent]
		}
		if depth[i] < 0 || r.Flags&index.HasPC == 0 {
			continue // what has no address may contain what has one
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
			j, _ := slices.BinarySearchFunc(places, rg.Lo, func(p place, a uint64) int { return cmp.Compare(p.addr, a) })
			for ; j < len(places) && places[j].addr <= rg.Hi; j++ {
				live = true
				if pairs++; pairs > maxHolders {
					return u.Data.Errorf(".debug_info", u.Off, "the unit has more than %d pairs of functions and lines that overlap", maxHolders)
				}
				p := places[j]
				h := holder{rec: int32(i), depth: depth[i], outside: p.addr == rg.Hi}
				if !ok {
					continue
				}
				if p.addr == start {
					if h.view = pcs.EntryView; p.view < h.view {
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

// declaration is where the function of a record is declared. known has the answers
// for the roots of records.
func (u *unit) declaration(i int32, e dw.Entry, known map[int32]holder) (string, int, error) {
	root := u.Recs[i].Root
	if h, ok := known[root]; ok && root >= 0 {
		return h.file, h.line, nil
	}
	file, line, err := declaredAt(e)
	known[root] = holder{file: file, line: line}
	return file, line, err
}

// candidate is the body that a line seems to belong to, of those that were looked at.
type candidate struct {
	holder
	ok bool
}

// above is the line that a body's function is declared at, when that is above a line
// of the same file, else -1.
func (h *holder) above(file string, line int) int {
	if h.file == file && h.line <= line {
		return h.line
	}
	return -1
}

// consider takes another body into account.
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

// functionTexts is where the functions of a unit begin, once that was asked for: the
// first line of each file.
type functionTexts struct{ first map[string]int }

// has reports whether a line is after the beginning of the first function of a file.
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
			f, l, err := declaredAt(e)
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

// sitesOfRows makes sites of rows, given by their indices in order, as the comment in
// lines.go says.
func (u *unit) sitesOfRows(rows []dw.Row, picked []int, accept func(rec int32, r *dw.Row) bool) ([]*Site, error) {
	places := make([]place, len(picked))
	for i, p := range picked {
		places[i] = place{rows[p].Addr, uint64(rows[p].View)}
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
	last, lastRec, used := -2, int32(-1), false // the row before, if it was picked, its body, whether its run has its site
	for i, p := range picked {
		r := &rows[p]
		h := &owners[i]
		file, line := position(i)
		if h.ok && h.above(file, line) < 0 {
			// The line is of no function that is here. It may be of a macro's file, or of a
			// file that is included in a body; but not of another function's text, whose
			// variables would be looked for in the wrong one.
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
		if used || !r.Stmt {
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

// bodySite is the start of a record's body as a site of one of the kinds SiteLine and
// SiteInstruction, or nil for code that is not in the image. It is the site of the line
// that declares the function; other places have theirs by moving it. It is to keep.
func (u *unit) bodySite(rec int32, kind SiteKind, file string, line int) (*Site, error) {
	s := &Site{funOf: -1}
	ok, err := u.site(rec, s)
	if err != nil || !ok {
		return nil, err
	}
	s.body, s.inside = s.Addr, s.Kind == SiteInline
	s.keep()
	s.Kind, s.File, s.Line = kind, file, line
	return s, nil
}

// lineSite is the site of a line at a place in a record's body, or nil. In code built
// without optimisation it is not in the function's prologue, where parameters do not
// have their locations yet, but after it.
func (u *unit) lineSite(rec int32, file string, line int, p place) (*Site, error) {
	s, err := u.bodySite(rec, SiteLine, file, line)
	if err != nil || s == nil {
		return nil, err
	}
	if s.AfterPrologue {
		s.body = s.fun.start
		if p.addr >= s.body && p.addr < s.Addr {
			return s, nil
		}
	}
	s.Addr, s.View, s.AfterPrologue = p.addr, p.view, false
	return s, nil
}

// ErrNoFunction is wrapped by SiteAt's error for an address that is in no function.
var ErrNoFunction = errors.New("no function holds the address")

// SiteAt returns the site of the instruction at a link-time address: in the innermost
// body that holds it, with the machine as it is before the instruction, after
// whatever else the line table has at that address. An address that is in no
// function is ErrNoFunction, with a reason.
func (img *Image) SiteAt(ctx context.Context, addr uint64) (*Site, error) {
	none := func(why string) error {
		return fmt.Errorf("%s: %w %#x: %s", img.Path(), ErrNoFunction, addr, why)
	}
	if !img.executable(addr) {
		return nil, none("no section of instructions holds it")
	}
	if err := img.prepare(true); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var best *Site
	err := img.index.Parallel(len(img.units), func(w *index.Scanner, i int) error {
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
		if sym := img.SymbolAt(addr, ""); sym != nil {
			why += fmt.Sprintf("; it is %s+%#x", sym.Name, addr-sym.Addr)
		}
		return nil, none(why)
	}
	if err := best.describe(); err != nil {
		return nil, err
	}
	return best, img.Changed()
}

// siteAt is SiteAt for one unit; it returns nil when the unit has no function there.
func (u *unit) siteAt(w *index.Scanner, addr uint64) (*Site, error) {
	if u.Kind == dw.UnitType {
		return nil, nil
	}
	if err := u.Begin(&w.Table); err != nil {
		return nil, err
	}
	ranges, err := u.Extent(&u.PCs)
	if err != nil {
		return nil, err
	}
	bounded := u.PCs.Ranges.Form != 0 || u.PCs.High.Form != 0
	if bounded && !dw.Covers(ranges, addr) {
		return nil, nil
	}
	if err := w.Open(u.Unit); err != nil {
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
	err = u.holders([]place{{addr, view}}, func(_ int, h *holder) {
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
	s.Addr, s.View, s.AfterPrologue = addr, view, false
	return s, nil
}
