package dwarfloc

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

// TestKindsOfDefects has one case for each kind of defect that other readers of DWARF (drgn, elfutils,
// libdwarf, binutils) have mended, as far as it applies here. Each is an answer, or an error that
// names the file; want is in it.
func TestKindsOfDefects(t *testing.T) {
	at := dwarftest.At
	leb := dwarftest.Cat(bytes.Repeat([]byte{0xff}, 20), 0x7f) // a LEB128 number of 147 bits
	code := []dwarftest.Attr{at(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), at(dw.AttrHighpc, dw.FormData4, 0x40)}
	// function has one parameter "p", with a type and a location.
	function := func(typ *dwarftest.DIE, expr ...any) *dwarftest.DIE {
		p := &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "p"), at(dw.AttrType, dw.FormRef4, typ)}}
		if len(expr) > 0 {
			p.Attrs = append(p.Attrs, at(dw.AttrLocation, dw.FormExprloc, dwarftest.Cat(expr...)))
		}
		return &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: append([]dwarftest.Attr{at(dw.AttrName, dw.FormString, "f"), at(dw.AttrExternal, dw.FormFlagPresent, nil), at(dw.AttrType, dw.FormRef4, typ)}, code...), Kids: []*dwarftest.DIE{p}}
	}
	number := func(size uint64) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "long"), at(dw.AttrByteSize, dw.FormData8, size), at(dw.AttrEncoding, dw.FormData1, dw.EncSigned)}}
	}
	named := func(tag dw.Tag, to *dwarftest.DIE) *dwarftest.DIE {
		d := &dwarftest.DIE{Tag: tag, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "self")}}
		if to == nil {
			to = d
		}
		d.Attrs = append(d.Attrs, at(dw.AttrType, dw.FormRef4, to))
		return d
	}
	record := func(size uint64, offset uint64, member func(self *dwarftest.DIE) *dwarftest.DIE) *dwarftest.DIE {
		r := &dwarftest.DIE{Tag: dw.TagStructType, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "s"), at(dw.AttrByteSize, dw.FormData8, size)}}
		m := &dwarftest.DIE{Tag: dw.TagMember, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "m"), at(dw.AttrType, dw.FormRef4, member(r)), at(dw.AttrDataMemberLoc, dw.FormData8, offset)}}
		r.Kids = []*dwarftest.DIE{m}
		return r
	}
	self := func(r *dwarftest.DIE) *dwarftest.DIE { return r }
	array := func(el *dwarftest.DIE, count uint64) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagArrayType, Attrs: []dwarftest.Attr{at(dw.AttrType, dw.FormRef4, el)},
			Kids: []*dwarftest.DIE{{Tag: dw.TagSubrangeType, Attrs: []dwarftest.Attr{at(dw.AttrCount, dw.FormData8, count)}}}}
	}
	root := func(lang int, kids ...*dwarftest.DIE) *dwarftest.DIE {
		r := dwarftest.Root(kids...)
		r.Attrs = append(r.Attrs, at(dw.AttrLanguage, dw.FormData1, lang))
		return r
	}
	line := func(head ...any) []dwarftest.Section {
		h := dwarftest.Cat(head...)
		b := dwarftest.Cat(dwarftest.LE16(4), dwarftest.LE32(uint64(len(h))), h, 0, 9, 2, dwarftest.LE64(dwarftest.TextAddr), 2, leb, 20, 40, 1, 2, 8, 0, 1, 1)
		return []dwarftest.Section{dwarftest.Debug(".debug_line", dwarftest.Cat(dwarftest.LE32(uint64(len(b))), b))}
	}
	const c, rust = 0x1d, dw.LangRust
	huge, word := number(1<<62), number(8)
	var cases []struct {
		name, want string
		lang       int
		kids       []*dwarftest.DIE
		attrs      []dwarftest.Attr
		more       []dwarftest.Section
	}
	add := func(name, want string, lang int, kids ...*dwarftest.DIE) {
		cases = append(cases, struct {
			name, want string
			lang       int
			kids       []*dwarftest.DIE
			attrs      []dwarftest.Attr
			more       []dwarftest.Section
		}{name: name, want: want, lang: lang, kids: kids})
	}
	section := func(name, want string, attrs []dwarftest.Attr, more ...dwarftest.Section) {
		add(name, want, c, number(8), function(word, 0x55))
		last := &cases[len(cases)-1]
		last.kids, last.attrs, last.more = []*dwarftest.DIE{word, function(word, 0x55)}, attrs, more
	}

	// Types.
	for _, lang := range []int{c, rust} {
		own := record(8, 0, self)
		add("a structure that contains itself", "", lang, own, function(own, 0x55))
		beyond := record(1, 1<<63, func(*dwarftest.DIE) *dwarftest.DIE { return word })
		add("a member before its structure", "", lang, word, beyond, function(beyond))
		typedef := named(dw.TagTypedef, nil)
		add("a typedef of itself", "typedefs that do not end", lang, typedef, function(typedef, 0x55))
		pointer := named(dw.TagPointerType, nil)
		add("a pointer to itself", "", lang, pointer, function(pointer, 0x55))
		many := array(huge, 1<<39)
		wide := record(16, 0, func(*dwarftest.DIE) *dwarftest.DIE { return many })
		add("offsets of elements that overflow", "", lang, huge, many, wide, function(wide))
		add("an array of itself", "", lang, array(huge, 1<<63), function(huge))
	}
	enum := &dwarftest.DIE{Tag: dw.TagEnumerationType, Attrs: []dwarftest.Attr{at(dw.AttrByteSize, dw.FormData1, 4)},
		Kids: []*dwarftest.DIE{{Tag: dw.Tag(0x28), Attrs: []dwarftest.Attr{at(dw.AttrConstValue, dw.FormSdata, 1)}}, {Tag: dw.Tag(0x28)}}}
	add("enumerators without names", "", c, enum, function(enum, 0x55))

	// Expressions: constants of 8 bytes, division, modulo, shifts, and numbers that are too long.
	min64 := dwarftest.Cat(0x0f, dwarftest.LE64(1<<63))
	minus1 := dwarftest.Cat(0x0f, dwarftest.LE64(1<<64-1))
	add("INT64_MIN / -1", "", c, word, function(word, min64, minus1, 0x1b, 0x9f))
	add("INT64_MIN % -1", "", c, word, function(word, min64, minus1, 0x1d, 0x9f))
	add("division by zero", "", c, word, function(word, min64, 0x30, 0x1b, 0x9f))
	add("a shift by 2^63", "", c, word, function(word, 0x31, min64, 0x24, 0x9f))
	add("an operand of 147 bits", "", c, word, function(word, 0x10, leb, 0x9f))
	add("a register of 147 bits", "", c, word, function(word, 0x90, leb))
	add("a piece of 147 bits", "", c, word, function(word, 0x55, 0x93, leb))
	add("a piece of 2^64 bits at 2^64", "", c, word, function(word, 0x55, 0x9d, dwarftest.ULEB(1<<64-1), dwarftest.ULEB(1<<64-1)))
	add("a branch to itself", "", c, word, function(word, 0x2f, dwarftest.LE16(1<<16-3)))
	add("an entry value in an entry value", "", c, word, function(word, 0xa3, 3, 0xa3, 1, 0x55, 0x9f))
	add("a type of a number that is itself", "", c, word, function(word, 0xa8, 0x01, 0x9f))
	add("an implicit pointer to nowhere", "", c, word, function(word, 0xa0, dwarftest.LE32(1<<32-1), leb))
	add("an implicit value longer than its expression", "", c, word, function(word, 0x9e, leb))
	add("an address in the middle of an expression", "", c, word, function(word, 0x03, dwarftest.LE64(dwarftest.TextAddr), 0x31, 0x22, 0x06, 0x9f))

	// References: to themselves, and in circles.
	for _, name := range []dw.Attr{dw.AttrAbstractOrigin, dw.AttrSpecification} {
		loop := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: append([]dwarftest.Attr{}, code...)}
		loop.Attrs = append(loop.Attrs, at(name, dw.FormRef4, loop))
		add("a function that is its own "+name.String(), "", c, loop)
	}
	sibling := &dwarftest.DIE{Tag: dw.TagStructType, Kids: []*dwarftest.DIE{word}}
	sibling.Attrs = []dwarftest.Attr{at(dw.AttrSibling, dw.FormRef4, sibling)}
	add("an entry that is its own sibling", "", c, sibling, function(huge, 0x55), huge)

	// Sections.
	stmt := []dwarftest.Attr{at(dw.AttrStmtList, dw.FormSecOffset, 0)}
	section("line_range 0", "invalid line program header", stmt, line(1, 1, 1, 0xfb, 0, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, "a.c", 0, 0, 0, 0)...)
	section("minimum_instruction_length 0", "", stmt, line(0, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, "a.c", 0, 0, 0, 0)...)
	section("maximum_operations_per_instruction 0", "", stmt, line(1, 0, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, "a.c", 0, 0, 0, 0)...)
	section("opcode_base 0", "invalid line program header", stmt, line(1, 1, 1, 0xfb, 14, 0, 0, "a.c", 0, 0, 0, 0)...)
	section("opcode_base 1", "", stmt, line(1, 1, 1, 0xfb, 14, 1, 0, "a.c", 0, 0, 0, 0)...)
	section("names without .debug_str", "", []dwarftest.Attr{at(dw.AttrCompDir, dw.FormStrx, 5), at(dw.AttrStrOffsetsBase, dw.FormSecOffset, 8)})
	section("names after .debug_str", "", []dwarftest.Attr{at(dw.AttrCompDir, dw.FormStrp, 1<<31)}, dwarftest.Debug(".debug_str", []byte("x")))
	for _, aug := range []any{[]byte("zR\x00"), []byte("zPLR\x00"), []byte("eh\x00"), []byte("z\x00")} {
		cie := dwarftest.FrameEntry(dwarftest.LE32(1<<32-1), 4, aug, 8, 0, 1, 0x78, 16, leb, 0xff, 0xff)
		fde := dwarftest.FrameEntry(dwarftest.LE32(0), dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(0x40), leb, 0x0c, leb)
		section("augmentation data longer than the entry", "", nil, dwarftest.Debug(".debug_frame", dwarftest.Cat(cie, fde)))
	}

	for i := range cases {
		tt := &cases[i]
		t.Run(tt.name, func(t *testing.T) {
			defer timeLimit(20*time.Second, tt.name)()
			for _, version := range []int{4, 5} {
				r := root(tt.lang, tt.kids...)
				r.Attrs = append(r.Attrs, tt.attrs...)
				if version < 5 && len(tt.attrs) > 0 && tt.attrs[0].Form == dw.FormStrx {
					continue
				}
				answer, err := everything(t, dwarftest.Image([]dwarftest.CU{{Version: version, Root: r}}, tt.more...))
				if err != nil {
					answer += err.Error()
				}
				if !strings.Contains(answer, tt.want) {
					t.Errorf("version %d: %q is not in\n%s", version, tt.want, answer)
				}
			}
		})
	}
}

