package index

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// matcher selects functions by name. Literal returns the name if only one can match. A nil
// matcher selects all.
type matcher interface {
	Match(name string) bool
	Literal() (name string, ok bool)
}

// Options holds what an index needs to know about the image.
type Options struct {
	// Dir is the directory of kept scans; if it is "", none is kept. Limit is the size
	// in bytes that all files there may have together.
	Dir   string
	Limit int64
	// Key names the image in Dir: its build ID. An image without one is not kept.
	Key string
	// Identity is image.Identity.Key, Private and Size are the other two fields. Contents is
	// image.File.Digest.
	Identity string
	Private  bool
	Size     int64
	Contents func() ([sha256.Size]byte, error)

	Warn     func(error)              // called when a kept scan could not be used or written
	Progress func(done, total uint64) // called by several goroutines; bytes of .debug_info
	Guard    func(func() error) error // runs a function that reads sections
	Changed  func() error             // returns an error if the file has changed since it was opened
	// ReadAside starts to read, in the background, what most queries need in the end: call
	// frame information and, if symbols is set, the symbols.
	ReadAside func(symbols bool)
	// Symbols returns the symbols to keep with a scan; UseSymbols takes kept ones.
	Symbols    func() ([]byte, error)
	UseSymbols func([]byte) bool
	// UseAsked takes BlockAsked.
	UseAsked func([]byte)
}

// Index knows where the functions and inlined instances of an image are. Several
// goroutines may call its methods at once.
type Index struct {
	Data *dw.Data
	O    Options

	unitsOnce sync.Once
	unitsErr  error
	Units     []Unit // see Prepare

	scanMu  sync.Mutex
	scanned bool
	scanErr error

	Kept     *kept                           // a kept scan that replaces one of our own, or nil; set by Prepare
	keptFile atomic.Pointer[mapping.Mapping] // that it is in
	users    mapping.Users                   // calls that read it

	shapesOnce sync.Once
	shapes     []shape
	shapesErr  error

	damagedOnce sync.Once

	chosen  atomic.Pointer[chosen] // the last one
	derived derived
	broken  atomic.Pointer[error] // a panic of Work
	walked  atomic.Uint64         // bytes of units, see Walked
}

// releaseEach is after how many bytes of units that were walked through the pages of the file are given back.
// To get them again costs 1 ms for these.
const releaseEach = 24 << 20

// Walked is called for each unit by whoever walks through all: the memory of the file's pages is given back now and then.
func (x *Index) Walked(u *Unit) {
	if size := u.End - u.Off; x.walked.Add(size)%releaseEach < size {
		mapping.Release()
	}
}

// Unit is a unit with the records of its functions.
type Unit struct {
	*dw.Unit
	Index *Index

	Recs    []Rec // filled by the scan
	recOnce sync.Once
	recErr  error
}

// New returns the index of an image's debug information. It reads nothing yet.
func New(d *dw.Data, o Options) *Index { return &Index{Data: d, O: o} }

// Guard runs a function that reads the image's sections or the kept scan. Once a part
// of one was found missing, every call fails, because what was half read may have been
// remembered as complete.
func (x *Index) Guard(f func() error) error {
	if broken := x.broken.Load(); broken != nil {
		return *broken
	}
	if x.users.Enter() { // else the image was closed before
		defer x.users.Leave()
	}
	err := x.O.Guard(f)
	if err == nil {
		err = x.keptFile.Load().Faulted()
	}
	return err
}

// Work is Guard for what a goroutine of its own does. If it panics, that is an error of this and of
// all further calls.
func (x *Index) Work(f func() error) error {
	err := mapping.Work(func() error { return x.Guard(f) })
	if errors.Is(err, mapping.ErrPanic) {
		x.broken.Store(&err)
	}
	return err
}

func (x *Index) warn(err error) {
	if x.O.Warn != nil && err != nil {
		x.O.Warn(err)
	}
}

// Close releases the kept scan, when the last call that reads it has ended. The image must have been
// closed before, so that Guard lets nobody in.
func (x *Index) Close() error {
	return x.users.Close(func() error { return x.keptFile.Load().Close() })
}

// Selector decides by a name's reference whether it matches. Only one goroutine may
// use it.
type Selector struct {
	x       *Index
	m       matcher
	literal string
	isLit   bool
	offsets []NameRef // where the literal is in string sections
	ends    bool      // it is at the ends of several strings of one section, and nowhere whole; the likeliest comes first
	memo    map[NameRef]bool
	every   bool // all match
	known   bool // memo holds all names that match
}

