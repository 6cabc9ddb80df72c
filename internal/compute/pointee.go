package compute

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Pointee returns what an implicit pointer points to, as it is at the variable's site: the
// pointer was optimized away, but often its object was not. It is the part of the object
// from where the pointer points to its end. A string literal's object has no name and no
// type; its bytes are known.
func Pointee(v *dwarfloc.Variable) (*dwarfloc.Variable, error) {
	if v.Loc.Kind != loc.KindImplicitPointer {
		return nil, fmt.Errorf("%s: a location that is %v has no pointee", v.Name, v.Loc.Kind)
	}
	target, err := inside.Pointee(v.Site, v.Loc.Target)
	if err != nil {
		return nil, err
	}
	if at := v.Loc.TargetOffset; target.Loc.Kind == loc.KindBytes && at >= 0 && at <= int64(len(target.Loc.Bytes)) {
		target.Loc.Bytes = target.Loc.Bytes[at:] // also where they would fit a register
		return target, nil
	}
	f := follower{s: v.Site, ev: builder(v.Site)}
	o := object{loc: v.Loc, reason: v.Reason, t: target.Type}
	err = f.objectPart(&o, target, 0, -1)
	rule := target.Loc.Rule
	target.Loc, target.Reason = o.loc, o.reason
	target.Loc.Rule = rule
	return target, err
}

// extent returns the size of a variable's object in bytes, or -1 if it is unknown.
func extent(v *dwarfloc.Variable) (int64, error) {
	if v.Loc.Kind == loc.KindBytes {
		return int64(len(v.Loc.Bytes)), nil
	}
	return v.Type.ByteSize()
}

// pointee leads from an implicit pointer to size bytes of its object, which begin off bytes
// after the place that it points to. size is -1 for all that is left of the object.
func (f *follower) pointee(o *object, off, size int64) error {
	target, err := inside.Pointee(f.s, o.loc.Target)
	if err != nil {
		return err
	}
	return f.objectPart(o, target, off, size)
}

// objectPart is pointee for an object that has been looked up.
func (f *follower) objectPart(o *object, target *dwarfloc.Variable, off, size int64) error {
	has, err := extent(target)
	if err != nil {
		return err
	}
	at := o.loc.TargetOffset + off
	if size < 0 {
		size = max(has-at, 0)
	}
	if at < 0 || has >= 0 && at+size > has {
		o.lost(loc.Reason{Code: reasons.ImplicitPointer, Detail: "that is outside the object that it points to"})
		return nil
	}
	o.loc, o.reason = target.Loc, target.Reason
	f.narrow(o, 8*uint64(at), 8*uint64(size))
	return nil
}