// TestDamagedAbbreviations: what forms can do to a reader that no writer would write.
func TestDamagedAbbreviations(t *testing.T) {
	leb := bytes.Repeat([]byte{0xff}, 40)
	for _, tt := range []struct {
		name         string
		abbrev, info []byte
	}{
		{"DW_FORM_indirect that leads to itself", dwarftest.Cat(1, 0x11, 1, 3, byte(dw.FormIndirect), 0, 0, 0), bytes.Repeat([]byte{byte(dw.FormIndirect)}, 4000)},
		{"DW_FORM_indirect to a constant that is nowhere", dwarftest.Cat(1, 0x11, 1, 3, byte(dw.FormIndirect), 0, 0, 0), []byte{byte(dw.FormImplicitConst), 1, 2}},
		{"a constant without end", dwarftest.Cat(1, 0x11, 1, 0x0b, byte(dw.FormImplicitConst), leb), []byte{0, 0}},
		{"a constant at the end", dwarftest.Cat(1, 0x11, 1, 0x0b, byte(dw.FormImplicitConst)), []byte{0, 0}},
		{"a code of 280 bits", dwarftest.Cat(leb, 0x11, 1, 0, 0, 0), leb},
		{"a block of 2^64 bytes", dwarftest.Cat(1, 0x11, 1, 2, byte(dw.FormExprloc), 0, 0, 0), dwarftest.Cat(dwarftest.ULEB(1<<64-1), 1)},
		{"one code twice", dwarftest.Cat(1, 0x11, 1, 0, 0, 1, 0x2e, 0, 0, 0, 0), []byte{1, 1, 0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer timeLimit(20*time.Second, tt.name)()
			for _, size := range []byte{0, 1, 8} {
				b := dwarftest.Cat(dwarftest.LE16(5), 1, size, dwarftest.LE32(0), 1, tt.info)
				_, err := everything(t, dwarftest.ELF(dwarftest.Text(), dwarftest.Debug(".debug_info", dwarftest.Cat(dwarftest.LE32(uint64(len(b))), b)), dwarftest.Debug(".debug_abbrev", tt.abbrev)))
				if size != 8 && (err == nil || !strings.Contains(err.Error(), "invalid address size")) {
					t.Errorf("addresses of %d bytes: %v", size, err)
				}
			}
		})
	}
}
