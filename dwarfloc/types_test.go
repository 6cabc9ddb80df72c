package dwarfloc

import (
	"fmt"
	"strings"
	"testing"
)

// typeText prints a type in one line: spelling, size, signedness.
func typeText(u *unit, d *die) string {
	t, err := u.typeOf(value{form: formRefAddr, u: d.off})
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
	mk := func(tag tag, name string, of *die, attrs ...attribute) *die {
		d := &die{tag: tag, attrs: attrs}
		if name != "" {
			d.attrs = append(d.attrs, attribute{attrName_, formString, name})
		}
		if of != nil {
			d.attrs = append(d.attrs, attribute{attrType, formRef4, of})
		}
		return d
	}
	size := func(n int) attribute { return attribute{attrByteSize, formData1, n} }
	enc := func(n int) attribute { return attribute{attrEncoding, formData1, n} }
	decl := attribute{attrDeclaration, formFlagPresent, 1}
	dim := func(of *die, counts ...any) *die {
		d := mk(tagArrayType, "", of)
		for _, c := range counts {
			sub := &die{tag: tagSubrangeType}
			switch c := c.(type) {
			case int:
				sub.attrs = append(sub.attrs, attribute{attrCount, formData1, c})
			case uint64:
				sub.attrs = append(sub.attrs, attribute{attrUpperBound, formData8, c})
			}
			d.kids = append(d.kids, sub)
		}
		return d
	}
	enumerator := func(form form, v int) *die {
		return &die{tag: 0x28, attrs: []attribute{{attrName_, formString, "E"}, {attrConstValue, form, v}}}
	}

	i32 := mk(tagBaseType, "int", nil, size(4), enc(encSigned))
	u64 := mk(tagBaseType, "unsigned long", nil, size(8), enc(encUnsigned))
	char := mk(tagBaseType, "char", nil, size(1), enc(encSignedChar))
	boolean := mk(tagBaseType, "_Bool", nil, size(1), enc(encBoolean))
	double := mk(tagBaseType, "double", nil, size(8), enc(encFloat))
	page := mk(tagStructType, "page", nil, size(64))
	opaque := mk(tagStructType, "opaque", nil, decl)
	declSize := mk(tagStructType, "half", nil, size(8), decl)
	anon := mk(tagUnionType, "", nil, size(8))
	fn := mk(tagSubroutineType, "", i32)
	voidFn := mk(tagSubroutineType, "", nil)
	enumU := mk(tagEnumerationType, "zone", nil, size(4))
	enumU.kids = []*die{enumerator(formData1, 200)}
	enumS := mk(tagEnumerationType, "prio", nil, size(4))
	enumS.kids = []*die{enumerator(formData1, 1), enumerator(formSdata, -1)}
	enumI := mk(tagEnumerationType, "implicit", nil, size(4))
	enumI.kids = []*die{enumerator(formImplicitConst, -7)}
	enumT := mk(tagEnumerationType, "typed", i32, size(4))
	ptr := func(of *die) *die { return mk(tagPointerType, "", of, size(8)) }
	constOf := func(of *die) *die { return mk(tagConstType, "", of) }
	pPage, pOpaque, pVoid, pFn, pVoidFn := ptr(page), ptr(opaque), ptr(nil), ptr(fn), ptr(voidFn)
	constChar := constOf(char)
	pConstChar := ptr(constChar)
	constP := constOf(pPage)
	volatileConst := mk(tagVolatileType, "", constChar)
	restrictP := mk(tagRestrictType, "", pConstChar)
	atomic := mk(tagAtomicType, "", i32)
	ppPage := ptr(pPage)
	noSize := mk(tagPointerType, "", page)
	arr := dim(i32, 10)
	arr2 := dim(i32, uint64(2), 5)
	open := dim(char, nil)
	zero := dim(char, 0)
	huge := dim(u64, uint64(1<<39), uint64(1<<39))
	pArr := ptr(arr)
	arrP := dim(pPage, 4)
	arrFn := dim(pFn, 4)
	pFnP := ptr(mk(tagSubroutineType, "", pPage))
	constArr := dim(constChar, 16)
	s32 := mk(tagTypedef, "s32", i32)
	arrOpaque := dim(opaque, 4)
	constTypedef := constOf(s32)
	constVoid := ptr(constOf(nil))
	ref := mk(tagReferenceType, "", page)
	rref := mk(tagRvalueRefType, "", page)
	bits := mk(tagBaseType, "_BitInt(17)", nil, attribute{attrBitSize, formData1, 17}, enc(encSigned))

	loop := mk(tagTypedef, "loop", nil)
	loop.attrs = append(loop.attrs, attribute{attrType, formRef4, loop})
	loopConst := mk(tagConstType, "", nil)
	loopConst.attrs = append(loopConst.attrs, attribute{attrType, formRef4, loopConst})
	loopPtr := mk(tagPointerType, "", nil)
	loopPtr.attrs = append(loopPtr.attrs, attribute{attrType, formRef4, loopPtr})
	loopArr := dim(i32, 2)
	loopArr.attrs = []attribute{{attrType, formRef4, loopArr}}
	loopEnum := mk(tagEnumerationType, "knot", nil, size(4))
	loopEnum.attrs = append(loopEnum.attrs, attribute{attrType, formRef4, loopEnum})
	// An array of a typedef of the array.
	knotTypedef := mk(tagTypedef, "knot_t", nil)
	knotArr := dim(knotTypedef, 3)
	knotTypedef.attrs = append(knotTypedef.attrs, attribute{attrType, formRef4, knotArr})
	outside := mk(tagPointerType, "", nil, attribute{attrType, formRef4, 0xffff})

	cases := []struct {
		d    *die
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
	var kids []*die
	for _, c := range cases {
		kids = append(kids, c.d)
	}
	errors := map[*die]string{
		loop: "typedefs that do not end", loopConst: "typedefs that do not end", loopArr: "types are nested more than 64 deep",
		loopEnum: "types are nested more than 64 deep", knotArr: "types are nested more than 64 deep", knotTypedef: "types are nested more than 64 deep",
	}
	for d := range errors {
		kids = append(kids, d)
	}
	kids = append(kids, voidFn, outside, pFnP.attrs[1].v.(*die), constVoid.attrs[1].v.(*die))
	img := testImage(t, []cu{{version: 5, root: unitRoot(kids...)}})
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
	ty, err := u.typeOf(value{form: formRefAddr, u: outside.off})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("test: .debug_info+%#x: reference to 0xffff is outside its unit", u.off)
	if _, err := ty.Elem(); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	if v, err := u.typeOf(value{}); err != nil || v.String() != "void" {
		t.Errorf("no type: %v, %v", v, err)
	}
}

// TestFixtureTypes: spellings in a real image.
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
