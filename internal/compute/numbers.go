package compute

import "github.com/bpfprologue/bpfprologue/types"

// numberTypes are C's types of computed numbers.
var numberTypes = map[[2]int]*types.Type{
	{4, 1}: {Kind: types.Int, Name: "int", Size: 4, Signed: true},
	{4, 0}: {Kind: types.Int, Name: "unsigned int", Size: 4},
	{8, 1}: {Kind: types.Int, Name: "long", Size: 8, Signed: true},
	{8, 0}: types.WordType,
}

// numberType returns the type of a computed number of 4 or 8 bytes.
func numberType(size int, signed bool) *types.Type {
	s := 0
	if signed {
		s = 1
	}
	if size <= 4 {
		return numberTypes[[2]int{4, s}]
	}
	return numberTypes[[2]int{8, s}]
}

// commonTypes are the types of numbers by the names that all units know, in C and in the kernel, with
// their sizes in bytes; 0 is that of an address.
var commonTypes = map[string]struct {
	size   int64
	signed bool
	kind   types.Kind
}{
	"char": {1, true, types.Char}, "signed char": {1, true, types.Char}, "unsigned char": {1, false, types.Char},
	"short": {2, true, types.Int}, "unsigned short": {2, false, types.Int},
	"int": {4, true, types.Int}, "unsigned": {4, false, types.Int}, "unsigned int": {4, false, types.Int}, "signed": {4, true, types.Int},
	"long": {0, true, types.Int}, "unsigned long": {0, false, types.Int}, "long int": {0, true, types.Int}, "unsigned long int": {0, false, types.Int},
	"long unsigned int": {0, false, types.Int},
	"long long":         {8, true, types.Int}, "unsigned long long": {8, false, types.Int}, "long long int": {8, true, types.Int},
	"long long unsigned int": {8, false, types.Int}, "unsigned long long int": {8, false, types.Int}, "short int": {2, true, types.Int}, "short unsigned int": {2, false, types.Int},
	"bool": {1, false, types.Bool}, "_Bool": {1, false, types.Bool},
	"u8": {1, false, types.Int}, "u16": {2, false, types.Int}, "u32": {4, false, types.Int}, "u64": {8, false, types.Int},
	"s8": {1, true, types.Int}, "s16": {2, true, types.Int}, "s32": {4, true, types.Int}, "s64": {8, true, types.Int},
	"size_t": {0, false, types.Int}, "ssize_t": {0, true, types.Int},
}

// common returns the type that a name has without any declaration: a number of C or of the kernel, or void. It is
// nil for other names. word is the size of an address in bytes.
func common(name string, word int) *types.Type {
	if name == "void" {
		return types.VoidType
	}
	o, ok := commonTypes[name]
	if !ok {
		return nil
	}
	t := &types.Type{Kind: o.kind, Name: name, Size: o.size, Signed: o.signed}
	if t.Size == 0 {
		t.Size = int64(word)
	}
	return t
}
