package types

import (
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/typesource"
)

func init() {
	typesource.Types = typesource.Makers[Type]{
		DWARF: func(x *index.Index, o typesource.DWARFOptions[Type]) typesource.DWARF[Type] {
			return &dwarfTypes{index: x, o: o}
		},
		BTF: func(s *typesource.Section) typesource.BTF[Type] { return &btfTypes{Section: s} },
	}
}
