package folded

import (
	"bytes"
	"context"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Linkers fold equal sections, and so functions that have one each (--icf of gold, LLD and mold). gold lets the entries of all in the debug information be at the address of
// the one that is left. LLD and mold leave their symbols there, and take the address from the entries of those that are gone.

// folds reports whether a linker that can fold sections has linked an image's file.
func folds(img *entries.Image) bool {
	type key struct{}
	known, ok := img.Derived.Load(key{})
	if !ok {
		known, _ = img.Derived.LoadOrStore(key{}, linkedBy(img.Code))
	}
	return known.(bool)
}

// linkedBy reports whether such a linker has left its name in a file.
func linkedBy(img *body.Image) bool {
	f := img.File
	if kernel, err := img.IsKernel(); err != nil || kernel {
		return false // a kernel's functions have addresses of their own
	}
	if gold, err := f.SectionContents(".note.gnu.gold-version"); err == nil && len(gold) > 0 {
		return true
	}
	by, err := f.SectionContents(".comment")
	if err != nil {
		return false
	}
	return bytes.HasPrefix(by, []byte("mold ")) || bytes.Contains(by, []byte("\x00mold ")) || bytes.Contains(by, []byte("Linker: ")) && bytes.Contains(by, []byte("LLD "))
}

// linkedRec is the key of a function out of line whose code a linker has made that of another one too: of that code, not of its function elsewhere.
func linkedRec(rec int32) int32 { return ^rec }

// Has reports whether what a record is of is a function that has the code of another one, or is inlined into such code.
func (f Functions) Has(u *body.Unit, rec int32) bool {
	return len(f) > 0 && (f[u.Recs[rec].Root] || f[linkedRec(u.Outermost(rec))])
}

// linked adds the functions of a unit whose code is that of another function too, by what a linker leaves.
func linked(u *entries.Unit, have []function, out Functions) error {
	byAddr := make(map[uint64]*function, len(have))
	for i := range have {
		f := &have[i]
		at := f.ranges[0].Lo
		if !u.Img.Executable(at) {
			continue // another unit has it, or nothing calls it
		}
		if x := byAddr[at]; x != nil && u.Recs[x.rec].Root != u.Recs[f.rec].Root {
			out[linkedRec(x.rec)], out[linkedRec(f.rec)] = true, true
		}
		byAddr[at] = f
	}
	if err := eachOf(u.Img, u.Img.Overlapping(u.Number), func(o *entries.Unit) error {
		theirs, err := functions(&o.Body)
		for i := range theirs {
			// What is declared inline is in several units, and one of them is left.
			if x := byAddr[theirs[i].ranges[0].Lo]; x != nil && o.Index.NameOf(o.NameRefOf(&o.Recs[theirs[i].rec])) != u.Index.NameOf(u.NameRefOf(&u.Recs[x.rec])) {
				out[linkedRec(x.rec)] = true
			}
		}
		return err
	}); err != nil {
		return err
	}
	return named(u, byAddr, out)
}

// eachOf reads the records of some units and calls f for each, one at a time.
func eachOf(img *entries.Image, units []int, f func(u *entries.Unit) error) error {
	var mu sync.Mutex
	return img.Index.EachUnit(context.Background(), units, func(_ *index.Scanner, u *index.Unit) error {
		mu.Lock()
		defer mu.Unlock()
		return f(&img.Units[u.Number])
	})
}

// named adds the functions of a unit at whose address is the symbol of one whose entry has no address.
func named(u *entries.Unit, byAddr map[uint64]*function, out Functions) error {
	ranges, _, err := u.Code()
	if err != nil {
		return err
	}
	var gone map[string]bool
	for _, r := range ranges {
		symbols := u.Img.File.FunctionSymbols(r.Lo, r.Hi)
		for i := range symbols {
			s := &symbols[i]
			f := byAddr[s.Addr]
			if f == nil || (i == 0 || symbols[i-1].Addr != s.Addr) && (i+1 == len(symbols) || symbols[i+1].Addr != s.Addr) {
				continue
			}
			if gone == nil {
				if gone, err = withoutAddress(u.Img); err != nil {
					return err
				}
			}
			name, _, _ := strings.Cut(s.Name, ".") // without what a compiler calls its clone
			if gone[name] {
				out[linkedRec(f.rec)] = true
			}
		}
	}
	return nil
}

// withoutAddress returns the names that symbols of those functions of an image have whose entries have no address.
func withoutAddress(img *entries.Image) (map[string]bool, error) {
	type key struct{}
	if known, ok := img.Derived.Load(key{}); ok {
		return known.(map[string]bool), nil
	}
	gone, live := make(map[string]bool), make(map[string]bool)
	if err := eachOf(img, img.Index.AllUnits(), func(u *entries.Unit) error { return addresses(u, gone, live) }); err != nil {
		return nil, err
	}
	for name := range live {
		delete(gone, name)
	}
	img.Derived.Store(key{}, gone)
	return gone, nil
}

// addresses notes the names of a unit's functions, by whether their entries have an address in the image.
func addresses(u *entries.Unit, gone, live map[string]bool) error {
	for i := range u.Recs {
		r := &u.Recs[i]
		if r.Flags != index.HasPC || r.Root < 0 {
			continue
		}
		e, err := u.Entry(u.Off + uint64(r.Off))
		if err != nil {
			return err
		}
		at, known, err := begins(u, e)
		if err != nil {
			return err
		}
		name := ""
		if _, err = index.EachOrigin(e, func(a dw.Attr, v dw.Value) {
			if a == dw.AttrLinkageName && name == "" {
				name = u.Text(v)
			}
		}, func() bool { return name == "" }); err != nil {
			return err
		}
		if name == "" {
			name = u.Index.NameOf(u.NameRefOf(r))
		}
		if known && u.Img.Executable(at.Addr) {
			live[name] = true
		} else {
			gone[name] = true
		}
	}
	return nil
}
