package answers

import (
	"bufio"
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/elfwrite"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/internal/typesource"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// BTF of a kernel has the signature of each function and all types that it uses, but neither inlined
// instances nor locations. What is left are the entries of functions, where the calling convention
// says where the arguments are. A section .BTF.inline has more: see btfinline.go.

// addFunction adds a symbol of code.
func (t *BTF) addFunction(name string, addr uint64) {
	base, clone, _ := strings.Cut(name, ".")
	if !strings.HasPrefix(clone, "cold") { // that is a part of a function that is not entered
		t.functions[base] = append(t.functions[base], kernelSymbol{name, addr})
	}
}

// kernelSymbol is a function in /proc/kallsyms.
type kernelSymbol struct {
	name string
	addr uint64
}

// BTF answers from the BTF of a kernel or a module.
type BTF struct {
	file    *image.File
	machine abi.Machine
	btf     *typesource.Section
	types   typesource.BTF[types.Type]
	// own are the types without those of inlined functions, which btf has too.
	own *btf.Types
	// functions are the symbols of code by the name of their function, which clones share.
	functions map[string][]kernelSymbol
	symbols   bool // there are any

	implicit  sync.Once
	wholes    map[btf.ID]btf.ID // see whole
	wholesErr error

	mu      sync.Mutex
	listed  []btfSite          // those that a list has named, each once, by their numbers
	numbers map[btfSite]uint64 // of those
	all     []btfSite          // all, by function and address; empty until they are needed
}

// BTFInput says what is known of a kernel or a module apart from its debug information: see dwarfloc.BTFOptions.
type BTFInput struct {
	Path    string
	BTF     []byte
	Base    []byte
	Arch    *arch.Arch
	Symbols io.Reader
	Module  string
	BuildID string
}

func newBTF() *BTF {
	return &BTF{functions: make(map[string][]kernelSymbol), numbers: make(map[btfSite]uint64)}
}

// use makes t answer for a file. Its types are still to be given.
func (t *BTF) use(f *image.File) {
	t.file, t.machine = f, abi.Machine{Arch: f.Arch()}
	t.btf = &typesource.Section{Name: ".BTF", Errorf: errorf(f), WordSize: f.Arch().WordSize, Guard: f.Guard}
	t.types = typesource.NewBTF[types.Type](t.btf)
}

// NewBTF returns what BTF says, and a file with the symbols.
func NewBTF(o *BTFInput) (*BTF, *image.File, error) {
	t := newBTF()
	file, err := t.elf(o)
	if err != nil {
		return nil, nil, err
	}
	f, err := image.FromBytes(o.Path, file, nil)
	if err != nil {
		return nil, nil, err
	}
	t.use(f)
	var base *btf.Types
	if o.Base != nil {
		base, err = btf.New(o.Base, nil)
	}
	if err == nil {
		t.own, err = btf.New(o.BTF, base)
		t.btf.Types = t.own
	}
	if err == nil && t.btf.BigEndian() != o.Arch.BigEndian {
		err = &btf.Error{Msg: "the byte order is not that of " + o.Arch.Name}
	}
	if err != nil {
		return nil, nil, t.btf.Error(err)
	}
	return t, f, nil
}

// OpenBTF returns what the section .BTF of an ELF file says.
func OpenBTF(f *image.File) (*BTF, error) {
	t := newBTF()
	t.use(f)
	section, err := f.SectionContents(".BTF")
	if err == nil && section == nil {
		err = fmt.Errorf("%s: no section .BTF", f.Path())
	}
	if err != nil {
		return nil, err
	}
	for s := range f.Symbols() {
		t.addFunction(s.Name, s.Addr)
	}
	t.symbols = len(t.functions) > 0
	err = f.Guard(func() (err error) {
		if t.own, err = btf.New(section, nil); err == nil {
			t.btf.Types = t.own
			err = t.readInline(f)
		}
		return t.btf.Error(err)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// btfSite is an entry.
type btfSite struct {
	function btf.ID
	kernelSymbol
	name   string // of the function
	reason string // why nothing is known of its arguments, or ""

	inline bool   // it is an inlined instance; then symbol and address are where it is
	offset uint64 // from the symbol
	params btf.ID // where its parameters are
}

// Types returns the types.
func (t *BTF) Types() typesource.BTF[types.Type] { return t.types }

// What returns "BTF".
func (t *BTF) What() string { return "BTF" }

// elf returns an ELF file with the sections and symbols of what /proc/kallsyms has.
func (t *BTF) elf(o *BTFInput) ([]byte, error) {
	f := elfwrite.File{Arch: o.Arch, Type: elf.ET_EXEC}
	id, err := hex.DecodeString(o.BuildID)
	if err != nil {
		return nil, fmt.Errorf("%s: build ID %q: %w", o.Path, o.BuildID, err)
	}
	if len(id) > 0 {
		f.Sections = append(f.Sections, elfwrite.Section{Name: ".note.gnu.build-id", Type: elf.SHT_NOTE, Flags: elf.SHF_ALLOC, Align: 4, Data: elfwrite.Note(o.Arch, "GNU", 3, id)})
	}
	marks := make(map[string]uint64)
	if o.Symbols != nil {
		if err := t.readSymbols(o, &f, marks); err != nil {
			return nil, err
		}
	} else {
		f.Symbols = append(f.Symbols, elfwrite.Symbol{Name: "_stext", Type: elf.STT_OBJECT})
		marks["_etext"] = 1 << 31
	}
	for _, s := range []struct{ name, from, to string }{
		{".text", "_stext", "_etext"}, {".init.text", "_sinittext", "_einittext"}, {".module.text", "first", "last"},
	} {
		if from, to := marks[s.from], marks[s.to]; to > from {
			f.Sections = append(f.Sections, elfwrite.Section{
				Name: s.name, Type: elf.SHT_NOBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: from, Size: to - from,
			})
		}
	}
	for i := range f.Symbols {
		for _, s := range f.Sections {
			if a := f.Symbols[i].Addr; s.Flags&elf.SHF_EXECINSTR != 0 && a >= s.Addr && a-s.Addr < s.Size {
				f.Symbols[i].In = s.Name
			}
		}
	}
	return f.Bytes(), nil
}

// readSymbols reads lines like "ffffffff81000000 T _text	[module]".
func (t *BTF) readSymbols(o *BTFInput, f *elfwrite.File, marks map[string]uint64) error {
	t.symbols = true
	own := "[" + o.Module + "]"
	lines := bufio.NewScanner(o.Symbols)
	hidden := true
	for lines.Scan() {
		fields := bytes.Fields(lines.Bytes())
		if len(fields) < 3 || len(fields[1]) != 1 {
			continue
		}
		in := len(fields) > 3 && string(fields[3]) == own
		ofKernel := len(fields) == 3
		addr, err := strconv.ParseUint(string(fields[0]), 16, 64)
		if err != nil {
			return fmt.Errorf("symbols of %s: %q: %w", o.Path, lines.Text(), err)
		}
		hidden = hidden && addr == 0
		name := string(fields[2])
		if ofKernel {
			if _, known := marks[name]; !known {
				marks[name] = addr
			}
		}
		if o.Module == "" && !ofKernel || o.Module != "" && !in && (name != "_stext" && name != "_text" || !ofKernel) {
			continue
		}
		kind := fields[1][0]
		code := kind == 'T' || kind == 't' || kind == 'W' || kind == 'w'
		of := elf.STT_OBJECT
		if code {
			of = elf.STT_FUNC
		}
		f.Symbols = append(f.Symbols, elfwrite.Symbol{Name: name, Addr: addr, Type: of, Local: kind >= 'a' && kind != 'w'})
		if !code || o.Module != "" && !in {
			continue
		}
		if in {
			if first, known := marks["first"]; !known || addr < first {
				marks["first"] = addr
			}
			marks["last"] = max(marks["last"], addr+1)
		}
		t.addFunction(name, addr)
	}
	if hidden {
		return fmt.Errorf("symbols of %s: no address is shown: that needs root, or CAP_SYSLOG, and kernel.kptr_restrict of 0 or 1", o.Path)
	}
	return lines.Err()
}

// entriesOf returns the entries of functions that m selects, by function and address.
func (t *BTF) entriesOf(m Matcher) (out []btfSite, err error) {
	if m != nil {
		if _, one := m.Literal(); one {
			return t.find(m)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		if t.all, err = t.find(nil); err != nil {
			return nil, err
		}
	}
	for i := range t.all {
		if m == nil || m.Match(t.all[i].name) {
			out = append(out, t.all[i])
		}
	}
	return out, nil
}

// find finds the entries of functions that m selects.
func (t *BTF) find(m Matcher) (out []btfSite, err error) {
	literal, one := "", false
	if m != nil {
		literal, one = m.Literal()
	}
	// Of several declarations of one name nobody knows which one a symbol is.
	found := make(map[string][]btf.ID)
	var failed error
	err = t.btf.Each(func(f *btf.Type) bool {
		if f.Kind != btf.KindFunc || f.ID < t.own.First() || int(f.ID) >= t.own.Len() || one && !f.Named(literal) {
			return true
		}
		name, err := f.Name()
		if err != nil {
			failed = err
			return false
		}
		if m == nil || one || m.Match(name) {
			found[name] = append(found[name], f.ID)
		}
		return true
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, t.btf.Error(err)
	}
	whole, err := t.whole()
	if err != nil {
		return nil, t.btf.Error(err)
	}
	for name, ids := range found {
		if w, is := whole[ids[0]]; is && len(ids) == 1 {
			ids = []btf.ID{w}
		}
		out = t.entries(out, name, ids)
	}
	if out, err = t.findInline(out, m); err != nil {
		return nil, t.btf.Error(err)
	}
	// Of inlined instances at one address, which have no views, the order of the section remains.
	radix.By(out, func(a, b *btfSite) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.addr, b.addr), strings.Compare(a.kernelSymbol.name, b.kernelSymbol.name))
	})
	return out, nil
}

// entries appends the entries of a function.
func (t *BTF) entries(out []btfSite, name string, ids []btf.ID) []btfSite {
	if !t.symbols {
		return append(out, btfSite{function: ids[0], kernelSymbol: kernelSymbol{name: name}, name: name})
	}
	symbols := t.functions[name]
	plain := 0
	for _, s := range symbols {
		if s.name == name {
			plain++
		}
	}
	for _, s := range symbols {
		x := btfSite{function: ids[0], kernelSymbol: s, name: name}
		switch {
		case s.name != name:
			x.reason = "which parameters the clone " + s.name + " has"
		case plain > 1:
			x.reason = fmt.Sprintf("which of the %d functions of this name its signature is of", plain)
		case len(ids) > 1:
			x.reason = fmt.Sprintf("which of its %d signatures of this name the function has", len(ids))
		}
		out = append(out, x)
	}
	return out
}

// List returns numbers of sites.
func (t *BTF) List(m Matcher) ([]uint64, error) {
	sites, err := t.entriesOf(m)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]uint64, len(sites))
	for i, s := range sites {
		n, known := t.numbers[s]
		if !known {
			n = uint64(len(t.listed))
			t.numbers[s] = n
			t.listed = append(t.listed, s)
		}
		out[i] = n
	}
	return out, nil
}

// Sites calls f for sites.
func (t *BTF) Sites(numbers []uint64, f func(i int, s *Site) error) error {
	t.mu.Lock()
	listed := t.listed
	t.mu.Unlock()
	var s Site
	for i, n := range numbers {
		s = t.site(&listed[n])
		if err := f(i, &s); err != nil {
			return err
		}
	}
	return nil
}

func (t *BTF) site(x *btfSite) Site {
	s := Site{
		Inline: x.inline, Number: uint64(x.function), Addr: x.addr, Function: x.name, Qualified: x.name,
		Symbol: x.kernelSymbol.name, In: x.addr, Of: uint64(x.function), Start: x.addr, Values: btfValues{t, x},
	}
	if x.inline {
		s.Offset = x.offset
		s.Ways = runs.Ways{In: []runs.Way{{Addr: x.addr, Probe: x.addr}}, Unknown: "BTF does not say them"}
	}
	return s
}

// Names returns the names of all functions.
func (t *BTF) Names() ([]string, error) {
	all, err := t.entriesOf(nil)
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range all {
		if i == 0 || all[i].name != all[i-1].name {
			out = append(out, all[i].name)
		}
	}
	return out, nil
}

// QualifiedNames is Names.
func (t *BTF) QualifiedNames() ([]string, error) { return t.Names() }

// btfValues are the values at an entry.
type btfValues struct {
	t *BTF
	s *btfSite
}

// signature returns a function's prototype.
func (v btfValues) signature() (p btf.Type, err error) {
	f, err := v.t.btf.Type(v.s.function)
	if err == nil {
		p, err = v.t.btf.Type(f.Elem)
	}
	if err == nil && p.Kind != btf.KindFuncProto {
		err = &btf.Error{Msg: v.s.name + " has a type that is no prototype of a function"}
	}
	return p, v.t.btf.Error(err)
}

// Params returns the parameters.
func (v btfValues) Params(Place) ([]Value, error) {
	p, err := v.signature()
	if err != nil {
		return nil, err
	}
	declared, err := p.Params()
	if err != nil {
		return nil, v.t.btf.Error(err)
	}
	if v.s.inline {
		return v.placed(declared)
	}
	a := v.t.machine
	result, err := v.t.types.At(p.Elem)
	if err != nil {
		return nil, err
	}
	next := abi.NewAssigner(v.t.machine)
	known := len(a.Args) > 0 && v.s.reason == ""
	ok, err := next.Result(result, dw.LangC, false)
	if err != nil {
		return nil, err
	}
	known = known && ok
	out := make([]Value, 0, len(declared))
	for i, d := range declared {
		if d.Type == 0 && d.Name == "" && i == len(declared)-1 {
			break // what follows in a variadic function
		}
		t, err := v.t.types.At(d.Type)
		if err != nil {
			return nil, err
		}
		out = append(out, Value{Name: d.Name, Entries: 1, Type: t})
		x := &out[len(out)-1]
		if !known {
			continue
		}
		var pass abi.Passing
		if pass, known, err = abi.PassingOf(x.Type, dw.LangC, v.t.machine); err != nil {
			return nil, err
		}
		if known && !pass.Nothing() {
			x.Loc, x.Reason = next.Next(&pass)
			x.Loc.Rule = rule.ABIBTF
		} else if known {
			x.Reason = notDescribed("where a value without bytes is")
		}
		if x.Reason.Code != reasons.None {
			x.Loc = loc.Location{}
		}
	}
	for i := range out {
		x := &out[i]
		if x.Loc.Kind == loc.KindNone && x.Reason.Code == reasons.None {
			x.Reason = notDescribed(v.s.reason)
			if v.s.reason == "" {
				x.Reason = loc.Reason{Code: reasons.Unsupported, Detail: "how this or an earlier parameter is passed is not known"}
			}
		}
	}
	return out, nil
}

// Result returns $retval.
func (v btfValues) Result(Place) (x Value, err error) {
	p, err := v.signature()
	if err != nil {
		return x, err
	}
	if x.Type, err = v.t.types.At(p.Elem); err != nil || x.Type.Kind == types.Void {
		return x, err
	}
	if v.s.inline {
		x.Reason = loc.Reason{Code: reasons.OptimizedOut, Detail: ResultOfInlined}
		return x, nil
	}
	if v.s.reason != "" {
		x.Reason = notDescribed(v.s.reason)
		return x, nil
	}
	x.Loc, x.Reason, err = abi.Returned(x.Type, dw.LangC, v.t.machine)
	if x.Reason.Code == reasons.None {
		x.Loc.Rule = rule.ABIBTF
	}
	return x, err
}

// Frame returns $frame.
func (v btfValues) Frame(Place) (Value, error) {
	if v.s.inline {
		return Value{Reason: notDescribed("where the frame of an inlined function's caller is")}, nil
	}
	return entryFrame(v.t.machine.Arch), nil
}

// entryFrame returns $frame at a function's first instruction. Where the link register has the return address, what is
// between the stack pointer and the arguments on the stack may be part of the frame of either side.
func entryFrame(a *arch.Arch) Value {
	if a.Link != 0 && a.StackArgs != 0 {
		return Value{Reason: notDescribed("where the frame is at an entry")}
	}
	return Value{Loc: loc.Location{Kind: loc.KindValue, Expr: abi.Register(a.SP, uint64(a.StackArgs))}}
}

// Pointee returns an error: BTF has no implicit pointers.
func (v btfValues) Pointee(Place, uint64) (Value, error) {
	return Value{}, fmt.Errorf("%s: BTF has no implicit pointers", v.s.name)
}

// Symbol returns the entry's own.
func (v btfValues) Symbol(uint64) (string, uint64) { return v.s.kernelSymbol.name, v.s.offset }

// Code returns nothing.
func (v btfValues) Code(uint64) []byte { return nil }
