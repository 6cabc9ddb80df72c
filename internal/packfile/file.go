package packfile

import (
	"cmp"

	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Section is the section of a pack that has the sites.
const Section = ".bpfprologue.pack"

// Version is the version of the format that this package writes and reads.
const Version = 7

// Facts are what a pack says about itself.
type Facts struct {
	Version int
	Sites   int // of which Inlined are inlined instances
	Inlined int
	Values  int // of parameters, at the sites themselves
	Blocks  int // functions that contain code: numbers of Ref.Block are less
	// Kernel is set for a kernel or a module: Site.Refused was asked for.
	Kernel bool
	// Checked is set if instructions were looked at: Site.BadInstruction was asked for.
	Checked bool
	// Types says what .BTF is.
	Types Types
}

// Types says which types the numbers of a pack mean.
type Types struct {
	// Base is set if .BTF has only types that follow those of another BTF: the numbers below
	// BaseTypes, and the first BaseStrings bytes of strings, are there. BaseSum is the SHA-256 of that
	// BTF, all of its bytes.
	Base        bool
	BaseTypes   uint32 // with void
	BaseStrings uint32
	BaseSum     [32]byte
}

// Ref names a site of a pack. Those of one block are in the order of their entries in the debug information,
// and so are blocks.
type Ref struct{ Block, Index uint32 }

// compareRefs is the order of entries in the debug information.
func compareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Index, b.Index))
}

// listed is a site that List sorts.
type listed struct {
	Ref
	name       uint32 // rank
	addr, view uint64
	inline     bool
}

func (x *listed) kind() uint64 {
	if x.inline {
		return 1
	}
	return 0
}

// sortListed returns sites in the image's order: by function, address, view, kind and entry, the last of which is sorted by first.
func sortListed(all []listed) []Ref {
	all = radix.Sort(all, func(x *listed) uint64 { return uint64(x.Block)<<32 | uint64(x.Index) })
	all = radix.Sort(all, func(x *listed) uint64 { return x.view<<1 | x.kind() })
	all = radix.Sort(all, func(x *listed) uint64 { return x.addr })
	all = radix.Sort(all, func(x *listed) uint64 { return uint64(x.name) })
	out := make([]Ref, len(all))
	for i := range all {
		out[i] = all[i].Ref
	}
	return out
}
