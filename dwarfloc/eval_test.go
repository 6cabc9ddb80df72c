package dwarfloc

import (
	"bytes"
	"strings"
	"testing"
)

// Operations under their DWARF names, so that the bytes below read as a listing.
const (
	xAddr, xDeref                      = 0x03, 0x06
	xConst1u, xConst1s                 = 0x08, 0x09
	xConst2u, xConst2s                 = 0x0a, 0x0b
	xConst4u, xConst4s                 = 0x0c, 0x0d
	xConst8u, xConst8s                 = 0x0e, 0x0f
	xConstu, xConsts                   = 0x10, 0x11
	xDup, xDrop, xOver, xPick          = 0x12, 0x13, 0x14, 0x15
	xSwap, xRot, xXderef, xAbs         = 0x16, 0x17, 0x18, 0x19
	xAnd, xDiv, xMinus, xMod           = 0x1a, 0x1b, 0x1c, 0x1d
	xMul, xNeg, xNot, xOr              = 0x1e, 0x1f, 0x20, 0x21
	xPlus, xPlusUconst, xShl, xShr     = 0x22, 0x23, 0x24, 0x25
	xShra, xXor, xBra                  = 0x26, 0x27, 0x28
	xEq, xGe, xGt, xLe, xLt, xNe       = 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e
	xSkip                              = 0x2f
	xLit0                              = 0x30
	xReg0                              = 0x50
	xBreg0                             = 0x70
	xRegx, xFbreg, xBregx, xPiece      = 0x90, 0x91, 0x92, 0x93
	xDerefSize, xXderefSize, xNop      = 0x94, 0x95, 0x96
	xPushObject, xCall2, xCall4        = 0x97, 0x98, 0x99
	xCallRef, xFormTLS, xCFA, xBitPiec = 0x9a, 0x9b, 0x9c, 0x9d
	xImplicitValue, xStackValue        = 0x9e, 0x9f
	xImplicitPointer, xAddrx, xConstx  = 0xa0, 0xa1, 0xa2
	xEntryValue, xConstType            = 0xa3, 0xa4
	xRegvalType, xDerefType            = 0xa5, 0xa6
	xXderefType, xConvert              = 0xa7, 0xa8
	xReinterpret                       = 0xa9
	xGNUPushTLS, xGNUUninit            = 0xe0, 0xf0
	xGNUImplicitPtr, xGNUEntryValue    = 0xf2, 0xf3
	xGNUConstType, xGNURegvalType      = 0xf4, 0xf5
	xGNUDerefType, xGNUConvert         = 0xf6, 0xf7
	xGNUReinterpret, xGNUParameterRef  = 0xf9, 0xfa
	xGNUAddrIndex, xGNUConstIndex      = 0xfb, 0xfc
	xGNUVariableValue                  = 0xfd
)

// evalUnit is a unit with base types, a .debug_addr and call frame information:
// the frame address is %rsp+8 from 0x401000, %rsp+32 from 0x401010, an expression
// from 0x401020 and not known from 0x401030.
type evalUnit struct {
	u                                                *unit
	u8, s8, u16, s32, u32, u64, s64, f64, u128, bool byte // offsets of base types in the unit
	notBase                                          byte
}

func newEvalUnit(t testing.TB) *evalUnit {
	base := func(size, enc int) *die {
		return &die{tag: tagBaseType, attrs: []attribute{{attrByteSize, formData1, size}, {attrEncoding, formData1, enc}}}
	}
	types := []*die{
		base(1, encUnsigned), base(1, encSigned), base(2, encUnsigned), base(4, encSigned), base(4, encUnsigned),
		base(8, encUnsigned), base(8, encSigned), base(8, encFloat), base(16, encUnsigned), base(1, encBoolean),
		{tag: tagStructType, attrs: []attribute{{attrByteSize, formData1, 4}}},
	}
	cie := cat(le32(0xffffffff), 1, "", uleb(1), sleb(-8), 16, // version 1, no augmentation, code and data alignment, return address
		0x0c, uleb(7), uleb(8)) // DW_CFA_def_cfa: rsp+8
	fde := cat(le32(0), le64(textAddr), le64(0x30),
		0x50, 0x0e, uleb(32), // advance 16; DW_CFA_def_cfa_offset 32
		0x50, 0x0f, uleb(3), xBreg0+6, sleb(16), xDeref) // advance 16; DW_CFA_def_cfa_expression u64[rbp+16]
	frame := cat(le32(uint64(len(cie))), cie, le32(uint64(len(fde))), fde)
	addrs := cat(le32(0), 5, 0, 8, 0, le64(0x402000), le64(0x403000))
	img := testImage(t, []cu{{version: 5, root: unitRoot(types...)}}, debugSection(".debug_frame", frame), debugSection(".debug_addr", addrs))
	at := make([]byte, len(types))
	for i, d := range types {
		if d.off > 0x7f {
			t.Fatal("a base type is too far away for one byte")
		}
		at[i] = byte(d.off)
	}
	return &evalUnit{&img.units[0], at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], at[9], at[10]}
}

