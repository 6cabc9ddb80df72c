package dwarfloc

import (
	"bytes"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/resolve"
	"github.com/bpfprologue/bpfprologue/loc"
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
	base := func(size, enc int) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrByteSize, dw.FormData1, size), dwarftest.At(dw.AttrEncoding, dw.FormData1, enc)}}
	}
	types := []*dwarftest.DIE{
		base(1, dw.EncUnsigned), base(1, dw.EncSigned), base(2, dw.EncUnsigned), base(4, dw.EncSigned), base(4, dw.EncUnsigned),
		base(8, dw.EncUnsigned), base(8, dw.EncSigned), base(8, dw.EncFloat), base(16, dw.EncUnsigned), base(1, dw.EncBoolean),
		{Tag: dw.TagStructType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrByteSize, dw.FormData1, 4)}},
	}
	cie := dwarftest.Cat(dwarftest.LE32(0xffffffff), 1, "", dwarftest.ULEB(1), dwarftest.SLEB(-8), 16, // version 1, no augmentation, code and data alignment, return address
		0x0c, dwarftest.ULEB(7), dwarftest.ULEB(8)) // DW_CFA_def_cfa: rsp+8
	fde := dwarftest.Cat(dwarftest.LE32(0), dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(0x30),
		0x50, 0x0e, dwarftest.ULEB(32), // advance 16; DW_CFA_def_cfa_offset 32
		0x50, 0x0f, dwarftest.ULEB(3), xBreg0+6, dwarftest.SLEB(16), xDeref) // advance 16; DW_CFA_def_cfa_expression u64[rbp+16]
	frame := dwarftest.Cat(dwarftest.LE32(uint64(len(cie))), cie, dwarftest.LE32(uint64(len(fde))), fde)
	addrs := dwarftest.Cat(dwarftest.LE32(0), 5, 0, 8, 0, dwarftest.LE64(0x402000), dwarftest.LE64(0x403000))
	img := testImage(t, []dwarftest.CU{{Version: 5, Root: dwarftest.Root(types...)}}, dwarftest.Debug(".debug_frame", frame), dwarftest.Debug(".debug_addr", addrs))
	at := make([]byte, len(types))
	for i, d := range types {
		if d.Off > 0x7f {
			t.Fatal("a base type is too far away for one byte")
		}
		at[i] = byte(d.Off)
	}
	return &evalUnit{&img.units[0], at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], at[9], at[10]}
}

// locate evaluates an expression and prints what came out.
func (x *evalUnit) locate(expr []byte, addr uint64, frame []byte) string {
	x.u.Recs = []index.Rec{{Parent: -1}} // a function without a call
	at := &entries.Spot{U: x.u.Unit, Addr: addr, At: entries.Place{Addr: addr}, Fun: entries.Function{Start: dwarftest.TextAddr}}
	if frame != nil {
		at.Fun.Frame = dw.BlockValue(dw.FormExprloc, frame)
	}
	var l loc.Location
	r, err := resolve.At(at).Locate(expr, ".debug_loclists", 0x10, &l)
	switch {
	case err != nil:
		return "error " + err.Error()
	case r.Code != reasons.None:
		return r.String()
	}
	return l.Kind.String() + " " + l.Text(x.u.img.Arch())
}

