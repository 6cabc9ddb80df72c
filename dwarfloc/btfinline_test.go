package dwarfloc_test

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/elfwrite"
)

// btfText writes BTF by hand: types by number, and names.
type btfText struct {
	types, names []byte
	first        int // number of the first type
	before       int // bytes of names of what it builds on
	n            int
}

func newBTF(first, before int) *btfText {
	b := &btfText{first: first, before: before}
	if before == 0 {
		b.names = []byte{0}
	}
	return b
}

func (b *btfText) name(s string) uint32 {
	if s == "" {
		return 0
	}
	at := b.before + len(b.names)
	b.names = append(append(b.names, s...), 0)
	return uint32(at)
}

// add adds a type, and returns its number.
func (b *btfText) add(name string, kind, elements, of uint32, rest ...uint32) uint32 {
	for _, v := range append([]uint32{b.name(name), kind<<24 | elements, of}, rest...) {
		b.types = binary.LittleEndian.AppendUint32(b.types, v)
	}
	b.n++
	return uint32(b.first + b.n - 1)
}

// section returns the section, with a table of layouts of so many kinds if that is not 0.
func (b *btfText) section(layouts []byte) []byte {
	le := binary.LittleEndian
	header := 24
	if layouts != nil {
		header = 32
	}
	out := []byte{0x9f, 0xeb, 1, 0}
	for _, v := range []int{header, 0, len(b.types), len(b.types), len(b.names)} {
		out = le.AppendUint32(out, uint32(v))
	}
	if layouts != nil {
		out = le.AppendUint32(le.AppendUint32(out, uint32(len(b.types)+len(b.names))), uint32(len(layouts)))
	}
	return slices.Concat(out, b.types, b.names, layouts)
}

