package loc

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/arch"
)

// Kind says what a location is. A value in a register, an object in memory at register
// plus offset, and the value register plus offset are different kinds.
//
//   - KindNone: there is no location
//   - KindRegister: the value is in the register Expr (DW_OP_reg5)
//   - KindMemory: the object is in memory at the address Expr (DW_OP_breg5 8,
//     DW_OP_fbreg -24, DW_OP_addr)
//   - KindValue: the value is Expr itself (... DW_OP_stack_value)
//   - KindConstant: the value is the constant Expr (DW_AT_const_value, DW_OP_lit3
//     DW_OP_stack_value, DW_OP_implicit_value)
//   - KindBytes: the object's bytes are known (DW_AT_const_value with a block,
//     DW_OP_implicit_value)
//   - KindPieces: the object is split into Pieces (DW_OP_piece, DW_OP_bit_piece)
//   - KindImplicitPointer: the value is a pointer that was optimized away, but whose
//     object can be read (DW_OP_implicit_pointer)
type Kind uint8

const (
	// KindNone means that there is no location.
	KindNone Kind = iota
	// KindRegister means that the value is in the register Expr (DW_OP_reg5).
	KindRegister
	// KindMemory means that the object is in memory at the address Expr (DW_OP_breg5 8,
	// DW_OP_fbreg -24, DW_OP_addr).
	KindMemory
	// KindValue means that the value is Expr itself (... DW_OP_stack_value).
	KindValue
	// KindConstant means that the value is the constant Expr (DW_AT_const_value,
	// DW_OP_lit3 DW_OP_stack_value, DW_OP_implicit_value).
	KindConstant
	// KindBytes means that the object's bytes are known (DW_AT_const_value with a block,
	// DW_OP_implicit_value).
	KindBytes
	// KindPieces means that the object is split into Pieces (DW_OP_piece,
	// DW_OP_bit_piece).
	KindPieces
	// KindImplicitPointer means that the value is a pointer that was optimized away, but
	// whose object can be read (DW_OP_implicit_pointer).
	KindImplicitPointer
)

var kindNames = [...]string{"none", "register", "memory", "value", "constant", "bytes", "pieces", "implicit-pointer"}

// String returns the kind's short, stable name.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind-%d", uint8(k))
}

// Location says where a value is when a probe fires at a site. It is symbolic: it
// names registers, offsets and link-time addresses.
type Location struct {
	Kind   Kind
	Rule   Rule
	Expr   *Expr   // for KindRegister, KindMemory, KindValue and KindConstant
	Size   uint8   // for KindValue: bytes that the value has; 0 for all 8 of Expr
	Bytes  []byte  // for KindBytes, in the image's byte order
	Pieces []Piece // for KindPieces, from the object's first byte on

	// Doubt is why the value there may not be the one that is asked for, such as reassigned for a parameter; none where it
	// is sure.
	Doubt ReasonCode
	// Pointee is why what a pointer there points to may not be what the source has stored by then; none where nothing says so. The
	// pointer itself is what Doubt says, and what is read through it is doubtful.
	Pointee ReasonCode

	Target       uint64 // for KindImplicitPointer: offset of the object's entry in .debug_info
	TargetOffset int64  // for KindImplicitPointer: bytes from the object's start
}

// Piece is a part of an object: BitSize bits of what is at Loc, from bit BitOffset on. If
// Loc's kind is KindNone, Reason says why the bits cannot be read; without a code, they were
// optimized away.
type Piece struct {
	BitSize   uint64 // bits
	BitOffset uint64 // bits
	Loc       Location
	Reason    Reason
}

// Text prints a location with an architecture's register names. Each location
// has one such form:
//
//	%rax                  a register
//	[%rsp+8]              memory at register plus offset
//	%rsp+6                the value register plus offset
//	42                    a constant
//	[@0xffffffff82a00000] memory at a link-time address in the image
//	bytes(2a00000000)     known bytes
//	{%rax:8, ?:4, [%rsp+8]:4}  pieces with their sizes in bytes; ? is missing
//	&(0x1f2e+0)           an implicit pointer to the object described at .debug_info+0x1f2e
func (l *Location) Text(a *arch.Arch) string {
	switch l.Kind {
	case KindRegister, KindValue, KindConstant:
		return l.Expr.Text(a)
	case KindMemory:
		return "[" + l.Expr.Text(a) + "]"
	case KindBytes:
		return "bytes(" + hex.EncodeToString(l.Bytes) + ")"
	case KindImplicitPointer:
		s := "&(0x" + strconv.FormatUint(l.Target, 16)
		if l.TargetOffset >= 0 {
			s += "+"
		}
		return s + strconv.FormatInt(l.TargetOffset, 10) + ")"
	case KindPieces:
		var b strings.Builder
		b.WriteByte('{')
		for i := range l.Pieces {
			p := &l.Pieces[i]
			if i > 0 {
				b.WriteString(", ")
			}
			if p.Loc.Kind == KindNone {
				b.WriteByte('?')
			} else {
				b.WriteString(p.Loc.Text(a))
			}
			b.WriteByte(':')
			if p.BitSize%8 == 0 && p.BitOffset == 0 {
				b.WriteString(strconv.FormatUint(p.BitSize/8, 10))
			} else {
				b.WriteString(strconv.FormatUint(p.BitSize, 10) + "b")
				if p.BitOffset != 0 {
					b.WriteString("@" + strconv.FormatUint(p.BitOffset, 10))
				}
			}
		}
		b.WriteByte('}')
		return b.String()
	}
	return "none"
}

// Exprs calls f for each expression of the location, pieces included.
func (l *Location) Exprs(f func(*Expr)) {
	if l.Expr != nil {
		f(l.Expr)
	}
	for i := range l.Pieces {
		l.Pieces[i].Loc.Exprs(f)
	}
}
