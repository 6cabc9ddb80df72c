package dwarfloc

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/image"
	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/elfwrite"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// BTF of a kernel has the signature of each function and all types that it uses, but neither inlined
// instances nor locations. What is left are the entries of functions, where the calling convention
// says where the arguments are. A section .BTF.inline has more: see btfinline.go.

// BTFOptions says what is known of a kernel or a module apart from its debug information.
type BTFOptions struct {
	// Path is what errors call it, and the source of BTF: /sys/kernel/btf/vmlinux.
	Path string
	// BTF is the contents of that file, or of a section .BTF. It must not change while the image is in use.
	BTF []byte
	// Base is that of the kernel, if BTF is a module's.
	Base []byte
	// Arch is the architecture.
	Arch *arch.Arch
	// Symbols, if not nil, has the symbols of the running kernel, as /proc/kallsyms: their addresses become the
	// link-time addresses of the image, so that the kernel has no KASLR offset. Without them functions have no address, and
	// nothing is known of clones.
	Symbols io.Reader
	// Module is the kernel's name for the module that BTF is of, or "" for the kernel itself.
	Module string
	// BuildID is that of the kernel, also for a module, in hexadecimal digits, or "".
	BuildID string
}

// FromBTF makes an image of what the BTF of a kernel says. Its sites are entries of functions, without any inlined
// instance: runs of inlined bodies are not seen. Arguments are where the calling convention says (loc.RuleABIBTF), for
// functions that the compiler may have changed there are reasons. The error is an *image.FormatError if the BTF is
// damaged.
func FromBTF(o BTFOptions) (*Image, error) {
	t := newBTFTeller()
	file, err := t.file(&o)
	if err != nil {
		return nil, err
	}
	f, err := image.FromBytes(o.Path, file, nil)
	if err != nil {
		return nil, err
	}
	img := t.image(f)
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
		return nil, t.btf.Error(err)
	}
	return img, nil
}

// OpenBTF is FromBTF for a file: one like /sys/kernel/btf/vmlinux, for an architecture, or an ELF file with a
// section .BTF, whose symbols and architecture count.
func OpenBTF(path string, a *arch.Arch) (*Image, error) {
	// That of the running kernel cannot be mapped as images are: not at all before Linux 6.16, and not shared since
	// (btf_sysfs_vmlinux_mmap in kernel/bpf/sysfs_btf.c).
	alone, err := isBTF(path)
	if err != nil {
		return nil, err
	}
	if alone {
		d, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return FromBTF(BTFOptions{Path: path, BTF: d, Arch: a})
	}
	f, err := image.Open(path, nil)
	if err != nil {
		return nil, err
	}
	img, err := fromELF(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return img, nil
}

// isBTF reports whether a file begins as BTF does.
func isBTF(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	d := make([]byte, 2)
	_, err = io.ReadFull(f, d)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // image.Open says more of it
	}
	return btf.Begins(d), errors.Join(err, f.Close())
}

// fromELF makes an image of the BTF in an ELF file.
func fromELF(f *image.File) (*Image, error) {
	t := newBTFTeller()
	img := t.image(f)
	types, err := f.SectionContents(".BTF")
	if err == nil && types == nil {
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
		if t.own, err = btf.New(types, nil); err == nil {
			t.btf.Types = t.own
			err = t.readInline(f)
		}
		return t.btf.Error(err)
	})
	if err != nil {
		return nil, err
	}
	return img, nil
}

