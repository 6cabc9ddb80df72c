package dwarfloc

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// accessTypes are types to take apart: struct s { unsigned a; unsigned short b; unsigned
// f : 3; int g : 5; unsigned v[3]; struct s *next; struct { char c; }; struct far *far; }.
type accessTypes struct {
	u32, u16, s32, char, s, ptr, far, farPtr *dwarftest.DIE
	all                                      []*dwarftest.DIE
}

func newAccessTypes(far ...dwarftest.Attr) *accessTypes {
	base := func(name string, size, enc int) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, name), dwarftest.At(dw.AttrByteSize, dw.FormData1, size), dwarftest.At(dw.AttrEncoding, dw.FormData1, enc)}}
	}
	t := &accessTypes{
		u32: base("unsigned int", 4, dw.EncUnsigned), u16: base("unsigned short", 2, dw.EncUnsigned),
		s32: base("int", 4, dw.EncSigned), char: base("char", 1, dw.EncSignedChar),
	}
	t.far = &dwarftest.DIE{Tag: dw.TagStructType, Attrs: append([]dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "far")}, far...)}
	t.farPtr = &dwarftest.DIE{Tag: dw.TagPointerType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrByteSize, dw.FormData1, 8), dwarftest.At(dw.AttrType, dw.FormRef4, t.far)}}
	t.ptr = &dwarftest.DIE{Tag: dw.TagPointerType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrByteSize, dw.FormData1, 8)}}
	array := &dwarftest.DIE{Tag: dw.TagArrayType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrType, dw.FormRef4, t.u32)}, Kids: []*dwarftest.DIE{
		{Tag: dw.TagSubrangeType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrCount, dw.FormData1, 3)}},
	}}
	member := func(name string, typ *dwarftest.DIE, at int, more ...dwarftest.Attr) *dwarftest.DIE {
		d := &dwarftest.DIE{Tag: dw.TagMember, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrType, dw.FormRef4, typ), dwarftest.At(dw.AttrDataMemberLoc, dw.FormData1, at)}}
		if name != "" {
			d.Attrs = append(d.Attrs, dwarftest.At(dw.AttrName, dw.FormString, name))
		}
		d.Attrs = append(d.Attrs, more...)
		return d
	}
	inner := &dwarftest.DIE{Tag: dw.TagStructType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrByteSize, dw.FormData1, 1)}, Kids: []*dwarftest.DIE{member("c", t.char, 0)}}
	t.s = &dwarftest.DIE{Tag: dw.TagStructType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "s"), dwarftest.At(dw.AttrByteSize, dw.FormData1, 48)}, Kids: []*dwarftest.DIE{
		member("a", t.u32, 0), member("b", t.u16, 4),
		member("f", t.u32, 0, dwarftest.At(dw.AttrBitSize, dw.FormData1, 3), dwarftest.At(dw.AttrDataBitOffset, dw.FormData1, 48)),
		member("g", t.s32, 0, dwarftest.At(dw.AttrBitSize, dw.FormData1, 5), dwarftest.At(dw.AttrDataBitOffset, dw.FormData1, 51)),
		member("v", array, 8), member("next", t.ptr, 24), member("", inner, 32), member("far", t.farPtr, 40),
	}}
	t.ptr.Attrs = append(t.ptr.Attrs, dwarftest.At(dw.AttrType, dw.FormRef4, t.s))
	t.all = []*dwarftest.DIE{t.u32, t.u16, t.s32, t.char, t.far, t.farPtr, t.ptr, array, inner, t.s}
	return t
}

// steps parses "->next.v[2]".
func steps(text string) []syntax.Step {
	var out []syntax.Step
	for text != "" {
		kind, cut := syntax.StepDot, 1
		if strings.HasPrefix(text, "->") {
			kind, cut = syntax.StepArrow, 2
		} else if text[0] == '[' {
			end := strings.IndexByte(text, ']')
			var n int64
			must1(fmt.Sscan(text[1:end], &n))
			out = append(out, syntax.Step{Kind: syntax.StepIndex, Index: n})
			text = text[end+1:]
			continue
		}
		text = text[cut:]
		end := strings.IndexAny(text+".", ".-[")
		out = append(out, syntax.Step{Kind: kind, Member: text[:end]})
		text = text[end:]
	}
	return out
}

func must1(_ int, err error) { dwarftest.Must(err) }

