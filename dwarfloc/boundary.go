package dwarfloc

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// ErrMidInstruction is wrapped by the errors of CheckInstructions for an address inside an
// instruction.
var ErrMidInstruction = errors.New("the address is inside an instruction")

// ErrNotDecoded is wrapped by the errors of CheckInstructions for an address of which it
// is not known whether an instruction begins there.
var ErrNotDecoded = errors.New("it is not known whether an instruction begins there")

// ErrMisread is wrapped by the errors of CheckInstructions for an instruction that kernels take for another one. A probe there
// would change what the code computes, or end the program.
var ErrMisread = errors.New("kernels take this instruction for another one")

// CheckInstructions returns, for each site, nil if an instruction begins at its address, or
// an error that wraps ErrMidInstruction or ErrNotDecoded. The instructions of the function
// are decoded from its beginning; those of some architectures are not. On amd64 and i386 it is an error that wraps ErrMisread
// if that is a vector instruction that uprobes would run as a jump, a call or a return.
//
// The kernel does not check these for user space: a uprobe inside an instruction changes what
// the program computes (uprobe_register in kernel/events/uprobes.c takes any offset). It
// need not be checked whether a jump leads into the middle of what a uprobe replaces: that
// is one byte on amd64 (UPROBE_SWBP_INSN_SIZE in arch/x86/include/asm/uprobes.h) and one
// instruction on arm64 (AARCH64_INSN_SIZE in arch/arm64/include/asm/uprobes.h).
//
// The second error is about a file that cannot be read, or damaged debug information.
func (img *Image) CheckInstructions(sites []*Site) ([]error, error) {
	out := make([]error, len(sites))
	if len(sites) == 0 {
		return out, nil
	}
	if img.told != nil {
		for i, s := range sites {
			out[i] = s.toldProblem()
		}
		return out, nil
	}
	arch := insn.For(img.Instructions())
	if arch == nil {
		for i, s := range sites {
			out[i] = s.notDecoded("instructions of %s are not decoded", img.Arch().Name)
		}
		return out, nil
	}
	order := make([]int, len(sites))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(sites[a].Addr, sites[b].Addr) })
	err := img.guard(func() (err error) {
		// Sites that are asked about one after the other are often of one function.
		u := sites[order[0]].u
		var f functionCode
		if last := u.checked.Swap(nil); last != nil {
			f = *last
		}
		defer func() { u.checked.Store(&f) }()
		for _, i := range order {
			s := sites[i]
			if s.Addr < f.lo || s.Addr >= f.hi || f.hi == 0 {
				if f, err = s.code(arch); err != nil {
					return err
				}
			}
			if out[i], err = f.check(s); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// functionCode is the code around a site, as far as instructions are known in it.
type functionCode struct {
	lo, hi  uint64
	reading *insn.Reading // nil if there is none
	why     string        // there is none
}

// code reads the part of a function's code that holds a site. It begins where the function
// does, or another of its ranges, or its symbol: a function that leaves room for ftrace
// begins after its symbol (-fpatchable-function-entry).
func (s *Site) code(arch *insn.Arch) (f functionCode, err error) {
	ranges, err := s.outermost()
	if err != nil {
		return f, err
	}
	img := s.u.img
	for _, r := range ranges {
		if s.Addr >= r.Lo && s.Addr < r.Hi {
			f.lo, f.hi = r.Lo, r.Hi
		}
	}
	if sym := img.SymbolAt(s.Addr, s.Symbol); sym != nil && sym.Size > 0 && (f.hi == 0 || sym.Addr < f.lo) {
		f.lo, f.hi = sym.Addr, max(f.hi, sym.Addr+sym.Size)
	}
	sec := img.SectionAt(s.Addr)
	if sec == nil || f.lo < sec.Addr || s.Addr < f.lo || s.Addr >= f.hi {
		return functionCode{why: "where its function begins is not known"}, nil
	}
	f.hi = min(f.hi, sec.Addr+sec.Size)
	code, err := img.Bytes(f.lo, f.hi-f.lo)
	if err != nil {
		// A file with debug information only, or one that is cut short.
		return functionCode{why: "the file does not have the function's code"}, nil
	}
	f.reading = arch.Read(code)
	f.reading.From(0)
	return f, nil
}

// outermost returns the code of the out-of-line function that contains the site's.
func (s *Site) outermost() ([]dw.Range, error) {
	u := s.u
	e, err := u.Entry(u.Off + uint64(u.Recs[u.outermost(s.rec)].Off))
	if err != nil {
		return nil, err
	}
	var pcs dw.PCs
	if err := e.Attrs(pcs.Take); err != nil {
		return nil, err
	}
	return u.Extent(&pcs)
}

// check says whether an instruction begins at a site.
func (f *functionCode) check(s *Site) (problem, err error) {
	if misread, err := s.misread(); misread != nil || err != nil {
		return misread, err
	}
	if f.reading == nil {
		if s.Kind == SiteEntry && !s.AfterPrologue {
			return nil, nil // it is where its function begins
		}
		return s.notDecoded("%s", f.why), nil
	}
	at := int(s.Addr - f.lo)
	if !f.reading.Known(at) {
		if err := f.followRows(s.u, s.Addr); err != nil {
			return nil, err
		}
	}
	b, before, after := f.reading.At(at)
	switch b {
	case insn.Inside:
		place := func(off int) string {
			addr := f.lo + uint64(off)
			if begin := s.Addr - s.Offset; s.Symbol != "" && addr >= begin {
				at := Site{Symbol: s.Symbol, Offset: addr - begin}
				return fmt.Sprintf("%s (%#x)", at.SymbolOffset(), addr)
			}
			return fmt.Sprintf("%#x", addr)
		}
		return fmt.Errorf("%s: %w: %#x is in the one at %s; the next is at %s", s.u.img.Path(), ErrMidInstruction, s.Addr, place(before), place(after)), nil
	case insn.Unknown:
		return f.strange(s, before)
	}
	return nil, nil
}

// misread returns an error if kernels take the instruction at a site for another one.
func (s *Site) misread() (problem, err error) {
	img := s.u.img
	arch := insn.For(img.Instructions())
	sec := img.SectionAt(s.Addr)
	if arch == nil || arch.Misread == nil || sec == nil {
		return nil, nil
	}
	const longest = 16
	code, err := img.Bytes(s.Addr, min(longest, sec.Addr+sec.Size-s.Addr))
	if err != nil || !arch.Misread(code) {
		return nil, nil // a file with debug information only has no code
	}
	in, _ := arch.Next(code)
	return fmt.Errorf("%s: %#x: %w: % x has the opcode of a jump, a call or a return after its prefix", img.Path(), s.Addr, ErrMisread, code[:in.Size]), nil
}

// followRows follows the code from rows of the line table before an address, which are at
// instructions: they lead into code that only indirect jumps reach.
func (f *functionCode) followRows(u *unit, before uint64) error {
	rows, err := u.Rows()
	if err != nil {
		return err
	}
	i, _ := slices.BinarySearchFunc(rows, f.lo, func(r dw.Row, a uint64) int { return cmp.Compare(r.Addr, a) })
	for ; i < len(rows) && rows[i].Addr < before; i++ {
		if at := int(rows[i].Addr - f.lo); !rows[i].End && !f.reading.Known(at) {
			f.reading.From(at)
		}
	}
	return nil
}

// strange returns the error for what does not decode at an offset.
func (f *functionCode) strange(s *Site, off int) (problem, err error) {
	code, err := s.u.img.Bytes(f.lo+uint64(off), min(f.hi-f.lo-uint64(off), 8))
	if err != nil {
		return nil, err
	}
	return s.notDecoded("the instruction at %#x does not decode (% x)", f.lo+uint64(off), code), nil
}

// notDecoded returns an error that wraps ErrNotDecoded.
func (s *Site) notDecoded(why string, args ...any) error {
	return fmt.Errorf("%s: %#x: %w: %s", s.u.img.Path(), s.Addr, ErrNotDecoded, fmt.Sprintf(why, args...))
}
