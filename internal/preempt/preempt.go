// Package preempt knows where a shared library's own code looks for the variables that it exports.
package preempt

import (
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/loc"
)

// A variable that a shared library exports need not be in the library: a program that uses
// it has its own copy (R_X86_64_COPY), or another library defines the same name. All code then
// finds it by the address that the dynamic linker has put into the global offset table
// (R_X86_64_GLOB_DAT), and so does a prologue. A variable without such an entry, because
// it is hidden or the library was linked with -Bsymbolic, is where the debug information says.

// Variables caches where a library's own code looks for its exported variables. The zero value is ready.
type Variables struct {
	once sync.Once
	vars []exported // by address
}

// exported is a variable with an entry in the global offset table.
type exported struct {
	addr, size uint64 // link-time address; bytes
	entry      uint64 // link-time address of the entry
}

// read finds a file's exported variables that may be elsewhere.
func read(img *image.File) (out []exported) {
	kind := img.Arch().GlobDat
	if !img.IsPositionIndependent() || kind == 0 || img.Arch().WordSize != 8 {
		return nil
	}
	var relocations, symbols []byte
	for _, s := range img.Sections() {
		switch s.Name {
		case ".rela.dyn":
			relocations, _ = img.Bytes(s.Addr, s.Size)
		case ".dynsym":
			symbols, _ = img.Bytes(s.Addr, s.Size)
		}
	}
	const relaSize, symSize = 24, 24
	r := bin.Reader{D: relocations, BigEndian: img.BigEndian()}
	for len(r.D)-r.P >= relaSize {
		entry, info, addend := r.U64(), r.U64(), r.U64()
		at := (info >> 32) * symSize
		if uint32(info) != kind || addend != 0 || at+symSize > uint64(len(symbols)) {
			continue
		}
		s := bin.Reader{D: symbols[at : at+symSize], BigEndian: img.BigEndian()}
		s.U32() // name
		const object = 1
		info8 := s.U8()
		s.U8() // visibility: a symbol that is not the default one has no such relocation
		section := s.U16()
		addr, size := s.U64(), s.U64()
		if info8&0xf == object && section != 0 {
			out = append(out, exported{addr, size, entry})
		}
	}
	return radix.Sort(out, func(e *exported) uint64 { return e.addr })
}

// Relocate makes a location refer to exported variables as the image's code does.
func (p *Variables) Relocate(img *image.File, l *loc.Location) {
	p.once.Do(func() { p.vars = read(img) })
	vars := p.vars
	if len(vars) == 0 {
		return
	}
	if l.Expr != nil {
		l.Expr = relocated(l.Expr, vars, img.Arch().WordSize)
	}
	for i := range l.Pieces {
		p.Relocate(img, &l.Pieces[i].Loc)
	}
	if l.Kind == loc.KindConstant && l.Expr.Op != ops.Const {
		l.Kind = loc.KindValue
	}
}

func relocated(e *loc.Expr, vars []exported, word int) *loc.Expr {
	if e == nil {
		return nil
	}
	if e.Op == ops.Addr {
		i, _ := slices.BinarySearchFunc(vars, e.K, func(v exported, a uint64) int {
			if v.addr <= a {
				return -1
			}
			return 1
		})
		if i == 0 || e.K-vars[i-1].addr >= max(vars[i-1].size, 1) {
			return e
		}
		v := &vars[i-1]
		var b eval.Builder
		return b.Binary(ops.Add, b.Deref(b.Addr(v.entry), word), b.Const(e.K-v.addr))
	}
	a, b, c := relocated(e.A, vars, word), relocated(e.B, vars, word), relocated(e.C, vars, word)
	if a == e.A && b == e.B && c == e.C {
		return e
	}
	own := *e
	own.A, own.B, own.C = a, b, c
	return &own
}
