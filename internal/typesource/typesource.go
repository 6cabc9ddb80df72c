// Package typesource makes the types of an image, for packages dwarfloc and answers. Package types has what reads them, and sets the
// functions here: T is its Type.
package typesource

import (
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// DWARF reads the types of one image's debug information. Several goroutines may call its methods at once.
type DWARF[T any] interface {
	// Of returns the type that an attribute of a unit refers to; that of an attribute that is not there is void.
	Of(u *dw.Unit, v dw.Value) (*T, error)
	// Named returns the type that a name, "struct page" or "loff_t", means in a unit: the unit's own, or that of the first unit of
	// the image that has one, or of the image that completes its types. It is nil if there is none. If u is nil, only the image
	// counts.
	Named(u *dw.Unit, name string) (*T, error)
	// Enumerator returns the value of an enumerator that a unit has outside functions.
	Enumerator(u *dw.Unit, name string) (value int64, found bool, err error)
	// Forget frees what was read of a unit, unless that is given. Types that are in use stay valid.
	Forget(u *dw.Unit, given *atomic.Bool)
}

// DWARFOptions is what DWARF needs to know about an image.
type DWARFOptions[T any] struct {
	BigEndian bool
	// Guard runs a function that reads the image. A fault in its mapping becomes an error.
	Guard func(func() error) error
	// Prepare makes the units of the index known.
	Prepare func() error
	// Other, if not nil, completes types that the image only declares: those of the kernel, for a module.
	Other DWARF[T]
}

// BTF reads the types of an image that has them as BTF. Several goroutines may call its methods at once.
type BTF[T any] interface {
	// At returns the type with a number.
	At(id btf.ID) (*T, error)
	// Named returns the first type with a name, "struct page" or "loff_t", or nil. A pack says which one it is if there are several.
	Named(text string) (*T, error)
	// Enumerator returns the value of the first enumerator with a name.
	Enumerator(name string) (value int64, found bool, err error)
}

// Section is where the types of an image are that has them as BTF.
type Section struct {
	*btf.Types                          // set before a type is asked for
	Name       string                   // for errors
	WordSize   int                      // bytes of an address
	Guard      func(func() error) error // runs a function that reads the image
	// Errorf returns an error about a section of the image, with an offset in bytes.
	Errorf func(section string, off uint64, format string, args ...any) error
}

// Error returns an error about the types, with the place in the file.
func (s *Section) Error(err error) error {
	if e, ok := err.(*btf.Error); ok {
		return s.Errorf(s.Name, e.Offset, "%s", e.Msg)
	}
	return err
}

// Makers are the functions of package types.
type Makers[T any] struct {
	DWARF func(x *index.Index, o DWARFOptions[T]) DWARF[T]
	BTF   func(s *Section) BTF[T]
}

// Types are the Makers that package types has set.
var Types any

// NewDWARF returns the types of the debug information that an index is of. It reads nothing yet.
func NewDWARF[T any](x *index.Index, o DWARFOptions[T]) DWARF[T] {
	return Types.(Makers[T]).DWARF(x, o)
}

// NewBTF returns the types of a section.
func NewBTF[T any](s *Section) BTF[T] { return Types.(Makers[T]).BTF(s) }
