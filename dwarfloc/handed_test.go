package dwarfloc

import (
	"debug/elf"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/rule"
)

// handing is a kernel where a function with the parameters flag and tsk is inlined 25 times or more, and in each inner(nr, q) into it. The last body has lost
// flag and tsk.
type handing struct {
	name           string // of the function
	user           bool   // it is no kernel
	bodies         int
	flag, nr, p, q func(i int) any // []byte: expressions; int: constants; nil where debug information has none
	column         int             // of the call of inner
	later          uint64          // how many bytes after outer the last inner begins
	flags          int             // how many parameters are like flag, and are lost in the last body
	line           func(i int) int // of the call of inner
}

func (h *handing) image(t *testing.T) *Image {
	t.Helper()
	at := dwarftest.At
	base := func(name string, size, encoding int) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{
			at(dw.AttrName, dw.FormString, name), at(dw.AttrByteSize, dw.FormData1, size), at(dw.AttrEncoding, dw.FormData1, encoding),
		}}
	}
	integer, long := base("int", 4, 5), base("long", 8, 5)
	pointer := &dwarftest.DIE{Tag: dw.TagPointerType, Attrs: []dwarftest.Attr{at(dw.AttrByteSize, dw.FormData1, 8), at(dw.AttrType, dw.FormRef4, long)}}
	param := func(name string, of *dwarftest.DIE) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, name), at(dw.AttrType, dw.FormRef4, of)}}
	}
	function := func(name string, line int, params ...*dwarftest.DIE) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
			at(dw.AttrName, dw.FormString, name), at(dw.AttrInline, dw.FormData1, 1), at(dw.AttrDeclLine, dw.FormData1, line),
		}, Kids: params}
	}
	flag, p, nr, q := param("flag", integer), param("tsk", pointer), param("nr", long), param("q", pointer)
	outerParams := []*dwarftest.DIE{flag, p}
	for range h.flags {
		outerParams = append(outerParams, param("other", integer))
	}
	inner, outer := function("inner", 1, nr, q), function(h.name, 9, outerParams...)
	kids := []*dwarftest.DIE{integer, long, pointer, inner, outer}
	is := func(of *dwarftest.DIE, v any) []*dwarftest.DIE {
		d := &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{at(dw.AttrAbstractOrigin, dw.FormRef4, of)}}
		switch v := v.(type) {
		case nil:
			return nil
		case int:
			d.Attrs = append(d.Attrs, at(dw.AttrConstValue, dw.FormSdata, v))
		default:
			d.Attrs = append(d.Attrs, at(dw.AttrLocation, dw.FormExprloc, v))
		}
		return []*dwarftest.DIE{d}
	}
	body := func(of *dwarftest.DIE, from, to uint64, line, column int, params ...[]*dwarftest.DIE) *dwarftest.DIE {
		d := &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: []dwarftest.Attr{
			at(dw.AttrAbstractOrigin, dw.FormRef4, of), at(dw.AttrLowpc, dw.FormAddr, from), at(dw.AttrHighpc, dw.FormData1, to-from),
			at(dw.AttrCallFile, dw.FormData1, 1), at(dw.AttrCallLine, dw.FormData1, line), at(dw.AttrGNUEntryView, dw.FormUdata, 1),
		}}
		if column > 0 {
			d.Attrs = append(d.Attrs, at(dw.AttrCallColumn, dw.FormData1, column))
		}
		for _, list := range params {
			d.Kids = append(d.Kids, list...)
		}
		return d
	}
	own := param("own", long) // with a list, as GCC writes where it tracks variables
	own.Attrs = append(own.Attrs, at(dw.AttrLocation, dw.FormSecOffset, 0))
	for i := range h.bodies {
		from := dwarftest.TextAddr + uint64(16*i)
		last, later, line := i == h.bodies-1, uint64(0), 10
		if h.line != nil {
			line = h.line(i)
		}
		known := [][]*dwarftest.DIE{is(flag, h.flag(i)), is(p, h.p(i))}
		for _, other := range outerParams[2:] {
			known = append(known, is(other, 100))
		}
		if last {
			known, later = nil, h.later
		}
		o := body(outer, from+1, from+8, 20, 3, known...)
		o.Kids = append(o.Kids, body(inner, from+1+later, from+8, line, h.column, is(nr, h.nr(i)), is(q, h.q(i))))
		kids = append(kids, &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
			at(dw.AttrName, dw.FormString, "caller"), at(dw.AttrDeclLine, dw.FormData1, 19),
			at(dw.AttrLowpc, dw.FormAddr, from), at(dw.AttrHighpc, dw.FormData1, 16),
		}, Kids: []*dwarftest.DIE{own, o}})
	}
	text := dwarftest.Text()
	for i := range text.Data {
		text.Data[i] = 0x90 // nop
	}
	root := dwarftest.Root(kids...)
	root.Attrs = append(root.Attrs, at(dw.AttrProducer, dw.FormString, "GNU C17 12.2.0 -O2"), at(dw.AttrHighpc, dw.FormData4, dwarftest.TextSize))
	var w dwarftest.Writer
	w.Add(dwarftest.CU{Version: 4, Root: root})
	mark := dwarftest.Cat(dwarftest.LE32(1), 2, 0, 1, 0, dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(0)) // STT_FUNC, local, in section 1
	if h.user {
		mark = nil
	}
	img, err := FromBytes("test", dwarftest.ELF(text, dwarftest.Debug(".debug_info", w.Info), dwarftest.Debug(".debug_abbrev", w.Abbrev),
		dwarftest.Section{Name: ".symtab", Type: elf.SHT_SYMTAB, Data: append(make([]byte, 24), mark...), Link: 5},
		dwarftest.Section{Name: ".strtab", Type: elf.SHT_STRTAB, Data: []byte("\x00_stext\x00")}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// TestHanded: what a body has lost, and hands on to one that begins where it does, is known there; and it is not, where that may be something else.
func TestHanded(t *testing.T) {
	few := func(i int) any { return i % 5 }
	register := func(i int) any { return []byte{0x50 + byte(i%6)} } // DW_OP_reg0 on
	usual := handing{name: "test_tsk_thread_flag", bodies: 25, flag: few, nr: few, p: register, q: register, column: 7}
	const bodies = 25
	for _, c := range []struct {
		name    string
		change  func(h *handing)
		flag, p string
	}{
		{"as it is", func(*handing) {}, "4", "%rax"},
		{"one body passes on something else", func(h *handing) {
			h.nr = func(i int) any { return i%5 + i/23%2 }
			h.q = func(i int) any {
				if i == 7 {
					return dwarftest.Cat(0x70+i%6, 8, 0x9f) // DW_OP_breg0 on, DW_OP_stack_value
				}
				return register(i)
			}
		}, "", ""},
		{"several are in other registers", func(h *handing) { h.q = func(i int) any { return register(i + i%6/5) } }, "4", ""},
		{"always the same number", func(h *handing) { h.flag = func(int) any { return 3 }; h.nr = h.flag }, "", "%rax"},
		{"a number larger than the outer parameter", func(h *handing) {
			h.nr = func(i int) any {
				if i == bodies-1 {
					return 1 << 40
				}
				return few(i)
			}
		}, "", "%rax"},
		{"a negative number", func(h *handing) {
			h.nr = func(i int) any {
				if i == bodies-1 {
					return -1
				}
				return few(i)
			}
		}, "", "%rax"},
		{"it begins later", func(h *handing) { h.later = 2 }, "", ""},
		{"no column says which call it is", func(h *handing) { h.column = 0 }, "", ""},
		{"another call of the same function", func(h *handing) { h.line = func(i int) int { return 10 + i/(bodies-1) } }, "", ""},
		{"another one is lost too", func(h *handing) { h.flags = 1 }, "", "%rax"},
		{"a function that may pass on something else", func(h *handing) { h.name = "outer" }, "", ""},
		{"a program", func(h *handing) { h.user = true }, "", ""},
		{"a number that a condition has made", func(h *handing) {
			h.bodies = 61
			h.flag = func(i int) any {
				if i%2 == 0 {
					return []byte{0x55} // in %rdi
				}
				return few(i)
			}
		}, "", "%rax"},
		{"a number that a condition has made of a negative one", func(h *handing) {
			h.bodies = 61
			h.flag = func(i int) any {
				if i%5 == 0 {
					return -1
				}
				return few(i)
			}
		}, "", "%rax"},
		{"too few bodies", func(h *handing) {
			h.flag = func(i int) any {
				if i < 6 {
					return nil
				}
				return few(i)
			}
		}, "", "%rax"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := usual
			c.change(&h)
			img := h.image(t)
			sites := sitesOf(t, img, h.name, h.bodies)
			for name, want := range map[string]string{"flag": c.flag, "tsk": c.p} {
				v, err := sites[h.bodies-1].Lookup(name)
				if err != nil {
					t.Fatal(err)
				}
				got := ""
				if v.Located() {
					if got = v.Loc.Text(img.Arch()); v.Loc.Rule != rule.Call {
						t.Errorf("%s is %s by rule %v", name, got, v.Loc.Rule)
					}
				}
				if got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}
