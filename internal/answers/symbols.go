package answers

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/needed"
	"github.com/bpfprologue/bpfprologue/internal/probed"
	"github.com/bpfprologue/bpfprologue/internal/qualify"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
	"github.com/bpfprologue/bpfprologue/internal/typesource"
	"github.com/bpfprologue/bpfprologue/types"
)

// A symbol says where a function begins, and neither which parameters it has nor of what type. What is left of them are the places in which
// the calling convention has the first words that are passed ($arg1, $arg2): see symbolValues.

// Symbols answers from the symbol tables of a program or a library: .symtab, or .dynsym and .gnu_debugdata.
type Symbols struct {
	file    *image.File
	machine abi.Machine
	types   typesource.BTF[types.Type] // none
	// onlyC is needed.OnlyC.
	onlyC func() bool
	// goes is set for a Go program, and goKnown if its functions are called as Go 1.20 does it.
	goes, goKnown bool
	// cold returns the parts of functions that are only jumped to, by the symbols of the functions.
	cold func() map[string][]dw.Range
	// frames are the frame descriptions, or nil.
	frames func() *dw.Data
}

// BySymbols is what Source.What returns of Symbols.
const BySymbols = "the symbol table"

// NewSymbols returns what the symbols of a file say. flags are those of its header.
func NewSymbols(f *image.File, flags uint32) (*Symbols, error) {
	t := &Symbols{file: f, machine: abi.Machine{Arch: f.Arch(), Flags: flags}, frames: framesOf(f)}
	t.onlyC = sync.OnceValue(func() bool { return needed.OnlyC(f) })
	t.cold = sync.OnceValue(func() map[string][]dw.Range {
		out := make(map[string][]dw.Range)
		for s := range f.Symbols() {
			if of, _, cold := strings.Cut(s.Name, ".cold"); cold && s.Size > 0 {
				out[of] = append(out[of], dw.Range{Lo: s.Addr, Hi: s.Addr + s.Size})
			}
		}
		return out
	})
	t.goes, t.goKnown = f.IsGo()
	var err error
	t.types, err = noTypes(f)
	return t, err
}

// isGo reports whether a function is one of Go: these have the name of a package before a period, but for what a program begins with.
func (t *Symbols) isGo(symbol string) bool {
	return t.goes && (strings.Contains(symbol, ".") || strings.HasPrefix(symbol, "_rt0_"))
}

// noTypes returns the types of a file of which none are known.
func noTypes(f *image.File) (typesource.BTF[types.Type], error) {
	none, err := btf.New(emptyBTF(f.BigEndian()), nil)
	if err != nil {
		return nil, err
	}
	return typesource.NewBTF[types.Type](&typesource.Section{Types: none, Name: ".BTF", Errorf: errorf(f), WordSize: f.Arch().WordSize, Guard: f.Guard}), nil
}

// emptyBTF returns BTF without types: struct btf_header of include/uapi/linux/btf.h, and an empty string.
func emptyBTF(bigEndian bool) []byte {
	order := binary.AppendByteOrder(binary.LittleEndian)
	if bigEndian {
		order = binary.BigEndian
	}
	const magic, version, header = 0xeb9f, 1, 24
	d := append(order.AppendUint16(nil, magic), version, 0)
	for _, n := range []uint32{header, 0, 0, 0, 1} { // then where types and strings begin, and their sizes
		d = order.AppendUint32(d, n)
	}
	return append(d, 0)
}

// symbolName is what a symbol says by its name.
type symbolName struct {
	function  string // the function's own name: "get" of app::Box<int>::get
	qualified string
	clone     string // what marks a copy or a part of the function: ".isra.0"
}

// cloneMarks are what compilers add to the symbols of copies and parts of functions, before a number. Those in lost may have other parameters
// than the function, or none.
var (
	lostMarks = []string{".isra.", ".constprop.", ".part.", ".cold", ".specialized.", ".argprom", ".retelim", ".argelim"}
	keptMarks = []string{".lto_priv.", ".localalias", ".llvm.", ".cfi"}
)

// mangled reports whether a symbol is one of C++ or Rust.
func mangled(symbol string) bool {
	return strings.HasPrefix(symbol, "_Z") || strings.HasPrefix(symbol, "_R")
}

// nameOf takes a symbol's name apart.
func (t *Symbols) nameOf(symbol string) (n symbolName) {
	if t.isGo(symbol) {
		return symbolName{function: symbol, qualified: symbol}
	}
	at := len(symbol)
	for _, marks := range [][]string{lostMarks, keptMarks} {
		for _, m := range marks {
			if i := strings.Index(symbol, m); i > 0 {
				at = min(at, i)
			}
		}
	}
	plain := symbol[:at]
	n = symbolName{function: plain, qualified: plain, clone: symbol[at:]}
	if mangled(plain) {
		if q := qualify.Symbol(plain); q != "" {
			n.function, n.qualified = qualify.Own(q), q
		}
	}
	return n
}

