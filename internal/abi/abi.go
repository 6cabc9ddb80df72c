// Package abi says where calling conventions put the parameters and results of functions, by their types.
//
//	next := abi.NewAssigner(abi.Machine{Arch: a})
//	p, known, err := abi.PassingOf(t, lang, machine)
//	where, reason := next.Next(&p) // of the next parameter, at the function's first instruction
//
// What differs between architectures is data: a [Convention] each, and in package arch the registers. One engine reads them.
package abi

import "github.com/bpfprologue/bpfprologue/arch"

// Floats says which values are passed in vector registers.
type Floats uint8

const (
	// FloatsUnknown is for conventions of which that is not known.
	FloatsUnknown Floats = iota
	// FloatsByWord is for numbers, and each word of a structure in which there is nothing else.
	FloatsByWord
	// FloatsEqual is for numbers, and structures of at most Convention.FloatMembers numbers of one type, each in a register.
	FloatsEqual
	// FloatsFlat is for numbers, and structures of one or two numbers of which one at least is a floating-point one, each
	// in a register of its kind. If there are too few, all of them are passed like integers.
	FloatsFlat
	// FloatsDoubles is for numbers, and each word of a structure that is a double.
	FloatsDoubles
	// FloatsAlone is for numbers, and structures of one number.
	FloatsAlone
	// FloatsFew is for numbers, and structures of one or two floating-point numbers.
	FloatsFew
)

// Large says how numbers of more than a word are passed.
type Large uint8

// How they are passed; LargeUnknown is for those of which that is not known.
const (
	LargeUnknown     Large = iota
	LargeInWords           // like a structure of integers
	LargeUnaligned         // so, with the alignment of a word
	LargeUnlessSplit       // in registers like a structure of integers; where there are too few, compilers differ
	LargeByReference       // by address
	LargeInVector          // in one vector register
	LargeInVectors         // in two, as two words
	LargeAsMembers         // like a structure of floating-point numbers: a complex number
	LargeAsTwo             // like two floating-point numbers: a complex number
	LargeOnStack
)

// Convention is how values are passed and returned. The zero Convention knows only integers and pointers: of
// at most a word, or of two on machines with words of 4 bytes.
type Convention struct {
	Floats       Floats
	FloatMembers int // of FloatsEqual
	// Vectors is how many vector registers have arguments. VectorUnit is how many bytes one of these stands for, if values
	// take several of them, aligned, and later ones fill gaps; 0: each number takes one.
	Vectors, VectorUnit int
	// FloatFlag has bits of e_flags that are all set in images whose floating-point numbers are in vector registers: in others
	// it is not known where these are. 0: they are in all.
	FloatFlag uint32
	// Int128, LongDouble (of more than 8 bytes) and Complex are how such numbers are passed, and ResultLongDouble how one is
	// returned, if that differs.
	Int128, LongDouble, Complex, ResultLongDouble Large

	// ByValue is the size of the largest structure that is not passed by address. 0: of none.
	ByValue int64
	// PowersOnly is set if structures of sizes that are no powers of two are passed by address too.
	PowersOnly bool
	// InRegisters is the size of the largest structure that is passed in registers. 0: of any.
	InRegisters int64
	// Slots is set if each argument counts for the words that it has, or would have, on the stack: also one in a vector
	// register leaves out so many of the others.
	Slots bool
	// Split is set if the beginning of a value can be in the last registers, and the rest of it on the stack.
	Split bool
	// Even is set if a value with an alignment of two words begins at an even register.
	Even bool
	// Backfill is set if a value that finds too few registers leaves those that there are to later ones.
	Backfill bool
	// VariadicWords is set if functions with variable arguments take floating-point numbers like integers.
	VariadicWords bool

	// ResultBytes is the size of the largest structure that is returned in general registers.
	ResultBytes int64
	// ResultFloats is Floats for results.
	ResultFloats Floats
	// ResultArgument is set if the address for a result in memory is passed like a first argument, and ResultAddress if
	// it is returned like a pointer.
	ResultArgument, ResultAddress bool
	// Rust is set if what is known of Rust's own convention was tried here.
	Rust bool
}

// Of returns the convention of an architecture.
func Of(a *arch.Arch) *Convention {
	if c := conventions[a.Name]; c != nil {
		return c
	}
	return &unknown
}

var unknown Convention

