package dwarfloc_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestElsewhere: if debug information is in files that are not there, queries do not return
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
			`.debug_info+0x2a: the unit is a skeleton of -gsplit-dwarf, and .debug_addr, where its addresses are, is missing`},
		{"skeletons before DWARF 5", []dwarftest.CU{{Version: 4, Root: skeleton(dw.AttrGNUDwoName)}, {Version: 4, Root: skeleton(dw.AttrGNUDwoName)}},
			[]dwarftest.Section{dwarftest.Debug(".debug_addr", dwarftest.LE64(dwarftest.TextAddr))}, `2 of 2 units are in files that are not there (-gsplit-dwarf): "/src/f.dwo"`},
		{"dwz", []dwarftest.CU{whole}, []dwarftest.Section{dwarftest.Debug(".gnu_debugaltlink", dwarftest.Cat("common", 1, 2, 3))},
			`program: .gnu_debugaltlink+0x0: parts of the debug information are in the supplementary file "common" (dwz -m), which is not there: install the package that has it; its build ID is 010203`},
		{"DWARF 5's section", []dwarftest.CU{whole}, []dwarftest.Section{dwarftest.Debug(".debug_sup", dwarftest.Cat(5, 0, 0, "common", 2, 7, 8))},
			`program: .debug_sup+0x0: parts of the debug information are in the supplementary file "common" (dwz -m), which is not there: install the package that has it; its build ID is 0708`},
		{"the section is cut short", []dwarftest.CU{whole}, []dwarftest.Section{dwarftest.Debug(".debug_sup", dwarftest.Cat(5, 0, 0, "common"))},
			"program: .debug_sup+0x0: the section is cut short"},
		{"no build ID", []dwarftest.CU{whole}, []dwarftest.Section{dwarftest.Debug(".gnu_debugaltlink", dwarftest.Cat("common"))},
			"no build ID follows"},
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
			var lost *dwarfloc.MissingError
			if tt.want == "" && err != nil || tt.want != "" && (!errors.As(err, &place) && !errors.As(err, &lost) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
			}
		}
		if _, err := inside.File(img).SymbolAddresses("f"); err != nil {
			t.Errorf("%s: symbols: %v", tt.name, err)
		}
	}
}

// TestSplit: units in .dwo files and in packages, and what dwz writes, are read; what is not there, and what is
// of another build, is said.
func TestSplit(t *testing.T) {
	const source = "struct s { int a, b; }; __attribute__((noinline)) int f(struct s *s) { return s->b; } int main(void) { struct s s = {1, 2}; return f(&s); }"
	for _, tt := range []struct{ compiler, options, pack string }{
		{"gcc-12", "-gdwarf-4 -gsplit-dwarf", "dwp"},
		{"gcc-12", "-gdwarf-5 -gsplit-dwarf", ""}, // Debian 12's dwp crashes, and its llvm-dwp does not end
		{"gcc-12", "-gdwarf-4 -gsplit-dwarf -fdebug-types-section", "dwp"},
		{"gcc-12", "-gdwarf-5 -gsplit-dwarf -fdebug-types-section", ""},
		{"clang-14", "-gdwarf-4 -gsplit-dwarf", "llvm-dwp-14"},
		{"clang-14", "-gdwarf-5 -gsplit-dwarf -fsplit-dwarf-inlining", "llvm-dwp-14"},
		{"clang-14", "-gdwarf-5 -gsplit-dwarf -fdebug-types-section", "llvm-dwp-14"},
	} {
		name := tt.compiler + " " + tt.options
		path := compile(t, tt.compiler, source, strings.Fields(tt.options)...)
		checkMember(t, name, path)
		found, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.dwo"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %q, %v", name, found, err)
		}
		if tt.pack != "" {
			if out, err := exec.Command(testenv.Tool(t, tt.pack), "-e", path, "-o", path+".dwp").CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", tt.pack, err, out)
			}
		}
		other := compile(t, tt.compiler, strings.Replace(source, "s->b", "s->a", 1), strings.Fields(tt.options)...)
		others, err := filepath.Glob(filepath.Join(filepath.Dir(other), "*.dwo"))
		if err != nil || len(others) != 1 {
			t.Fatalf("%s: %q, %v", name, others, err)
		}
		if err := os.Rename(found[0], found[0]+".away"); err != nil {
			t.Fatal(err)
		}
		if tt.pack != "" {
			checkMember(t, name+", packed", path)
			if err := os.Remove(path + ".dwp"); err != nil {
				t.Fatal(err)
			}
		}
		checkFails(t, name+" without its file", path, "1 of 1 units are in files that are not there (-gsplit-dwarf): \""+found[0]+"\"")
		if err := os.Rename(others[0], found[0]); err != nil {
			t.Fatal(err)
		}
		checkFails(t, name+" with another build's file", path, "and "+found[0]+" has 0x", "it is of another build")
		// The right one is found beside the program.
		if err := os.Remove(found[0]); err != nil {
			t.Fatal(err)
		}
		elsewhere := filepath.Join(t.TempDir(), "moved")
		if err := os.Rename(path, elsewhere); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(found[0]+".away", filepath.Join(filepath.Dir(elsewhere), filepath.Base(found[0]))); err != nil {
			t.Fatal(err)
		}
		checkMember(t, name+", moved", elsewhere)
		// And in a directory that is named, alone.
		debug := t.TempDir()
		if err := os.Rename(filepath.Join(filepath.Dir(elsewhere), filepath.Base(found[0])), filepath.Join(debug, filepath.Base(found[0]))); err != nil {
			t.Fatal(err)
		}
		checkMember(t, name+", in a directory of choice", elsewhere, debug)
	}
}

