package packfile

// Types are in the section .BTF. What BTF has no kind for is said with tags: declaration tags of a structure, union or
// enumeration as a whole (component -1), or type tags between a type and what it is made of.
const (
	// TagClass is a declaration tag: the program calls the structure a class.
	TagClass = "bpfprologue:class"
	// TagPlain is a declaration tag: the name is spelled without "struct", "union" or "enum" before it.
	TagPlain = "bpfprologue:plain"
	// TagFirst is a declaration tag: of several types with this name, the one that the name means in definitions.
	TagFirst = "bpfprologue:first"
	// TagComplex, TagMemberPointer and TagOther are declaration tags of a structure without members that stands for a
	// complex number, a C++ pointer to a member, or a type of another kind. Its name is the type's spelling.
	TagComplex       = "bpfprologue:complex"
	TagMemberPointer = "bpfprologue:member-pointer"
	TagOther         = "bpfprologue:other"
	// TagReference and TagRvalueReference are type tags: the pointer to what has them is a C++ reference.
	TagReference       = "bpfprologue:reference"
	TagRvalueReference = "bpfprologue:rvalue-reference"
	// TagAtomic is a type tag: what has it is _Atomic.
	TagAtomic = "bpfprologue:_Atomic"
)
