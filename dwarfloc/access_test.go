package dwarfloc

import (
	"fmt"
	"strings"
	"testing"
)

// accessTypes are types to take apart: struct s { unsigned a; unsigned short b; unsigned
// f : 3; int g : 5; unsigned v[3]; struct s *next; struct { char c; }; struct far *far; }.
type accessTypes struct {
	u32, u16, s32, char, s, ptr, far, farPtr *die
	all                                      []*die
}

func newAccessTypes(far ...attribute) *accessTypes {
	base := func(name string, size, enc int) *die {
		return &die{tag: tagBaseType, attrs: []attribute{{attrName_, formString, name}, {attrByteSize, formData1, size}, {attrEncoding, formData1, enc}}}
	}
	t := &accessTypes{
		u32: base("unsigned int", 4, encUnsigned), u16: base("unsigned short", 2, encUnsigned),
		s32: base("int", 4, encSigned), char: base("char", 1, encSignedChar),
	}
	t.far = &die{tag: tagStructType, attrs: append([]attribute{{attrName_, formString, "far"}}, far...)}
	t.farPtr = &die{tag: tagPointerType, attrs: []attribute{{attrByteSize, formData1, 8}, {attrType, formRef4, t.far}}}
	t.ptr = &die{tag: tagPointerType, attrs: []attribute{{attrByteSize, formData1, 8}}}
	array := &die{tag: tagArrayType, attrs: []attribute{{attrType, formRef4, t.u32}}, kids: []*die{
		{tag: tagSubrangeType, attrs: []attribute{{attrCount, formData1, 3}}},
	}}
	member := func(name string, typ *die, at int, more ...attribute) *die {
		d := &die{tag: tagMember, attrs: []attribute{{attrType, formRef4, typ}, {attrDataMemberLoc, formData1, at}}}
		if name != "" {
			d.attrs = append(d.attrs, attribute{attrName_, formString, name})
		}
		d.attrs = append(d.attrs, more...)
		return d
	}
	inner := &die{tag: tagStructType, attrs: []attribute{{attrByteSize, formData1, 1}}, kids: []*die{member("c", t.char, 0)}}
	t.s = &die{tag: tagStructType, attrs: []attribute{{attrName_, formString, "s"}, {attrByteSize, formData1, 48}}, kids: []*die{
		member("a", t.u32, 0), member("b", t.u16, 4),
		member("f", t.u32, 0, attribute{attrBitSize, formData1, 3}, attribute{attrDataBitOffset, formData1, 48}),
		member("g", t.s32, 0, attribute{attrBitSize, formData1, 5}, attribute{attrDataBitOffset, formData1, 51}),
		member("v", array, 8), member("next", t.ptr, 24), member("", inner, 32), member("far", t.farPtr, 40),
	}}
	t.ptr.attrs = append(t.ptr.attrs, attribute{attrType, formRef4, t.s})
	t.all = []*die{t.u32, t.u16, t.s32, t.char, t.far, t.farPtr, t.ptr, array, inner, t.s}
	return t
}

// steps parses "->next.v[2]".
func steps(text string) []Step {
	var out []Step
	for text != "" {
		kind, cut := StepDot, 1
		if strings.HasPrefix(text, "->") {
			kind, cut = StepArrow, 2
		} else if text[0] == '[' {
			end := strings.IndexByte(text, ']')
			var n int64
			must1(fmt.Sscan(text[1:end], &n))
			out = append(out, Step{Kind: StepIndex, Index: n})
			text = text[end+1:]
			continue
		}
		text = text[cut:]
		end := strings.IndexAny(text+".", ".-[")
		out = append(out, Step{Kind: kind, Member: text[:end]})
		text = text[end:]
	}
	return out
}

func must1(_ int, err error) { must(err) }

