package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// Rec is what the scan keeps about a subprogram or an inlined instance: enough to
// find all sites of a name without scanning again.
type Rec struct {
	Off    uint32  // entry, in bytes from its unit's start
	Parent int32   // enclosing record in the same unit, or -1
	Root   int32   // record in the same unit that has the name, or -1
	Flags  Flag    //
	Name   NameRef // set if the record has a name of its own, or its root is elsewhere
}

// Flag says what a record stands for.
type Flag uint8

// Flags of records.
const (
	Inlined Flag = 1 << iota // an inlined instance, not a subprogram
	HasPC                    // has an address
)

// NameRef says where a name is: in its upper 4 bits the string section, below them
// the offset, as dw.Data.StrAt and Info count it. Equal names mostly have equal references, because linkers merge
// .debug_str, but not always.
type NameRef uint64

// String sections in the upper 4 bits of a NameRef, which NameSection masks. NameNone is
// the reference of a record without a name.
const (
	NameNone    NameRef = 0
	nameStr     NameRef = 1 << 60
	NameInfo    NameRef = 2 << 60
	nameLineStr NameRef = 3 << 60
	NameSection NameRef = 0xf << 60
)

// NameOf returns the string that a reference stands for, or "" if it is damaged.
func (x *Index) NameOf(n NameRef) string {
	var s string
	off := uint64(n &^ NameSection)
	switch n & NameSection {
	case nameStr:
		s = x.Data.StrAt(off)
	case NameInfo:
		s, _ = x.Data.Texts.At(x.Data.Info, off)
	case nameLineStr:
		s = x.Data.LineStrAt(off)
	}
	return s
}

// Scan finds all functions and inlined instances, or loads a kept scan. Other methods do
// as much of this as they need. It happens once, and an error is remembered unless it is
// the context's.
func (x *Index) Scan(ctx context.Context) error {
	if err := x.Prepare(x.KeptPath() != ""); err != nil || x.Kept != nil {
		return err
	}
	x.scanMu.Lock()
	defer x.scanMu.Unlock()
	if x.scanned {
		return x.scanErr
	}
	err := x.EachUnit(ctx, x.AllUnits(), func(*Scanner, *Unit) error { return nil })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		err = x.O.Changed()
	}
	if err == nil {
		x.warn(x.Guard(x.keep))
	}
	x.scanned, x.scanErr = true, err
	return err
}

// Prepare finds the units, in a kept scan or in .debug_info. It is an error if parts of the
// debug information that any answer may need are not there. Without a kept scan that keeps only one
// processor busy, so meanwhile another reads what most queries need in the end: call
// frame information and, if symbols is set, the symbols.
func (x *Index) Prepare(symbols bool) error {
	x.unitsOnce.Do(func() {
		if x.unitsErr = x.Data.Elsewhere; x.unitsErr != nil {
			return
		}
		x.unitsErr = x.Guard(func() error {
			recalled, err := x.recall()
			x.warn(err)
			if !recalled {
				x.O.ReadAside(symbols)
				if !x.Data.Ready() {
					if err := x.Data.ReadUnits(); err != nil {
						return err
					}
				}
				x.addUnits()
			}
			for i := range x.Units {
				if u := &x.Units[i]; u.Kind == dw.UnitSkeleton {
					return u.Data.Errorf(".debug_info", u.Off, "the unit is a skeleton of -gsplit-dwarf, and .debug_addr, where its addresses are, is missing")
				}
			}
			return nil
		})
	})
	return x.unitsErr
}

// addUnits fills Units from the units in Data.
func (x *Index) addUnits() {
	x.Units = make([]Unit, len(x.Data.Units))
	for i := range x.Units {
		x.Units[i] = Unit{Unit: &x.Data.Units[i], Index: x}
	}
}

// AllUnits returns the numbers of all units, as largestFirst sorts them.
func (x *Index) AllUnits() []int {
	order := make([]int, len(x.Units))
	for i := range order {
		order[i] = i
	}
	return x.largestFirst(order)
}