// conventions are those of the architectures, by their names. Sources are those of package arch, and:
//
//   - amd64: System V ABI AMD64 supplement 1.0, section 3.2.3. clang 14 splits integers of 16 bytes between registers and the stack.
//   - arm64: Procedure Call Standard for the Arm 64-bit Architecture, 6.8 and 6.9.
//   - armhf: Procedure Call Standard for the Arm Architecture, 6.5 (arguments), 6.4 (results), 7.1 (vector registers).
//   - i386: System V ABI Intel386 supplement 1.1, 2.2.5. Arguments are not known (package arch).
//   - loong64: LoongArch ABIs 2.30, "Procedure Call Standard", lp64d.
//   - mips64el: MIPSpro N32 ABI Handbook, chapter 2, whose rules n64 has; gcc/config/mips/mips.cc (GCC 12), mips_function_arg and
//     mips_fpr_return_fields. GCC 12 begins a number of 16 bytes at an even register, clang 14 does not.
//   - ppc64el: 64-Bit ELF V2 ABI Specification for Power 1.5, 2.2.3. Numbers of 16 bytes are of two kinds there.
//   - riscv64: RISC-V ABIs Specification 1.0, chapter 2, lp64d.
//   - s390x: ELF ABI s390x Supplement 1.6, 1.2.2.
var conventions = map[string]*Convention{
	"amd64": {
		Floats: FloatsByWord, Vectors: 8, Int128: LargeUnlessSplit, LongDouble: LargeOnStack, ResultLongDouble: LargeInVector, Complex: LargeAsMembers,
		InRegisters: 16, Backfill: true,
		ResultBytes: 16, ResultFloats: FloatsByWord, ResultArgument: true, ResultAddress: true, Rust: true,
	},
	"arm64": {
		Floats: FloatsEqual, FloatMembers: 4, Vectors: 8, Int128: LargeInWords, LongDouble: LargeInVector, Complex: LargeAsMembers,
		ByValue: 16, Even: true,
		ResultBytes: 16, ResultFloats: FloatsEqual, Rust: true,
	},
	"armhf": {
		Floats: FloatsEqual, FloatMembers: 4, Vectors: 16, VectorUnit: 4, FloatFlag: 0x400, // EF_ARM_ABI_FLOAT_HARD
		Complex: LargeAsMembers, Split: true, Even: true, VariadicWords: true,
		ResultBytes: 4, ResultFloats: FloatsEqual, ResultArgument: true,
	},
	"i386": {
		Floats: FloatsAlone, LongDouble: LargeInVector,
		ResultFloats: FloatsUnknown, ResultArgument: true, ResultAddress: true,
	},
	"loong64": {
		Floats: FloatsFlat, Vectors: 8, FloatFlag: 0x3, // EF_LOONGARCH_ABI_DOUBLE_FLOAT; 1 is "soft", 2 is "single"
		Int128: LargeInWords, LongDouble: LargeInWords, Complex: LargeAsMembers,
		ByValue: 16, Split: true,
		ResultBytes: 16, ResultFloats: FloatsFlat, ResultArgument: true,
	},
	"mips64el": {
		Floats: FloatsDoubles, Vectors: 8, LongDouble: LargeInVectors, Slots: true, Split: true, Even: true,
		ResultBytes: 16, ResultFloats: FloatsFew, ResultArgument: true,
	},
	"ppc64el": {
		Floats: FloatsEqual, FloatMembers: 8, Vectors: 13, Int128: LargeUnaligned, Complex: LargeAsTwo, Slots: true, Split: true,
		ResultBytes: 16, ResultFloats: FloatsEqual, ResultArgument: true,
	},
	"riscv64": {
		Floats: FloatsFlat, Vectors: 8, FloatFlag: 0x4, // EF_RISCV_FLOAT_ABI_DOUBLE
		Int128: LargeInWords, LongDouble: LargeInWords, Complex: LargeAsMembers,
		ByValue: 16, Split: true,
		ResultBytes: 16, ResultFloats: FloatsFlat, ResultArgument: true,
	},
	"s390x": {
		Floats: FloatsAlone, Vectors: 4, Int128: LargeByReference, LongDouble: LargeByReference, Complex: LargeByReference,
		ByValue: 8, PowersOnly: true,
		ResultFloats: FloatsUnknown, ResultArgument: true,
	},
}
