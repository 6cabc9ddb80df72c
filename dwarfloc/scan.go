package dwarfloc

import (
	"cmp"
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// rec is what the scan keeps of a subprogram or an inlined instance: enough to
// find all sites of a name without reading the debug information again.
type rec struct {
	off    uint32  // entry, in bytes from its unit's start
	parent int32   // enclosing record of the same unit, or -1
	root   int32   // record of the same unit that holds the name; -1: see origin
	flags  recFlag //
	name   nameRef // of a record with a name of its own, or whose root is elsewhere
	origin uint64  // entry of the origin in .debug_info while root is not known, or 0
}

type recFlag uint8

const (
	recInlined recFlag = 1 << iota // an inlined instance, not a subprogram
	recPC                          // has an address
)

// nameRef is where a name stands: a string section in the upper 4 bits and an
// offset. Equal names mostly have equal references, since linkers merge
// .debug_str, but need not.
type nameRef uint64

const (
	nameNone    nameRef = 0
	nameStr     nameRef = 1 << 60
	nameInfo    nameRef = 2 << 60
	nameLineStr nameRef = 3 << 60
	nameSection nameRef = 0xf << 60
)

// nameOf returns the string that a reference stands for, or "" when it is
// damaged.
func (img *Image) nameOf(n nameRef) string {
	var s string
	off := uint64(n &^ nameSection)
	switch n & nameSection {
	case nameStr:
		s, _ = zstr(img.str, off)
	case nameInfo:
		s, _ = zstr(img.info, off)
	case nameLineStr:
		s, _ = zstr(img.lineStr, off)
	}
	return s
}

// Progress is told how far a scan is, in bytes of .debug_info. It is called from
// several goroutines.
type Progress func(done, total uint64)

// OnProgress sets who is told of the progress of scans. It must be called before the
// first question to the image.
func (img *Image) OnProgress(f Progress) { img.progress = f }

// Scan finds all functions and inlined instances, or reads back what a cache has
// kept of that. Other methods do as much of it as they need. It is done once, and
// its error is remembered, except when the context ended it.
func (img *Image) Scan(ctx context.Context) error {
	if err := img.prepare(img.keptPath() != ""); err != nil || img.kept != nil {
		return err
	}
	img.scanMu.Lock()
	defer img.scanMu.Unlock()
	if img.scanned {
		return img.scanErr
	}
	err := img.eachUnit(ctx, img.allUnits(), false, func(*scanner, *unit) error { return nil })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		err = img.changed()
	}
	if err == nil {
		img.cache.warn(img.guard(img.keep))
	}
	img.scanned, img.scanErr = true, err
	return err
}

// prepare finds the units: in a kept scan or in .debug_info. That is work for one
// processor, so another reads meanwhile what most questions need in the end: frames,
// and symbols, unless the caller knows better. What is wrong with them is told to
// those who do need them.
func (img *Image) prepare(symbols bool) error {
	img.unitsOnce.Do(func() {
		ok, err := img.recall()
		img.cache.warn(err)
		img.readAside(func() { _, _ = img.frameOf(0) })
		if ok {
			return
		}
		if symbols {
			img.readAside(func() { img.table() })
		}
		img.unitsErr = img.guard(img.readUnits)
	})
	return img.unitsErr
}

// readAside calls f in the background. Close waits for it.
func (img *Image) readAside(f func()) {
	img.aside.Go(func() {
		_ = img.guard(func() error { f(); return nil })
	})
}

// allUnits returns the numbers of all units, large ones first: the last ones to
// finish are then small.
func (img *Image) allUnits() []int {
	order := make([]int, len(img.units))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(img.units[b].end-img.units[b].off, img.units[a].end-img.units[a].off)
	})
	return order
}

// eachUnit calls f for units whose records are there, on all processors. Units of
// types are left out: they have no functions of their own.
// sites tells that f reads sites.
func (img *Image) eachUnit(ctx context.Context, units []int, sites bool, f func(*scanner, *unit) error) error {
	var done atomic.Uint64
	total := uint64(0)
	if img.progress != nil {
		for _, i := range units {
			total += img.units[i].end - img.units[i].off
		}
	}
	return img.parallel(len(units), func(s *scanner, i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		u := &img.units[units[i]]
		s.sites = sites
		if u.kind != unitType {
			if err := u.records(s); err != nil {
				return err
			}
			if err := f(s, u); err != nil {
				return err
			}
		}
		if img.progress != nil {
			img.progress(done.Add(u.end-u.off), total)
		}
		return nil
	})
}

// records finds the unit's records once: in a kept scan, or by reading the unit.
func (u *unit) records(s *scanner) error {
	u.recOnce.Do(func() {
		if u.img.kept != nil {
			u.recErr = u.recallRecords()
		} else if u.recErr = s.scan(u); u.recErr != nil {
			u.recs = nil
		}
	})
	return u.recErr
}

