package dwarfloc_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/probe"
)

// TestTypeUnits: types in units of their own, in .debug_types before DWARF 5 and in .debug_info
// since; f's parameter p has one, and s is declared with a signature.
func TestTypeUnits(t *testing.T) {
	at := dwarftest.At
	for _, version := range []int{4, 5} {
		integer := &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "int"), at(dw.AttrByteSize, dw.FormData1, 4), at(dw.AttrEncoding, dw.FormData1, dw.EncSigned)}}
		member := &dwarftest.DIE{Tag: dw.TagMember, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "b"), at(dw.AttrType, dw.FormRef4, integer), at(dw.AttrDataMemberLoc, dw.FormData1, 4)}}
		structure := &dwarftest.DIE{Tag: dw.TagStructType, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "s"), at(dw.AttrByteSize, dw.FormData1, 8)}, Kids: []*dwarftest.DIE{member}}
		enum := &dwarftest.DIE{Tag: dw.TagEnumerationType, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "e"), at(dw.AttrByteSize, dw.FormData1, 2), at(dw.AttrType, dw.FormRef4, integer)}}
		declared := func(tag dw.Tag, signature int) *dwarftest.DIE {
			return &dwarftest.DIE{Tag: tag, Attrs: []dwarftest.Attr{at(dw.AttrDeclaration, dw.FormFlagPresent, 1), at(dw.AttrSignature, dw.FormRefSig8, signature)}}
		}
		s, e := declared(dw.TagStructType, 0x51), declared(dw.TagEnumerationType, 0x52)
		param := func(name string, typ dwarftest.Attr, reg int) *dwarftest.DIE {
			return &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, name), typ, at(dw.AttrLocation, dw.FormExprloc, []byte{byte(0x50 + reg)})}}
		}
		f := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
			at(dw.AttrName, dw.FormString, "f"), at(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), at(dw.AttrHighpc, dw.FormData8, 16),
		}, Kids: []*dwarftest.DIE{
			param("direct", at(dw.AttrType, dw.FormRefSig8, 0x51), 5), param("declared", at(dw.AttrType, dw.FormRef4, s), 4),
			param("enum", at(dw.AttrType, dw.FormRef4, e), 1), param("none", at(dw.AttrType, dw.FormRefSig8, 0x99), 2),
		}}
		typeRoot := func(kids ...*dwarftest.DIE) *dwarftest.DIE {
			return &dwarftest.DIE{Tag: dw.Tag(0x41), Attrs: []dwarftest.Attr{at(dw.AttrLanguage, dw.FormData1, 0x1d)}, Kids: kids}
		}
		kind := map[int]uint8{5: dw.UnitType}[version]
		img, err := dwarfloc.FromBytes("types", dwarftest.Image([]dwarftest.CU{
			{Version: version, Kind: kind, ID: 0x51, Type: structure, Root: typeRoot(integer, structure)},
			{Version: version, Root: dwarftest.Root(s, e, f)},
			{Version: version, Kind: kind, ID: 0x52, Type: enum, Root: typeRoot(integer, enum)},
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		sites, err := img.Sites(context.Background(), dwarfloc.Name("f"))
		if err != nil || len(sites) != 1 {
			t.Fatalf("DWARF %d: %v, %v", version, sites, err)
		}
		for text, want := range map[string]string{
			"direct.b": "int u32(%rdi >>u 32) ", "declared.b": "int u32(%rsi >>u 32) ", "enum": "enum e %rdx ",
			"none": "damaged: types: .debug_info+", // of the unit that refers to it
		} {
			got := resolved(t, sites[0], text)
			if !strings.Contains(got+" ", want) {
				t.Errorf("DWARF %d: %s is %q, want %q", version, text, got, want)
			}
		}
	}
}

// resolved returns the type and the location of an expression at a site.
func resolved(t *testing.T, s *dwarfloc.Site, text string) string {
	t.Helper()
	def, err := probe.Parse("f x=" + text)
	if err != nil {
		t.Fatal(err)
	}
	v, err := compute.Resolve(s, &def.Args[0].Expr)
	if err != nil {
		return err.Error()
	}
	if !v.Located() {
		return v.Reason.String()
	}
	return fmt.Sprintf("%v %s", v.Type, v.Loc.Text(s.Image.Arch()))
}

// TestTypeUnitDamage: errors about what is in .debug_types say so.
func TestTypeUnitDamage(t *testing.T) {
	img, err := dwarfloc.FromBytes("types", dwarftest.Image([]dwarftest.CU{{Version: 4, Root: dwarftest.Root()}},
		dwarftest.Debug(".debug_types", dwarftest.Cat(dwarftest.LE32(1000), 4, 0))), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := img.FunctionNames(context.Background()); err == nil || err.Error() != "types: .debug_types+0x0: invalid unit length 0x3e8: 0x6 bytes are left" {
		t.Error(err)
	}
}

// TestTypeSections: an object file has a section for each type.
func TestTypeSections(t *testing.T) {
	const source = `
struct p { int x, y; }; struct q { struct p p; char c; }; enum e { one = 1 };
__attribute__((noinline)) int f(struct p *p, struct q *q, enum e e) { return p->y + q->p.y + q->c + e; }
int main(void) { struct p p = {1, 2}; struct q q = {p, 3}; return f(&p, &q, one); }`
	for _, compiler := range []string{"gcc-12", "clang-14"} {
		for _, version := range []string{"-gdwarf-4", "-gdwarf-5"} {
			for _, link := range []string{"", "-c"} {
				options := []string{version, "-fdebug-types-section"}
				if link != "" {
					options = append(options, link)
				}
				img := testenv.Open(t, compile(t, compiler, source, options...))
				sites, err := img.Sites(context.Background(), dwarfloc.Name("f"))
				if err != nil || len(sites) == 0 {
					t.Fatalf("%s %v: %v, %v", compiler, options, sites, err)
				}
				for text, want := range map[string]string{"p->y": "int [%rdi+4]", "q->p.y": "int [%rsi+4]", "q->c": "char [%rsi+8]", "e": "enum e %rdx"} {
					if got := resolved(t, sites[0], text); got != want {
						t.Errorf("%s %v: %s is %q, want %q", compiler, options, text, got, want)
					}
				}
			}
		}
	}
}