// TestBTFInlineSections: instances are in the section that the list names, in any of three ways.
func TestBTFInlineSections(t *testing.T) {
	for name, want := range map[string]string{
		"inline.text": "0x1010", ".text": "0x1010", "inline": "0x1010", "inline.init.text": "0x3010", ".init.text": "0x3010", "inline.data": "no section of instructions", "": "no section of instructions",
	} {
		main := newBTF(1, 0)
		integer := main.add("int", 1, 0, 4, 1<<24|32)
		inline := newBTF(main.first+main.n, len(main.names))
		f := inline.add("mix", 12, 0, inline.add("", 13, 1, integer, inline.name("x"), integer))
		inline.add(name, 22, 1, 0, f, inline.add("", 21, 1, 0, 0), 0x10)
		file := elfwrite.File{Arch: arch.ByName("amd64"), Type: elf.ET_EXEC, Sections: []elfwrite.Section{
			{Name: ".text", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: 0x1000, Data: make([]byte, 0x100)},
			{Name: ".data", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: 0x2000, Data: make([]byte, 0x100)},
			{Name: ".init.text", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: 0x3000, Data: make([]byte, 0x100)},
			{Name: ".BTF", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: 0x4000, Data: main.section(nil)},
			{Name: ".BTF.inline", Type: elf.SHT_PROGBITS, Data: inline.section(nil)},
		}}
		path := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		img, err := dwarfloc.OpenBTF(path, arch.ByName("amd64"))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if sites, err := img.Sites(t.Context(), nil); err != nil {
			got = err.Error()
		} else if len(sites) == 1 {
			got = fmt.Sprintf("%#x", sites[0].Addr)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
		if err := img.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBTFInline reads instances that a section .BTF.inline tells of, with each form of location.
func TestBTFInline(t *testing.T) {
	main := newBTF(1, 0)
	integer := main.add("int", 1, 0, 4, 1<<24|32)
	long := main.add("long", 1, 0, 8, 1<<24|64)
	pair := main.add("pair", 4, 2, 16, main.name("a"), long, 0, main.name("b"), long, 64)
	pointer := main.add("", 2, 0, pair)
	outlined := main.add("", 13, 1, integer, main.name("n"), integer)
	main.add("caller", 12, 0, outlined)

	inline := newBTF(main.first+main.n, len(main.names))
	param := func(size, flags uint32, values ...uint32) uint32 {
		return inline.add("", 20, uint32(len(values)), size, append([]uint32{flags}, values...)...)
	}
	proto := inline.add("", 13, 4, integer, inline.name("x"), integer, inline.name("p"), pointer, inline.name("s"), pair, inline.name("y"), long)
	f := inline.add("mix", 12, 0, proto)
	minus8, minus2 := uint32(0xfffffff8), uint32(0xfffffffe)
	at := []uint32{
		inline.add("", 21, 4, 0, param(4, 8, 5), param(8, 8|0x10, 3), param(16, 8, 0, 1), param(8, 1|2, minus2)),
		inline.add("", 21, 4, 0, param(4, 8|0x10|0x20, 7, minus8), param(8, 8|0x20, 7, 16), param(16, 8|0x10|0x20, 6, 32), param(8, 2, 0x89abcdef, 0x01234567)),
		inline.add("", 21, 4, 0, param(4, 8|0x10, 0xffffffff), 0, param(16, 8, 0, 1, 2), param(8, 2|4, 1)),
		inline.add("", 21, 2, 0, param(4, 8, 99), param(8, 0x40, 1)),
	}
	// A kind that nobody knows is passed over if there is a table of layouts.
	inline.add("later", 23, 3, 0, 1, 2, 3, 4)
	inline.add("inline.text", 22, 4, 0, f, at[0], 0x10, f, at[1], 0x20, f, at[2], 0x30, f, at[3], 0x40)
	layouts := make([]byte, 4*24)
	layouts[4*23], layouts[4*23+1] = 4, 4

	write := func(inline []byte) string {
		file := elfwrite.File{Arch: arch.ByName("amd64"), Type: elf.ET_EXEC, Sections: []elfwrite.Section{
			{Name: ".text", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: 0x1000, Data: make([]byte, 0x100)},
			{Name: ".BTF", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: 0x2000, Data: main.section(nil)},
			{Name: ".BTF.inline", Type: elf.SHT_PROGBITS, Data: inline},
		}, Symbols: []elfwrite.Symbol{{Name: "caller", Addr: 0x1000, Size: 0x100, Type: elf.STT_FUNC, In: ".text"}}}
		path := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	img, err := dwarfloc.OpenBTF(write(inline.section(layouts)), arch.ByName("amd64"))
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	sites, err := img.Sites(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sites {
		params, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%v %v:", s.Kind, s)
		for _, v := range params {
			where := v.Loc.Text(img.Arch())
			if !v.Located() {
				where = v.Reason.Code.String()
			}
			line += fmt.Sprintf(" %v %s=%s", v.Type, v.Name, where)
		}
		got = append(got, line)
	}
	want := []string{
		"entry caller: int n=%rdi",
		"inline mix inlined in caller+0x10: int x=%rdi struct pair * p=[%rbx] struct pair s={%rax:8, %rdx:8} long y=-2",
		"inline mix inlined in caller+0x20: int x=[%rsp-8] struct pair * p=%rsp+16 struct pair s=[%rbp+32] long y=0x123456789abcdef",
		"inline mix inlined in caller+0x30: int x=no-frame-info struct pair * p=optimized-out struct pair s=unsupported-operation long y=unsupported-operation",
		"inline mix inlined in caller+0x40: int x=no-register struct pair * p=unsupported-operation struct pair s=optimized-out long y=optimized-out",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// Cut short anywhere, and with any byte changed, it is an error or another answer, and never a panic.
	whole := inline.section(layouts)
	ask := func(d []byte) error {
		img, err := dwarfloc.OpenBTF(write(d), arch.ByName("amd64"))
		if err != nil {
			return err
		}
		defer img.Close()
		all, err := img.Sites(t.Context(), nil)
		for _, s := range all {
			if _, e := s.Params(); e != nil {
				err = e
			}
		}
		return err
	}
	for n := 0; n < len(whole); n += 7 {
		if err := ask(whole[:n]); err == nil || !strings.Contains(err.Error(), ".BTF.inline+") {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	for n := range whole {
		for _, bit := range []byte{1, 0x80} {
			d := slices.Clone(whole)
			d[n] ^= bit
			_ = ask(d)
		}
	}
}