// parallel calls f for 0 to n-1 on all processors. The error of the lowest index
// wins, so that the answer does not depend on timing.
func (img *Image) parallel(n int, f func(s *scanner, i int) error) error {
	var (
		next  atomic.Int64
		wg    sync.WaitGroup
		mu    sync.Mutex
		first = n
		err   error
	)
	for worker := range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			s := scanner{worker: worker, table: abbrevTable{inC: true}}
			i := 0
			e := img.guard(func() error {
				for {
					i = int(next.Add(1) - 1)
					if i >= n {
						return nil
					}
					if err := f(&s, i); err != nil {
						return err
					}
				}
			})
			if e != nil {
				mu.Lock()
				if i < first {
					first, err = i, e
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return err
}

// scanner walks units; its memory is used again for the next one.
type scanner struct {
	worker int   // number of the goroutine, from 0
	sites  bool  // the sites of units may be asked for: their abbreviations are worth keeping
	of     *unit // that table was read for last
	table  abbrevTable
	recs   []rec
	parent []int32
}

// maxDepth bounds how deep entries may nest. Kernels reach 30.
const maxDepth = 512

// scan reads a unit's records. The abbreviations are the scanner's: kept for all
// units they would take 120 MB of a kernel's.
func (s *scanner) scan(u *unit) error {
	s.table.keep = s.sites
	if err := u.begin(&s.table); err != nil {
		return err
	}
	s.of = u
	return s.walk(u)
}

// load is the unit's own load, but for a unit that the scanner has just read, whose
// table is there already.
func (s *scanner) load(u *unit) error {
	if s.of == u && s.table.keep {
		u.loadOnce.Do(func() { u.abbrevs = s.table.clone() })
	}
	return u.load()
}

// open gets a unit ready for questions about its sites.
func (s *scanner) open(u *unit) error {
	s.sites = true
	if err := u.records(s); err != nil {
		return err
	}
	return s.load(u)
}

// walk goes through all entries of a unit that may be functions or contain some.
// Most are passed over by their word alone.
func (s *scanner) walk(u *unit) error {
	img := u.img
	d := img.info[:u.end]
	words := s.table.words
	s.recs = s.recs[:0]
	stack := s.parent[:0]
	parent := int32(-1)
	p := int(u.first)
	for p < len(d) {
		start := p
		code := uint64(d[p])
		p++
		if code >= 0x80 {
			b := buf{d: d, p: start}
			code = b.uleb()
			p = b.p
		}
		w := wordRest
		if code < uint64(len(words)) {
			w = words[code]
		}
		n := int(w >> wordShift)
		switch w & wordKind {
		case wordPlain:
			p += n
			if p <= len(d) {
				if len(stack) == 0 {
					break // a unit of one entry
				}
				continue
			}
		case wordJump:
			if p += n; p+4 <= len(d) {
				p = int(u.off) + int(binary.LittleEndian.Uint32(d[p:]))
				if p <= start || p >= len(d) {
					return img.errorf(".debug_info", uint64(start), "invalid sibling reference %#x", p)
				}
				continue
			}
			p = len(d) + 1
		case wordOpen:
			p += n
			if p <= len(d) && len(stack) < maxDepth {
				stack = append(stack, parent)
				continue
			}
		case wordEnd:
			if len(stack) > 0 {
				parent = stack[len(stack)-1]
				stack = stack[:len(stack)-1]
			}
			if len(stack) > 0 {
				continue
			}
		default:
			next, child, err := s.rest(u, code, start, p, parent)
			if err != nil {
				return err
			}
			p = next
			if child == leaf && len(stack) > 0 || child == passed {
				continue
			}
			if child != leaf && len(stack) < maxDepth {
				stack = append(stack, parent)
				parent = child
				continue
			}
		}
		switch {
		case p > len(d):
			return img.errorf(".debug_info", uint64(start), "the entry does not end within its unit")
		case len(stack) >= maxDepth:
			return img.errorf(".debug_info", uint64(start), "entries are nested more than %d deep", maxDepth)
		}
		break // the unit's own entry has ended
	}
	s.parent = stack
	u.recs = append([]rec(nil), s.recs...)
	u.link()
	return nil
}

// What rest returns in place of the record that is the parent of an entry's
// children.
const (
	leaf   = -2 // the entry has no children
	passed = -3 // they have been passed over
)

// rest reads an entry that a word does not describe: a function, or one with an
// attribute of varying size. It returns the position behind it and the record that
// its children belong to.
func (s *scanner) rest(u *unit, code uint64, start, p int, parent int32) (next int, child int32, err error) {
	img := u.img
	d := img.info[:u.end]
	ab := s.table.get(code)
	if ab == nil {
		return 0, 0, img.errorf(".debug_info", uint64(start), "unknown abbreviation %d", code)
	}
	prog := s.table.steps[ab.step0:ab.stepN]
	skip := ab.children && ab.sibN != 0 && !ab.search
	if skip {
		prog = s.table.steps[ab.step0:ab.sibN]
	}
	var r rec
	sibling := 0
	b := buf{d: d, p: p, be: img.be}
	for _, st := range prog {
		n := int(st & stepOperand)
		switch st & stepKind {
		case stepSibling:
			sibling = int(min(u.off+b.ulebOr(n), u.end))
		case stepName:
			s.name(u, &b, &r, form(n))
		case stepOrigin:
			s.origin(u, &b, &r, form(n))
		default:
			u.pass(&b, st)
		}
	}
	switch {
	case b.bad:
		return 0, 0, img.errorf(".debug_info", uint64(start), "the entry does not end within its unit")
	case skip:
		if sibling <= start || sibling >= len(d) {
			return 0, 0, img.errorf(".debug_info", uint64(start), "invalid sibling reference %#x", sibling)
		}
		return sibling, passed, nil
	}
	child = parent
	if ab.record {
		r.off = uint32(uint64(start) - u.off)
		r.parent = parent
		r.root = -1
		if ab.tag == tagInlinedSubroutine {
			r.flags |= recInlined
		}
		if ab.hasPC {
			r.flags |= recPC
		}
		child = int32(len(s.recs))
		s.recs = append(s.recs, r)
	}
	if !ab.children {
		child = leaf
	}
	return b.p, child, nil
}

// name notes where a record's name stands.
func (s *scanner) name(u *unit, b *buf, r *rec, f form) {
	switch f {
	case formString:
		r.name = nameInfo | nameRef(b.p)
		b.cstr()
	case formStrp:
		r.name = nameStr | nameRef(b.offset(u.dwarf64))
	case formLineStrp:
		r.name = nameLineStr | nameRef(b.offset(u.dwarf64))
	default:
		v := u.readForm(b, f)
		switch f {
		case formStrx, formStrx1, formStrx2, formStrx3, formStrx4:
			if off, err := u.strx(v.u); err == nil {
				r.name = nameStr | nameRef(off)
			}
		}
	}
}

// origin notes which entry a record takes its name from.
func (s *scanner) origin(u *unit, b *buf, r *rec, f form) {
	v := u.readForm(b, f)
	switch f {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		r.origin = u.off + v.u
	case formRefAddr:
		r.origin = v.u
	}
}

// find returns the record of an entry, or -1.
func (u *unit) find(off uint64) int32 {
	if off < u.first || off >= u.end {
		return -1
	}
	rel := uint32(off - u.off)
	lo, hi := 0, len(u.recs)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if u.recs[m].off < rel {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo < len(u.recs) && u.recs[lo].off == rel {
		return int32(lo)
	}
	return -1
}

// maxOrigins bounds a chain of origins: inlined instance, abstract instance,
// declaration; a damaged file could make a loop.
const maxOrigins = 8

// link finds the root of each record whose origins are in the same unit, and the name
// of the others.
func (u *unit) link() {
	for i := range u.recs {
		r := &u.recs[i]
		j := int32(i)
		for range maxOrigins {
			q := &u.recs[j]
			if q.root >= 0 {
				r.root = q.root
				break
			}
			if q.origin == 0 {
				r.root = j
				break
			}
			k := u.find(q.origin)
			if k < 0 {
				// Not a record of this unit: a declaration inside a type, or in another unit.
				r.origin = q.origin
				r.name = u.img.originName(r.origin)
				break
			}
			j = k
		}
	}
}

// originName follows origins by reading entries.
func (img *Image) originName(off uint64) nameRef {
	for range maxOrigins {
		u := img.unitAt(off)
		if u == nil || u.load() != nil {
			return nameNone
		}
		e, err := u.entry(off)
		if err != nil || e.ab == nil {
			return nameNone
		}
		var name nameRef
		var next uint64
		err = e.attrs(func(a attrName, v value) {
			switch a {
			case attrName_:
				name = u.nameRef(v)
			case attrAbstractOrigin, attrSpecification:
				if _, o, err := u.ref(v); err == nil {
					next = o
				}
			}
		})
		if err != nil {
			return nameNone
		}
		if name != nameNone || next == 0 {
			return name
		}
		off = next
	}
	return nameNone
}

// nameRef is the reference for a string value outside the scan.
func (u *unit) nameRef(v value) nameRef {
	switch v.form {
	case formStrp:
		return nameStr | nameRef(v.u)
	case formLineStrp:
		return nameLineStr | nameRef(v.u)
	case formStrx, formStrx1, formStrx2, formStrx3, formStrx4:
		if off, err := u.strx(v.u); err == nil {
			return nameStr | nameRef(off)
		}
	case formString:
		return nameInfo | nameRef(v.u)
	}
	return nameNone
}
