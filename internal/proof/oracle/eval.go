package oracle

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Errors for expressions without a value.
var (
	ErrBad             = errors.New("invalid expression")
	ErrUnsupported     = errors.New("unsupported operation")
	ErrFault           = errors.New("fault") // memory cannot be read, or a division by zero
	ErrEntryValue      = errors.New("an entry value, not at the entry")
	ErrParameterRef    = errors.New("a parameter that only callers know")
	ErrThreadLocal     = errors.New("thread-local")
	ErrNoRegister      = errors.New("a register without a value")
	ErrImplicitPointer = errors.New("an implicit pointer")
	ErrMissing         = errors.New("a part that was optimized away")
	ErrFrameNotSet     = errors.New("a stack frame that is not set up yet")
	ErrTooLarge        = errors.New("too large")
)

// RegisterError is the error for a register without a value, by its number. It matches
// ErrNoRegister.
type RegisterError uint64

func (n RegisterError) Error() string { return fmt.Sprintf("%v: %d", ErrNoRegister, uint64(n)) }

// Is makes errors.Is find ErrNoRegister.
func (n RegisterError) Is(err error) bool { return err == ErrNoRegister }

// BaseType is the type of a typed operation.
type BaseType struct {
	Size   int // bytes
	Signed bool
	Float  bool // neither an integer nor an address: not supported
	Bits   int  // of an integer with fewer bits than its bytes have, or 0
}

// Machine is the state that an expression is evaluated in. A function that is nil has no
// result for any input.
type Machine struct {
	Reg       func(n uint64) (v uint64, ok bool)
	Mem       func(addr uint64, p []byte) (ok bool)
	CFA       func() (uint64, error)
	FrameBase []byte // DW_AT_frame_base
	AtEntry   bool   // at the entry of the function: DW_OP_entry_value is the value now
	NoFrame   bool   // the register that is the frame base is not set up yet
	Bias      uint64 // added to addresses in the image
	BigEndian bool   // memory is big-endian
	AddrSize  int    // bytes of an address and a register; 0 means 8
	GNU       bool   // GCC wrote the expression: arithmetic on 32 bits has 32 bits

	BaseType   func(off uint64) (BaseType, error)
	Indexed    func(i uint64) (uint64, error) // address i of .debug_addr
	OffsetSize int                            // bytes of a reference in .debug_info: 8 in 64-bit DWARF
}

// ResultKind says what the result of an evaluation is.
type ResultKind uint8

// What the result of an evaluation can be.
const (
	InMemory   ResultKind = iota // the object is at the address Value
	InRegister                   // it is in the register Reg, which holds Value
	IsValue                      // it is Value
	IsBytes                      // it is Bytes
	InPieces                     // it consists of Pieces
	IsImplicit                   // a pointer to the object at Target that does not exist
	IsMissing                    // the piece was optimized away
)

// Result is what an expression evaluates to.
type Result struct {
	Kind         ResultKind
	Value        uint64
	Width        int // bytes of Value, of IsValue; 0 means 8
	Reg          uint64
	Bytes        []byte
	Pieces       []Piece
	Target       uint64
	TargetOffset int64
}

// Piece is Bits bits of an object. They begin at bit Skip of what is at Result.
type Piece struct {
	Result
	Bits, Skip uint64
}

// Limits for damaged expressions.
const (
	maxOps     = 10000
	maxNesting = 8
)

// value is an element of the stack. A nil type is the generic one.
type value struct {
	v     uint64
	t     *BaseType
	plain bool // a number in the expression, or computed from such, without a type
	whole bool // such a number itself
	// half means that it is of numbers that 32 bits have, sign-extended, and of memory of 32 bits or fewer; scaled, that it is a product
	// with a negative number of 32 bits; wide, that something that it is of has 64 bits.
	half, scaled, wide bool
	memory, down       bool // it is of memory of 32 bits or fewer; it has been moved down
	// fault is why there is no value. An expression that leaves it aside has one all the
	// same: both ways of a branch may be computed before it is decided.
	fault error
}