// TestFollow: members and elements of objects in each kind of place.
func TestFollow(t *testing.T) {
	x := newAccessTypes(dwarftest.At(dw.AttrDeclaration, dw.FormFlagPresent, 1))
	object := &dwarftest.DIE{Tag: dw.TagVariable, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "object"), dwarftest.At(dw.AttrType, dw.FormRef4, x.s), dwarftest.At(dw.AttrLocation, dw.FormExprloc, dwarftest.Cat(xBreg0+7, dwarftest.SLEB(64)))}}
	param := func(name string, typ *dwarftest.DIE, expr []byte) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, name), dwarftest.At(dw.AttrType, dw.FormRef4, typ), dwarftest.At(dw.AttrLocation, dw.FormExprloc, expr)}}
	}
	f := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "f"), dwarftest.At(dw.AttrCallingConv, dw.FormData1, dw.CallNoCall), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), dwarftest.At(dw.AttrHighpc, dw.FormData1, 64)}, Kids: []*dwarftest.DIE{
		param("p", x.ptr, dwarftest.Cat(xReg0+5)),
		param("m", x.s, dwarftest.Cat(xBreg0+3, dwarftest.SLEB(8))),
		param("r", x.s, dwarftest.Cat(xReg0+1, xPiece, 8, xReg0+2, xPiece, 8, xPiece, 8, xReg0+4, xPiece, 8)),
		param("q", x.ptr, dwarftest.Cat(xBreg0+3, dwarftest.SLEB(16))),
		param("i", x.s32, dwarftest.Cat(xReg0+6)),
	}}
	full := newAccessTypes(dwarftest.At(dw.AttrByteSize, dw.FormData1, 16))
	full.far.Kids = []*dwarftest.DIE{{Tag: dw.TagMember, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "deep"), dwarftest.At(dw.AttrType, dw.FormRef4, full.u16), dwarftest.At(dw.AttrDataMemberLoc, dw.FormData1, 6)}}}
	img := testImage(t, []dwarftest.CU{{Version: 5, Root: dwarftest.Root(append(append([]*dwarftest.DIE{}, x.all...), object, f)...)}, {Version: 5, Root: dwarftest.Root(full.all...)}})
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
		v, err := Follow(byName[tt.name], steps(tt.path))
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
	by, err := Follow(byName["p"], append(steps("->v"), syntax.Step{Kind: syntax.StepIndex, IndexBy: &syntax.Expr{Name: "i"}}))
	if err != nil || by.Loc.Text(img.Arch()) != "[%rdi+8 + (s32(%rbp) * 4)]" {
		t.Errorf("an index by variable: %s, %v", by.Loc.Text(img.Arch()), err)
	}
}

// TestUseTypesOf: what no unit of an image defines is taken from another image.
func TestUseTypesOf(t *testing.T) {
	x := newAccessTypes(dwarftest.At(dw.AttrDeclaration, dw.FormFlagPresent, 1))
	f := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "f"), dwarftest.At(dw.AttrCallingConv, dw.FormData1, dw.CallNoCall), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), dwarftest.At(dw.AttrHighpc, dw.FormData1, 64)}, Kids: []*dwarftest.DIE{
		{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "p"), dwarftest.At(dw.AttrType, dw.FormRef4, x.farPtr), dwarftest.At(dw.AttrLocation, dw.FormExprloc, dwarftest.Cat(xReg0+5))}},
	}}
	full := newAccessTypes(dwarftest.At(dw.AttrByteSize, dw.FormData1, 16))
	full.far.Kids = []*dwarftest.DIE{{Tag: dw.TagMember, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "deep"), dwarftest.At(dw.AttrType, dw.FormRef4, full.u16), dwarftest.At(dw.AttrDataMemberLoc, dw.FormData1, 6)}}}
	other := testImage(t, []dwarftest.CU{{Version: 5, Root: dwarftest.Root(full.all...)}})
	for _, use := range []bool{false, true} {
		var o Options
		want := "type-mismatch: struct far is only declared: no unit of the image defines it, or several do, and differently"
		if use {
			o.TypesOf = other
			want = "[%rdi+6]"
		}
		img, err := FromBytes("test", dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root(append(append([]*dwarftest.DIE{}, x.all...), f)...)}}), &o)
		dwarftest.Must(err)
		s := sitesOf(t, img, "f", 1)[0]
		params, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		v, err := Follow(params[0], steps("->deep"))
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

// TestCircularMembers: the names of a structure that has itself as anonymous members end.
func TestCircularMembers(t *testing.T) {
	self := &dwarftest.DIE{Tag: dw.TagStructType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "self"), dwarftest.At(dw.AttrByteSize, dw.FormData1, 8)}}
	for range 2 {
		self.Kids = append(self.Kids, &dwarftest.DIE{Tag: dw.TagMember, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrType, dw.FormRef4, self), dwarftest.At(dw.AttrDataMemberLoc, dw.FormData1, 0)}})
	}
	f := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "f"), dwarftest.At(dw.AttrCallingConv, dw.FormData1, dw.CallNoCall), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), dwarftest.At(dw.AttrHighpc, dw.FormData1, 64)}, Kids: []*dwarftest.DIE{
		{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "p"), dwarftest.At(dw.AttrType, dw.FormRef4, self), dwarftest.At(dw.AttrLocation, dw.FormExprloc, []byte{0x75, 0})}},
	}}
	img := testImage(t, []dwarftest.CU{{Version: 5, Root: dwarftest.Root(self, f)}})
	s := sitesOf(t, img, "f", 1)[0]
	v, err := Resolve(s, &syntax.Expr{Name: "p", Path: []syntax.Step{{Member: "none"}}})
	if err != nil || v.Reason.Code != reasons.NoSuchMember {
		t.Errorf("%v, %v", v, err)
	}
}

// TestSiteConcurrently: a site may be asked by several goroutines. The race detector looks.
func TestSiteConcurrently(t *testing.T) {
	for _, name := range fixtures.Names() {
		img := openFixture(t, name)
		functions, err := img.FunctionNames(t.Context())
		dwarftest.Must(err)
		// By name: the functions that inlined instances are in are then not looked at before.
		var sites []*Site
		for _, f := range functions {
			some, err := img.Sites(t.Context(), Name(f))
			dwarftest.Must(err)
			sites = append(sites, some...)
		}
		for _, s := range sites {
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					params, err := s.Params()
					if err != nil {
						t.Errorf("%s: %v", s, err)
					}
					for _, p := range params {
						if _, err := s.Lookup(p.Name); err != nil {
							t.Errorf("%s: %s: %v", s, p.Name, err)
						}
						_, _ = p.Type.Members()
						_ = p.Type.String()
					}
				})
			}
			wg.Wait()
		}
	}
}