// largestFirst sorts units so that no large one is left to the end, when the other processors are
// idle. All questions take units in this order, with a kept scan or without: where several are damaged,
// the error is about the same one.
func (x *Index) largestFirst(units []int) []int {
	slices.SortStableFunc(units, func(a, b int) int {
		return cmp.Compare(x.Units[b].End-x.Units[b].Off, x.Units[a].End-x.Units[a].Off)
	})
	return units
}

// EachUnit reads the records of units and calls f for each, on all processors. It
// skips type units, which have no functions of their own.
func (x *Index) EachUnit(ctx context.Context, units []int, f func(*Scanner, *Unit) error) error {
	return x.each(ctx, units, x.O.Progress, f)
}

// each is EachUnit, and says how far it is to progress, if that is not nil.
func (x *Index) each(ctx context.Context, units []int, progress func(done, total uint64), f func(*Scanner, *Unit) error) error {
	var done atomic.Uint64
	total := uint64(0)
	if progress != nil {
		for _, i := range units {
			total += x.Units[i].End - x.Units[i].Off
		}
	}
	return x.Parallel(len(units), func(s *Scanner, i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		u := &x.Units[units[i]]
		if !u.IsType() {
			if err := u.records(s); err != nil {
				return err
			}
			if err := f(s, u); err != nil {
				return err
			}
		}
		if progress != nil {
			progress(done.Add(u.End-u.Off), total)
		}
		return nil
	})
}

// records gets the unit's records, once: from a kept scan, or by reading the unit.
func (u *Unit) records(s *Scanner) error {
	u.recOnce.Do(func() {
		recalled := false
		if u.Index.Kept != nil {
			recalled, u.recErr = u.recallRecords()
		}
		if recalled || u.recErr != nil {
			return
		}
		if u.recErr = s.scan(u); u.recErr != nil {
			u.Recs = nil
		}
	})
	return u.recErr
}

