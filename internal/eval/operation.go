package eval

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/bin"

	"github.com/go-delve/delve/pkg/dwarf/op"
)

// Encoding says how the unit of an expression encodes numbers.
type Encoding struct {
	BigEndian   bool
	AddressSize int // bytes of an address, 4 or 8
	OffsetSize  int // bytes of an offset in .debug_info: 4, 8 in 64-bit DWARF, AddressSize in DWARF 2
}

// Operation is a decoded operation of a DWARF expression (DWARF 5 section 2.5).
type Operation struct {
	Code  uint8  // DW_OP_*
	A, B  uint64 // numeric operands, sign-extended if they are signed
	Block []byte // operand made of bytes
	Next  int    // offset in bytes of the next operation in the expression
}

// Errors of Decode.
var (
	errUnknownOperation = errors.New("unknown operation")
	errCutShort         = errors.New("an operand is cut short")
)

// Decode reads the operation at an offset in an expression, in bytes. An operation that is
// unknown or cut short is an error.
func Decode(expr []byte, at int, enc Encoding) (o Operation, err error) {
	err = o.decode(expr, at, &enc)
	return o, err
}

func (o *Operation) decode(expr []byte, at int, enc *Encoding) error {
	*o = Operation{Code: expr[at], Next: at + 1}
	form := &opForms[o.Code]
	if len(form.operands) == 0 {
		if form.name == "" {
			return errUnknownOperation
		}
		return nil
	}
	r := bin.Reader{D: expr, P: at + 1, BigEndian: enc.BigEndian}
	for i := range len(form.operands) {
		var v uint64
		switch form.operands[i] {
		case 'b':
			v = uint64(r.U8())
		case 'h':
			v = uint64(r.U16())
		case 'w':
			v = uint64(r.U32())
		case 'q', 'Q':
			v = r.U64()
		case 'B':
			v = uint64(r.Sint(1))
		case 'H':
			v = uint64(r.Sint(2))
		case 'W':
			v = uint64(r.Sint(4))
		case 'u':
			v = r.ULEB()
		case 's':
			v = uint64(r.SLEB())
		case 'a':
			v = r.Uint(enc.AddressSize)
		case 'r':
			v = r.Uint(enc.OffsetSize)
		case 'k':
			o.Block = r.Bytes(r.ULEB())
		case 'c':
			o.Block = r.Bytes(uint64(r.U8()))
		}
		if i == 0 {
			o.A = v
		} else {
			o.B = v
		}
	}
	if r.Bad {
		return errCutShort
	}
	o.Next = r.P
	return nil
}

// IsAddress reports whether the operation pushes an address of the image.
func (o Operation) IsAddress() bool {
	switch op.Opcode(o.Code) {
	case op.DW_OP_addr, opAddrx, opGNUAddrIndex:
		return true
	}
	return false
}

// IsConstant reports whether the operation pushes a number.
func (o Operation) IsConstant() bool {
	c := op.Opcode(o.Code)
	return c >= op.DW_OP_lit0 && c <= op.DW_OP_lit31 || c >= op.DW_OP_const1u && c <= op.DW_OP_consts
}

// Number returns the number that an expression is: DW_OP_lit1 DW_OP_stack_value.
func Number(expr []byte, enc Encoding) (n uint64, ok bool) {
	if len(expr) < 2 || op.Opcode(expr[len(expr)-1]) != op.DW_OP_stack_value {
		return 0, false
	}
	o, err := Decode(expr, 0, enc)
	if err != nil || !o.IsConstant() || o.Next != len(expr)-1 {
		return 0, false
	}
	if c := op.Opcode(o.Code); c <= op.DW_OP_lit31 && c >= op.DW_OP_lit0 {
		return uint64(c - op.DW_OP_lit0), true
	}
	return o.A, true
}

// RegisterOf returns the register that an expression is.
func RegisterOf(expr []byte) (n uint64, ok bool) {
	if len(expr) != 1 || op.Opcode(expr[0]) < op.DW_OP_reg0 || op.Opcode(expr[0]) > op.DW_OP_reg31 {
		return 0, false
	}
	return uint64(op.Opcode(expr[0]) - op.DW_OP_reg0), true
}

// EntryValueOf returns the register of which an expression is the value where its function was called.
func EntryValueOf(expr []byte) (place []byte, ok bool) {
	if n := len(expr); n > 0 && expr[n-1] == uint8(op.DW_OP_stack_value) {
		expr = expr[:n-1]
	}
	if len(expr) < 3 || expr[0] != OpEntryValue && expr[0] != OpGNUEntryValue || int(expr[1]) != len(expr)-2 {
		return nil, false
	}
	_, ok = RegisterOf(expr[2:])
	return expr[2:], ok
}

// IsImplicitValue reports whether the operation gives the value's bytes.
func (o Operation) IsImplicitValue() bool { return op.Opcode(o.Code) == op.DW_OP_implicit_value }

// IsConversion reports whether the operation converts a value from type to type.
func (o Operation) IsConversion() bool {
	switch op.Opcode(o.Code) {
	case opConvert, opGNUConvert, opReinterpret, opGNUReinterpret:
		return true
	}
	return false
}

// String prints an operation with its operands: "DW_OP_breg7 0x6".
func (o Operation) String() string {
	var b strings.Builder
	b.WriteString(opName(o.Code))
	v := o.A
	for _, kind := range opForms[o.Code].operands {
		switch kind {
		case 'B', 'H', 'W', 'Q', 's':
			fmt.Fprintf(&b, " %#x", int64(v))
		case 'k', 'c':
			fmt.Fprintf(&b, " %d [%x]", len(o.Block), o.Block)
		default:
			fmt.Fprintf(&b, " %#x", v)
		}
		v = o.B
	}
	return b.String()
}

// ExpressionText prints an expression's operations: "DW_OP_breg7 0x6 DW_OP_stack_value".
// The text ends with "..." at the first operation that cannot be decoded.
func ExpressionText(expr []byte, enc Encoding) string {
	var parts []string
	for at := 0; at < len(expr); {
		o, err := Decode(expr, at, enc)
		if err != nil {
			parts = append(parts, opName(o.Code), "...")
			break
		}
		parts = append(parts, o.String())
		at = o.Next
	}
	return strings.Join(parts, " ")
}