const (
	entryAt  = dwarftest.TextAddr
	bodyAt   = dwarftest.TextAddr + 0x10
	exprAt   = dwarftest.TextAddr + 0x20
	nowhere  = dwarftest.TextAddr + 0x40
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
		{"reg", dwarftest.Cat(xReg0 + rdi), 0, nil, "register %rdi"},
		{"reg31", dwarftest.Cat(xReg0 + 31), 0, nil, "vector-register: %xmm14"},
		{"regx", dwarftest.Cat(xRegx, dwarftest.ULEB(rsi)), 0, nil, "register %rsi"},
		{"regx of a vector", dwarftest.Cat(xRegx, dwarftest.ULEB(xmm0)), 0, nil, "vector-register: %xmm0"},
		{"regx of a segment", dwarftest.Cat(xRegx, dwarftest.ULEB(50)), 0, nil, "no-register: %es"},
		{"regx unknown", dwarftest.Cat(xRegx, dwarftest.ULEB(500)), 0, nil, "no-register: DWARF register 500"},
		{"regx absurd", dwarftest.Cat(xRegx, dwarftest.ULEB(1<<63)), 0, nil, "no-register: DWARF register 9223372036854775808"},
		{"reg, uninitialized", dwarftest.Cat(xReg0, xGNUUninit), 0, nil, "register %rax"},
		{"breg", dwarftest.Cat(xBreg0+rsp, dwarftest.SLEB(8)), 0, nil, "memory [%rsp+8]"},
		{"breg 0", dwarftest.Cat(xBreg0+rsp, 0), 0, nil, "memory [%rsp]"},
		{"breg value", dwarftest.Cat(xBreg0+rsp, dwarftest.SLEB(-8), xStackValue), 0, nil, "value %rsp-8"},
		{"breg of a vector", dwarftest.Cat(xBreg0+xmm0, 0), 0, nil, "vector-register: %xmm0"},
		{"bregx", dwarftest.Cat(xBregx, dwarftest.ULEB(rsi), dwarftest.SLEB(-70000)), 0, nil, "memory [%rsi-0x11170]"},
		{"addr", dwarftest.Cat(xAddr, dwarftest.LE64(0xffffffff82000000)), 0, nil, "memory [@0xffffffff82000000]"},
		{"addr value", dwarftest.Cat(xAddr, dwarftest.LE64(0x402000), xPlusUconst, 8, xStackValue), 0, nil, "value @0x402008"},
		{"addrx", dwarftest.Cat(xAddrx, 1), 0, nil, "memory [@0x403000]"},
		{"GNU_addr_index", dwarftest.Cat(xGNUAddrIndex, 0), 0, nil, "memory [@0x402000]"},
		{"addrx outside", dwarftest.Cat(xAddrx, 2), 0, nil, "error test: .debug_addr+0x8: address index 2 is outside the section"},
		{"constx", dwarftest.Cat(xConstx, 1, xStackValue), 0, nil, "constant 0x403000"},
		{"GNU_const_index", dwarftest.Cat(xGNUConstIndex, 0, xStackValue), 0, nil, "constant 0x402000"},
		{"empty", nil, 0, nil, "optimized-out"},

		// Constants.
		{"lit0", dwarftest.Cat(xLit0, xStackValue), 0, nil, "constant 0"},
		{"lit31", dwarftest.Cat(xLit0+31, xStackValue), 0, nil, "constant 31"},
		{"const1u", dwarftest.Cat(xConst1u, 0xff, xStackValue), 0, nil, "constant 255"},
		{"const1s", dwarftest.Cat(xConst1s, 0xff, xStackValue), 0, nil, "constant -1"},
		{"const2u", dwarftest.Cat(xConst2u, dwarftest.LE16(0xfffe), xStackValue), 0, nil, "constant 65534"},
		{"const2s", dwarftest.Cat(xConst2s, dwarftest.LE16(0xfffe), xStackValue), 0, nil, "constant -2"},
		{"const4u", dwarftest.Cat(xConst4u, dwarftest.LE32(0xfffffffd), xStackValue), 0, nil, "constant 0xfffffffd"},
		{"const4s", dwarftest.Cat(xConst4s, dwarftest.LE32(0xfffffffd), xStackValue), 0, nil, "constant -3"},
		{"const8u", dwarftest.Cat(xConst8u, dwarftest.LE64(1<<63), xStackValue), 0, nil, "constant 0x8000000000000000"},
		{"const8s", dwarftest.Cat(xConst8s, dwarftest.LE64(^uint64(3)), xStackValue), 0, nil, "constant -4"},
		{"constu", dwarftest.Cat(xConstu, dwarftest.ULEB(1<<40), xStackValue), 0, nil, "constant 0x10000000000"},
		{"consts", dwarftest.Cat(xConsts, dwarftest.SLEB(-1<<20), xStackValue), 0, nil, "constant -0x100000"},
		{"a constant as an address", dwarftest.Cat(xConstu, dwarftest.ULEB(4096)), 0, nil, "memory [4096]"},
		{"implicit_value", dwarftest.Cat(xImplicitValue, 4, dwarftest.LE32(0x12345678)), 0, nil, "constant 0x12345678"},
		{"implicit_value of 3 bytes", dwarftest.Cat(xImplicitValue, 3, 1, 2, 3), 0, nil, "constant 0x30201"},
		{"implicit_value of 10 bytes", dwarftest.Cat(xImplicitValue, 10, dwarftest.LE64(1), dwarftest.LE16(2)), 0, nil, "bytes bytes(01000000000000000200)"},
		{"implicit_value, empty", dwarftest.Cat(xImplicitValue, 0), 0, nil, "bytes bytes()"},

		// The stack.
		{"dup", dwarftest.Cat(xBreg0, 0, xDup, xMul, xStackValue), 0, nil, "value %rax * %rax"},
		{"drop", dwarftest.Cat(xBreg0, 0, xLit0, xDrop), 0, nil, "memory [%rax]"},
		{"over", dwarftest.Cat(xBreg0+rsi, 0, xBreg0+rdi, 0, xOver, xMinus, xMinus, xStackValue), 0, nil, "value %rsi - (%rdi - %rsi)"},
		{"pick", dwarftest.Cat(xBreg0, 0, xBreg0+1, 0, xBreg0+2, 0, xPick, 2, xStackValue), 0, nil, "value %rax"},
		{"swap", dwarftest.Cat(xBreg0, 0, xBreg0+1, 0, xSwap, xMinus, xStackValue), 0, nil, "value %rdx - %rax"},
		// rot: the top becomes third, the second first, the third second.
		{"rot", dwarftest.Cat(xBreg0, 0, xBreg0+1, 0, xBreg0+2, 0, xRot, xMinus, xMinus, xStackValue), 0, nil, "value %rcx - (%rax - %rdx)"},
		{"nop", dwarftest.Cat(xNop, xBreg0, 0, xNop), 0, nil, "memory [%rax]"},

		// Arithmetic.
		{"and", dwarftest.Cat(xBreg0, 0, xConst1u, 255, xAnd, xStackValue), 0, nil, "value %rax & 255"},
		{"or", dwarftest.Cat(xBreg0, 0, xBreg0+1, 0, xOr, xStackValue), 0, nil, "value %rax | %rdx"},
		{"xor", dwarftest.Cat(xBreg0, 0, xBreg0+1, 0, xXor, xStackValue), 0, nil, "value %rax ^ %rdx"},
		{"plus", dwarftest.Cat(xBreg0, 0, xBreg0+1, 0, xPlus, xStackValue), 0, nil, "value %rax + %rdx"},
		{"plus a constant", dwarftest.Cat(xLit0+3, xBreg0, 4, xPlus, xStackValue), 0, nil, "value %rax+7"},
		{"plus_uconst", dwarftest.Cat(xBreg0, 0, xPlusUconst, dwarftest.ULEB(300), xStackValue), 0, nil, "value %rax+300"},
		{"minus", dwarftest.Cat(xBreg0, 0, xLit0+3, xMinus, xStackValue), 0, nil, "value %rax-3"},
		{"mul", dwarftest.Cat(xBreg0, 0, xLit0+24, xMul, xStackValue), 0, nil, "value %rax * 24"},
		{"div is signed", dwarftest.Cat(xBreg0, 0, xLit0+10, xDiv, xStackValue), 0, nil, "value %rax / 10"},
		{"mod is unsigned", dwarftest.Cat(xBreg0, 0, xLit0+10, xMod, xStackValue), 0, nil, "value %rax modu 10"},
		{"neg", dwarftest.Cat(xBreg0, 0, xNeg, xStackValue), 0, nil, "value -%rax"},
		{"neg of a sum", dwarftest.Cat(xBreg0, 8, xNeg, xStackValue), 0, nil, "value -(%rax+8)"},
		{"sum of a neg", dwarftest.Cat(xBreg0, 0, xNeg, xPlusUconst, 8, xStackValue), 0, nil, "value -%rax+8"},
		{"not", dwarftest.Cat(xBreg0, 0, xNot, xStackValue), 0, nil, "value ~%rax"},
		{"abs", dwarftest.Cat(xBreg0, 0, xAbs, xStackValue), 0, nil, "value ((%rax < 0) ? -%rax : %rax)"},
		{"shl", dwarftest.Cat(xBreg0, 0, xLit0+3, xShl, xStackValue), 0, nil, "value %rax << 3"},
		{"shr is logical", dwarftest.Cat(xBreg0, 0, xLit0+3, xShr, xStackValue), 0, nil, "value %rax >>u 3"},
		{"shra", dwarftest.Cat(xBreg0, 0, xLit0+3, xShra, xStackValue), 0, nil, "value %rax >> 3"},
		{"eq", dwarftest.Cat(xBreg0, 0, xLit0, xEq, xStackValue), 0, nil, "value %rax == 0"},
		{"ne", dwarftest.Cat(xBreg0, 0, xLit0, xNe, xStackValue), 0, nil, "value %rax != 0"},
		{"lt is signed", dwarftest.Cat(xBreg0, 0, xLit0, xLt, xStackValue), 0, nil, "value %rax < 0"},
		{"le", dwarftest.Cat(xBreg0, 0, xLit0, xLe, xStackValue), 0, nil, "value %rax <= 0"},
		{"gt", dwarftest.Cat(xBreg0, 0, xLit0, xGt, xStackValue), 0, nil, "value %rax > 0"},
		{"ge", dwarftest.Cat(xBreg0, 0, xLit0, xGe, xStackValue), 0, nil, "value %rax >= 0"},
		{"folded", dwarftest.Cat(xLit0+5, xLit0+7, xMinus, xLit0+2, xShra, xNot, xNeg, xStackValue), 0, nil, "constant 0"}, // -(^(-2>>2))
		{"division of constants by zero", dwarftest.Cat(xLit0+5, xLit0, xDiv, xStackValue), 0, nil, "value 5 / 0"},
		{"lowest divided by -1", dwarftest.Cat(xConst8u, dwarftest.LE64(1<<63), xLit0, xNot, xDiv, xStackValue), 0, nil, "constant 0x8000000000000000"},
		{"a constant that prints without a sign", dwarftest.Cat(xBreg0, 0, xConst8u, dwarftest.LE64(1<<63), xPlus, xStackValue), 0, nil, "value %rax+0x8000000000000000"},

		// Memory.
		{"deref", dwarftest.Cat(xBreg0+rsp, 8, xDeref), 0, nil, "memory [u64[%rsp+8]]"},
		{"deref value", dwarftest.Cat(xBreg0+rsp, 8, xDeref, xStackValue), 0, nil, "value u64[%rsp+8]"},
		{"deref_size", dwarftest.Cat(xBreg0, 0, xDerefSize, 2, xStackValue), 0, nil, "value u16[%rax]"},
		{"deref_size 3", dwarftest.Cat(xBreg0, 0, xDerefSize, 3, xStackValue), 0, nil, "unsupported-operation: a memory read of 3 bytes"},
		{"deref_size 0", dwarftest.Cat(xBreg0, 0, xDerefSize, 0, xStackValue), 0, nil, "unsupported-operation: a memory read of 0 bytes"},

		// Typed operations.
		{"regval_type s32", dwarftest.Cat(xRegvalType, rdi, x.s32, xStackValue), 0, nil, "value s32(%rdi)"},
		{"GNU_regval_type u8", dwarftest.Cat(xGNURegvalType, rdi, x.u8, xStackValue), 0, nil, "value u8(%rdi)"},
		{"regval_type u64", dwarftest.Cat(xRegvalType, rdi, x.u64, xStackValue), 0, nil, "value %rdi"},
		{"regval_type of a vector", dwarftest.Cat(xRegvalType, xmm0, x.u64, xStackValue), 0, nil, "vector-register: %xmm0"},
		{"regval_type double", dwarftest.Cat(xRegvalType, rdi, x.f64, xStackValue), 0, nil, "unsupported-operation: a base type of encoding 0x4"},
		{"regval_type of 128 bits", dwarftest.Cat(xRegvalType, rdi, x.u128, xStackValue), 0, nil, "unsupported-operation: an integer type of 16 bytes"},
		{"regval_type of a structure", dwarftest.Cat(xRegvalType, rdi, x.notBase, xStackValue), 0, nil,
			"error test: .debug_info+0x34: a typed operation names an entry that is no base type"},
		{"const_type s8", dwarftest.Cat(xConstType, x.s8, 1, 0xf0, xStackValue), 0, nil, "constant -16"},
		{"GNU_const_type u16", dwarftest.Cat(xGNUConstType, x.u16, 2, dwarftest.LE16(0xfff0), xStackValue), 0, nil, "constant 65520"},
		{"const_type of another size", dwarftest.Cat(xConstType, x.u16, 1, 5, xStackValue), 0, nil, badExpr + "a typed constant whose size is not its type's"},
		{"const_type generic", dwarftest.Cat(xConstType, 0, 1, 5, xStackValue), 0, nil, badExpr + "a typed constant whose size is not its type's"},
		{"deref_type", dwarftest.Cat(xBreg0, 0, xDerefType, 4, x.s32, xStackValue), 0, nil, "value s32(u32[%rax])"},
		{"GNU_deref_type unsigned", dwarftest.Cat(xBreg0, 0, xGNUDerefType, 2, x.u16, xStackValue), 0, nil, "value u16[%rax]"},
		{"deref_type of another size", dwarftest.Cat(xBreg0, 0, xDerefType, 4, x.u16, xStackValue), 0, nil, badExpr + "DW_OP_deref_type with a size that is not its type's"},
		{"convert", dwarftest.Cat(xBreg0, 0, xConvert, x.s32, xConvert, x.s64, xStackValue), 0, nil, "value s32(%rax)"},
		{"GNU_convert to generic", dwarftest.Cat(xGNURegvalType, 0, x.u8, xGNUConvert, 0, xStackValue), 0, nil, "value u8(%rax)"},
		{"convert to bool", dwarftest.Cat(xBreg0, 0, xConvert, x.bool, xStackValue), 0, nil, "value u8(%rax)"},
		{"reinterpret", dwarftest.Cat(xRegvalType, 0, x.u64, xReinterpret, x.s64, xStackValue), 0, nil, "value %rax"},
		{"GNU_reinterpret u8 as s8", dwarftest.Cat(xRegvalType, 0, x.u8, xGNUReinterpret, x.s8, xStackValue), 0, nil, "value s8(u8(%rax))"},
		{"reinterpret of another size", dwarftest.Cat(xRegvalType, 0, x.u8, xReinterpret, x.s32, xStackValue), 0, nil, badExpr + "DW_OP_reinterpret between types of different sizes"},
		{"typed division is unsigned", dwarftest.Cat(xRegvalType, 0, x.u64, xConstType, x.u64, 8, dwarftest.LE64(10), xDiv, xStackValue), 0, nil, "value %rax /u 10"},
		{"typed modulo is signed", dwarftest.Cat(xRegvalType, 0, x.s64, xConstType, x.s64, 8, dwarftest.LE64(10), xMod, xStackValue), 0, nil, "value %rax mod 10"},
		{"typed comparison", dwarftest.Cat(xRegvalType, 0, x.u32, xRegvalType, 1, x.u32, xLt, xStackValue), 0, nil, "value u32(%rax) <u u32(%rdx)"},
		{"typed sum wraps", dwarftest.Cat(xRegvalType, 0, x.u8, xRegvalType, 1, x.u8, xPlus, xStackValue), 0, nil, "value u8(u8(%rax) + u8(%rdx))"},
		{"typed constants fold in their width", dwarftest.Cat(xConstType, x.u8, 1, 200, xConstType, x.u8, 1, 100, xPlus, xStackValue), 0, nil, "constant 44"},
		{"shr of a signed type", dwarftest.Cat(xRegvalType, 0, x.s32, xLit0+4, xShr, xStackValue), 0, nil, "value s32(u32(s32(%rax)) >>u 4)"},
		{"shra of an unsigned type", dwarftest.Cat(xRegvalType, 0, x.u32, xLit0+4, xShra, xStackValue), 0, nil, "value u32(s32(u32(%rax)) >> 4)"},
		{"typed neg", dwarftest.Cat(xRegvalType, 0, x.u8, xNeg, xStackValue), 0, nil, "value u8(-u8(%rax))"},
		{"typed not of a constant", dwarftest.Cat(xConstType, x.u8, 1, 1, xNot, xStackValue), 0, nil, "constant 254"},
		{"clang's constant without a type", dwarftest.Cat(xBreg0, 0, xConvert, x.u32, xLit0+7, xAnd, xStackValue), 0, nil, "value u32(u32(%rax) & 7)"},
		{"clang's constant without a type, first", dwarftest.Cat(xLit0+1, xBreg0, 0, xConvert, x.u32, xMinus, xStackValue), 0, nil, "value u32(1 - u32(%rax))"},
		{"clang's types of one width", dwarftest.Cat(xRegvalType, 0, x.u32, xRegvalType, 1, x.s32, xXor, xStackValue), 0, nil, "value u32(u32(%rax) ^ u32(s32(%rdx)))"},
		{"types of one width, in a comparison", dwarftest.Cat(xRegvalType, 0, x.u32, xRegvalType, 1, x.s32, xLt, xStackValue), 0, nil, badExpr + "DW_OP_lt on operands of different types"},
		{"operands of different types", dwarftest.Cat(xBreg0, 0, xRegvalType, 1, x.u8, xAnd, xStackValue), 0, nil, badExpr + "DW_OP_and on operands of different types"},
		{"and the other way round", dwarftest.Cat(xRegvalType, 1, x.u8, xBreg0, 0, xAnd, xStackValue), 0, nil, badExpr + "DW_OP_and on operands of different types"},
		{"clang's 64 bits with and without a type", dwarftest.Cat(xBreg0, 0, xRegvalType, 1, x.u64, xDiv, xStackValue), 0, nil, "value %rax /u %rdx"},
		{"and the other way round, 64 bits", dwarftest.Cat(xRegvalType, 0, x.u64, xBreg0+rdi, 0, xPlus, xStackValue), 0, nil, "value %rax + %rdi"},
		{"GCC's shift by a negative number", dwarftest.Cat(xBreg0, 0, xDeref, xConst1s, 0xdc, xShl, xConst1s, 0xe0, xShra, xStackValue), 0, nil, "contradictory: a shift by -36 bits"},

		// Pieces.
		{"two registers", dwarftest.Cat(xReg0+rdi, xPiece, 8, xReg0+rsi, xPiece, 8), 0, nil, "pieces {%rdi:8, %rsi:8}"},
		{"a gap", dwarftest.Cat(xPiece, 8, xReg0+11, xPiece, 8, xPiece, 4), 0, nil, "pieces {?:8, %r11:8, ?:4}"},
		{"memory and constant", dwarftest.Cat(xBreg0+rsp, 8, xPiece, 4, xLit0+1, xStackValue, xPiece, 4), 0, nil, "pieces {[%rsp+8]:4, 1:4}"},
		{"bytes and implicit pointer", dwarftest.Cat(xImplicitValue, 9, make([]byte, 9), xPiece, 9, xImplicitPointer, dwarftest.LE32(0x20), 4, xPiece, 8), 0, nil,
			"pieces {bytes(000000000000000000):9, &(0x20+4):8}"},
		{"bit_piece", dwarftest.Cat(xReg0, xBitPiec, 3, 0, xReg0, xBitPiec, 5, 3), 0, nil, "pieces {%rax:3b, %rax:5b@3}"},
		{"bit_piece of whole bytes", dwarftest.Cat(xReg0, xBitPiec, 16, 0), 0, nil, "pieces {%rax:2}"},
		{"uninitialized piece", dwarftest.Cat(xReg0, xGNUUninit, xPiece, 4), 0, nil, "pieces {%rax:4}"},
		{"a piece of nothing", dwarftest.Cat(xReg0, xPiece, 0), 0, nil, badExpr + "a piece of no or absurd size"},
		{"an absurd piece", dwarftest.Cat(xReg0, xPiece, dwarftest.ULEB(1<<62)), 0, nil, badExpr + "a piece of absurd size"},
		{"an absurd bit_piece", dwarftest.Cat(xReg0, xBitPiec, 8, dwarftest.ULEB(1<<62)), 0, nil, badExpr + "a piece of no or absurd size"},
		{"a piece cut short", dwarftest.Cat(xReg0, xPiece), 0, nil, badExpr + "an operand of DW_OP_piece is cut short"},
		{"a part after pieces", dwarftest.Cat(xReg0, xPiece, 8, xReg0), 0, nil, badExpr + "a part that is no piece follows pieces"},
		{"64 pieces", bytes.Repeat([]byte{xPiece, 1}, 64), 0, nil, "pieces {" + strings.Repeat("?:1, ", 63) + "?:1}"},
		{"65 pieces", bytes.Repeat([]byte{xPiece, 1}, 65), 0, nil, "unsupported-operation: more than 64 pieces"},

		// Pointers without a place, values at entry.
		{"implicit_pointer", dwarftest.Cat(xImplicitPointer, dwarftest.LE32(0x1f2e), dwarftest.SLEB(-4)), 0, nil, "implicit-pointer &(0x1f2e-4)"},
		{"GNU_implicit_pointer", dwarftest.Cat(xGNUImplicitPtr, dwarftest.LE32(0x1f2e), 0), 0, nil, "implicit-pointer &(0x1f2e+0)"},
		{"entry_value at the entry", dwarftest.Cat(xEntryValue, 1, xReg0+rdi, xStackValue), entryAt, nil, "value %rdi"},
		{"entry_value elsewhere", dwarftest.Cat(xEntryValue, 1, xReg0+rdi, xStackValue), bodyAt, nil, "entry-value-only: no call of it is known"},
		{"GNU_entry_value in a sum", dwarftest.Cat(xGNUEntryValue, 1, xReg0+rdi, xPlusUconst, 8, xStackValue), entryAt, nil, "value %rdi+8"},
		{"entry_value of memory", dwarftest.Cat(xEntryValue, 3, xBreg0+rsp, 8, xDeref, xStackValue), entryAt, nil, "value u64[%rsp+8]"},
		{"nested entry values", dwarftest.Cat(xEntryValue, 3, xEntryValue, 1, xReg0+rdi, xStackValue), entryAt, nil, "value %rdi"},
		{"entry values nested too deep", deepEntryValue(20), entryAt, nil, "unsupported-operation: expressions nested more than 16 deep"},
		{"entry_value of pieces", dwarftest.Cat(xEntryValue, 3, xReg0, xPiece, 8, xStackValue), entryAt, nil, "unsupported-operation: an entry value that is pieces"},
		{"entry_value, empty", dwarftest.Cat(xEntryValue, 0, xStackValue), entryAt, nil, badExpr + "an empty entry value"},
		{"entry_value cut short", dwarftest.Cat(xEntryValue, 9, xReg0), entryAt, nil, badExpr + "an operand of DW_OP_entry_value is cut short"},
		{"GNU_parameter_ref", dwarftest.Cat(xGNUParameterRef, dwarftest.LE32(0x20), xStackValue), 0, nil, "parameter-ref: no call of it is known"},
		{"form_tls_address", dwarftest.Cat(xConst8u, dwarftest.LE64(16), xFormTLS), 0, nil, "thread-local"},
		{"GNU_push_tls_address", dwarftest.Cat(xConst8u, dwarftest.LE64(16), xGNUPushTLS), 0, nil, "thread-local"},

		// The frame.
		{"call_frame_cfa at the entry", cfa, entryAt, nil, "memory [%rsp+8]"},
		{"call_frame_cfa in the body", cfa, bodyAt, nil, "memory [%rsp+32]"},
		{"call_frame_cfa by an expression", cfa, exprAt, nil, "memory [u64[%rbp+16]]"},
		{"call_frame_cfa without a description", cfa, nowhere, nil, "no-frame-info"},
		{"fbreg", dwarftest.Cat(xFbreg, dwarftest.SLEB(-24)), bodyAt, cfa, "memory [%rsp+8]"},
		{"fbreg value", dwarftest.Cat(xFbreg, dwarftest.SLEB(-24), xStackValue), bodyAt, cfa, "value %rsp+8"},
		{"fbreg of a register", dwarftest.Cat(xFbreg, dwarftest.SLEB(-24)), bodyAt, dwarftest.Cat(xReg0 + rbp), "memory [%rbp-24]"},
		{"fbreg of a register before it is set", dwarftest.Cat(xFbreg, dwarftest.SLEB(24)), entryAt, dwarftest.Cat(xReg0 + rsp), "not-at-site: it is relative to a stack frame that the function has not set up yet"},
		{"fbreg of an expression", dwarftest.Cat(xFbreg, dwarftest.SLEB(-24)), bodyAt, dwarftest.Cat(xBreg0+rbp, 16), "memory [%rbp-8]"},
		{"fbreg without a frame base", dwarftest.Cat(xFbreg, 0), bodyAt, nil, "no-frame-info: the function has no DW_AT_frame_base"},
		{"fbreg of pieces", dwarftest.Cat(xFbreg, 0), bodyAt, dwarftest.Cat(xReg0, xPiece, 8), "unsupported-operation: a DW_AT_frame_base that is pieces"},
		{"fbreg of itself", dwarftest.Cat(xFbreg, 0), bodyAt, dwarftest.Cat(xFbreg, 0), "unsupported-operation: expressions nested more than 16 deep"},
		{"fbreg of a vector register", dwarftest.Cat(xFbreg, 0), bodyAt, dwarftest.Cat(xRegx, xmm0), "vector-register: %xmm0"},

		// Branches.
		{"skip", dwarftest.Cat(xSkip, dwarftest.LE16(2), xLit0+1, xLit0+2, xLit0+3, xStackValue), 0, nil, "constant 3"},
		{"skip backwards", dwarftest.Cat(xSkip, dwarftest.LE16(4), xLit0+1, xSkip, dwarftest.LE16(3), xSkip, dwarftest.LE16(0xfff9), xStackValue), 0, nil, "constant 1"},
		{"bra, never taken", dwarftest.Cat(xLit0+5, xLit0, xBra, dwarftest.LE16(1), xLit0+6, xStackValue), 0, nil, "constant 6"},
		{"bra, always taken", dwarftest.Cat(xLit0+5, xLit0+1, xBra, dwarftest.LE16(1), xLit0+6, xStackValue), 0, nil, "constant 5"},
		{"bra on a register", dwarftest.Cat(xLit0+5, xBreg0, 0, xBra, dwarftest.LE16(1), xLit0+6, xStackValue), 0, nil, "value (%rax ? 5 : 6)"},
		{"bra between addresses", dwarftest.Cat(xBreg0+rsi, 0, xBreg0, 0, xBra, dwarftest.LE16(1), xDeref), 0, nil, "memory [(%rax ? %rsi : u64[%rsi])]"},
		{"bra between kinds", dwarftest.Cat(xBreg0, 0, xBra, dwarftest.LE16(1), xReg0+1, xReg0+2), 0, nil, badExpr + "DW_OP_reg2 follows a finished location"},
		{"bra between value and memory", dwarftest.Cat(xBreg0+1, 0, xBreg0, 0, xBra, dwarftest.LE16(4), xLit0+1, xSkip, dwarftest.LE16(1), xStackValue), 0, nil, "unsupported-operation: a branch between different kinds of locations"},
		{"bra to nothing", dwarftest.Cat(xBreg0, 0, xBra, dwarftest.LE16(0)), 0, nil, badExpr + "nothing is left on the stack"},
		{"bra before a piece", dwarftest.Cat(xLit0+1, xBreg0, 0, xBra, dwarftest.LE16(0), xPiece, 4), 0, nil, "unsupported-operation: a branch in a location with pieces"},
		{"bra leaves the expression", dwarftest.Cat(xLit0, xBra, dwarftest.LE16(100)), 0, nil, badExpr + "a branch leaves the expression"},
		{"skip before the expression", dwarftest.Cat(xSkip, dwarftest.LE16(0xff00)), 0, nil, badExpr + "a branch leaves the expression"},
		{"bra on an empty stack", dwarftest.Cat(xBra, dwarftest.LE16(0)), 0, nil, badExpr + "the stack is empty"},
		{"endless loop", dwarftest.Cat(xSkip, dwarftest.LE16(0xfffd)), 0, nil, overflow + "that runs more than 4096 operations"},
		{"endless loop on a register", dwarftest.Cat(xBreg0, 0, xBra, dwarftest.LE16(0xfffb)), 0, nil, "unsupported-operation: more than 16 branches"},

		// Limits.
		{"a stack that grows", dwarftest.Cat(xLit0, xSkip, dwarftest.LE16(0xfffc)), 0, nil, overflow + "with more than 256 values on its stack"},
		{"a value that grows", dwarftest.Cat(xBreg0, 0, bytes.Repeat([]byte{xDup, xMul}, 64), xStackValue), 0, nil, "unsupported-operation: an expression of more than 1024 operations"},
		{"a long chain", dwarftest.Cat(xBreg0, 0, bytes.Repeat([]byte{xNot}, 1100), xStackValue), 0, nil, "unsupported-operation: an expression of more than 1024 operations"},

		// Damage.
		{"only a nop", dwarftest.Cat(xNop), 0, nil, badExpr + "nothing is left on the stack"},
		{"drop of nothing", dwarftest.Cat(xDrop), 0, nil, badExpr + "the stack is empty"},
		{"dup of nothing", dwarftest.Cat(xDup), 0, nil, badExpr + "the stack is not that deep"},
		{"over one", dwarftest.Cat(xLit0, xOver), 0, nil, badExpr + "the stack is not that deep"},
		{"pick too deep", dwarftest.Cat(xLit0, xPick, 1), 0, nil, badExpr + "the stack is not that deep"},
		{"swap of one", dwarftest.Cat(xLit0, xSwap), 0, nil, badExpr + "the stack is empty"},
		{"rot of two", dwarftest.Cat(xLit0, xLit0, xRot), 0, nil, badExpr + "the stack is empty"},
		{"plus of one", dwarftest.Cat(xLit0, xPlus), 0, nil, badExpr + "the stack is empty"},
		{"neg of nothing", dwarftest.Cat(xNeg), 0, nil, badExpr + "the stack is empty"},
		{"abs of nothing", dwarftest.Cat(xAbs), 0, nil, badExpr + "the stack is empty"},
		{"deref of nothing", dwarftest.Cat(xDeref), 0, nil, badExpr + "the stack is empty"},
		{"convert of nothing", dwarftest.Cat(xConvert, x.u8), 0, nil, badExpr + "the stack is empty"},
		{"reinterpret of nothing", dwarftest.Cat(xReinterpret, x.u8), 0, nil, badExpr + "the stack is empty"},
		{"plus_uconst of nothing", dwarftest.Cat(xPlusUconst, 1), 0, nil, badExpr + "the stack is empty"},
		{"stack_value of nothing", dwarftest.Cat(xStackValue), 0, nil, badExpr + "DW_OP_stack_value on an empty stack"},
		{"something after a register", dwarftest.Cat(xReg0, xLit0), 0, nil, badExpr + "DW_OP_lit0 follows a finished location"},
		{"something after stack_value", dwarftest.Cat(xLit0, xStackValue, xStackValue), 0, nil, badExpr + "DW_OP_stack_value follows a finished location"},
		{"breg cut short", dwarftest.Cat(xBreg0), 0, nil, badExpr + "an operand of DW_OP_breg0 is cut short"},
		{"const4u cut short", dwarftest.Cat(xConst4u, 1, 2, 3), 0, nil, badExpr + "an operand of DW_OP_const4u is cut short"},
		{"constu cut short", dwarftest.Cat(xConstu, 0x80), 0, nil, badExpr + "an operand of DW_OP_constu is cut short"},
		{"regx cut short", dwarftest.Cat(xRegx), 0, nil, badExpr + "an operand of DW_OP_regx is cut short"},
		{"implicit_value cut short", dwarftest.Cat(xImplicitValue, 4, 1), 0, nil, badExpr + "an operand of DW_OP_implicit_value is cut short"},
		{"implicit_pointer cut short", dwarftest.Cat(xImplicitPointer, 1, 2), 0, nil, badExpr + "an operand of DW_OP_implicit_pointer is cut short"},
		{"bra cut short", dwarftest.Cat(xLit0, xBra, 1), 0, nil, badExpr + "an operand of DW_OP_bra is cut short"},

		// Operations without an equivalent.
		{"xderef", dwarftest.Cat(xLit0, xLit0, xXderef), 0, nil, "unsupported-operation: DW_OP_xderef"},
		{"xderef_size", dwarftest.Cat(xLit0, xLit0, xXderefSize, 1), 0, nil, "unsupported-operation: DW_OP_xderef_size"},
		{"xderef_type", dwarftest.Cat(xLit0, xLit0, xXderefType, 1, x.u8), 0, nil, "unsupported-operation: DW_OP_xderef_type"},
		{"push_object_address", dwarftest.Cat(xPushObject), 0, nil, "unsupported-operation: DW_OP_push_object_address"},
		{"call2", dwarftest.Cat(xCall2, dwarftest.LE16(0)), 0, nil, "unsupported-operation: DW_OP_call2"},
		{"call4", dwarftest.Cat(xCall4, dwarftest.LE32(0)), 0, nil, "unsupported-operation: DW_OP_call4"},
		{"call_ref", dwarftest.Cat(xCallRef, dwarftest.LE32(0)), 0, nil, "unsupported-operation: DW_OP_call_ref"},
		{"GNU_variable_value", dwarftest.Cat(xGNUVariableValue, dwarftest.LE32(0)), 0, nil, "unsupported-operation: DW_OP_GNU_variable_value"},
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
		e = dwarftest.Cat(xEntryValue, dwarftest.ULEB(uint64(len(e))), e)
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
				expr := dwarftest.Cat(before, code, bytes.Repeat([]byte{1}, operands))
				if got := x.locate(expr, bodyAt, []byte{xCFA}); len(got) < 8 {
					t.Errorf("%x: %q", expr, got)
				}
			}
		}
	}
	if got, want := x.locate([]byte{0xef}, bodyAt, nil), "unsupported-operation: 0xef"; got != want {
		t.Errorf("an unknown operation: got %q, want %q", got, want)
	}
}

func FuzzExpression(f *testing.F) {
	x := newEvalUnit(f)
	f.Add(dwarftest.Cat(xBreg0, 0, xConvert, x.s32, xLit0+7, xAnd, xStackValue), true)
	f.Add(dwarftest.Cat(xReg0, xPiece, 8, xPiece, 4, xFbreg, 8, xPiece, 4), false)
	f.Add(dwarftest.Cat(xLit0+5, xBreg0, 0, xBra, dwarftest.LE16(1), xLit0+6, xEntryValue, 1, xReg0, xPlus, xStackValue), true)
	f.Add(dwarftest.Cat(xBreg0, 0, xBra, dwarftest.LE16(0xfffb)), false)
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