// Parallel calls f for 0 to n-1 on all processors. It returns the error of the lowest
// index, so that the result does not depend on timing.
func (x *Index) Parallel(n int, f func(s *Scanner, i int) error) error {
	var (
		next  atomic.Int64
		wg    sync.WaitGroup
		mu    sync.Mutex
		first = n
		err   error
	)
	for worker := range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			s := Scanner{Worker: worker, Table: dw.AbbrevTable{InC: true}}
			i := 0
			e := x.Work(func() error {
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
				// A file that was closed or has changed can be noticed after the last index.
				if err == nil || i < first {
					first, err = i, e
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return err
}

// Scanner walks units and reuses its memory for the next one.
type Scanner struct {
	Worker int // number of the goroutine, from 0
	Table  dw.AbbrevTable
	recs   []Rec
	// origins are the offsets in .debug_info of the records' origins, or 0. A kernel has half a
	// million records, so they do not keep what is of no use once their roots are known.
	origins []uint64
	parent  []int32
}

// maxDepth bounds how deeply entries may nest. Kernels reach 30.
const maxDepth = 512

// scan reads a unit's records. The abbreviations stay in the scanner: keeping those
// of all units would take 120 MB for a kernel.
func (s *Scanner) scan(u *Unit) error {
	if err := u.Begin(&s.Table); err != nil {
		return err
	}
	return s.walk(u)
}

// Open loads a unit and its records, so that its sites can be read.
func (s *Scanner) Open(u *Unit) error {
	if err := u.records(s); err != nil {
		return err
	}
	return u.Load()
}

// walk visits all entries of a unit that may be functions or contain some. Their
// words alone are enough to skip most of them.
func (s *Scanner) walk(u *Unit) error {
	d := u.Data.Info[:u.End]
	words := s.Table.Words
	s.recs, s.origins = s.recs[:0], s.origins[:0]
	stack := s.parent[:0]
	parent := int32(-1)
	p := int(u.First)
	for p < len(d) {
		start := p
		code := uint64(d[p])
		p++
		if code >= 0x80 {
			b := bin.Reader{D: d, P: start}
			code = b.ULEB()
			p = b.P
		}
		w := dw.WordRest
		if code < uint64(len(words)) {
			w = words[code]
		}
		n := int(w >> dw.WordShift)
		switch w & dw.WordKind {
		case dw.WordPlain:
			p += n
			if p <= len(d) {
				if len(stack) == 0 {
					break // the unit has only one entry
				}
				continue
			}
		case dw.WordJump:
			if p += n; p+4 <= len(d) {
				p = int(u.Off) + int(binary.LittleEndian.Uint32(d[p:]))
				if p <= start || p >= len(d) {
					return u.Data.Errorf(".debug_info", uint64(start), "invalid sibling reference %#x", p)
				}
				continue
			}
			p = len(d) + 1
		case dw.WordOpen:
			p += n
			if p <= len(d) && len(stack) < maxDepth {
				stack = append(stack, parent)
				continue
			}
		case dw.WordEnd:
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
			return u.Data.Errorf(".debug_info", uint64(start), "the entry does not end within its unit")
		case len(stack) >= maxDepth:
			return u.Data.Errorf(".debug_info", uint64(start), "entries are nested more than %d deep", maxDepth)
		}
		break // the unit's own entry has ended
	}
	s.parent = stack
	u.Recs = append([]Rec(nil), s.recs...)
	u.link(s.origins)
	return nil
}

// What rest returns if an entry has no children left to walk, instead of their parent
// record.
const (
	leaf   = -2 // the entry has no children
	passed = -3 // they have been skipped
)

// rest reads an entry that a word does not describe: a function, or one with an
// attribute of varying size. It returns the position after it and the parent record of
// its children.
func (s *Scanner) rest(u *Unit, code uint64, start, p int, parent int32) (next int, child int32, err error) {
	d := u.Data.Info[:u.End]
	ab := s.Table.Get(code)
	if ab == nil {
		return 0, 0, u.Data.Errorf(".debug_info", uint64(start), "unknown abbreviation %d", code)
	}
	prog := s.Table.Steps[ab.Step0:ab.StepN]
	skip := ab.Children && ab.SibN != 0 && !ab.Search
	if skip {
		prog = s.Table.Steps[ab.Step0:ab.SibN]
	}
	var r Rec
	origin := uint64(0)
	sibling := 0
	b := bin.Reader{D: d, P: p, BigEndian: u.Data.BigEndian}
	for _, st := range prog {
		n := int(st & dw.StepOperand)
		switch st & dw.StepKind {
		case dw.StepSibling:
			sibling = int(min(u.Off+b.ULEBOr(n), u.End))
		case dw.StepName:
			s.name(u, &b, &r, dw.Form(n))
		case dw.StepOrigin:
			origin = s.origin(u, &b, dw.Form(n))
		default:
			u.Pass(&b, st)
		}
	}
	switch {
	case b.Bad:
		return 0, 0, u.Data.Errorf(".debug_info", uint64(start), "the entry does not end within its unit")
	case skip:
		if sibling <= start || sibling >= len(d) {
			return 0, 0, u.Data.Errorf(".debug_info", uint64(start), "invalid sibling reference %#x", sibling)
		}
		return sibling, passed, nil
	}
	child = parent
	if ab.Record {
		r.Off = uint32(uint64(start) - u.Off)
		r.Parent = parent
		r.Root = -1
		if ab.Tag == dw.TagInlinedSubroutine {
			r.Flags |= Inlined
		}
		if ab.HasPC {
			r.Flags |= HasPC
		}
		child = int32(len(s.recs))
		s.recs = append(s.recs, r)
		s.origins = append(s.origins, origin)
	}
	if !ab.Children {
		child = leaf
	}
	return b.P, child, nil
}

// name notes where a record's name is.
func (s *Scanner) name(u *Unit, b *bin.Reader, r *Rec, f dw.Form) {
	switch f {
	case dw.FormString:
		r.Name = NameInfo | NameRef(b.P)
		b.CString()
	case dw.FormStrp:
		r.Name = nameStr | NameRef(u.Data.StrFrom+b.Offset(u.Dwarf64))
	default:
		r.Name = RefOf(u.Unit, u.ReadForm(b, f))
	}
}

// origin returns the offset of the entry that a record takes its name from, or 0.
func (s *Scanner) origin(u *Unit, b *bin.Reader, f dw.Form) uint64 {
	v := u.ReadForm(b, f)
	switch f {
	case dw.FormRef1, dw.FormRef2, dw.FormRef4, dw.FormRef8, dw.FormRefUdata:
		return u.Off + v.U
	case dw.FormRefAddr, dw.FormGNURefAlt, dw.FormRefSup4, dw.FormRefSup8:
		off, _ := u.Global(v)
		return off
	}
	return 0
}

// find returns the record for the entry at an offset in .debug_info, or -1.
func (u *Unit) find(off uint64) int32 {
	if off < u.First || off >= u.End {
		return -1
	}
	rel := uint32(off - u.Off)
	lo, hi := 0, len(u.Recs)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if u.Recs[m].Off < rel {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo < len(u.Recs) && u.Recs[lo].Off == rel {
		return int32(lo)
	}
	return -1
}

// MaxOrigins bounds a chain of origins (inlined instance, abstract instance,
// declaration), which could be a loop in a damaged file.
const MaxOrigins = 8

// link finds the root of each record whose origins are in the same unit, and the names
// of the others.
func (u *Unit) link(origins []uint64) {
	for i := range u.Recs {
		r := &u.Recs[i]
		j := int32(i)
		for range MaxOrigins {
			q := &u.Recs[j]
			if q.Root >= 0 {
				r.Root = q.Root
				break
			}
			if origins[j] == 0 {
				r.Root = j
				break
			}
			k := u.find(origins[j])
			if k < 0 {
				// No record here: a declaration inside a type, or in another unit.
				origins[i] = origins[j]
				r.Name = u.Index.originName(origins[i])
				break
			}
			j = k
		}
	}
}

// originName returns the name at the end of a chain of origins outside the records.
func (x *Index) originName(off uint64) NameRef {
	for range MaxOrigins {
		u := x.Data.UnitAt(off)
		if u == nil || u.Load() != nil {
			return NameNone
		}
		e, err := u.Entry(off)
		if err != nil || e.IsEnd() {
			return NameNone
		}
		var name NameRef
		var next uint64
		err = e.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrName:
				name = RefOf(u, v)
			case dw.AttrAbstractOrigin, dw.AttrSpecification:
				if _, o, err := u.Ref(v); err == nil {
					next = o
				}
			}
		})
		if err != nil {
			return NameNone
		}
		if name != NameNone || next == 0 {
			return name
		}
		off = next
	}
	return NameNone
}

// RefOf returns the reference for a string value that the scan did not read.
func RefOf(u *dw.Unit, v dw.Value) NameRef {
	switch v.Form {
	case dw.FormStrp:
		return nameStr | NameRef(u.Data.StrFrom+v.U)
	case dw.FormLineStrp:
		return nameLineStr | NameRef(u.Data.LineStrFrom+v.U)
	case dw.FormGNUStrpAlt, dw.FormStrpSup:
		if sup := u.Data.Supplement(); sup != nil {
			return nameStr | NameRef(sup.StrFrom+v.U)
		}
	case dw.FormStrx, dw.FormStrx1, dw.FormStrx2, dw.FormStrx3, dw.FormStrx4, dw.FormGNUStrIndex:
		if off, err := u.Strx(v.U); err == nil {
			return nameStr | NameRef(u.Data.StrFrom+off)
		}
	case dw.FormString:
		return NameInfo | NameRef(v.U)
	}
	return NameNone
}
