// Package syntax has the parsed form of what a definition fetches: expressions, paths and types. Package probe parses them.
package syntax

// An Expr says what to fetch: something at the site, or what is computed from others, and a path
// from there.
type Expr struct {
	Kind ExprKind
	// Name is the name of a variable, of a register without its "%", or of a symbol without
	// its "@"; the text of a KindString; the digits of a KindNumber or KindWide; the sign of a KindUnary or
	// KindBinary.
	Name string
	// Number is the offset after a symbol, or of KindOffset, in bytes (two's complement), an
	// address, an immediate value, a number, or the N of $stackN or $argN.
	Number uint64
	User   bool     // the memory of KindOffset is in user space
	Type   TypeName // of KindCast, KindSizeof and KindContainerOf
	A, B   *Expr    // operands
	Member []Step   // of KindContainerOf: from the structure to the member
	Path   []Step
	Pos    int // where the expression begins in the definition's text, in bytes
}

// A TypeName names a type of the program, as C does: "struct sock *", "unsigned long".
type TypeName struct {
	Name     string // with its keyword and without "const": "struct sock"; words have one space between them
	Pointers int
	Pos      int // where it begins in the definition's text, in bytes
}

// An ExprKind is the kind of an Expr.
//
//   - KindVariable: NAME: a parameter, a local or a global variable
//   - KindRegister: %NAME, as in %ax or %x0: a whole register
//   - KindSymbol: @SYMBOL, @SYMBOL+OFFSET or @SYMBOL-OFFSET: the memory there
//   - KindAddress: @ADDRESS: the memory at a link-time address
//   - KindImmediate: \VALUE: a number that is delivered unchanged
//   - KindRetval: $retval: the result of the function, where it returns
//   - KindComm: $comm: the name of the current task, 16 bytes
//   - KindStack: $stackN: the Nth word of the stack, counted from 0
//   - KindStackAddr: $stack: the stack pointer
//   - KindFrame: $frame: the canonical frame address, one for each call of a function
//   - KindParams: $params: all parameters of the function, one argument each
//   - KindVars: $vars: all parameters and locals in scope, one argument each
//   - KindTask: $pid, $tid, $uid, $gid, $cpu, $cgroup or $time: a number that the kernel knows of
//     the current task, by its name
//   - KindCaller: $caller: the address to which the function returns
//   - KindDuration: $duration: how long a run took, in nanoseconds, in a condition on it
//   - KindArgument: $argN: the Nth argument of the function, counted from 1
//   - KindNumber: a number in a larger expression
//   - KindFloat: a number with a point, to compare with
//   - KindWide: a number of more than 64 bits, to compare with
//   - KindString: "TEXT", to compare with
//   - KindUnary: -A, ~A, !A, *A (what a pointer points to) or &A (an address)
//   - KindBinary: an operation of C, or A ~ "PATTERN"
//   - KindCast: (TYPE)A
//   - KindSizeof: sizeof(TYPE)
//   - KindContainerOf: container_of(A, TYPE, MEMBER): the structure whose member A points to
//   - KindOffset: +OFFSET(A), -OFFSET(A), +uOFFSET(A): memory at the address that A is, plus OFFSET
type ExprKind byte

const (
	// KindVariable is NAME: a parameter, a local or a global variable.
	KindVariable ExprKind = iota
	// KindRegister is %NAME, as in %ax or %x0: a whole register.
	KindRegister
	// KindSymbol is @SYMBOL, @SYMBOL+OFFSET or @SYMBOL-OFFSET: the memory there.
	KindSymbol
	// KindAddress is @ADDRESS: the memory at a link-time address.
	KindAddress
	// KindImmediate is \VALUE: a number that is delivered unchanged.
	KindImmediate
	// KindRetval is $retval: the result of the function, where it returns.
	KindRetval
	// KindComm is $comm: the name of the current task, 16 bytes.
	KindComm
	// KindStack is $stackN: the Nth word of the stack, counted from 0.
	KindStack
	// KindStackAddr is $stack: the stack pointer.
	KindStackAddr
	// KindFrame is $frame: the canonical frame address. It is the same all over one call of a
	// function, inlined bodies included, and after its return.
	KindFrame
	// KindParams is $params: all parameters of the function, one argument each.
	KindParams
	// KindVars is $vars: all parameters and locals in scope, one argument each.
	KindVars
	// KindTask is a number that the kernel knows of the current task, by its name: $pid, $tid,
	// $uid, $gid, $cpu, $cgroup (the ID of its cgroup) or $time (nanoseconds since the machine started).
	KindTask
	// KindCaller is $caller: the address to which the function returns.
	KindCaller
	// KindDuration is $duration: how long a run took, in nanoseconds, in a condition on it.
	KindDuration
	// KindArgument is $argN: the Nth argument of the function, counted from 1: its parameter or, where nothing says
	// what these are, the Nth word that the calling convention passes.
	KindArgument
	// KindNumber is a number in a larger expression.
	KindNumber
	// KindFloat is a number with a point, to compare with.
	KindFloat
	// KindWide is a number of 65 to 128 bits, to compare with.
	KindWide
	// KindString is "TEXT", to compare with.
	KindString
	// KindUnary is -A, ~A, !A, *A (what a pointer points to) or &A (an address).
	KindUnary
	// KindBinary is an operation of C, or A ~ "PATTERN".
	KindBinary
	// KindCast is (TYPE)A.
	KindCast
	// KindSizeof is sizeof(TYPE).
	KindSizeof
	// KindContainerOf is container_of(A, TYPE, MEMBER): the structure whose member A points to.
	KindContainerOf
	// KindOffset is +OFFSET(A), -OFFSET(A) or +uOFFSET(A): memory at the address that A is, plus OFFSET.
	KindOffset
)

