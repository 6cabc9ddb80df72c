package body

import (
	"maps"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/ktable"
	"github.com/bpfprologue/bpfprologue/internal/noreturn"
)

// patches are what an image's symbols say about its code, once it is needed: one look at all
// symbols finds them.
type patches struct {
	once   sync.Once
	tables func() (*ktable.Tables, error) // reads them once: a question whose bodies are known needs none
	// stops are functions of package noreturn, by address, and whether they are checks.
	kernel bool
	stops  map[uint64]bool
	// returns is where code jumps instead of returning, or 0.
	returns uint64
	err     error
}

func (img *Image) patched() (*patches, error) {
	p := &img.patches
	p.once.Do(func() { p.err = p.read(img) })
	return p, p.err
}

func (p *patches) read(img *Image) error {
	const begin = "_stext" // of a kernel's code, on all architectures
	marks, err := ktable.Find(img.File, append(slices.Collect(maps.Keys(noreturn.Functions)), begin)...)
	if err != nil {
		return err
	}
	_, p.kernel = marks.Address(begin)
	p.returns = marks.ReturnThunk()
	p.stops = make(map[uint64]bool)
	for name, check := range noreturn.Functions {
		if addr, ok := marks.Address(name); ok {
			p.stops[addr] = check
		}
	}
	for addr, name := range img.Stubs(noreturn.Imported) {
		p.stops[addr] = noreturn.Functions[name]
	}
	p.tables = sync.OnceValues(marks.Tables)
	return nil
}

// tables returns the tables of a kernel.
func (img *Image) tables() (*ktable.Tables, error) {
	p, err := img.patched()
	if err != nil {
		return nil, err
	}
	return p.tables()
}

// ReadTables reads what the code of every function needs of a kernel's tables and symbols, ahead of the first question about it. An error
// is that question's too.
func (img *Image) ReadTables() { _, _ = img.tables() }

// StaticBranch is an entry of a kernel's table of static branches.
type StaticBranch = ktable.StaticBranch

// StaticBranches returns the static branches that a kernel's table lists at [lo, hi).
func (img *Image) StaticBranches(lo, hi uint64) ([]StaticBranch, error) {
	t, err := img.tables()
	if err != nil || len(t.Unread()) > 0 {
		return nil, err
	}
	return t.StaticBranches(lo, hi), nil
}

// IsKernel reports whether the image is a kernel's, or a module's: the kernel itself is the one with the symbol _stext.
func (img *Image) IsKernel() (bool, error) {
	if img.IsRelocatable() {
		return true, nil
	}
	p, err := img.patched()
	if err != nil {
		return false, err
	}
	return p.kernel, nil
}