// locate evaluates an expression and prints what came out.
func (x *evalUnit) locate(expr []byte, addr uint64, frame []byte) string {
	site := &Site{Addr: addr, u: x.u, fun: function{start: textAddr}}
	if frame != nil {
		site.fun.frame = blockValue(formExprloc, frame)
	}
	ev := &evaluator{u: x.u, site: site}
	loc, st := ev.locate(expr, ".debug_loclists", 0x10)
	if st != nil {
		if st.err != nil {
			return "error " + st.err.Error()
		}
		return st.reason.String()
	}
	return loc.Kind.String() + " " + loc.Text(x.u.img.arch)
}

const (
	entryAt  = textAddr
	bodyAt   = textAddr + 0x10
	exprAt   = textAddr + 0x20
	nowhere  = textAddr + 0x40
	rax      = 0
	rsi      = 4
	rdi      = 5
	rbp      = 6
	rsp      = 7
	xmm0     = 17
	badExpr  = "error test: .debug_loclists+0x10: invalid expression: "
	overflow = "unsupported-operation: an expression "
)

func TestExpressions(t *testing.T) {
	x := newEvalUnit(t)
	cfa := []byte{xCFA}
	for _, tt := range []struct {
		name  string
		expr  []byte
		at    uint64 // 0 is bodyAt
		frame []byte // DW_AT_frame_base
		want  string
	}{
		// Places.
		{"reg", cat(xReg0 + rdi), 0, nil, "register %rdi"},
		{"reg31", cat(xReg0 + 31), 0, nil, "vector-register: %xmm14"},
		{"regx", cat(xRegx, uleb(rsi)), 0, nil, "register %rsi"},
		{"regx of a vector", cat(xRegx, uleb(xmm0)), 0, nil, "vector-register: %xmm0"},
		{"regx of a segment", cat(xRegx, uleb(50)), 0, nil, "no-register: %es"},
		{"regx unknown", cat(xRegx, uleb(500)), 0, nil, "no-register: DWARF register 500"},
		{"regx absurd", cat(xRegx, uleb(1<<63)), 0, nil, "no-register: DWARF register 9223372036854775808"},
		{"reg, uninitialized", cat(xReg0, xGNUUninit), 0, nil, "register %rax"},
		{"breg", cat(xBreg0+rsp, sleb(8)), 0, nil, "memory [%rsp+8]"},
		{"breg 0", cat(xBreg0+rsp, 0), 0, nil, "memory [%rsp]"},
		{"breg value", cat(xBreg0+rsp, sleb(-8), xStackValue), 0, nil, "value %rsp-8"},
		{"breg of a vector", cat(xBreg0+xmm0, 0), 0, nil, "vector-register: %xmm0"},
		{"bregx", cat(xBregx, uleb(rsi), sleb(-70000)), 0, nil, "memory [%rsi-0x11170]"},
		{"addr", cat(xAddr, le64(0xffffffff82000000)), 0, nil, "memory [@0xffffffff82000000]"},
		{"addr value", cat(xAddr, le64(0x402000), xPlusUconst, 8, xStackValue), 0, nil, "value @0x402008"},
		{"addrx", cat(xAddrx, 1), 0, nil, "memory [@0x403000]"},
		{"GNU_addr_index", cat(xGNUAddrIndex, 0), 0, nil, "memory [@0x402000]"},
		{"addrx outside", cat(xAddrx, 2), 0, nil, "error test: .debug_addr+0x8: address index 2 is outside the section"},
		{"constx", cat(xConstx, 1, xStackValue), 0, nil, "constant 0x403000"},
		{"GNU_const_index", cat(xGNUConstIndex, 0, xStackValue), 0, nil, "constant 0x402000"},
		{"empty", nil, 0, nil, "optimized-out"},

		// Constants.
		{"lit0", cat(xLit0, xStackValue), 0, nil, "constant 0"},
		{"lit31", cat(xLit0+31, xStackValue), 0, nil, "constant 31"},
		{"const1u", cat(xConst1u, 0xff, xStackValue), 0, nil, "constant 255"},
		{"const1s", cat(xConst1s, 0xff, xStackValue), 0, nil, "constant -1"},
		{"const2u", cat(xConst2u, le16(0xfffe), xStackValue), 0, nil, "constant 65534"},
		{"const2s", cat(xConst2s, le16(0xfffe), xStackValue), 0, nil, "constant -2"},
		{"const4u", cat(xConst4u, le32(0xfffffffd), xStackValue), 0, nil, "constant 0xfffffffd"},
		{"const4s", cat(xConst4s, le32(0xfffffffd), xStackValue), 0, nil, "constant -3"},
		{"const8u", cat(xConst8u, le64(1<<63), xStackValue), 0, nil, "constant 0x8000000000000000"},
		{"const8s", cat(xConst8s, le64(^uint64(3)), xStackValue), 0, nil, "constant -4"},
		{"constu", cat(xConstu, uleb(1<<40), xStackValue), 0, nil, "constant 0x10000000000"},
		{"consts", cat(xConsts, sleb(-1<<20), xStackValue), 0, nil, "constant -0x100000"},
		{"a constant as an address", cat(xConstu, uleb(4096)), 0, nil, "memory [4096]"},
		{"implicit_value", cat(xImplicitValue, 4, le32(0x12345678)), 0, nil, "constant 0x12345678"},
		{"implicit_value of 3 bytes", cat(xImplicitValue, 3, 1, 2, 3), 0, nil, "constant 0x30201"},
		{"implicit_value of 10 bytes", cat(xImplicitValue, 10, le64(1), le16(2)), 0, nil, "bytes bytes(01000000000000000200)"},
		{"implicit_value, empty", cat(xImplicitValue, 0), 0, nil, "bytes bytes()"},

		// The stack.
		{"dup", cat(xBreg0, 0, xDup, xMul, xStackValue), 0, nil, "value %rax * %rax"},
		{"drop", cat(xBreg0, 0, xLit0, xDrop), 0, nil, "memory [%rax]"},
		{"over", cat(xBreg0+rsi, 0, xBreg0+rdi, 0, xOver, xMinus, xMinus, xStackValue), 0, nil, "value %rsi - (%rdi - %rsi)"},
		{"pick", cat(xBreg0, 0, xBreg0+1, 0, xBreg0+2, 0, xPick, 2, xStackValue), 0, nil, "value %rax"},
		{"swap", cat(xBreg0, 0, xBreg0+1, 0, xSwap, xMinus, xStackValue), 0, nil, "value %rdx - %rax"},
		// rot: the top becomes third, the second first, the third second.
		{"rot", cat(xBreg0, 0, xBreg0+1, 0, xBreg0+2, 0, xRot, xMinus, xMinus, xStackValue), 0, nil, "value %rcx - (%rax - %rdx)"},
		{"nop", cat(xNop, xBreg0, 0, xNop), 0, nil, "memory [%rax]"},

		// Arithmetic.
		{"and", cat(xBreg0, 0, xConst1u, 255, xAnd, xStackValue), 0, nil, "value %rax & 255"},
		{"or", cat(xBreg0, 0, xBreg0+1, 0, xOr, xStackValue), 0, nil, "value %rax | %rdx"},
		{"xor", cat(xBreg0, 0, xBreg0+1, 0, xXor, xStackValue), 0, nil, "value %rax ^ %rdx"},
		{"plus", cat(xBreg0, 0, xBreg0+1, 0, xPlus, xStackValue), 0, nil, "value %rax + %rdx"},
		{"plus a constant", cat(xLit0+3, xBreg0, 4, xPlus, xStackValue), 0, nil, "value %rax+7"},
		{"plus_uconst", cat(xBreg0, 0, xPlusUconst, uleb(300), xStackValue), 0, nil, "value %rax+300"},
		{"minus", cat(xBreg0, 0, xLit0+3, xMinus, xStackValue), 0, nil, "value %rax-3"},
		{"mul", cat(xBreg0, 0, xLit0+24, xMul, xStackValue), 0, nil, "value %rax * 24"},
		{"div is signed", cat(xBreg0, 0, xLit0+10, xDiv, xStackValue), 0, nil, "value %rax / 10"},
		{"mod is unsigned", cat(xBreg0, 0, xLit0+10, xMod, xStackValue), 0, nil, "value %rax modu 10"},
		{"neg", cat(xBreg0, 0, xNeg, xStackValue), 0, nil, "value -%rax"},
		{"neg of a sum", cat(xBreg0, 8, xNeg, xStackValue), 0, nil, "value -(%rax+8)"},
		{"sum of a neg", cat(xBreg0, 0, xNeg, xPlusUconst, 8, xStackValue), 0, nil, "value -%rax+8"},
		{"not", cat(xBreg0, 0, xNot, xStackValue), 0, nil, "value ~%rax"},
		{"abs", cat(xBreg0, 0, xAbs, xStackValue), 0, nil, "value ((%rax < 0) ? -%rax : %rax)"},
		{"shl", cat(xBreg0, 0, xLit0+3, xShl, xStackValue), 0, nil, "value %rax << 3"},
		{"shr is logical", cat(xBreg0, 0, xLit0+3, xShr, xStackValue), 0, nil, "value %rax >>u 3"},
		{"shra", cat(xBreg0, 0, xLit0+3, xShra, xStackValue), 0, nil, "value %rax >> 3"},
		{"eq", cat(xBreg0, 0, xLit0, xEq, xStackValue), 0, nil, "value %rax == 0"},
		{"ne", cat(xBreg0, 0, xLit0, xNe, xStackValue), 0, nil, "value %rax != 0"},
		{"lt is signed", cat(xBreg0, 0, xLit0, xLt, xStackValue), 0, nil, "value %rax < 0"},
		{"le", cat(xBreg0, 0, xLit0, xLe, xStackValue), 0, nil, "value %rax <= 0"},
		{"gt", cat(xBreg0, 0, xLit0, xGt, xStackValue), 0, nil, "value %rax > 0"},
		{"ge", cat(xBreg0, 0, xLit0, xGe, xStackValue), 0, nil, "value %rax >= 0"},
		{"folded", cat(xLit0+5, xLit0+7, xMinus, xLit0+2, xShra, xNot, xNeg, xStackValue), 0, nil, "constant 0"}, // -(^(-2>>2))
		{"division of constants by zero", cat(xLit0+5, xLit0, xDiv, xStackValue), 0, nil, "value 5 / 0"},
		{"lowest divided by -1", cat(xConst8u, le64(1<<63), xLit0, xNot, xDiv, xStackValue), 0, nil, "constant 0x8000000000000000"},
		{"a constant that prints without a sign", cat(xBreg0, 0, xConst8u, le64(1<<63), xPlus, xStackValue), 0, nil, "value %rax+0x8000000000000000"},

		// Memory.
		{"deref", cat(xBreg0+rsp, 8, xDeref), 0, nil, "memory [u64[%rsp+8]]"},
		{"deref value", cat(xBreg0+rsp, 8, xDeref, xStackValue), 0, nil, "value u64[%rsp+8]"},
		{"deref_size", cat(xBreg0, 0, xDerefSize, 2, xStackValue), 0, nil, "value u16[%rax]"},
		{"deref_size 3", cat(xBreg0, 0, xDerefSize, 3, xStackValue), 0, nil, "unsupported-operation: a memory read of 3 bytes"},
		{"deref_size 0", cat(xBreg0, 0, xDerefSize, 0, xStackValue), 0, nil, "unsupported-operation: a memory read of 0 bytes"},

		// Typed operations.
		{"regval_type s32", cat(xRegvalType, rdi, x.s32, xStackValue), 0, nil, "value s32(%rdi)"},
		{"GNU_regval_type u8", cat(xGNURegvalType, rdi, x.u8, xStackValue), 0, nil, "value u8(%rdi)"},
		{"regval_type u64", cat(xRegvalType, rdi, x.u64, xStackValue), 0, nil, "value %rdi"},
		{"regval_type of a vector", cat(xRegvalType, xmm0, x.u64, xStackValue), 0, nil, "vector-register: %xmm0"},
		{"regval_type double", cat(xRegvalType, rdi, x.f64, xStackValue), 0, nil, "unsupported-operation: a base type of encoding 0x4"},
		{"regval_type of 128 bits", cat(xRegvalType, rdi, x.u128, xStackValue), 0, nil, "unsupported-operation: an integer type of 16 bytes"},
		{"regval_type of a structure", cat(xRegvalType, rdi, x.notBase, xStackValue), 0, nil,
			"error test: .debug_info+0x34: a typed operation names an entry that is no base type"},
		{"const_type s8", cat(xConstType, x.s8, 1, 0xf0, xStackValue), 0, nil, "constant -16"},
		{"GNU_const_type u16", cat(xGNUConstType, x.u16, 2, le16(0xfff0), xStackValue), 0, nil, "constant 65520"},
		{"const_type of another size", cat(xConstType, x.u16, 1, 5, xStackValue), 0, nil, badExpr + "a typed constant whose size is not its type's"},
		{"const_type generic", cat(xConstType, 0, 1, 5, xStackValue), 0, nil, badExpr + "a typed constant whose size is not its type's"},
		{"deref_type", cat(xBreg0, 0, xDerefType, 4, x.s32, xStackValue), 0, nil, "value s32(u32[%rax])"},
		{"GNU_deref_type unsigned", cat(xBreg0, 0, xGNUDerefType, 2, x.u16, xStackValue), 0, nil, "value u16[%rax]"},
		{"deref_type of another size", cat(xBreg0, 0, xDerefType, 4, x.u16, xStackValue), 0, nil, badExpr + "DW_OP_deref_type with a size that is not its type's"},
		{"convert", cat(xBreg0, 0, xConvert, x.s32, xConvert, x.s64, xStackValue), 0, nil, "value s32(%rax)"},
		{"GNU_convert to generic", cat(xGNURegvalType, 0, x.u8, xGNUConvert, 0, xStackValue), 0, nil, "value u8(%rax)"},
		{"convert to bool", cat(xBreg0, 0, xConvert, x.bool, xStackValue), 0, nil, "value u8(%rax)"},
		{"reinterpret", cat(xRegvalType, 0, x.u64, xReinterpret, x.s64, xStackValue), 0, nil, "value %rax"},
		{"GNU_reinterpret u8 as s8", cat(xRegvalType, 0, x.u8, xGNUReinterpret, x.s8, xStackValue), 0, nil, "value s8(u8(%rax))"},
		{"reinterpret of another size", cat(xRegvalType, 0, x.u8, xReinterpret, x.s32, xStackValue), 0, nil, badExpr + "DW_OP_reinterpret between types of different sizes"},
		{"typed division is unsigned", cat(xRegvalType, 0, x.u64, xConstType, x.u64, 8, le64(10), xDiv, xStackValue), 0, nil, "value %rax /u 10"},
		{"typed modulo is signed", cat(xRegvalType, 0, x.s64, xConstType, x.s64, 8, le64(10), xMod, xStackValue), 0, nil, "value %rax mod 10"},
		{"typed comparison", cat(xRegvalType, 0, x.u32, xRegvalType, 1, x.u32, xLt, xStackValue), 0, nil, "value u32(%rax) <u u32(%rdx)"},
		{"typed sum wraps", cat(xRegvalType, 0, x.u8, xRegvalType, 1, x.u8, xPlus, xStackValue), 0, nil, "value u8(u8(%rax) + u8(%rdx))"},
		{"typed constants fold in their width", cat(xConstType, x.u8, 1, 200, xConstType, x.u8, 1, 100, xPlus, xStackValue), 0, nil, "constant 44"},
		{"shr of a signed type", cat(xRegvalType, 0, x.s32, xLit0+4, xShr, xStackValue), 0, nil, "value s32(u32(s32(%rax)) >>u 4)"},
		{"shra of an unsigned type", cat(xRegvalType, 0, x.u32, xLit0+4, xShra, xStackValue), 0, nil, "value u32(s32(u32(%rax)) >> 4)"},
		{"typed neg", cat(xRegvalType, 0, x.u8, xNeg, xStackValue), 0, nil, "value u8(-u8(%rax))"},
		{"typed not of a constant", cat(xConstType, x.u8, 1, 1, xNot, xStackValue), 0, nil, "constant 254"},
		{"clang's constant without a type", cat(xBreg0, 0, xConvert, x.u32, xLit0+7, xAnd, xStackValue), 0, nil, "value u32(u32(%rax) & 7)"},
		{"operands of different types", cat(xBreg0, 0, xRegvalType, 1, x.u8, xAnd, xStackValue), 0, nil, badExpr + "DW_OP_and on operands of different types"},
		{"and the other way round", cat(xRegvalType, 1, x.u8, xBreg0, 0, xAnd, xStackValue), 0, nil, badExpr + "DW_OP_and on operands of different types"},

		// Pieces.
		{"two registers", cat(xReg0+rdi, xPiece, 8, xReg0+rsi, xPiece, 8), 0, nil, "pieces {%rdi:8, %rsi:8}"},
		{"a gap", cat(xPiece, 8, xReg0+11, xPiece, 8, xPiece, 4), 0, nil, "pieces {?:8, %r11:8, ?:4}"},
		{"memory and constant", cat(xBreg0+rsp, 8, xPiece, 4, xLit0+1, xStackValue, xPiece, 4), 0, nil, "pieces {[%rsp+8]:4, 1:4}"},
		{"bytes and implicit pointer", cat(xImplicitValue, 9, make([]byte, 9), xPiece, 9, xImplicitPointer, le32(0x20), 4, xPiece, 8), 0, nil,
			"pieces {bytes(000000000000000000):9, &(0x20+4):8}"},
		{"bit_piece", cat(xReg0, xBitPiec, 3, 0, xReg0, xBitPiec, 5, 3), 0, nil, "pieces {%rax:3b, %rax:5b@3}"},
		{"bit_piece of whole bytes", cat(xReg0, xBitPiec, 16, 0), 0, nil, "pieces {%rax:2}"},
		{"uninitialized piece", cat(xReg0, xGNUUninit, xPiece, 4), 0, nil, "pieces {%rax:4}"},
		{"a piece of nothing", cat(xReg0, xPiece, 0), 0, nil, badExpr + "a piece of no or absurd size"},
		{"an absurd piece", cat(xReg0, xPiece, uleb(1<<62)), 0, nil, badExpr + "a piece of absurd size"},
		{"an absurd bit_piece", cat(xReg0, xBitPiec, 8, uleb(1<<62)), 0, nil, badExpr + "a piece of no or absurd size"},
		{"a piece cut short", cat(xReg0, xPiece), 0, nil, badExpr + "a piece is cut short"},
		{"a part behind pieces", cat(xReg0, xPiece, 8, xReg0), 0, nil, badExpr + "a part that is no piece follows pieces"},
		{"64 pieces", bytes.Repeat([]byte{xPiece, 1}, 64), 0, nil, "pieces {" + strings.Repeat("?:1, ", 63) + "?:1}"},
		{"65 pieces", bytes.Repeat([]byte{xPiece, 1}, 65), 0, nil, "unsupported-operation: more than 64 pieces"},

		// Pointers without a place, values at entry.
		{"implicit_pointer", cat(xImplicitPointer, le32(0x1f2e), sleb(-4)), 0, nil, "implicit-pointer &(0x1f2e-4)"},
		{"GNU_implicit_pointer", cat(xGNUImplicitPtr, le32(0x1f2e), 0), 0, nil, "implicit-pointer &(0x1f2e+0)"},
		{"entry_value at the entry", cat(xEntryValue, 1, xReg0+rdi, xStackValue), entryAt, nil, "value %rdi"},
		{"entry_value elsewhere", cat(xEntryValue, 1, xReg0+rdi, xStackValue), bodyAt, nil, "entry-value-only"},
		{"GNU_entry_value in a sum", cat(xGNUEntryValue, 1, xReg0+rdi, xPlusUconst, 8, xStackValue), entryAt, nil, "value %rdi+8"},
		{"entry_value of memory", cat(xEntryValue, 3, xBreg0+rsp, 8, xDeref, xStackValue), entryAt, nil, "value u64[%rsp+8]"},
		{"nested entry values", cat(xEntryValue, 3, xEntryValue, 1, xReg0+rdi, xStackValue), entryAt, nil, "value %rdi"},
		{"entry values nested too deep", deepEntryValue(20), entryAt, nil, "unsupported-operation: expressions nested more than 16 deep"},
		{"entry_value of pieces", cat(xEntryValue, 3, xReg0, xPiece, 8, xStackValue), entryAt, nil, "unsupported-operation: an entry value that is pieces"},
		{"entry_value, empty", cat(xEntryValue, 0, xStackValue), entryAt, nil, badExpr + "an empty entry value"},
		{"entry_value cut short", cat(xEntryValue, 9, xReg0), entryAt, nil, badExpr + "the block of an entry value is cut short"},
		{"GNU_parameter_ref", cat(xGNUParameterRef, le32(0x20), xStackValue), 0, nil, "parameter-ref"},
		{"form_tls_address", cat(xConst8u, le64(16), xFormTLS), 0, nil, "thread-local"},
		{"GNU_push_tls_address", cat(xConst8u, le64(16), xGNUPushTLS), 0, nil, "thread-local"},

		// The frame.
		{"call_frame_cfa at the entry", cfa, entryAt, nil, "memory [%rsp+8]"},
		{"call_frame_cfa in the body", cfa, bodyAt, nil, "memory [%rsp+32]"},
		{"call_frame_cfa by an expression", cfa, exprAt, nil, "memory [u64[%rbp+16]]"},
		{"call_frame_cfa without a description", cfa, nowhere, nil, "no-frame-info"},
		{"fbreg", cat(xFbreg, sleb(-24)), bodyAt, cfa, "memory [%rsp+8]"},
		{"fbreg value", cat(xFbreg, sleb(-24), xStackValue), bodyAt, cfa, "value %rsp+8"},
		{"fbreg of a register", cat(xFbreg, sleb(-24)), bodyAt, cat(xReg0 + rbp), "memory [%rbp-24]"},
		{"fbreg of a register before it is set", cat(xFbreg, sleb(24)), entryAt, cat(xReg0 + rsp), "not-at-site: it is relative to a stack frame that the function has not set up yet"},
		{"fbreg of an expression", cat(xFbreg, sleb(-24)), bodyAt, cat(xBreg0+rbp, 16), "memory [%rbp-8]"},
		{"fbreg without a frame base", cat(xFbreg, 0), bodyAt, nil, "no-frame-info: the function has no DW_AT_frame_base"},
		{"fbreg of pieces", cat(xFbreg, 0), bodyAt, cat(xReg0, xPiece, 8), "unsupported-operation: a DW_AT_frame_base that is pieces"},
		{"fbreg of itself", cat(xFbreg, 0), bodyAt, cat(xFbreg, 0), "unsupported-operation: expressions nested more than 16 deep"},
		{"fbreg of a vector register", cat(xFbreg, 0), bodyAt, cat(xRegx, xmm0), "vector-register: %xmm0"},

		// Branches.
		{"skip", cat(xSkip, le16(2), xLit0+1, xLit0+2, xLit0+3, xStackValue), 0, nil, "constant 3"},
		{"skip backwards", cat(xSkip, le16(4), xLit0+1, xSkip, le16(3), xSkip, le16(0xfff9), xStackValue), 0, nil, "constant 1"},
		{"bra, never taken", cat(xLit0+5, xLit0, xBra, le16(1), xLit0+6, xStackValue), 0, nil, "constant 6"},
		{"bra, always taken", cat(xLit0+5, xLit0+1, xBra, le16(1), xLit0+6, xStackValue), 0, nil, "constant 5"},
		{"bra on a register", cat(xLit0+5, xBreg0, 0, xBra, le16(1), xLit0+6, xStackValue), 0, nil, "value (%rax ? 5 : 6)"},
		{"bra between addresses", cat(xBreg0+rsi, 0, xBreg0, 0, xBra, le16(1), xDeref), 0, nil, "memory [(%rax ? %rsi : u64[%rsi])]"},
		{"bra between kinds", cat(xBreg0, 0, xBra, le16(1), xReg0+1, xReg0+2), 0, nil, badExpr + "DW_OP_reg2 follows a finished location"},
		{"bra between value and memory", cat(xBreg0+1, 0, xBreg0, 0, xBra, le16(4), xLit0+1, xSkip, le16(1), xStackValue), 0, nil, "unsupported-operation: a branch between different kinds of locations"},
		{"bra to nothing", cat(xBreg0, 0, xBra, le16(0)), 0, nil, badExpr + "nothing is left on the stack"},
		{"bra before a piece", cat(xLit0+1, xBreg0, 0, xBra, le16(0), xPiece, 4), 0, nil, "unsupported-operation: a branch in a location with pieces"},
		{"bra leaves the expression", cat(xLit0, xBra, le16(100)), 0, nil, badExpr + "a branch leaves the expression"},
		{"skip before the expression", cat(xSkip, le16(0xff00)), 0, nil, badExpr + "a branch leaves the expression"},
		{"bra on an empty stack", cat(xBra, le16(0)), 0, nil, badExpr + "the stack is empty"},
		{"endless loop", cat(xSkip, le16(0xfffd)), 0, nil, overflow + "that runs more than 4096 operations"},
		{"endless loop on a register", cat(xBreg0, 0, xBra, le16(0xfffb)), 0, nil, "unsupported-operation: more than 16 branches"},

		// Limits.
		{"a stack that grows", cat(xLit0, xSkip, le16(0xfffc)), 0, nil, overflow + "with more than 256 values on its stack"},
		{"a value that grows", cat(xBreg0, 0, bytes.Repeat([]byte{xDup, xMul}, 64), xStackValue), 0, nil, "unsupported-operation: an expression of more than 1024 operations"},
		{"a long chain", cat(xBreg0, 0, bytes.Repeat([]byte{xNot}, 1100), xStackValue), 0, nil, "unsupported-operation: an expression of more than 1024 operations"},

		// Damage.
		{"only a nop", cat(xNop), 0, nil, badExpr + "nothing is left on the stack"},
		{"drop of nothing", cat(xDrop), 0, nil, badExpr + "the stack is empty"},
		{"dup of nothing", cat(xDup), 0, nil, badExpr + "the stack is not that deep"},
		{"over one", cat(xLit0, xOver), 0, nil, badExpr + "the stack is not that deep"},
		{"pick too deep", cat(xLit0, xPick, 1), 0, nil, badExpr + "the stack is not that deep"},
		{"swap of one", cat(xLit0, xSwap), 0, nil, badExpr + "the stack is empty"},
		{"rot of two", cat(xLit0, xLit0, xRot), 0, nil, badExpr + "the stack is empty"},
		{"plus of one", cat(xLit0, xPlus), 0, nil, badExpr + "the stack is empty"},
		{"neg of nothing", cat(xNeg), 0, nil, badExpr + "the stack is empty"},
		{"abs of nothing", cat(xAbs), 0, nil, badExpr + "the stack is empty"},
		{"deref of nothing", cat(xDeref), 0, nil, badExpr + "the stack is empty"},
		{"convert of nothing", cat(xConvert, x.u8), 0, nil, badExpr + "the stack is empty"},
		{"reinterpret of nothing", cat(xReinterpret, x.u8), 0, nil, badExpr + "the stack is empty"},
		{"plus_uconst of nothing", cat(xPlusUconst, 1), 0, nil, badExpr + "the stack is empty"},
		{"stack_value of nothing", cat(xStackValue), 0, nil, badExpr + "DW_OP_stack_value on an empty stack"},
		{"something behind a register", cat(xReg0, xLit0), 0, nil, badExpr + "DW_OP_lit0 follows a finished location"},
		{"something behind stack_value", cat(xLit0, xStackValue, xStackValue), 0, nil, badExpr + "DW_OP_stack_value follows a finished location"},
		{"breg cut short", cat(xBreg0), 0, nil, badExpr + "an operand of DW_OP_breg0 is cut short"},
		{"const4u cut short", cat(xConst4u, 1, 2, 3), 0, nil, badExpr + "an operand of DW_OP_const4u is cut short"},
		{"constu cut short", cat(xConstu, 0x80), 0, nil, badExpr + "an operand of DW_OP_constu is cut short"},
		{"regx cut short", cat(xRegx), 0, nil, badExpr + "an operand is cut short"},
		{"implicit_value cut short", cat(xImplicitValue, 4, 1), 0, nil, badExpr + "the block of DW_OP_implicit_value is cut short"},
		{"implicit_pointer cut short", cat(xImplicitPointer, 1, 2), 0, nil, badExpr + "an operand is cut short"},
		{"bra cut short", cat(xLit0, xBra, 1), 0, nil, badExpr + "a branch leaves the expression"},

		// Operations without an equivalent.
		{"xderef", cat(xLit0, xLit0, xXderef), 0, nil, "unsupported-operation: DW_OP_xderef"},
		{"xderef_size", cat(xLit0, xLit0, xXderefSize, 1), 0, nil, "unsupported-operation: DW_OP_xderef_size"},
		{"xderef_type", cat(xLit0, xLit0, xXderefType, 1, x.u8), 0, nil, "unsupported-operation: DW_OP_xderef_type"},
		{"push_object_address", cat(xPushObject), 0, nil, "unsupported-operation: DW_OP_push_object_address"},
		{"call2", cat(xCall2, le16(0)), 0, nil, "unsupported-operation: DW_OP_call2"},
		{"call4", cat(xCall4, le32(0)), 0, nil, "unsupported-operation: DW_OP_call4"},
		{"call_ref", cat(xCallRef, le32(0)), 0, nil, "unsupported-operation: DW_OP_call_ref"},
		{"GNU_variable_value", cat(xGNUVariableValue, le32(0)), 0, nil, "unsupported-operation: DW_OP_GNU_variable_value"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := tt.at
			if at == 0 {
				at = bodyAt
			}
			if got := x.locate(tt.expr, at, tt.frame); got != tt.want {
				t.Errorf("%x:\ngot  %s\nwant %s", tt.expr, got, tt.want)
			}
		})
	}
}

