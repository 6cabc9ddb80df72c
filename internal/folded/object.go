package folded

import (
	"bytes"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/rule"
)

// Link-time optimization leaves no symbol. But where a member function is inlined, its object can show that another one was called: it is
// that of the member function around it, and of a class which has nothing to do with that.

// Foreign reports whether the body of an inlined member function has the object of a member function that it is inlined into, through others of its
// class perhaps, which is of another class; or whether a function has the code of several virtual ones.
func Foreign(u *entries.Unit, rec int32) (bool, error) {
	r := &u.Recs[rec]
	inlined := r.Flags&index.Inlined != 0
	if !dw.IsCPlusPlus(u.Lang) || inlined && !u.Body.GNU() || !inlined && u.Img.File.IsRelocatable() {
		return false, nil
	}
	e, err := u.Entry(u.Off + uint64(r.Off))
	if err != nil {
		return false, err
	}
	if !inlined {
		return sharesVirtual(u, e)
	}
	own, err := objectOf(u, e)
	if err != nil || own == nil {
		return false, err
	}
	at, live, err := begins(u, e)
	if err != nil || !live {
		return false, err
	}
	where, err := own.at(u, at)
	for around := r.Parent; around >= 0 && err == nil && where != nil; around = u.Recs[around].Parent {
		if e, err = u.Entry(u.Off + uint64(u.Recs[around].Off)); err != nil {
			return false, err
		}
		its, err := objectOf(u, e)
		if err != nil || its == nil {
			return false, err
		}
		x, err := its.at(u, at)
		if err != nil || !bytes.Equal(x, where) {
			return false, err
		}
		if own.class.Off != its.class.Off {
			return unrelated(own.class, its.class)
		}
		if u.Recs[around].Flags&index.Inlined == 0 {
			break
		}
	}
	return false, err
}

// begins returns where the debug information says that a body begins. live is false if that is nowhere in the image.
func begins(u *entries.Unit, e dw.Entry) (at entries.Place, live bool, err error) {
	var pcs dw.PCs
	if err := e.Attrs(pcs.Take); err != nil {
		return at, false, err
	}
	start, live, err := u.Start(&pcs)
	return entries.Place{Addr: start, View: pcs.EntryView}, live, err
}

// unrelated reports whether two classes are of one unit, and no object of one can begin with one of the other.
func unrelated(x, y dw.Entry) (bool, error) {
	if x.Unit != y.Unit {
		return false, nil // both may be the same
	}
	begins, err := beginsWith(x, y, maxDepth)
	if !begins && err == nil {
		begins, err = beginsWith(y, x, maxDepth)
	}
	return !begins, err
}

// object is what a member function's object is.
type object struct {
	this  entries.Var
	class dw.Entry
}

// objectOf returns the object of a function, or nil if it is no member of a class, or if that is not known.
func objectOf(u *entries.Unit, e dw.Entry) (o *object, err error) {
	err = u.Img.EachParam(e, func(x *entries.Var) (bool, error) {
		own := *x
		p, err := u.Entry(x.Off)
		if err != nil {
			return false, err
		}
		artificial := false
		_, err = index.EachOrigin(p, func(a dw.Attr, v dw.Value) { artificial = artificial || a == dw.AttrArtificial && v.U != 0 }, nil)
		if err != nil || !artificial {
			return true, err // GCC also writes them in another order
		}
		last, typ, err := typeOf(p)
		if err != nil || typ.Form == 0 {
			return false, err
		}
		if class, ok, err := pointee(last.Unit, typ); ok || err != nil {
			o = &object{own, class}
			return false, err
		}
		return false, nil
	})
	return o, err
}

// typeOf returns the type of an entry, and the one of its origins that has it.
func typeOf(e dw.Entry) (last dw.Entry, typ dw.Value, err error) {
	last, err = index.EachOrigin(e, func(a dw.Attr, v dw.Value) {
		if a == dw.AttrType {
			typ = v
		}
	}, func() bool { return typ.Form == 0 })
	return last, typ, err
}

// maxDepth bounds chains of types, and how deeply classes nest.
const maxDepth = 16

// pointee returns the class to which a type points.
func pointee(u *dw.Unit, typ dw.Value) (class dw.Entry, ok bool, err error) {
	for range maxDepth {
		e, err := u.Target(typ)
		if err != nil {
			return e, false, err
		}
		switch e.Tag() {
		case dw.TagClassType, dw.TagStructType:
			return e, true, nil
		case dw.TagConstType, dw.TagVolatileType, dw.TagTypedef, dw.TagPointerType:
		default:
			return e, false, nil
		}
		last, next, err := typeOf(e)
		if err != nil || next.Form == 0 {
			return e, false, err
		}
		u, typ = last.Unit, next
	}
	return class, false, nil
}

// at returns the expression that says where a pointer to the object is at a place, or nil.
func (o *object) at(u *entries.Unit, at entries.Place) ([]byte, error) {
	switch {
	case o.this.Location.Form == 0:
		return nil, nil
	case o.this.Location.IsBlock():
		return o.this.Location.Bytes(), nil
	}
	c, err := u.Choose(o.this.Location, o.this.Views, at, true)
	if err != nil || c.Rule == rule.None {
		return nil, err
	}
	return c.Expr, nil
}

// beginsWith reports whether an object of one class, as far as is known, can begin with one of another.
func beginsWith(class, other dw.Entry, depth int) (begins bool, err error) {
	if class.Off == other.Off || depth == 0 {
		return true, nil
	}
	known := false
	err = class.Attrs(func(a dw.Attr, v dw.Value) { known = known || a == dw.AttrByteSize })
	if err != nil || !known {
		return true, err
	}
	err = class.Children(func(c dw.Entry) (bool, error) {
		if t := c.Tag(); t != dw.TagMember && t != dw.TagInheritance {
			return true, nil
		}
		var typ dw.Value
		first := true
		err := c.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrType:
				typ = v
			case dw.AttrDataMemberLoc:
				first = v.U == 0 // also that of a virtual base
			case dw.AttrExternal, dw.AttrDeclaration:
				first = false
			}
		})
		if err != nil || !first || typ.Form == 0 {
			return true, err
		}
		begins, err = holds(c.Unit, typ, other, depth-1)
		return !begins, err
	})
	return begins, err
}

// holds is beginsWith for a member's type.
func holds(u *dw.Unit, typ dw.Value, other dw.Entry, depth int) (bool, error) {
	for range maxDepth {
		e, err := u.Target(typ)
		if err != nil {
			return false, err
		}
		switch e.Tag() {
		case dw.TagClassType, dw.TagStructType, dw.TagUnionType:
			return beginsWith(e, other, depth)
		case dw.TagConstType, dw.TagVolatileType, dw.TagTypedef:
		case dw.TagArrayType:
			return true, nil // of bytes, perhaps, where any object can be
		default:
			return false, nil
		}
		last, next, err := typeOf(e)
		if err != nil || next.Form == 0 {
			return false, err
		}
		u, typ = last.Unit, next
	}
	return true, nil
}