// SelectorFor returns a selector for the names that m matches.
func (x *Index) SelectorFor(m matcher) Selector {
	s := Selector{x: x, m: m, every: m == nil}
	if s.every {
		return s
	}
	if s.literal, s.isLit = m.Literal(); s.isLit {
		sections := 0
		for _, section := range []NameRef{nameStr, nameLineStr} {
			x.Data.EachStr(section == nameLineStr, func(from uint64, d []byte) {
				at, ends := findStrings(d, s.literal)
				if len(at) == 0 {
					return
				}
				sections++
				s.ends = sections == 1 && ends && len(at) > 1
				for _, p := range at {
					s.offsets = append(s.offsets, section+NameRef(from)+NameRef(p))
				}
			})
		}
	}
	return s
}

// findStrings returns where a string is in a string section. Linkers merge the ends of strings, so it may be the end of a longer one. ends is set if all are
// such: then that comes first to which GNU ld merges, the one before which the section has the least bytes, read backwards.
func findStrings(d []byte, s string) (out []int, ends bool) {
	want := append([]byte(s), 0)
	ends = true
	for p := 0; p < len(d); {
		i := bytes.Index(d[p:], want)
		if i < 0 {
			break
		}
		p += i
		ends = ends && p > 0 && d[p-1] != 0
		out = append(out, p)
		p++
	}
	for i := 1; ends && i < len(out); i++ { // a place beside itself would be the same up to the section's beginning
		if backwards(d, out[i], out[0]) {
			out[0], out[i] = out[i], out[0]
		}
	}
	return out, ends
}

// backwards reports whether what is before a place is less than what is before another, read backwards.
func backwards(d []byte, a, b int) bool {
	for a > 0 && b > 0 && d[a-1] == d[b-1] {
		a, b = a-1, b-1
	}
	return a > 0 && b > 0 && d[a-1] < d[b-1]
}

// Match reports whether the name that a reference stands for matches.
func (s *Selector) Match(n NameRef) bool {
	if n == NameNone {
		return false
	}
	if s.every {
		return true
	}
	if s.known {
		return s.memo[n]
	}
	if s.isLit && n&NameSection != NameInfo {
		for _, o := range s.offsets {
			if o == n {
				return true
			}
		}
		return false
	}
	if s.isLit {
		return s.x.NameOf(n) == s.literal
	}
	if v, ok := s.memo[n]; ok {
		return v
	}
	if s.memo == nil {
		s.memo = make(map[NameRef]bool)
	}
	v := s.m.Match(s.x.NameOf(n))
	s.memo[n] = v
	return v
}

// NameRefOf returns the name of a record: its root's if it has one, or else its own.
func (u *Unit) NameRefOf(r *Rec) NameRef {
	if r.Root >= 0 {
		return u.Recs[r.Root].Name
	}
	return r.Name
}

// Candidates returns the units that can have sites of the functions that match, with a
// selector that finds them there. Prepare must have been called.
func (x *Index) Candidates(ctx context.Context, m matcher) (sel Selector, units []int, err error) {
	if x.KeptPath() != "" && x.Kept == nil {
		// Scan everything, even for one name, so that it is kept for the next query.
		if err := x.Scan(ctx); err != nil {
			return sel, nil, err
		}
	}
	literal, isLit := "", false
	if m != nil {
		literal, isLit = m.Literal()
	}
	if c := x.chosen.Load(); isLit && c != nil && c.literal == literal {
		return c.sel, slices.Clone(c.units), nil
	}
	err = x.Guard(func() error {
		if x.Kept != nil {
			sel, units = x.Kept.choose(x, m)
			return nil
		}
		sel = x.SelectorFor(m)
		return nil
	})
	if err != nil {
		return sel, nil, err
	}
	if x.Kept == nil {
		ok := false
		if sel.isLit {
			units, ok, err = x.Mentions(ctx, &sel)
		}
		if err != nil {
			return sel, nil, err
		}
		if !ok {
			units = x.AllUnits()
		}
	}
	if isLit {
		x.chosen.Store(&chosen{literal, sel, slices.Clone(units)})
	}
	return sel, units, nil
}

// chosen is what Candidates returned for a name. Selectors of names do not change.
type chosen struct {
	literal string
	sel     Selector
	units   []int
}

// FunctionNames returns the names of all functions with at least one site,
// sorted, without duplicates.
func (x *Index) FunctionNames(ctx context.Context) ([]string, error) {
	if err := x.Scan(ctx); err != nil {
		return nil, err
	}
	var names []string
	err := x.Guard(func() error {
		if x.Kept != nil {
			names = x.Kept.functions(x)
			return nil
		}
		seen := make(map[NameRef]struct{})
		for i := range x.Units {
			u := &x.Units[i]
			for j := range u.Recs {
				r := &u.Recs[j]
				if r.Flags&HasPC == 0 {
					continue
				}
				n := u.NameRefOf(r)
				if _, ok := seen[n]; ok || n == NameNone {
					continue
				}
				seen[n] = struct{}{}
				names = append(names, x.NameOf(n))
			}
		}
		slices.Sort(names)
		return nil
	})
	return slices.Compact(names), err
}
