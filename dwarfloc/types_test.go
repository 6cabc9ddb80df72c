package dwarfloc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/types"
)

// typeText prints a type in one line: spelling, size, signedness.
func typeText(u *unit, d *dwarftest.DIE) string {
	t, err := u.TypeOf(dw.Value{Form: dw.FormRefAddr, U: d.Off})
	if err != nil {
		return err.Error()
	}
	size, err := t.ByteSize()
	if err != nil {
		return t.String() + ": " + err.Error()
	}
	s := fmt.Sprintf("%s, %d", t, size)
	r, err := t.Resolve()
	if err != nil {
		return err.Error()
	}
	if r.Signed {
		s += ", signed"
	}
	return s
}

func TestTypes(t *testing.T) {
	mk := func(tag dw.Tag, name string, of *dwarftest.DIE, attrs ...dwarftest.Attr) *dwarftest.DIE {
		d := &dwarftest.DIE{Tag: tag, Attrs: attrs}
		if name != "" {
			d.Attrs = append(d.Attrs, dwarftest.At(dw.AttrName, dw.FormString, name))
		}
		if of != nil {
			d.Attrs = append(d.Attrs, dwarftest.At(dw.AttrType, dw.FormRef4, of))
		}
		return d
	}
	size := func(n int) dwarftest.Attr { return dwarftest.At(dw.AttrByteSize, dw.FormData1, n) }
	enc := func(n int) dwarftest.Attr { return dwarftest.At(dw.AttrEncoding, dw.FormData1, n) }
	decl := dwarftest.At(dw.AttrDeclaration, dw.FormFlagPresent, 1)
	dim := func(of *dwarftest.DIE, counts ...any) *dwarftest.DIE {
		d := mk(dw.TagArrayType, "", of)
		for _, c := range counts {
			sub := &dwarftest.DIE{Tag: dw.TagSubrangeType}
			switch c := c.(type) {
			case int:
				sub.Attrs = append(sub.Attrs, dwarftest.At(dw.AttrCount, dw.FormData1, c))
			case uint64:
				sub.Attrs = append(sub.Attrs, dwarftest.At(dw.AttrUpperBound, dw.FormData8, c))
			}
			d.Kids = append(d.Kids, sub)
		}
		return d
	}
	enumerator := func(form dw.Form, v int) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: 0x28, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "E"), dwarftest.At(dw.AttrConstValue, form, v)}}
	}

	i32 := mk(dw.TagBaseType, "int", nil, size(4), enc(dw.EncSigned))
	u64 := mk(dw.TagBaseType, "unsigned long", nil, size(8), enc(dw.EncUnsigned))
	char := mk(dw.TagBaseType, "char", nil, size(1), enc(dw.EncSignedChar))
	boolean := mk(dw.TagBaseType, "_Bool", nil, size(1), enc(dw.EncBoolean))
	double := mk(dw.TagBaseType, "double", nil, size(8), enc(dw.EncFloat))
	page := mk(dw.TagStructType, "page", nil, size(64))
	opaque := mk(dw.TagStructType, "opaque", nil, decl)
	declSize := mk(dw.TagStructType, "half", nil, size(8), decl)
	anon := mk(dw.TagUnionType, "", nil, size(8))
	fn := mk(dw.TagSubroutineType, "", i32)
	voidFn := mk(dw.TagSubroutineType, "", nil)
	enumU := mk(dw.TagEnumerationType, "zone", nil, size(4))
	enumU.Kids = []*dwarftest.DIE{enumerator(dw.FormData1, 200)}
	enumS := mk(dw.TagEnumerationType, "prio", nil, size(4))
	enumS.Kids = []*dwarftest.DIE{enumerator(dw.FormData1, 1), enumerator(dw.FormSdata, -1)}
	enumI := mk(dw.TagEnumerationType, "implicit", nil, size(4))
	enumI.Kids = []*dwarftest.DIE{enumerator(dw.FormImplicitConst, -7)}
	enumT := mk(dw.TagEnumerationType, "typed", i32, size(4))
	ptr := func(of *dwarftest.DIE) *dwarftest.DIE { return mk(dw.TagPointerType, "", of, size(8)) }
	constOf := func(of *dwarftest.DIE) *dwarftest.DIE { return mk(dw.TagConstType, "", of) }
	pPage, pOpaque, pVoid, pFn, pVoidFn := ptr(page), ptr(opaque), ptr(nil), ptr(fn), ptr(voidFn)
	constChar := constOf(char)
	pConstChar := ptr(constChar)
	constP := constOf(pPage)
	volatileConst := mk(dw.TagVolatileType, "", constChar)
	restrictP := mk(dw.TagRestrictType, "", pConstChar)
	atomic := mk(dw.TagAtomicType, "", i32)
	ppPage := ptr(pPage)
	noSize := mk(dw.TagPointerType, "", page)
	arr := dim(i32, 10)
	arr2 := dim(i32, uint64(2), 5)
	open := dim(char, nil)
	zero := dim(char, 0)
	huge := dim(u64, uint64(1<<39), uint64(1<<39))
	pArr := ptr(arr)
	arrP := dim(pPage, 4)
	arrFn := dim(pFn, 4)
	pFnP := ptr(mk(dw.TagSubroutineType, "", pPage))
	constArr := dim(constChar, 16)
	s32 := mk(dw.TagTypedef, "s32", i32)
	arrOpaque := dim(opaque, 4)
	constTypedef := constOf(s32)
	constVoid := ptr(constOf(nil))
	ref := mk(dw.TagReferenceType, "", page)
	rref := mk(dw.TagRvalueRefType, "", page)
	bits := mk(dw.TagBaseType, "_BitInt(17)", nil, dwarftest.At(dw.AttrBitSize, dw.FormData1, 17), enc(dw.EncSigned))

	loop := mk(dw.TagTypedef, "loop", nil)
	loop.Attrs = append(loop.Attrs, dwarftest.At(dw.AttrType, dw.FormRef4, loop))
	loopConst := mk(dw.TagConstType, "", nil)
	loopConst.Attrs = append(loopConst.Attrs, dwarftest.At(dw.AttrType, dw.FormRef4, loopConst))
	loopPtr := mk(dw.TagPointerType, "", nil)
	loopPtr.Attrs = append(loopPtr.Attrs, dwarftest.At(dw.AttrType, dw.FormRef4, loopPtr))
	loopArr := dim(i32, 2)
	loopArr.Attrs = []dwarftest.Attr{dwarftest.At(dw.AttrType, dw.FormRef4, loopArr)}
	loopEnum := mk(dw.TagEnumerationType, "knot", nil, size(4))
	loopEnum.Attrs = append(loopEnum.Attrs, dwarftest.At(dw.AttrType, dw.FormRef4, loopEnum))
	// An array of a typedef of the array.
	knotTypedef := mk(dw.TagTypedef, "knot_t", nil)
	knotArr := dim(knotTypedef, 3)
	knotTypedef.Attrs = append(knotTypedef.Attrs, dwarftest.At(dw.AttrType, dw.FormRef4, knotArr))
	outside := mk(dw.TagPointerType, "", nil, dwarftest.At(dw.AttrType, dw.FormRef4, 0xffff))

	cases := []struct {
		d    *dwarftest.DIE
		want string
	}{
		{i32, "int, 4, signed"}, {u64, "unsigned long, 8"}, {char, "char, 1, signed"}, {boolean, "_Bool, 1"}, {double, "double, 8"},
		{page, "struct page, 64"}, {opaque, "struct opaque, -1"}, {declSize, "struct half, -1"}, {anon, "union {...}, 8"},
		{enumU, "enum zone, 4"}, {enumS, "enum prio, 4, signed"}, {enumI, "enum implicit, 4, signed"}, {enumT, "enum typed, 4, signed"},
		{pPage, "struct page *, 8"}, {pOpaque, "struct opaque *, 8"}, {pVoid, "void *, 8"}, {ppPage, "struct page **, 8"}, {noSize, "struct page *, 8"},
		{pFn, "int (*)(), 8"}, {pVoidFn, "void (*)(), 8"}, {fn, "int(), -1"}, {pFnP, "struct page * (*)(), 8"},
		{constChar, "const char, 1, signed"}, {pConstChar, "const char *, 8"}, {constP, "struct page * const, 8"},
		{volatileConst, "volatile const char, 1, signed"}, {restrictP, "const char * restrict, 8"}, {atomic, "_Atomic int, 4, signed"},
		{arr, "int[10], 40"}, {arr2, "int[3][5], 60"}, {open, "char[], -1"}, {zero, "char[0], 0"}, {huge, "unsigned long[549755813889][549755813889], -1"},
		{pArr, "int (*)[10], 8"}, {arrP, "struct page *[4], 32"}, {arrFn, "int (*[4])(), 32"}, {constArr, "const char[16], 16"},
		{s32, "s32, 4, signed"}, {constTypedef, "const s32, 4, signed"}, {arrOpaque, "struct opaque[4], -1"}, {constVoid, "const void *, 8"},
		{ref, "struct page &, 8"}, {rref, "struct page &&, 8"}, {bits, "_BitInt(17), 3, signed"},
		{loopPtr, "... " + strings.Repeat("*", 65) + ", 8"},
	}
	var kids []*dwarftest.DIE
	for _, c := range cases {
		kids = append(kids, c.d)
	}
	errors := map[*dwarftest.DIE]string{
		loop: "typedefs that do not end", loopConst: "typedefs that do not end", loopArr: "types are nested more than 64 deep",
		loopEnum: "types are nested more than 64 deep", knotArr: "types are nested more than 64 deep", knotTypedef: "types are nested more than 64 deep",
	}
	for d := range errors {
		kids = append(kids, d)
	}
	kids = append(kids, voidFn, outside, pFnP.Attrs[1].V.(*dwarftest.DIE), constVoid.Attrs[1].V.(*dwarftest.DIE))
	img := testImage(t, []dwarftest.CU{{Version: 5, Root: dwarftest.Root(kids...)}})
	u := &img.units[0]
	for _, c := range cases {
		if got := typeText(u, c.d); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	for d, want := range errors {
		if got := typeText(u, d); !strings.HasSuffix(got, ": "+want) || !strings.Contains(got, "test: .debug_info+0x") {
			t.Errorf("got %q, want an error %q", got, want)
		}
	}
	if got := typeText(u, outside); got != "? *, 8" {
		t.Errorf("a pointer to nowhere: %q", got)
	}
	ty, err := u.TypeOf(dw.Value{Form: dw.FormRefAddr, U: outside.Off})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("test: .debug_info+%#x: reference to 0xffff is outside its unit", u.Off)
	if _, err := ty.Elem(); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	if v, err := u.TypeOf(dw.Value{}); err != nil || v.String() != "void" {
		t.Errorf("no type: %v, %v", v, err)
	}
}