// deepEntryValue nests entry values n deep around a register.
func deepEntryValue(n int) []byte {
	e := []byte{xReg0 + rdi}
	for range n {
		e = cat(xEntryValue, uleb(uint64(len(e))), e)
	}
	return append(e, xStackValue)
}

// TestEveryOperation runs each operation alone: on an empty and on a full stack,
// without and with operand bytes. It must print or give a reason with a text.
func TestEveryOperation(t *testing.T) {
	x := newEvalUnit(t)
	for code := range 256 {
		for _, before := range [][]byte{nil, {xBreg0, 0, xBreg0, 8, xBreg0 + 1, 16}} {
			for operands := range 12 {
				expr := cat(before, code, bytes.Repeat([]byte{1}, operands))
				if got := x.locate(expr, bodyAt, []byte{xCFA}); len(got) < 8 {
					t.Errorf("%x: %q", expr, got)
				}
			}
		}
		name := opName(uint8(code))
		if name == "" {
			t.Errorf("operation %#02x has the odd name %q", code, name)
		}
	}
	if got, want := x.locate([]byte{0xef}, bodyAt, nil), "unsupported-operation: "+opName(0xef); got != want || opName(0xef) == "" {
		t.Errorf("an unknown operation: got %q, want %q", got, want)
	}
}