// lost reports whether the function of a symbol may have other parameters than the one that it is named after.
func (n *symbolName) lost() bool {
	return slices.ContainsFunc(lostMarks, func(m string) bool { return strings.Contains(n.clone, m) })
}

// cold reports whether the symbol is of a part of a function that is not called, but jumped to.
func (n *symbolName) cold() bool { return strings.Contains(n.clone, ".cold") }

// symbolSite is an entry: the symbol with a number, and what its name says.
type symbolSite struct {
	image.Symbol
	symbolName
	number int
}

// selected returns the symbols that m selects, one of each address, in the order of addresses. skip, if not nil, reports whether a function
// begins at an address, or is around it, of which something else knows more.
func (t *Symbols) selected(m Matcher, skip func(addr uint64) (bool, error)) (out []symbolSite, err error) {
	literal, one := "", false
	if m != nil {
		literal, one = m.Literal()
	}
	last := uint64(0)
	for i := 0; ; i++ {
		s, ok := t.file.Symbol(i)
		if !ok {
			return out, nil
		}
		if len(out) > 0 && last == s.Addr || one && !mayBe(s.Name, literal) {
			continue
		}
		n := t.nameOf(s.Name)
		exact := one && s.Name == literal
		switch {
		case exact:
		case s.Label, n.cold():
			continue // only who names it means it
		case m != nil && !m.Match(n.function):
			continue
		}
		if skip != nil {
			known, err := skip(s.Addr)
			if err != nil {
				return nil, err
			}
			if known {
				continue
			}
		}
		out = append(out, symbolSite{s, n, i})
		last = s.Addr
	}
}

// mayBe reports whether a symbol may be of a function that has a name, before it is taken apart.
func mayBe(symbol, name string) bool {
	return strings.HasPrefix(symbol, name) || mangled(symbol) && strings.Contains(symbol, strings.TrimRight(strings.TrimPrefix(name, "~"), "<>="))
}

// List returns numbers of sites.
func (t *Symbols) List(m Matcher) ([]uint64, error) { return t.ListOthers(m, nil) }

// ListOthers is List without the symbols at addresses that are known otherwise.
func (t *Symbols) ListOthers(m Matcher, known func(addr uint64) (bool, error)) ([]uint64, error) {
	all, err := t.selected(m, known)
	if err != nil {
		return nil, err
	}
	radix.By(all, func(a, b *symbolSite) int {
		return cmp.Or(cmp.Compare(a.function, b.function), cmp.Compare(a.Addr, b.Addr))
	})
	out := make([]uint64, len(all))
	for i := range all {
		out[i] = uint64(all[i].number)
	}
	return out, nil
}

// Sites calls f for sites.
func (t *Symbols) Sites(numbers []uint64, f func(i int, s *Site) error) error {
	for i, n := range numbers {
		symbol, ok := t.file.Symbol(int(n))
		if !ok {
			return fmt.Errorf("%s: no symbol %d", t.file.Path(), n)
		}
		s := t.site(&symbolSite{symbol, t.nameOf(symbol.Name), int(n)})
		if err := f(i, &s); err != nil {
			return err
		}
	}
	return nil
}

func (t *Symbols) site(x *symbolSite) Site {
	s := Site{
		Evidence: "symbol", Number: x.Addr, Addr: x.Addr, Function: x.function, Qualified: x.qualified, Symbol: x.Name, In: x.Addr, Of: x.Addr, Start: x.Addr,
		Values: symbolValues{t, x}, Problem: t.problem(x),
		Returns: func(force bool) ([]body.Leave, string) { return t.returns(x, force) },
		Inside:  func(addr uint64) (string, bool) { return t.inside(x, addr) },
	}
	if local, ok := t.file.LocalEntry(x.Addr); ok {
		s.Offset, s.Addr, s.LocalEntry = local-x.Addr, local, true
	}
	entry := s.Addr
	s.Begun = func() Begin { return t.begun(x, entry) }
	return s
}

// At returns the number of the function around an address.
func (t *Symbols) At(addr uint64) (number uint64, ok bool) {
	for i := 0; ; i++ {
		s, ok := t.file.Symbol(i)
		if !ok {
			return 0, false
		}
		if s.Label || addr < s.Addr {
			continue
		}
		if dw.Covers(t.code(&symbolSite{Symbol: s}), addr) {
			return uint64(i), true
		}
	}
}

// inside is Site.Inside.
func (t *Symbols) inside(x *symbolSite, addr uint64) (wrong string, is bool) {
	if !dw.Covers(t.code(x), addr) {
		return "", false
	}
	code := t.whole(x)
	switch begins, known := code.Begins(addr); {
	case !known:
		return refusals.ErrNotDecoded.Error() + ": " + code.Why, true
	case !begins:
		return fmt.Sprintf("%v: none that %s runs begins at %#x", refusals.ErrMidInstruction, x.qualified, addr), true
	}
	return harm(t.file, addr), true
}