// Several reports whether an expression of the kind stands for several arguments: $params and $vars.
func (k ExprKind) Several() bool { return k == KindParams || k == KindVars }

// A Step leads from an object to a part of it, or to an object that it points to.
type Step struct {
	Kind   StepKind
	Member string // of StepDot and StepArrow
	Index  int64  // of StepIndex, when IndexBy is nil
	// IndexBy is the expression that StepIndex takes its value from, or nil.
	IndexBy *Expr
	// To is where a StepRange ends: the first element that is not part of it.
	To  *Expr
	Pos int // where the step's operator begins in the definition's text, in bytes
}

// A StepKind is the kind of a Step.
//
//   - StepDot: .MEMBER: a member of a structure or a union
//   - StepArrow: ->MEMBER: a member of the object that a pointer points to
//   - StepIndex: [N] or [EXPRESSION]: an element of an array, or of the array that a
//     pointer points to
//   - StepRange: [FROM..TO]: elements of such an array, the last one excluded
type StepKind byte

const (
	// StepDot is .MEMBER: a member of a structure or a union.
	StepDot StepKind = iota
	// StepArrow is ->MEMBER: a member of the object that a pointer points to.
	StepArrow
	// StepIndex is [N] or [EXPRESSION]: an element of an array, or of the
	// array that a pointer points to.
	StepIndex
	// StepRange is [FROM..TO]: elements of such an array, the last one excluded. No step follows it.
	StepRange
)

// A TypeSpec is the type to fetch and show a value as. The zero TypeSpec stands for the type
// in the debug information.
type TypeSpec struct {
	Kind      TypeKind
	Bits      int // 8, 16, 32 or 64; for TypeBitfield its size
	Offset    int // for TypeBitfield, in bits from the container's least significant one
	Container int // for TypeBitfield, the size of the container in bits
	Count     int // elements of an array, or 0
	Pos       int // where the type begins in the definition's text, in bytes
}

// A TypeKind is the kind of a TypeSpec.
//
//   - TypeNone stands for the type in the debug information
//   - TypeUnsigned: u8 to u64, shown in decimal
//   - TypeSigned: s8 to s64, shown in decimal
//   - TypeHex: x8 to x64: unsigned, shown in hexadecimal
//   - TypeChar: char: one character of 8 bits
//   - TypeBool: bool: a truth value of 8 bits
//   - TypeString: string: characters up to a NUL, in kernel memory for a kernel's site
//     and in user memory for a program's
//   - TypeUString: ustring: characters up to a NUL in user memory
//   - TypeSymbol: symbol or symstr: a code address, shown as symbol+offset
//   - TypeBytes: hex: bytes in the order of memory, shown in hexadecimal
//   - TypeBitfield: bB@O/S: B bits from bit O of a container of S bits
type TypeKind byte

const (
	// TypeNone stands for the type in the debug information.
	TypeNone TypeKind = iota
	// TypeUnsigned is u8 to u64, shown in decimal.
	TypeUnsigned
	// TypeSigned is s8 to s64, shown in decimal.
	TypeSigned
	// TypeHex is x8 to x64: unsigned, shown in hexadecimal.
	TypeHex
	// TypeChar is char: one character of 8 bits.
	TypeChar
	// TypeBool is bool: a truth value of 8 bits.
	TypeBool
	// TypeString is string: characters up to a NUL, in kernel memory for a kernel's site and
	// in user memory for a program's.
	TypeString
	// TypeUString is ustring: characters up to a NUL in user memory.
	TypeUString
	// TypeSymbol is symbol or symstr: a code address, shown as symbol+offset.
	TypeSymbol
	// TypeBytes is hex: bytes in the order of memory, shown in hexadecimal; with a count so many of them,
	// otherwise those that the object has.
	TypeBytes
	// TypeBitfield is bB@O/S: B bits from bit O of a container of S bits.
	TypeBitfield
)