// run is one evaluation. It ends with panic(stop), which keeps the operations readable.
type run struct {
	*Machine
	cursor
	stack []value
	done  *Result // a finished location: only a piece may follow
	depth int
}

type stop struct{ error }

func fail(kind error, format string, args ...any) {
	panic(stop{fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))})
}

// Eval evaluates a location expression (DWARF 5 sections 2.5 and 2.6).
func (m *Machine) Eval(expr []byte) (Result, error) {
	if m.GNU {
		expr = AsMeant(expr)
	}
	res, err := m.eval(expr, 0)
	if err == errAsWritten {
		own := *m
		own.GNU = false
		return own.eval(expr, 0)
	}
	return res, err
}

// errAsWritten ends an evaluation by widths of operands of what is no plain arithmetic.
var errAsWritten = errors.New("not by widths")

// asWritten ends an evaluation by widths.
func (r *run) asWritten() {
	if r.GNU {
		panic(stop{errAsWritten})
	}
}

func (m *Machine) eval(expr []byte, depth int) (res Result, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case stop:
			err = e.error
		default:
			panic(e)
		}
	}()
	if depth > maxNesting {
		fail(ErrUnsupported, "nesting")
	}
	r := run{Machine: m, cursor: cursor{d: expr, big: m.BigEndian}, depth: depth}
	var pieces []Piece
	for ops := 0; r.p < uint64(len(expr)); ops++ {
		if ops > maxOps {
			fail(ErrUnsupported, "more than %d operations", maxOps)
		}
		op := uint8(r.uint(1))
		switch {
		case op == 0x93 || op == 0x9d: // piece, bit_piece
			r.asWritten()
			p := Piece{Result: Result{Kind: IsMissing}}
			if r.done != nil {
				p.Result = *r.done
			} else if len(r.stack) > 0 {
				p.Result = Result{Kind: InMemory, Value: r.popAddress()}
			}
			p.Bits = r.uleb()
			if op == 0x93 {
				p.Bits *= 8
			} else {
				p.Skip = r.uleb()
			}
			pieces = append(pieces, p)
			r.done, r.stack = nil, nil
		case op == 0x96 || op == 0xf0: // nop, GNU_uninit
		case r.done != nil:
			fail(ErrBad, "operation %#x after a finished location", op)
		default:
			r.op(op)
		}
		if r.bad {
			fail(ErrBad, "operation %#x is cut short", op)
		}
	}
	switch {
	case pieces != nil && (r.done != nil || len(r.stack) > 0):
		fail(ErrBad, "a part without a size")
	case pieces != nil:
		return Result{Kind: InPieces, Pieces: pieces}, nil
	case r.done != nil:
		return *r.done, nil
	}
	return Result{Kind: InMemory, Value: r.popAddress()}, nil
}

// popAddress is pop for an address.
func (r *run) popAddress() uint64 { return Extend(r.pop().v, r.address(), false) }

func (r *run) push(v uint64) { r.pushTyped(v, nil) }

// pushTyped pushes a value, reduced to its type's width.
func (r *run) pushTyped(v uint64, t *BaseType) {
	switch {
	case t == nil:
		v = Extend(v, r.address(), false)
	case t.Bits == 0:
		v = Extend(v, t.Size, t.Signed)
	case t.Signed:
		v = uint64(int64(v<<(64-t.Bits)) >> (64 - t.Bits))
	default:
		v &= 1<<t.Bits - 1
	}
	r.stack = append(r.stack, value{v: v, t: t})
}

// number pushes a number that is in the expression. It keeps all of its bits for a value that is
// nothing else.
func (r *run) number(v uint64) {
	small := v == uint64(int64(int32(v)))
	r.stack = append(r.stack, value{v: v, plain: true, whole: true, half: small, wide: !small})
}

// address returns the bytes of an address, which are those of the generic type.
func (m *Machine) address() int {
	if m.AddrSize != 0 {
		return m.AddrSize
	}
	return 8
}

// pop returns the value on top of the stack. The expression needs it.
func (r *run) pop() value {
	v := r.drop()
	if v.fault != nil {
		panic(stop{v.fault})
	}
	return v
}