// TestDwz: what several programs have in common is in a supplementary file.
func TestDwz(t *testing.T) {
	const source = "struct s { int a, b; }; __attribute__((noinline)) int f(struct s *s) { return s->b; } int main(void) { struct s s = {1, 2}; return f(&s); }"
	dwz := testenv.Tool(t, "dwz")
	for _, options := range []string{"-gdwarf-4", "-gdwarf-5", "-gdwarf-5 --dwarf-5"} {
		name := "dwz " + options
		compiler, more, _ := strings.Cut(options, " ")
		args := append(strings.Fields(more), "-m")
		path, other := compile(t, "gcc-12", source, compiler), compile(t, "gcc-12", source, compiler)
		common := path + ".common"
		if out, err := exec.Command(dwz, append(args, common, path, other)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		checkMember(t, name, path)
		checkMember(t, name, other)
		if err := os.Rename(common, common+".away"); err != nil {
			t.Fatal(err)
		}
		debug := t.TempDir()
		if err := os.Link(common+".away", filepath.Join(debug, filepath.Base(common))); err != nil {
			t.Fatal(err)
		}
		checkMember(t, name+", in a directory of choice", path, debug)
		checkFails(t, name+" without its file", path, "parts of the debug information are in the supplementary file \""+common+"\" (dwz -m), which is not there", "its build ID is ")
		// Another build's, whose programs have other things in common.
		longer := strings.ReplaceAll(source, "struct s ", "struct quite_another_one ")
		third, fourth := compile(t, "gcc-12", longer, compiler), compile(t, "gcc-12", longer, compiler)
		if out, err := exec.Command(dwz, append(args, common, third, fourth)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		checkFails(t, name+" with another build's file", path, "the supplementary file must be ", "and "+common+" is ", "it belongs to another build")
	}
}

// checkMember checks that f's parameter is a pointer to a structure with two members.
func checkMember(t *testing.T, name, path string, debugDirs ...string) {
	t.Helper()
	img, err := dwarfloc.Open(path, &dwarfloc.Options{DebugDirs: debugDirs})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	sites, err := img.Sites(context.Background(), dwarfloc.Name("f"))
	if err != nil || len(sites) != 1 {
		t.Errorf("%s: %v, %v", name, sites, err)
		return
	}
	v, err := compute.Resolve(sites[0], &syntax.Expr{Kind: syntax.KindVariable, Name: "s", Path: []syntax.Step{{Kind: syntax.StepArrow, Member: "b"}}})
	if err != nil || v.Loc.Text(img.Arch()) != "[%rdi+4]" || v.Type.String() != "int" {
		t.Errorf("%s: %+v, %v", name, v, err)
	}
}

// checkFails checks that each question is answered by an error with some texts.
func checkFails(t *testing.T, name, path string, texts ...string) {
	t.Helper()
	img := testenv.Open(t, path)
	_, err := img.Sites(context.Background(), dwarfloc.Name("f"))
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want %q", name, err, text)
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
