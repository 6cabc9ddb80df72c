package witness

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/claim"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/types"
)

// Facts remembers of a unit what observing its bodies asks again and again. The zero value is ready to use, by one goroutine.
type Facts struct {
	u    *entries.Unit
	once map[int32]bool                // whether a function reads memory that is volatile, by its record
	keys map[int32]entries.FunctionKey // of functions, by their records
	hash map[int32]uint64              // of keys
	to   map[*types.Type][2]bool
	spot entries.Spot

	positions []dw.Position // of the unit, once they are
	read      bool
}

// statement reports whether a load in a body is a statement of it, or of what is inlined into it: one of memory that is volatile. Compilers
// compute what is volatile where the program says so, once, and count it to the statement that does (C11, 5.1.2.3): another load in the body is not
// taken for it.
func (k *Facts) statement(s *entries.Spot, w *body.Witness) (is bool, err error) {
	k.of(s.U)
	_, err = inner(s, true, &k.spot, k.readsVolatile, func(ranges []dw.Range) (more bool) {
		is = dw.Covers(ranges, w.Addr)
		return !is
	})
	return is, err
}

// readsVolatile is that of the unit, remembered.
func (k *Facts) readsVolatile(r *index.Rec) (bool, error) {
	if r.Root < 0 {
		return false, nil
	}
	reads, known := k.once[r.Root]
	if !known {
		var err error
		if reads, err = readsVolatile(k.u, r.Root); err != nil {
			return false, err
		}
		k.once[r.Root] = reads
	}
	return reads, nil
}

// inner calls f with the code of what is inlined into the body at a spot, and of the body too if own is set, where is accepts its record. whole is
// false if one has code that is none.
func inner(s *entries.Spot, own bool, memory *entries.Spot, is func(*index.Rec) (bool, error), f func([]dw.Range) (more bool)) (whole bool, err error) {
	recs := s.U.Recs
	first := s.Rec + 1
	if own {
		first = s.Rec
	}
	for i := first; int(i) < len(recs) && (i == s.Rec || recs[i].Parent >= s.Rec); i++ {
		if !entries.Inlined(&recs[i]) {
			continue
		}
		if wanted, err := is(&recs[i]); err != nil {
			return false, err
		} else if !wanted {
			continue
		}
		if ok, err := s.U.Read(i, memory); err != nil || !ok {
			return false, err
		}
		ranges, err := s.U.Extent(&memory.PCs)
		if err != nil || !f(ranges) {
			return true, err
		}
	}
	return true, nil
}

// of forgets what is of another unit.
func (k *Facts) of(u *entries.Unit) {
	if k.u == u {
		return
	}
	k.u, k.read = u, false
	if k.once == nil {
		k.once, k.to = make(map[int32]bool), make(map[*types.Type][2]bool)
		k.keys, k.hash = make(map[int32]entries.FunctionKey), make(map[int32]uint64)
	}
	clear(k.keys)
	clear(k.hash)
	clear(k.once)
	clear(k.to)
}

// pointsTo reports whether a pointer of a unit points to something volatile, and whether to a function.
func (k *Facts) pointsTo(u *entries.Unit, pointer *types.Type) (volatile, function bool) {
	k.of(u)
	to, known := k.to[pointer]
	if !known {
		to = [2]bool{isVolatile(pointer), isFunction(pointer)}
		k.to[pointer] = to
	}
	return to[0], to[1]
}

// Function returns the key of the function of a unit's record.
func (k *Facts) Function(u *entries.Unit, rec int32) (entries.FunctionKey, error) {
	k.of(u)
	root := u.Recs[rec].Root
	if key, known := k.keys[root]; known && root >= 0 {
		return key, nil
	}
	key, err := entries.KeyOf(u, rec)
	if err == nil {
		k.keys[root] = key
	}
	return key, err
}

// hashOf returns a hash of the function of a unit's record.
func (k *Facts) hashOf(u *entries.Unit, rec int32) (uint64, error) {
	k.of(u)
	root := u.Recs[rec].Root
	if h, known := k.hash[root]; known && root >= 0 {
		return h, nil
	}
	key, err := k.Function(u, rec)
	if err != nil {
		return 0, err
	}
	h := key.Hash()
	k.hash[root] = h
	return h, nil
}

// positionAt returns the line and the column that the instruction at an address was compiled for.
func (k *Facts) positionAt(u *entries.Unit, addr uint64) (line, column uint32, err error) {
	if k.of(u); !k.read {
		if k.positions, err = u.Positions(k.positions); err != nil {
			return 0, 0, err
		}
		k.read = true
	}
	line, column = dw.PositionAt(k.positions, addr)
	return line, column, nil
}

// readsVolatile reports whether a function has a parameter that points to something volatile, or is one of a kernel that reads what its parameter
// points to as if that was.
func readsVolatile(u *entries.Unit, root int32) (reads bool, err error) {
	r := &u.Recs[root]
	if claim.ReadsOnce(u.Index.NameOf(u.NameRefOf(r))) {
		return true, nil
	}
	e, err := u.Entry(u.Off + uint64(r.Off))
	if err != nil {
		return false, err
	}
	// Others than the function's own entry, as that of a declaration, have the same parameters.
	if e, err = index.EachOrigin(e, nil, nil); err != nil {
		return false, err
	}
	err = u.Img.EachParam(e, func(x *entries.Var) (bool, error) {
		t, err := x.U.TypeOf(x.Type)
		if err == nil {
			t, err = t.Resolve()
		}
		reads = err == nil && t.Kind == types.Pointer && isVolatile(t)
		return !reads, nil //nolint:nilerr // a type that is damaged is reported where the parameter is asked for
	})
	return reads, err
}

// isVolatile reports whether what a pointer points to is volatile.
func isVolatile(pointer *types.Type) bool {
	for t, err := pointer.Elem(); err == nil && (t.Kind == types.Qualified || t.Kind == types.Typedef); t, err = t.Elem() {
		if t.Word() == "volatile" {
			return true
		}
	}
	return false
}

// isFunction reports whether what a pointer points to is a function.
func isFunction(pointer *types.Type) bool {
	t, err := pointer.Elem()
	if err == nil {
		t, err = t.Resolve()
	}
	return err == nil && t.Kind == types.Func
}
