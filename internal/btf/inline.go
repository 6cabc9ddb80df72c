package btf

// Where inlined functions are, and their parameters there: KindLocSec, KindLocProto and KindLocParam.

// Place is an inlined instance, of a KindLocSec.
type Place struct {
	Func   ID     // KindFunc
	Params ID     // KindLocProto
	Offset uint32 // of its code, from the beginning of the section
}

// Places calls f for the instances in a KindLocSec, until it returns false.
func (t *Type) Places(f func(p Place) bool) {
	u32 := t.b.u32
	for i := range t.n {
		d := t.rest[12*i:]
		if !f(Place{ID(u32(d)), ID(u32(d[4:])), u32(d[8:])}) {
			return
		}
	}
}

// ParamIDs returns the numbers of the KindLocParam of a KindLocProto, one for each parameter of the function; 0 is one
// of which nothing is known.
func (t *Type) ParamIDs() []ID {
	out := make([]ID, t.n)
	for i := range out {
		out[i] = ID(t.b.u32(t.rest[4*i:]))
	}
	return out
}

// Flags of a KindLocParam.
const (
	LocSigned  = 1 << iota
	LocConst   // the values are a constant, the low 4 bytes first
	LocAddress // the constant is an address
	LocReg     // the values are registers' numbers in DWARF, or with LocOffset one and an offset
	LocDeref   // what is there is the address of the value
	LocOffset
)

// FrameBase is the number of a register that stands for the function's frame base.
const FrameBase = 0xffffffff

// Location returns the flags and the values of a KindLocParam. Its Size is that of the parameter in bytes.
func (t *Type) Location() (flags uint32, values []uint32) {
	values = make([]uint32, t.n)
	for i := range values {
		values[i] = t.b.u32(t.rest[4+4*i:])
	}
	return t.b.u32(t.rest), values
}