// problem says why no probe belongs where a symbol is, or "".
func (t *Symbols) problem(x *symbolSite) string {
	none := func(text string) string { return refusals.ErrNoFunction.Error() + ": " + text }
	switch {
	case x.Chooses:
		return none(x.Name + " is an indirect function (STT_GNU_IFUNC): what is there returns the address of the function that callers get, and runs once, when the program is loaded")
	case x.cold():
		return none(x.Name + " is a part of " + x.qualified + ", which jumps there")
	case x.Label:
		return none("the symbol " + x.Name + " is a label, not a function")
	}
	return harm(t.file, x.Addr)
}

// codeAt returns the bytes of the instruction at an address, and some after it, or nil.
func codeAt(f *image.File, addr uint64) []byte {
	const longest = 16
	sec := f.SectionAt(addr)
	if sec == nil {
		return nil
	}
	d, err := f.Bytes(addr, min(longest, sec.Addr+sec.Size-addr))
	if err != nil {
		return nil
	}
	return d
}

// harm says why a uprobe at an address would change what the program computes, or "".
func harm(f *image.File, addr uint64) string {
	rules, code := probed.For(f.Instructions()), codeAt(f, addr)
	if rules == nil || code == nil {
		return ""
	}
	does, why := rules.Uprobe(code)
	if does == probed.UprobeRepeats {
		why = "it would be hit for each element"
	}
	if does == probed.UprobeRepeats || does == probed.UprobeHarms {
		return refusals.ErrHarmful.Error() + ": " + why
	}
	return ""
}

// code returns where a function's code is: up to its size or, if the symbol has none, up to the next symbol, and its cold part.
func (t *Symbols) code(x *symbolSite) []dw.Range {
	r := dw.Range{Lo: x.Addr, Hi: x.Addr + x.Size}
	if x.Size == 0 {
		if _, _, hi, ok := t.file.CodeRange(x.Addr); ok {
			r.Hi = hi
		}
	}
	return append([]dw.Range{r}, t.cold()[x.Name]...)
}

// begun returns where a run of a function has begun for good: in Go after the check of the stack.
func (t *Symbols) begun(x *symbolSite, entry uint64) Begin {
	switch {
	case body.IsPart(x.Name):
		return Begin{Addr: entry, Again: true}
	case !t.isGo(x.Name):
		return Begin{Addr: entry, Again: body.BeginsAgainAlone(t.file, t.code(x), entry)}
	}
	if after, ok := body.Alone(t.file, t.code(x)).AfterCheck(entry); ok {
		return Begin{Addr: after}
	}
	return Begin{Addr: entry}
}

// returns returns where a function is left, if a return probe may harm the program, or why that is not known. Of a program in which nothing
// passes a function but its return, a return probe is better where it ends with a jump. With force, any but Go's has one.
func (t *Symbols) returns(x *symbolSite, force bool) (leaves []body.Leave, kept string) {
	if force && !t.isGo(x.Name) {
		return nil, ""
	}
	code := t.whole(x)
	why := code.Why
	if why == "" {
		leaves, why = code.Leaves()
	}
	jumps := slices.ContainsFunc(leaves, func(l body.Leave) bool { return l.Jumps })
	switch {
	case why != "":
		why = "where it returns is not known: " + why
	case len(leaves) == 0:
		why = "it has no return instruction"
	}
	switch {
	case why == "" && !jumps:
		return leaves, ""
	case why != "" && t.isGo(x.Name):
		return nil, refusals.ErrMovingStack.Error() + ": " + why
	case t.isGo(x.Name):
		return leaves, ""
	case t.onlyC():
		return nil, ""
	case why == "":
		return leaves, ""
	}
	return nil, refusals.ErrUnwinding.Error() + ": " + why
}

// None reports whether there is no symbol of a function.
func (t *Symbols) None() bool {
	for s := range t.file.Symbols() {
		if !s.Label {
			return false
		}
	}
	return true
}

// Names returns the names of all functions.
func (t *Symbols) Names() ([]string, error) {
	return t.names(func(n *symbolName) string { return n.function })
}

// QualifiedNames returns them with namespaces and classes.
func (t *Symbols) QualifiedNames() ([]string, error) {
	return t.names(func(n *symbolName) string { return n.qualified })
}

// names returns all names, those of several functions at one address too.
func (t *Symbols) names(of func(*symbolName) string) (out []string, err error) {
	for s := range t.file.Symbols() {
		if n := t.nameOf(s.Name); !s.Label && !n.cold() {
			out = append(out, of(&n))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Types returns none.
func (t *Symbols) Types() typesource.BTF[types.Type] { return t.types }

// What returns BySymbols.
func (t *Symbols) What() string { return BySymbols }