// TestFollow: members and elements of objects in each kind of place.
func TestFollow(t *testing.T) {
	x := newAccessTypes(attribute{attrDeclaration, formFlagPresent, 1})
	object := &die{tag: tagVariable, attrs: []attribute{{attrName_, formString, "object"}, {attrType, formRef4, x.s}, {attrLocation, formExprloc, cat(xBreg0+7, sleb(64))}}}
	param := func(name string, typ *die, expr []byte) *die {
		return &die{tag: tagFormalParameter, attrs: []attribute{{attrName_, formString, name}, {attrType, formRef4, typ}, {attrLocation, formExprloc, expr}}}
	}
	f := &die{tag: tagSubprogram, attrs: []attribute{{attrName_, formString, "f"}, {attrLowpc, formAddr, uint64(textAddr)}, {attrHighpc, formData1, 64}}, kids: []*die{
		param("p", x.ptr, cat(xReg0+5)),
		param("m", x.s, cat(xBreg0+3, sleb(8))),
		param("r", x.s, cat(xReg0+1, xPiece, 8, xReg0+2, xPiece, 8, xPiece, 8, xReg0+4, xPiece, 8)),
		param("q", x.ptr, cat(xBreg0+3, sleb(16))),
		param("i", x.s32, cat(xReg0+6)),
	}}
	full := newAccessTypes(attribute{attrByteSize, formData1, 16})
	full.far.kids = []*die{{tag: tagMember, attrs: []attribute{{attrName_, formString, "deep"}, {attrType, formRef4, full.u16}, {attrDataMemberLoc, formData1, 6}}}}
	img := testImage(t, []cu{{version: 5, root: unitRoot(append(append([]*die{}, x.all...), object, f)...)}, {version: 5, root: unitRoot(full.all...)}})
	s := sitesOf(t, img, "f", 1)[0]
	byName := make(map[string]*Variable)
	params, err := s.Params()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range params {
		byName[v.Name] = v
	}
	for _, tt := range []struct{ name, path, want string }{
		{"p", "->a", "unsigned int [%rdi]"},
		{"p", "->b", "unsigned short [%rdi+4]"},
		{"p", "->f", "unsigned int :3 u8[%rdi+6] & 7"},
		{"p", "->g", "int :5 (u8[%rdi+6] << 56) >> 59"},
		{"p", "->v[2]", "unsigned int [%rdi+16]"},
		{"p", "->v[3]", "type-mismatch: index 3 is outside unsigned int[3], which has elements 0 to 2"},
		{"p", "->next->next->b", "unsigned short [u64[u64[%rdi+24]+24]+4]"},
		{"p", "->c", "char [%rdi+32]"},
		{"p", "[2].a", "unsigned int [%rdi+96]"},
		{"p", "[-1].a", "unsigned int [%rdi-48]"},
		{"p", "->far->deep", "unsigned short [u64[%rdi+40]+6]"},
		{"p", "->far->none", "no-such-member: struct far has no member \"none\""},
		{"p", ".a", "type-mismatch: struct s * is a pointer: its members are reached with \"->\""},
		{"p", "->a.x", "type-mismatch: unsigned int has no members: it is no structure or union"},
		{"p", "->f[0]", "type-mismatch: a bit-field has no parts"},
		{"p", "->nxt", "no-such-member: struct s has no member \"nxt\""},
		{"m", ".v[1]", "unsigned int [%rbx+20]"},
		{"m", "->a", "type-mismatch: struct s is not a pointer: its members are reached with \".\""},
		{"m", ".next->a", "unsigned int [u64[%rbx+32]]"},
		{"r", ".a", "unsigned int u32(%rdx)"},
		{"r", ".b", "unsigned short u16(%rdx >>u 32)"},
		{"r", ".f", "unsigned int :3 u8(%rdx >>u 48) & 7"},
		{"r", ".v[0]", "unsigned int u32(%rcx)"},
		{"r", ".v[1]", "unsigned int u32(%rcx >>u 32)"},
		{"r", ".v[2]", "missing-piece"},
		{"r", ".next", "struct s * %rsi"},
		{"r", ".next->b", "unsigned short [%rsi+4]"},
		{"r", ".v", "missing-piece"},
		{"q", "->a", "unsigned int [u64[%rbx+16]]"},
		{"q", "[1].b", "unsigned short [u64[%rbx+16]+52]"},
		{"i", "[0]", "type-mismatch: int is neither an array nor a pointer: it has no elements"},
	} {
		v, err := s.Follow(byName[tt.name], steps(tt.path))
		if err != nil {
			t.Errorf("%s%s: %v", tt.name, tt.path, err)
			continue
		}
		got := v.Reason.String()
		if v.Located() {
			got = v.Type.String()
			if v.Bits > 0 {
				got += fmt.Sprintf(" :%d", v.Bits)
			}
			got += " " + v.Loc.Text(img.Arch())
		}
		if got != tt.want {
			t.Errorf("%s%s: got %s, want %s", tt.name, tt.path, got, tt.want)
		}
	}
	by, err := s.Follow(byName["p"], append(steps("->v"), Step{Kind: StepIndex, By: byName["i"]}))
	if err != nil || by.Loc.Text(img.Arch()) != "[%rdi+8 + (s32(%rbp) * 4)]" {
		t.Errorf("an index by variable: %s, %v", by.Loc.Text(img.Arch()), err)
	}
}

// TestUseTypesOf: what no unit of an image defines is taken from another image.
func TestUseTypesOf(t *testing.T) {
	x := newAccessTypes(attribute{attrDeclaration, formFlagPresent, 1})
	f := &die{tag: tagSubprogram, attrs: []attribute{{attrName_, formString, "f"}, {attrLowpc, formAddr, uint64(textAddr)}, {attrHighpc, formData1, 64}}, kids: []*die{
		{tag: tagFormalParameter, attrs: []attribute{{attrName_, formString, "p"}, {attrType, formRef4, x.farPtr}, {attrLocation, formExprloc, cat(xReg0 + 5)}}},
	}}
	full := newAccessTypes(attribute{attrByteSize, formData1, 16})
	full.far.kids = []*die{{tag: tagMember, attrs: []attribute{{attrName_, formString, "deep"}, {attrType, formRef4, full.u16}, {attrDataMemberLoc, formData1, 6}}}}
	other := testImage(t, []cu{{version: 5, root: unitRoot(full.all...)}})
	for _, use := range []bool{false, true} {
		img := testImage(t, []cu{{version: 5, root: unitRoot(append(append([]*die{}, x.all...), f)...)}})
		want := "type-mismatch: struct far is only declared: no unit of the image defines it"
		if use {
			img.UseTypesOf(other)
			want = "[%rdi+6]"
		}
		s := sitesOf(t, img, "f", 1)[0]
		params, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.Follow(params[0], steps("->deep"))
		if err != nil {
			t.Fatal(err)
		}
		got := v.Reason.String()
		if v.Located() {
			got = v.Loc.Text(img.Arch())
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
