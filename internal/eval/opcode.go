package eval

import (
	"fmt"

	"github.com/go-delve/delve/pkg/dwarf/op"
)

// Operations missing from delve's table: those new in DWARF 5, and GNU ones, whether
// DWARF 5 adopted them or not (GCC: include/dwarf2.def).
const (
	opImplicitPointer  = 0xa0
	opAddrx            = 0xa1
	opConstx           = 0xa2
	OpEntryValue       = 0xa3
	opConstType        = 0xa4
	opRegvalType       = 0xa5
	opDerefType        = 0xa6
	opXderefType       = 0xa7
	opConvert          = 0xa8
	opReinterpret      = 0xa9
	opGNUPushTLS       = 0xe0
	opGNUUninit        = 0xf0
	opGNUEncodedAddr   = 0xf1
	opGNUImplicitPtr   = 0xf2
	OpGNUEntryValue    = 0xf3
	opGNUConstType     = 0xf4
	opGNURegvalType    = 0xf5
	opGNUDerefType     = 0xf6
	opGNUConvert       = 0xf7
	opGNUReinterpret   = 0xf9
	OpGNUParameterRef  = 0xfa
	opGNUAddrIndex     = 0xfb
	opGNUConstIndex    = 0xfc
	opGNUVariableValue = 0xfd
)

// opForm has the name of an operation and its operands, one letter each:
//
//	b h w q   an unsigned number of 1, 2, 4 or 8 bytes
//	B H W Q   a signed one
//	u s       an unsigned or signed LEB128 number
//	a         a number as long as an address
//	r         an offset in .debug_info, as long as an address in DWARF 2
//	k         bytes, preceded by their count in ULEB128
//	c         bytes, preceded by their count in one byte
type opForm struct{ name, operands string }

// opForms has the operations by code: DWARF 5 section 7.7.1, table 7.9.
var opForms = func() (t [256]opForm) {
	for code, f := range map[op.Opcode]opForm{
		op.DW_OP_addr: {"addr", "a"}, op.DW_OP_deref: {"deref", ""},
		op.DW_OP_const1u: {"const1u", "b"}, op.DW_OP_const1s: {"const1s", "B"},
		op.DW_OP_const2u: {"const2u", "h"}, op.DW_OP_const2s: {"const2s", "H"},
		op.DW_OP_const4u: {"const4u", "w"}, op.DW_OP_const4s: {"const4s", "W"},
		op.DW_OP_const8u: {"const8u", "q"}, op.DW_OP_const8s: {"const8s", "Q"},
		op.DW_OP_constu: {"constu", "u"}, op.DW_OP_consts: {"consts", "s"},
		op.DW_OP_dup: {"dup", ""}, op.DW_OP_drop: {"drop", ""}, op.DW_OP_over: {"over", ""}, op.DW_OP_pick: {"pick", "b"},
		op.DW_OP_swap: {"swap", ""}, op.DW_OP_rot: {"rot", ""}, op.DW_OP_xderef: {"xderef", ""},
		op.DW_OP_abs: {"abs", ""}, op.DW_OP_and: {"and", ""}, op.DW_OP_div: {"div", ""}, op.DW_OP_minus: {"minus", ""},
		op.DW_OP_mod: {"mod", ""}, op.DW_OP_mul: {"mul", ""}, op.DW_OP_neg: {"neg", ""}, op.DW_OP_not: {"not", ""},
		op.DW_OP_or: {"or", ""}, op.DW_OP_plus: {"plus", ""}, op.DW_OP_plus_uconst: {"plus_uconst", "u"},
		op.DW_OP_shl: {"shl", ""}, op.DW_OP_shr: {"shr", ""}, op.DW_OP_shra: {"shra", ""}, op.DW_OP_xor: {"xor", ""},
		op.DW_OP_bra: {"bra", "H"}, op.DW_OP_skip: {"skip", "H"},
		op.DW_OP_eq: {"eq", ""}, op.DW_OP_ge: {"ge", ""}, op.DW_OP_gt: {"gt", ""}, op.DW_OP_le: {"le", ""}, op.DW_OP_lt: {"lt", ""}, op.DW_OP_ne: {"ne", ""},
		op.DW_OP_regx: {"regx", "u"}, op.DW_OP_fbreg: {"fbreg", "s"}, op.DW_OP_bregx: {"bregx", "us"},
		op.DW_OP_piece: {"piece", "u"}, op.DW_OP_deref_size: {"deref_size", "b"}, op.DW_OP_xderef_size: {"xderef_size", "b"},
		op.DW_OP_nop: {"nop", ""}, op.DW_OP_push_object_address: {"push_object_address", ""},
		op.DW_OP_call2: {"call2", "h"}, op.DW_OP_call4: {"call4", "w"}, op.DW_OP_call_ref: {"call_ref", "r"},
		op.DW_OP_form_tls_address: {"form_tls_address", ""}, op.DW_OP_call_frame_cfa: {"call_frame_cfa", ""},
		op.DW_OP_bit_piece: {"bit_piece", "uu"}, op.DW_OP_implicit_value: {"implicit_value", "k"}, op.DW_OP_stack_value: {"stack_value", ""},
		opImplicitPointer: {"implicit_pointer", "rs"}, opAddrx: {"addrx", "u"}, opConstx: {"constx", "u"},
		OpEntryValue: {"entry_value", "k"}, opConstType: {"const_type", "uc"}, opRegvalType: {"regval_type", "uu"},
		opDerefType: {"deref_type", "bu"}, opXderefType: {"xderef_type", "bu"},
		opConvert: {"convert", "u"}, opReinterpret: {"reinterpret", "u"},
		opGNUPushTLS: {"GNU_push_tls_address", ""}, opGNUUninit: {"GNU_uninit", ""}, opGNUEncodedAddr: {"GNU_encoded_addr", ""},
		opGNUImplicitPtr: {"GNU_implicit_pointer", "rs"}, OpGNUEntryValue: {"GNU_entry_value", "k"},
		opGNUConstType: {"GNU_const_type", "uc"}, opGNURegvalType: {"GNU_regval_type", "uu"}, opGNUDerefType: {"GNU_deref_type", "bu"},
		opGNUConvert: {"GNU_convert", "u"}, opGNUReinterpret: {"GNU_reinterpret", "u"}, OpGNUParameterRef: {"GNU_parameter_ref", "w"},
		opGNUAddrIndex: {"GNU_addr_index", "u"}, opGNUConstIndex: {"GNU_const_index", "u"}, opGNUVariableValue: {"GNU_variable_value", "r"},
	} {
		t[code] = opForm{"DW_OP_" + f.name, f.operands}
	}
	for n := range 32 {
		t[op.DW_OP_lit0+op.Opcode(n)] = opForm{fmt.Sprintf("DW_OP_lit%d", n), ""}
		t[op.DW_OP_reg0+op.Opcode(n)] = opForm{fmt.Sprintf("DW_OP_reg%d", n), ""}
		t[op.DW_OP_breg0+op.Opcode(n)] = opForm{fmt.Sprintf("DW_OP_breg%d", n), "s"}
	}
	return t
}()

// opName returns an operation's name, "DW_OP_plus", or its number if it is unknown.
func opName(code uint8) string {
	if n := opForms[code].name; n != "" {
		return n
	}
	return fmt.Sprintf("%#x", code)
}