// addFunction adds a symbol of code.
func (t *btfTeller) addFunction(name string, addr uint64) {
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

// btfTeller answers from BTF.
type btfTeller struct {
	img *Image
	btf *types.BTF
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

func newBTFTeller() *btfTeller {
	return &btfTeller{functions: make(map[string][]kernelSymbol), numbers: make(map[btfSite]uint64)}
}

// image makes an image of a file, of which t tells. Its types are still to be given.
func (t *btfTeller) image(f *image.File) *Image {
	img := &Image{File: f, told: t}
	t.img, t.btf = img, img.newBTF()
	return img
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

func (t *btfTeller) types() *types.BTF { return t.btf }
func (t *btfTeller) what() string      { return "BTF" }

// file returns an ELF file with the sections and symbols of what /proc/kallsyms has.
func (t *btfTeller) file(o *BTFOptions) ([]byte, error) {
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
func (t *btfTeller) readSymbols(o *BTFOptions, f *elfwrite.File, marks map[string]uint64) error {
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
func (t *btfTeller) entriesOf(m Matcher) (out []btfSite, err error) {
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
func (t *btfTeller) find(m Matcher) (out []btfSite, err error) {
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
	slices.SortFunc(out, func(a, b btfSite) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.addr, b.addr), strings.Compare(a.kernelSymbol.name, b.kernelSymbol.name))
	})
	return out, nil
}

// entries appends the entries of a function.
func (t *btfTeller) entries(out []btfSite, name string, ids []btf.ID) []btfSite {
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

func (t *btfTeller) list(_ context.Context, m Matcher) ([]uint64, error) {
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

func (t *btfTeller) sites(numbers []uint64, f func(i int, s *Site, w *Ways) error) error {
	t.mu.Lock()
	listed := t.listed
	t.mu.Unlock()
	var s Site
	var w Ways
	for i, n := range numbers {
		s, w = Site{}, Ways{}
		t.site(&listed[n], &s, &w)
		if err := f(i, &s, &w); err != nil {
			return err
		}
	}
	return nil
}

func (t *btfTeller) site(x *btfSite, s *Site, w *Ways) {
	if x.inline {
		s.Kind, s.Offset = SiteInline, x.offset
		*w = Ways{In: []Way{{Addr: x.addr, Probe: x.addr}}, Unknown: "BTF does not say them"}
	}
	s.Function, s.Symbol, s.Addr = x.name, x.kernelSymbol.name, x.addr
	s.DIE = uint64(x.function)
	s.told = &told{qualified: x.name, start: x.addr, body: Body{In: x.addr, Of: uint64(x.function)}, at: btfValues{t, x}}
}

func (t *btfTeller) names() ([]string, error) {
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

func (t *btfTeller) qualifiedNames() ([]string, error) { return t.names() }

// btfValues are the values at an entry.
type btfValues struct {
	t *btfTeller
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

func (v btfValues) params(s *Site) ([]*Variable, error) {
	p, err := v.signature()
	if err != nil {
		return nil, err
	}
	declared, err := p.Params()
	if err != nil {
		return nil, v.t.btf.Error(err)
	}
	if v.s.inline {
		return v.placed(s, declared)
	}
	a := s.Image.Arch()
	result, err := v.t.btf.At(p.Elem)
	if err != nil {
		return nil, err
	}
	next := abi.NewAssigner(s.Image.machine())
	known := len(a.Args) > 0 && v.s.reason == ""
	ok, err := next.Result(result, dw.LangC, false)
	if err != nil {
		return nil, err
	}
	known = known && ok
	var out []*Variable
	for i, d := range declared {
		if d.Type == 0 && d.Name == "" && i == len(declared)-1 {
			break // what follows in a variadic function
		}
		x := &Variable{Name: d.Name, Role: RoleParameter, Entries: 1, Site: s}
		if x.Type, err = v.t.btf.At(d.Type); err != nil {
			return nil, err
		}
		out = append(out, x)
		if !known {
			continue
		}
		var pass abi.Passing
		if pass, known, err = abi.PassingOf(x.Type, dw.LangC, s.Image.machine()); err != nil {
			return nil, err
		}
		if known && !pass.Nothing() {
			x.Loc, x.Reason = next.Next(&pass)
			x.Loc.Rule = loc.RuleABIBTF
		} else if known {
			x.Reason = notDescribed("where a value without bytes is")
		}
		if x.Reason.Code != loc.ReasonNone {
			x.Loc = loc.Location{}
		}
	}
	for _, x := range out {
		if x.Loc.Kind == loc.KindNone && x.Reason.Code == loc.ReasonNone {
			x.Reason = notDescribed(v.s.reason)
			if v.s.reason == "" {
				x.Reason = loc.Reason{Code: loc.ReasonUnsupported, Detail: "how this or an earlier parameter is passed is not known"}
			}
		}
	}
	return out, nil
}

func (v btfValues) result(s *Site) (*Variable, error) {
	p, err := v.signature()
	if err != nil {
		return nil, err
	}
	x := &Variable{}
	if x.Type, err = v.t.btf.At(p.Elem); err != nil || x.Type.Kind == types.Void {
		return x, err
	}
	if v.s.inline {
		x.Reason = loc.Reason{Code: loc.ReasonOptimizedOut, Detail: resultOfInlined}
		return x, nil
	}
	if v.s.reason != "" {
		x.Reason = notDescribed(v.s.reason)
		return x, nil
	}
	x.Loc, x.Reason, err = abi.Returned(x.Type, dw.LangC, s.Image.machine())
	if x.Reason.Code == loc.ReasonNone {
		x.Loc.Rule = loc.RuleABIBTF
	}
	return x, err
}

func (v btfValues) frame(s *Site) (*Variable, error) {
	if v.s.inline {
		return &Variable{Reason: notDescribed("where the frame of an inlined function's caller is")}, nil
	}
	return entryFrame(s), nil
}

func (v btfValues) pointee(*Site, uint64) (*Variable, error) {
	return nil, fmt.Errorf("%s: BTF has no implicit pointers", v.s.name)
}

func (v btfValues) symbol(uint64) (string, uint64) { return v.s.kernelSymbol.name, v.s.offset }
func (v btfValues) code(uint64) []byte             { return nil }