// TestFixtureTypes: spellings in a real image.
// TestVoidHasNoElements: void has no entry in the debug information. All questions about types
// are answered for it too.
func TestVoidHasNoElements(t *testing.T) {
	if el, n, err := types.VoidType.Count(); el != types.VoidType || n != -1 || err != nil {
		t.Errorf("Count: %v, %d, %v", el, n, err)
	}
	if m, err := types.VoidType.Members(); len(m) > 0 || err != nil {
		t.Errorf("Members: %v, %v", m, err)
	}
	if _, v, err := types.VoidType.Variants(); len(v) > 0 || err != nil {
		t.Errorf("Variants: %v, %v", v, err)
	}
	if name, err := types.VoidType.Enumerator(1); name != "" || err != nil {
		t.Errorf("Enumerator: %q, %v", name, err)
	}
	if p, err := types.VoidType.Parameter("T"); p != nil || err != nil {
		t.Errorf("Parameter: %v, %v", p, err)
	}
}

func TestFixtureTypes(t *testing.T) {
	img := openFixture(t, "basic-gcc12-O2-dwarf5.elf")
	for _, tt := range []struct{ function, want string }{
		{"ring_for_each", "struct ring * (8), int (*)() (8), void * (8), struct opaque * (8)"},
		{"prio_blend", "s8 (1), s16 (2), s32 (4), bool (1), enum pkt_prio (4), enum page_zone (4)"},
		{"queue_route", "u64 (8), u64 (8), u64 (8), u64 (8), u64 (8), u64 (8), u64 (8), s16 (2), char (1), struct window (24)"},
	} {
		sites, err := img.Sites(t.Context(), Name(tt.function))
		if err != nil || len(sites) == 0 {
			t.Fatal(sites, err)
		}
		params, err := sites[0].Params()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range params {
			size, err := v.Type.ByteSize()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s (%d)", v.Type, size))
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%s: got %s, want %s", tt.function, s, tt.want)
		}
	}
}

// TestNamedAgain: whoever asks for many types gets the same as who asks for one.
func TestNamedAgain(t *testing.T) {
	for _, fixture := range []string{"basic-gcc12-O2-dwarf5.elf", "basic-clang14-O2-dwarf5.elf"} {
		many := openFixture(t, fixture)
		for i := range 5 {
			if x, err := many.typeNamed(fmt.Sprint("struct absent", i)); x != nil || err != nil {
				t.Fatal(x, err)
			}
		}
		for _, name := range []string{"struct ring", "struct opaque", "struct window", "enum pkt_prio", "enum page_zone", "u64", "s16", "int", "struct u64", "union none"} {
			text := func(img *Image) string {
				x, err := img.typeNamed(name)
				if x == nil || err != nil {
					return fmt.Sprint("none ", err)
				}
				size, err := x.ByteSize()
				return fmt.Sprint(x, size, err)
			}
			if got, want := text(many), text(openFixture(t, fixture)); got != want {
				t.Errorf("%s: %s is %s with many others, and %s alone", fixture, name, got, want)
			}
		}
	}
}