func FuzzExpression(f *testing.F) {
	x := newEvalUnit(f)
	f.Add(cat(xBreg0, 0, xConvert, x.s32, xLit0+7, xAnd, xStackValue), true)
	f.Add(cat(xReg0, xPiece, 8, xPiece, 4, xFbreg, 8, xPiece, 4), false)
	f.Add(cat(xLit0+5, xBreg0, 0, xBra, le16(1), xLit0+6, xEntryValue, 1, xReg0, xPlus, xStackValue), true)
	f.Add(cat(xBreg0, 0, xBra, le16(0xfffb)), false)
	f.Fuzz(func(t *testing.T, expr []byte, entry bool) {
		at := uint64(bodyAt)
		if entry {
			at = entryAt
		}
		got := x.locate(expr, at, []byte{xCFA})
		if got != x.locate(expr, at, []byte{xCFA}) {
			t.Error("two evaluations give different answers")
		}
		if strings.HasPrefix(got, "none") || strings.HasSuffix(got, " ") || len(got) > 1<<17 {
			t.Errorf("odd answer %q", got)
		}
	})
}

// TestFold compares Fold with 64-bit arithmetic written out.
func TestFold(t *testing.T) {
	minus := func(v int64) uint64 { return uint64(-v) }
	for _, tt := range []struct {
		op   ExprOp
		x, y uint64
		want uint64
		ok   bool
	}{
		{OpAdd, ^uint64(0), 2, 1, true}, {OpSub, 1, 2, ^uint64(0), true}, {OpMul, 1 << 63, 2, 0, true},
		{OpDiv, minus(7), 2, minus(3), true}, {OpUDiv, minus(8), 2, 1<<63 - 4, true}, {OpMod, minus(7), 2, minus(1), true}, {OpUMod, 7, 4, 3, true},
		{OpDiv, 1, 0, 0, false}, {OpUDiv, 1, 0, 0, false}, {OpMod, 1, 0, 0, false}, {OpUMod, 1, 0, 0, false},
		{OpMod, 1 << 63, ^uint64(0), 0, true},
		{OpShl, 1, 64, 0, true}, {OpShr, 1 << 63, 63, 1, true}, {OpShr, 1 << 63, 64, 0, true}, {OpShra, 1 << 63, 99, ^uint64(0), true},
		{OpAnd, 6, 3, 2, true}, {OpOr, 6, 3, 7, true}, {OpXor, 6, 3, 5, true},
		{OpEq, 1, 1, 1, true}, {OpNe, 1, 1, 0, true},
		{OpLt, ^uint64(0), 0, 1, true}, {OpULt, ^uint64(0), 0, 0, true}, {OpLe, 1, 1, 1, true}, {OpULe, 2, 1, 0, true},
		{OpGt, ^uint64(0), 0, 0, true}, {OpUGt, ^uint64(0), 0, 1, true}, {OpGe, 0, 0, 1, true}, {OpUGe, 0, 1, 0, true},
		{OpConst, 1, 1, 0, false},
	} {
		if got, ok := Fold(tt.op, tt.x, tt.y); got != tt.want || ok != tt.ok {
			t.Errorf("Fold(%d, %#x, %#x) = %#x, %v, want %#x, %v", tt.op, tt.x, tt.y, got, ok, tt.want, tt.ok)
		}
	}
}