// drop is pop for a value that may be a fault.
func (r *run) drop() value {
	v := r.peek(0)
	r.stack = r.stack[:len(r.stack)-1]
	return v
}

// replace puts what f makes of a value in its place, or the same fault.
func (r *run) replace(t *BaseType, f func(v uint64) uint64) {
	a := r.drop()
	if a.fault != nil {
		r.stack = append(r.stack, value{t: t, fault: a.fault})
		return
	}
	r.pushTyped(f(a.v), t)
	top := &r.stack[len(r.stack)-1]
	top.half, top.scaled, top.wide, top.memory, top.down = a.half, a.scaled, a.wide, a.memory, a.down
}

func (r *run) peek(n int) value {
	if n >= len(r.stack) {
		fail(ErrBad, "the stack is not that deep")
	}
	return r.stack[len(r.stack)-1-n]
}

func (r *run) reg(n uint64) uint64 {
	if r.Reg != nil {
		if v, ok := r.Reg(n); ok {
			return v
		}
	}
	panic(stop{RegisterError(n)})
}

// load replaces an address by the size bytes that are there.
func (r *run) load(size int, t *BaseType) {
	switch size {
	case 1, 2, 4, 8:
	default:
		fail(ErrUnsupported, "a read of %d bytes", size)
	}
	a := r.drop()
	if a.down || t != nil {
		r.asWritten()
	}
	if a.v = Extend(a.v, r.address(), false); t == nil && size > r.address() {
		fail(ErrBad, "a read of %d bytes", size)
	}
	var b [8]byte
	if a.fault == nil && (r.Mem == nil || !r.Mem(a.v, b[:size])) {
		a.fault = fmt.Errorf("%w: at %#x", ErrFault, a.v)
	}
	if a.fault != nil {
		r.stack = append(r.stack, value{t: t, fault: a.fault})
		return
	}
	c := cursor{d: b[:size], big: r.BigEndian}
	r.pushTyped(c.uint(size), t)
	top := &r.stack[len(r.stack)-1]
	top.half, top.memory, top.wide = size <= 4, size <= 4, size > 4
}

// baseType reads the operand of a typed operation; 0 is the generic type.
func (r *run) baseType() *BaseType {
	off := r.uleb()
	if off == 0 {
		return nil
	}
	if r.BaseType == nil {
		fail(ErrUnsupported, "a typed operation")
	}
	t, err := r.BaseType(off)
	if err != nil {
		fail(ErrBad, "%v", err)
	}
	if t.Float || t.Size < 1 || t.Size > 8 {
		fail(ErrUnsupported, "a type of %d bytes, float %v", t.Size, t.Float)
	}
	return &t
}

func (m *Machine) width(t *BaseType) int {
	if t == nil {
		return m.address()
	}
	return t.Size
}

// nested evaluates a frame base or an entry value: a register stands for its
// contents, and a bare expression for its value.
func (r *run) nested(expr []byte) uint64 {
	res, err := r.eval(expr, r.depth+1)
	if err != nil {
		panic(stop{err})
	}
	switch res.Kind {
	case InRegister, InMemory, IsValue:
		return res.Value
	}
	fail(ErrUnsupported, "a nested expression of kind %d", res.Kind)
	return 0
}

// Extend extends the low bytes of a number to 64 bits.
func Extend(v uint64, size int, signed bool) uint64 {
	if size >= 8 || size <= 0 {
		return v
	}
	n := 64 - 8*uint(size)
	if signed {
		return uint64(int64(v<<n) >> n)
	}
	return v << n >> n
}

// bytesOf returns the low size bytes of a number as they are in memory.
func bytesOf(v uint64, size int, big bool) []byte {
	if big {
		return binary.BigEndian.AppendUint64(nil, v)[8-size:]
	}
	return binary.LittleEndian.AppendUint64(nil, v)[:size]
}

// have returns how many bytes a register or a value has.
func (m *Machine) have(res *Result) int {
	switch {
	case res.Kind == InRegister:
		return m.address()
	case res.Width != 0:
		return res.Width
	}
	return 8
}
