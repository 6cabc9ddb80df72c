package dwarfloc_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/image"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestElsewhere: if debug information is in files that are not read, queries do not return
// the rest of it. Symbols can be asked for all the same.
func TestElsewhere(t *testing.T) {
	at := dwarftest.At
	f := func() *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
			at(dw.AttrName, dw.FormString, "f"), at(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), at(dw.AttrHighpc, dw.FormData8, 16),
		}}
	}
	skeleton := func(name dw.Attr) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagCompileUnit, Attrs: []dwarftest.Attr{at(name, dw.FormString, "f.dwo"), at(dw.AttrCompDir, dw.FormString, "/src")}}
	}
	alt := f()
	alt.Attrs = append(alt.Attrs, at(dw.AttrType, dw.FormGNURefAlt, 7))
	whole := dwarftest.CU{Version: 5, Root: dwarftest.Root(f())}
	for _, tt := range []struct {
		name  string
		units []dwarftest.CU
		more  []dwarftest.Section
		want  string
	}{
		{"all is there", []dwarftest.CU{whole}, nil, ""},
		{"a skeleton", []dwarftest.CU{whole, {Version: 5, Kind: dw.UnitSkeleton, ID: 1, Root: skeleton(dw.AttrDwoName)}}, nil,
			`1 of 2 units is in other files (-gsplit-dwarf), which are not read: "f.dwo" in "/src"`},
		{"skeletons before DWARF 5", []dwarftest.CU{{Version: 4, Root: skeleton(dw.AttrGNUDwoName)}, {Version: 4, Root: skeleton(dw.AttrGNUDwoName)}},
			[]dwarftest.Section{dwarftest.Debug(".debug_addr", dwarftest.LE64(dwarftest.TextAddr))}, "2 of 2 units are in other files"},
		{"dwz", []dwarftest.CU{whole}, []dwarftest.Section{dwarftest.Debug(".gnu_debugaltlink", dwarftest.Cat("common", 1, 2, 3))},
			`program: .gnu_debugaltlink+0x0: parts of the debug information are in the supplementary file "common" (dwz -m), which is not read`},
		{"DWARF 5's section", []dwarftest.CU{whole}, []dwarftest.Section{dwarftest.Debug(".debug_sup", dwarftest.Cat(5, 0, 0, "common", 0))},
			`program: .debug_sup+0x0: parts of the debug information are in the supplementary file "common"`},
		{"the supplementary file itself", []dwarftest.CU{whole}, []dwarftest.Section{dwarftest.Debug(".debug_sup", dwarftest.Cat(5, 0, 1, "", 0))}, ""},
		{"no section names the file", []dwarftest.CU{{Version: 4, Root: dwarftest.Root(alt)}}, nil,
			"abbreviation 2: it refers to a supplementary file (dwz -m), and no section says to which"},
	} {
		img, err := dwarfloc.FromBytes("program", dwarftest.Image(tt.units, tt.more...), nil)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		_, atErr := img.SiteAt(context.Background(), dwarftest.TextAddr)
		_, sitesErr := img.Sites(context.Background(), dwarfloc.Name("f"))
		_, namesErr := img.FunctionNames(context.Background())
		_, filesErr := img.SourceFiles(context.Background())
		for _, err := range []error{atErr, sitesErr, namesErr, filesErr} {
			var place *image.FormatError
			if tt.want == "" && err != nil || tt.want != "" && (!errors.As(err, &place) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
			}
		}
		if _, err := img.SymbolAddresses("f"); err != nil {
			t.Errorf("%s: symbols: %v", tt.name, err)
		}
	}
}

// TestSplit: the same with what compilers and dwz write.
func TestSplit(t *testing.T) {
	const source = "struct s { int a, b; }; __attribute__((noinline)) int f(struct s *s) { return s->b; } int main(void) { struct s s = {1, 2}; return f(&s); }"
	for _, tt := range []struct {
		compiler, options, want string
	}{
		{"gcc-12", "-gdwarf-4 -gsplit-dwarf", "-gsplit-dwarf"},
		{"gcc-12", "-gdwarf-5 -gsplit-dwarf", "-gsplit-dwarf"},
		{"clang-14", "-gdwarf-4 -gsplit-dwarf", "-gsplit-dwarf"},
		{"clang-14", "-gdwarf-5 -gsplit-dwarf -fsplit-dwarf-inlining", "-gsplit-dwarf"},
		{"gcc-12", "-gdwarf-4", "dwz -m"},
		{"gcc-12", "-gdwarf-5", "dwz -m"},
	} {
		path := compile(t, tt.compiler, source, strings.Fields(tt.options)...)
		if tt.want == "dwz -m" {
			other := compile(t, tt.compiler, source, strings.Fields(tt.options)...)
			if out, err := exec.Command(testenv.Tool(t, "dwz"), "-m", path+".common", path, other).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		img := testenv.Open(t, path)
		if _, err := img.Sites(context.Background(), dwarfloc.Name("f")); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: got %v, want %q", tt.compiler, tt.options, err, tt.want)
		}
	}
}

// TestDWARF2: places of members are expressions.
func TestDWARF2(t *testing.T) {
	const source = "struct s { int a, b; }; __attribute__((noinline)) int f(struct s *s) { return s->b; } int main(void) { struct s s = {1, 2}; return f(&s); }"
	for _, compiler := range []string{"gcc-12", "clang-14"} {
		img := testenv.Open(t, compile(t, compiler, source, "-gdwarf-2", "-gstrict-dwarf"))
		sites, err := img.Sites(context.Background(), dwarfloc.Name("f"))
		if err != nil || len(sites) != 1 {
			t.Fatalf("%s: %v, %v", compiler, sites, err)
		}
		params, err := sites[0].Params()
		if err != nil {
			t.Fatal(err)
		}
		el, err := params[0].Type.Elem()
		if err != nil {
			t.Fatal(err)
		}
		members, err := el.Members()
		if err != nil || len(members) != 2 || members[0].BitOffset != 0 || members[1].BitOffset != 32 {
			t.Errorf("%s: %+v, %v", compiler, members, err)
		}
	}
}
