package entries

import (
	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Var holds the attributes of a variable's entry, undecoded.
type Var struct {
	U        *Unit
	Off      uint64
	Root     uint64 // if Origin is not set: offset of the entry that declares it
	Tag      dw.Tag
	Name     dw.Value
	Origin   dw.Value
	Type     dw.Value
	Location dw.Value
	Constant dw.Value
	Views    dw.Value
	Decl     bool // DW_AT_declaration
	Pointee  bool // it is looked up for an implicit pointer to it
	External bool
	Result   bool // of a Go function, which describes its results beside its parameters
	Object   bool // what a C++ compiler passes on its own, as the object of a member function: no statement can assign it
}

// ReadVar reads an entry of the unit.
func (u *Unit) ReadVar(e dw.Entry) (x Var, err error) {
	_, err = x.Read(u, e)
	return x, err
}

// Read reads an entry in u into x, which must be zero. It returns the position in
// .debug_info after the entry.
func (x *Var) Read(u *Unit, e dw.Entry) (end int, err error) {
	x.U, x.Off, x.Root, x.Tag = u, e.Off, e.Off, e.Tag()
	b := e.Data()
	for _, at := range e.Specs() {
		v := u.ReadAttr(&b, at)
		if b.Bad {
			return 0, u.DamagedAttr(e.Off, at)
		}
		switch at.Name {
		case dw.AttrName:
			x.Name = v
		case dw.AttrAbstractOrigin, dw.AttrSpecification:
			x.Origin = v
		case dw.AttrType:
			x.Type = v
		case dw.AttrLocation:
			x.Location = v
		case dw.AttrConstValue:
			x.Constant = v
		case dw.AttrGNULocviews:
			x.Views = v
		case dw.AttrDeclaration:
			x.Decl = v.U != 0
		case dw.AttrExternal:
			x.External = v.U != 0
		case dw.AttrVarParameter: // other languages say so of parameters that are passed by reference
			x.Result = v.U != 0 && u.Lang == dw.LangGo
		case dw.AttrArtificial: // in Objective-C a statement may assign self
			x.Object = v.U != 0 && dw.IsCPlusPlus(u.Lang)
		}
	}
	return b.P, nil
}

// EachParam calls f with each formal parameter of a function's entry, as it is described
// there, until f returns false.
func (img *Image) EachParam(e dw.Entry, f func(x *Var) (more bool, err error)) error {
	return e.Children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagFormalParameter {
			return true, nil
		}
		x, err := img.Of(c.Unit).ReadVar(c)
		if err != nil {
			return false, err
		}
		return f(&x)
	})
}

// Complete adds what the variable's own entry leaves out but its origins have.
func (x *Var) Complete() error {
	cur := *x
	for range index.MaxOrigins {
		if cur.Origin.Form == 0 || x.Name.Form != 0 && x.Type.Form != 0 && x.Described() {
			return nil
		}
		e, err := cur.U.Target(cur.Origin)
		if err != nil {
			return err
		}
		if cur, err = x.U.Img.Of(e.Unit).ReadVar(e); err != nil {
			return err
		}
		if err := x.Inherit(&cur); err != nil {
			return err
		}
	}
	return nil
}

// Elsewhere reports whether the entry declares a variable that is defined elsewhere, as "extern int i;" in a block does, and does not describe it.
func (x *Var) Elsewhere() (bool, error) {
	cur := *x
	for range index.MaxOrigins {
		if cur.Described() || cur.Decl && cur.External {
			return !cur.Described(), nil
		}
		if cur.Origin.Form == 0 {
			return false, nil
		}
		e, err := cur.U.Target(cur.Origin)
		if err != nil {
			return false, err
		}
		if cur, err = x.U.Img.Of(e.Unit).ReadVar(e); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Inherit adds what x lacks from one origin, which may be in another unit.
func (x *Var) Inherit(d *Var) error {
	if x.Name.Form == 0 && d.Name.Form != 0 {
		x.Name = d.Name
		if x.U != d.U {
			x.Name = dw.BlockValue(dw.FormString, []byte(d.U.Text(d.Name)))
		}
	}
	if x.Type.Form == 0 && d.Type.Form != 0 {
		x.Type = d.Type
		if x.U != d.U {
			_, off, err := d.U.Ref(d.Type)
			if err != nil {
				return err
			}
			x.Type = x.U.Local(off)
		}
	}
	if !x.Described() {
		x.Constant = d.Constant
	}
	x.External, x.Result, x.Object = x.External || d.External, x.Result || d.Result, x.Object || d.Object
	return nil
}

// Ultimate returns the offset of the entry that declares a variable: its last origin, or
// itself. known, if not nil, keeps the answers of origins.
func (x *Var) Ultimate(known map[uint64]uint64) (uint64, error) {
	if x.Origin.Form == 0 {
		return x.Root, nil
	}
	_, off, err := x.U.Ref(x.Origin)
	if err != nil {
		return 0, err
	}
	if root, ok := known[off]; ok {
		return root, nil
	}
	e, err := x.U.Target(x.Origin)
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

// Better reports whether x says more about a variable's place than y, another
// description of the same variable at the same site. For a parameter that a
// .constprop clone lost, GCC (seen with 12) writes the register that callers no longer
// set, and after it the constant that replaced the parameter. So a fixed value wins;
// otherwise the first description with a location does.
func (x *Var) Better(y *Var) bool {
	return x.Fixed() && !y.Fixed() || x.Described() && !y.Described()
}

// Literal reports whether an entry's expression is a constant: DW_OP_lit1
// DW_OP_stack_value.
func (x *Var) Literal() bool {
	_, is := eval.Number(x.Location.Bytes(), x.U.Encoding())
	return is && x.Location.IsBlock()
}

// Static reports whether an entry gives the variable an address in the image: a static
// variable has the same one in all instances of its function.
func (x *Var) Static() bool {
	e := x.Location.Bytes()
	if !x.Location.IsBlock() || len(e) == 0 {
		return false
	}
	o, err := eval.Decode(e, 0, x.U.Encoding())
	return err == nil && o.Next == len(e) && o.IsAddress()
}

// Described reports whether an entry says anything about the variable's place.
func (x *Var) Described() bool { return x.Location.Form != 0 || x.Constant.Form != 0 }

// Fixed reports whether an entry gives the variable a value that depends on
// neither registers nor memory: a constant, or an address in the image.
func (x *Var) Fixed() bool {
	if x.Constant.Form != 0 {
		return true
	}
	n := 2 + int(x.U.AddrSize)
	e := x.Location.Bytes()
	return x.Location.IsBlock() && len(e) == n && e[0] == uint8(op.DW_OP_addr) && e[n-1] == uint8(op.DW_OP_stack_value)
}
