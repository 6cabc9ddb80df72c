package dwarfloc

import (
	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// varEntry holds the attributes of a variable's entry, undecoded.
type varEntry struct {
	u        *unit
	off      uint64
	root     uint64 // if origin is not set: offset of the entry that declares it
	tag      dw.Tag
	name     dw.Value
	origin   dw.Value
	typ      dw.Value
	location dw.Value
	constant dw.Value
	views    dw.Value
	decl     bool
	pointee  bool // it is looked up for an implicit pointer to it
	external bool
}

func (u *unit) readVar(e dw.Entry) (x varEntry, err error) {
	_, err = x.read(u, e)
	return x, err
}

// read reads an entry in u into x, which must be zero. It returns the position in
// .debug_info after the entry.
func (x *varEntry) read(u *unit, e dw.Entry) (end int, err error) {
	x.u, x.off, x.root, x.tag = u, e.Off, e.Off, e.Tag()
	b := e.Data()
	for _, at := range e.Specs() {
		v := u.ReadAttr(&b, at)
		if b.Bad {
			return 0, u.DamagedAttr(e.Off, at)
		}
		switch at.Name {
		case dw.AttrName:
			x.name = v
		case dw.AttrAbstractOrigin, dw.AttrSpecification:
			x.origin = v
		case dw.AttrType:
			x.typ = v
		case dw.AttrLocation:
			x.location = v
		case dw.AttrConstValue:
			x.constant = v
		case dw.AttrGNULocviews:
			x.views = v
		case dw.AttrDeclaration:
			x.decl = v.U != 0
		case dw.AttrExternal:
			x.external = v.U != 0
		}
	}
	return b.P, nil
}

// complete adds what the variable's own entry leaves out but its origins have.
func (x *varEntry) complete() error {
	cur := *x
	for range index.MaxOrigins {
		if cur.origin.Form == 0 || x.name.Form != 0 && x.typ.Form != 0 && x.described() {
			return nil
		}
		e, err := cur.u.Target(cur.origin)
		if err != nil {
			return err
		}
		if cur, err = x.u.img.of(e.Unit).readVar(e); err != nil {
			return err
		}
		if err := x.inherit(&cur); err != nil {
			return err
		}
	}
	return nil
}

// inherit adds what x lacks from one origin, which may be in another unit.
func (x *varEntry) inherit(d *varEntry) error {
	if x.name.Form == 0 && d.name.Form != 0 {
		x.name = d.name
		if x.u != d.u {
			x.name = dw.BlockValue(dw.FormString, []byte(d.u.Text(d.name)))
		}
	}
	if x.typ.Form == 0 && d.typ.Form != 0 {
		x.typ = d.typ
		if x.u != d.u {
			_, off, err := d.u.Ref(d.typ)
			if err != nil {
				return err
			}
			x.typ = x.u.Local(off)
		}
	}
	if !x.described() {
		x.constant = d.constant
	}
	x.external = x.external || d.external
	return nil
}

// ultimate returns the offset of the entry that declares a variable: its last origin, or
// itself. known, if not nil, keeps the answers of origins.
func (x *varEntry) ultimate(known map[uint64]uint64) (uint64, error) {
	if x.origin.Form == 0 {
		return x.root, nil
	}
	_, off, err := x.u.Ref(x.origin)
	if err != nil {
		return 0, err
	}
	if root, ok := known[off]; ok {
		return root, nil
	}
	e, err := x.u.Target(x.origin)
	if err == nil {
		e, err = index.EachOrigin(e, nil, nil)
	}
	if err != nil {
		return 0, err
	}
	if known != nil {
		known[off] = e.Off
	}
	return e.Off, nil
}

// better reports whether x says more about a variable's place than y, another
// description of the same variable at the same site. For a parameter that a
// .constprop clone lost, GCC (seen with 12) writes the register that callers no longer
// set, and after it the constant that replaced the parameter. So a fixed value wins;
// otherwise the first description with a location does.
func (x *varEntry) better(y *varEntry) bool {
	return x.fixed() && !y.fixed() || x.described() && !y.described()
}

// literal reports whether an entry's expression is a constant: DW_OP_lit1
// DW_OP_stack_value.
func (x *varEntry) literal() bool {
	e := x.location.Bytes()
	if !x.location.IsBlock() || len(e) < 2 || e[len(e)-1] != uint8(op.DW_OP_stack_value) {
		return false
	}
	o, err := eval.Decode(e, 0, x.u.encoding())
	return err == nil && o.Next == len(e)-1 && o.IsConstant()
}

// static reports whether an entry gives the variable an address in the image: a static
// variable has the same one in all instances of its function.
func (x *varEntry) static() bool {
	e := x.location.Bytes()
	if !x.location.IsBlock() || len(e) == 0 {
		return false
	}
	o, err := eval.Decode(e, 0, x.u.encoding())
	return err == nil && o.Next == len(e) && o.IsAddress()
}

// described reports whether an entry says anything about the variable's place.
func (x *varEntry) described() bool { return x.location.Form != 0 || x.constant.Form != 0 }

// fixed reports whether an entry gives the variable a value that depends on
// neither registers nor memory: a constant, or an address in the image.
func (x *varEntry) fixed() bool {
	if x.constant.Form != 0 {
		return true
	}
	n := 2 + int(x.u.AddrSize)
	e := x.location.Bytes()
	return x.location.IsBlock() && len(e) == n && e[0] == uint8(op.DW_OP_addr) && e[n-1] == uint8(op.DW_OP_stack_value)
}
