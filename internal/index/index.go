package index

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// matcher chooses functions by name. Literal returns the only name that matches, if there
// is only one. A nil matcher chooses all.
type matcher interface {
	Match(name string) bool
	Literal() (name string, ok bool)
}

// literal is a matcher for one name.
type literal string

func (l literal) Match(name string) bool  { return name == string(l) }
func (l literal) Literal() (string, bool) { return string(l), true }

// Options are what an index needs of the image.
type Options struct {
	// Dir is the directory of kept scans; "" keeps none. Limit is the most that all files
	// there take, in bytes.
	Dir   string
	Limit int64
	// Key names the image among those of Dir: its build ID. Images without are not kept.
	Key string

	Warn     func(error)              // called when a kept scan could not be used or written
	Progress func(done, total uint64) // called by several goroutines, in bytes of .debug_info
	Guard    func(func() error) error // runs what reads sections
	Changed  func() error             // an error if the image is no longer what was opened
	// ReadAside starts to read in the background what most questions need in the end: frames,
	// and symbols if that is set.
	ReadAside func(symbols bool)
	// Symbols returns what is kept beside the scan, UseSymbols takes it back.
	Symbols    func() ([]byte, error)
	UseSymbols func([]byte) bool
}

// Index knows where the functions and inlined instances of an image are. Its methods may be
// called by several goroutines.
type Index struct {
	Data *dw.Data
	O    Options

	unitsOnce sync.Once
	unitsErr  error
	Units     []Unit // see prepare

	scanMu  sync.Mutex
	scanned bool
	scanErr error

	Kept *kept // a scan that was kept, in place of one of our own
}

// Unit is a unit with the records of its functions.
type Unit struct {
	*dw.Unit
	Index *Index

	Recs    []Rec // filled by the scan
	recOnce sync.Once
	recErr  error
}

func New(d *dw.Data, o Options) *Index { return &Index{Data: d, O: o} }

// Guard runs what reads the image's sections or the kept scan. After a part of one was
// found to be missing there are no more answers: what was half read is remembered as if
// it were all.
func (x *Index) Guard(f func() error) error {
	err := x.O.Guard(f)
	if err == nil && x.Kept != nil {
		err = x.Kept.mapped.Faulted()
	}
	return err
}

func (x *Index) warn(err error) {
	if x.O.Warn != nil && err != nil {
		x.O.Warn(err)
	}
}

// Close releases the kept scan.
func (x *Index) Close() error {
	if x.Kept == nil {
		return nil
	}
	return x.Kept.mapped.Close()
}

// Selector decides on names by reference. One is used by one goroutine.
type Selector struct {
	x       *Index
	m       matcher
	literal string
	isLit   bool
	offsets []NameRef // of the literal in string sections
	memo    map[NameRef]bool
	every   bool // all match
	known   bool // memo holds all that match, and no other matches
}

func (x *Index) SelectorFor(m matcher) Selector {
	s := Selector{x: x, m: m, every: m == nil}
	if s.every {
		return s
	}
	if s.literal, s.isLit = m.Literal(); s.isLit {
		s.offsets = append(findStrings(x.Data.Str, s.literal, nameStr), findStrings(x.Data.LineStr, s.literal, nameLineStr)...)
	}
	return s
}

// findStrings returns where a string stands in a string section. Linkers share
// ends of strings, so it may be the end of a longer one.
func findStrings(d []byte, s string, section NameRef) []NameRef {
	var out []NameRef
	want := append([]byte(s), 0)
	for p := 0; p < len(d); {
		i := bytes.Index(d[p:], want)
		if i < 0 {
			break
		}
		out = append(out, section|NameRef(p+i))
		p += i + 1
	}
	return out
}

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

// NameRefOf is the name of a record, its own or its root's.
func (u *Unit) NameRefOf(r *Rec) NameRef {
	if r.Root >= 0 {
		return u.Recs[r.Root].Name
	}
	return r.Name
}

// Candidates returns the units that can have sites of the functions that a matcher
// chooses, with a selector that finds them there.
func (x *Index) Candidates(ctx context.Context, m matcher) (sel Selector, units []int, err error) {
	if err := x.Prepare(m != nil); err != nil { // who wants all counts, and seldom asks for symbols
		return sel, nil, err
	}
	if x.KeptPath() != "" && x.Kept == nil {
		// All is scanned even for one name, so that it is kept for the next question.
		if err := x.Scan(ctx); err != nil {
			return sel, nil, err
		}
	}
	err = x.Guard(func() error {
		if x.Kept != nil {
			sel, units = x.Kept.choose(x, m)
			return nil
		}
		sel = x.SelectorFor(m)
		return nil
	})
	if err != nil || x.Kept != nil {
		return sel, units, err
	}
	if sel.isLit {
		ok := false
		if units, ok, err = x.Mentions(ctx, &sel); ok || err != nil {
			return sel, units, err
		}
	}
	return sel, x.AllUnits(), nil
}

// FunctionNames returns the names of all functions with at least one site,
// sorted, without repetition.
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
