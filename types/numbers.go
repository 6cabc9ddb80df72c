package types

import "github.com/bpfprologue/bpfprologue/internal/dw"

// numberTypes are C's types of computed numbers.
var numberTypes = map[[2]int]*Type{
	{4, 1}: {Kind: Int, Name: "int", Size: 4, Signed: true},
	{4, 0}: {Kind: Int, Name: "unsigned int", Size: 4},
	{8, 1}: {Kind: Int, Name: "long", Size: 8, Signed: true},
	{8, 0}: WordType,
}

// NumberType returns the type of a computed number of 4 or 8 bytes.
func NumberType(size int, signed bool) *Type {
	s := 0
	if signed {
		s = 1
	}
	if size <= 4 {
		return numberTypes[[2]int{4, s}]
	}
	return numberTypes[[2]int{8, s}]
}

// PointerTo returns the type of a pointer.
func PointerTo(t *Type, size int) *Type {
	return &Type{Kind: Pointer, Size: int64(size), src: t.src, tag: dw.TagPointerType, to: t}
}

// common are the types of numbers by the names that all units know, in C and in the kernel, with
// their sizes in bytes; 0 is that of an address.
var common = map[string]struct {
	size   int64
	signed bool
	kind   Kind
}{
	"char": {1, true, Char}, "signed char": {1, true, Char}, "unsigned char": {1, false, Char},
	"short": {2, true, Int}, "unsigned short": {2, false, Int},
	"int": {4, true, Int}, "unsigned": {4, false, Int}, "unsigned int": {4, false, Int}, "signed": {4, true, Int},
	"long": {0, true, Int}, "unsigned long": {0, false, Int}, "long int": {0, true, Int}, "unsigned long int": {0, false, Int},
	"long unsigned int": {0, false, Int},
	"long long":         {8, true, Int}, "unsigned long long": {8, false, Int}, "long long int": {8, true, Int},
	"long long unsigned int": {8, false, Int}, "unsigned long long int": {8, false, Int}, "short int": {2, true, Int}, "short unsigned int": {2, false, Int},
	"bool": {1, false, Bool}, "_Bool": {1, false, Bool},
	"u8": {1, false, Int}, "u16": {2, false, Int}, "u32": {4, false, Int}, "u64": {8, false, Int},
	"s8": {1, true, Int}, "s16": {2, true, Int}, "s32": {4, true, Int}, "s64": {8, true, Int},
	"size_t": {0, false, Int}, "ssize_t": {0, true, Int},
}

// WordType is the type of an address as a number.
var WordType = &Type{Kind: Int, Name: "unsigned long", Size: 8}

// Common returns the type that a name has without any declaration: a number of C or of the kernel, or void. It is
// nil for other names. word is the size of an address in bytes.
func Common(name string, word int) *Type {
	if name == "void" {
		return VoidType
	}
	o, ok := common[name]
	if !ok {
		return nil
	}
	t := &Type{Kind: o.kind, Name: name, Size: o.size, Signed: o.signed}
	if t.Size == 0 {
		t.Size = int64(word)
	}
	return t
}
