package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/claim"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/types"
)

// once remembers which functions of a unit read memory that is volatile.
type once struct {
	u    *Unit
	by   map[int32]bool // by the record of the function
	to   map[*types.Type][2]bool
	rows []dw.Row // of the unit, once they are
	read bool
	// everything is set if all units are read, one after the other: rows are then in memory that is used again.
	everything bool
	spot       Spot
}

// statement reports whether a load in a body is a statement of it, or of what is inlined into it: one of memory that is volatile. Compilers
// compute what is volatile where the program says so, once, and count it to the statement that does (C11, 5.1.2.3): another load in the body is not
// taken for it.
func (o *once) statement(s *Spot, w *body.Witness) (bool, error) {
	o.of(s.U)
	recs := s.U.Recs
	for i := s.Rec; int(i) < len(recs) && (i == s.Rec || recs[i].Parent >= s.Rec); i++ {
		r := &recs[i]
		if !inlined(r) || r.Root < 0 {
			continue
		}
		reads, known := o.by[r.Root]
		if !known {
			var err error
			if reads, err = s.U.readsVolatile(r.Root); err != nil {
				return false, err
			}
			o.by[r.Root] = reads
		}
		if !reads {
			continue
		}
		if ok, err := s.U.Read(i, &o.spot); err != nil || !ok {
			return false, err
		}
		ranges, err := s.U.Extent(&o.spot.PCs)
		if err != nil {
			return false, err
		}
		if dw.Covers(ranges, w.Addr) {
			return true, nil
		}
	}
	return false, nil
}

// of forgets what is of another unit.
func (o *once) of(u *Unit) {
	if o.u == u {
		return
	}
	o.u, o.read = u, false
	if o.by == nil {
		o.by, o.to = make(map[int32]bool), make(map[*types.Type][2]bool)
	}
	clear(o.by)
	clear(o.to)
}

// pointsTo reports whether a pointer of a unit points to something volatile, and whether to a function.
func (o *once) pointsTo(u *Unit, pointer *types.Type) (volatile, function bool) {
	o.of(u)
	k, known := o.to[pointer]
	if !known {
		k = [2]bool{isVolatile(pointer), isFunction(pointer)}
		o.to[pointer] = k
	}
	return k[0], k[1]
}

// readsVolatile reports whether a function has a parameter that points to something volatile, or is one of a kernel that reads what its parameter
// points to as if that was.
func (u *Unit) readsVolatile(root int32) (reads bool, err error) {
	r := &u.Recs[root]
	if claim.ReadsOnce(u.Index.NameOf(u.NameRefOf(r))) {
		if kernel, err := u.Img.Code.IsKernel(); kernel || err != nil {
			return kernel, err
		}
	}
	e, err := u.Entry(u.Off + uint64(r.Off))
	if err != nil {
		return false, err
	}
	// Others than the function's own entry, as that of a declaration, have the same parameters.
	if e, err = index.EachOrigin(e, nil, nil); err != nil {
		return false, err
	}
	err = u.Img.EachParam(e, func(x *Var) (bool, error) {
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
