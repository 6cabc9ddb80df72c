package formats

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Program is a program of which there are sources.
type Program struct {
	Name    string
	Package string // of Debian, with its sources
	sources []string
	options []string
	leave   []string            // sources that are not compiled
	links   map[string][]string // programs that are linked: their options, and those objects that the others do not have
}

// Programs returns the programs.
func Programs() []Program {
	return []Program{
		{
			Name: "lua", Package: "lua5.4", sources: []string{"src/*.c"}, options: []string{"-O2", "-DLUA_COMPAT_5_3"},
			links: map[string][]string{"lua": {"lua.o", "-lm"}, "luac": {"luac.o", "-lm"}},
		},
		{
			Name: "ninja", Package: "ninja-build", sources: []string{"src/*.cc"}, options: []string{"-O2", "-x", "c++", "-std=c++14"},
			leave: []string{"*_test.cc", "test.cc", "*perftest.cc", "*-win32.cc", "msvc*.cc", "minidump*", "includes_normalize*", "browse.cc", "hash_collision*", "*.in.cc"},
			links: map[string][]string{"ninja": {"ninja.o", "-lstdc++"}},
		},
	}
}

// Format is a format of debug information.
type Format struct {
	Name     string
	Compiler string
	Common   []string // options of both builds
	Options  []string // options of the one in this format
	dwz      []string // then dwz is run with these on all programs; nil: it is not
	pack     string   // then this program makes a package of the .dwo files, which are deleted
	compress string   // then objcopy compresses the debug information in this way
	Reasons  bool     // the compiler leaves out reasons: of what is not located, they are not compared
	NoValues bool     // values that are in no place are not described, nor so what is assigned: only what both builds locate is compared
	OldTypes bool     // there are no rvalue references and no restrict: types are compared without
}

// Formats returns the formats. What a compiler does otherwise in one of them is switched off in both builds.
//
//   - clang's DWARF 5 has typed operations, but not in split units.
//   - DWARF 2 and 3 have no DW_OP_stack_value. GCC writes it all the same, clang leaves out such entries of a list, from which
//     the reader tells that a body assigns its parameter.
//     They have no DW_TAG_rvalue_reference_type either, and DWARF 2 no DW_TAG_restrict_type.
//   - GCC describes no string literals, to which implicit pointers lead, in split units.
//   - Debian 12's dwp crashes on GCC's DWARF 5, and its llvm-dwp does not end. Its dwz refuses type units of DWARF 5.
func Formats() (out []Format) {
	for _, v := range []string{"-gdwarf-4", "-gdwarf-5"} {
		gcc, clang := []string{"-g", v}, []string{"-g", v}
		if v == "-gdwarf-5" {
			clang = append(clang, "-mllvm", "-dwarf-op-convert=Disable")
		}
		add := func(what string, f Format) {
			f.Name = strings.TrimPrefix(v, "-g") + " " + f.Compiler + " " + what
			out = append(out, f)
		}
		for _, c := range []string{"gcc-11", "gcc-12"} {
			add("split", Format{Compiler: c, Common: gcc, Options: []string{"-gsplit-dwarf"}, Reasons: true})
			add("dwz -m", Format{Compiler: c, Common: gcc, dwz: []string{"-m", "common.debug"}})
		}
		add("split, types", Format{Compiler: "gcc-12", Common: gcc, Options: []string{"-gsplit-dwarf", "-fdebug-types-section"}, Reasons: true})
		add("types", Format{Compiler: "gcc-12", Common: gcc, Options: []string{"-fdebug-types-section"}})
		add("dwz", Format{Compiler: "gcc-12", Common: gcc, dwz: []string{}})
		if v == "-gdwarf-4" {
			add("package", Format{Compiler: "gcc-12", Common: gcc, Options: []string{"-gsplit-dwarf"}, pack: "dwp", Reasons: true})
			add("package, types", Format{Compiler: "gcc-12", Common: gcc, Options: []string{"-gsplit-dwarf", "-fdebug-types-section"}, pack: "dwp", Reasons: true})
			add("types, dwz -m", Format{Compiler: "gcc-12", Common: gcc, Options: []string{"-fdebug-types-section"}, dwz: []string{"-m", "common.debug"}})
		} else {
			add("dwz -m, .debug_sup", Format{Compiler: "gcc-12", Common: gcc, dwz: []string{"--dwarf-5", "-m", "common.debug"}})
		}
		for _, c := range []string{"clang-14", "clang-16"} {
			add("split", Format{Compiler: c, Common: clang, Options: []string{"-gsplit-dwarf"}})
			add("package, inlining", Format{Compiler: c, Common: clang, Options: []string{"-gsplit-dwarf", "-fsplit-dwarf-inlining"}, pack: "llvm-dwp-14"})
		}
		add("split, inlining", Format{Compiler: "clang-14", Common: clang, Options: []string{"-gsplit-dwarf", "-fsplit-dwarf-inlining"}})
		add("split, types", Format{Compiler: "clang-14", Common: clang, Options: []string{"-gsplit-dwarf", "-fdebug-types-section"}})
		add("package, types", Format{Compiler: "clang-14", Common: clang, Options: []string{"-gsplit-dwarf", "-fdebug-types-section"}, pack: "llvm-dwp-14"})
		add("types", Format{Compiler: "clang-14", Common: clang, Options: []string{"-fdebug-types-section"}})
	}
	// Older and wider DWARF says the same of these programs.
	for _, c := range []string{"gcc-12", "clang-14"} {
		for _, option := range []string{"-gdwarf-2", "-gdwarf-3", "-gdwarf64"} {
			out = append(out, Format{Name: "dwarf-4 " + c + " " + option, Compiler: c, Common: []string{"-g", "-gdwarf-4"}, Options: []string{option}, NoValues: option != "-gdwarf64" && c == "clang-14", OldTypes: option != "-gdwarf64"})
		}
		out = append(out, Format{Name: "dwarf-5 " + c + " -gdwarf64", Compiler: c, Common: []string{"-g", "-gdwarf-5"}, Options: []string{"-gdwarf64"}})
		for _, way := range []string{"zlib-gnu", "zlib-gabi", "zstd"} {
			out = append(out, Format{Name: "dwarf-5 " + c + " compressed, " + way, Compiler: c, Common: []string{"-g", "-gdwarf-5"}, compress: way})
		}
	}
	return out
}

// Plain returns the format of the builds with which those in f are compared.
func (f *Format) Plain() Format {
	return Format{Name: "plain " + strings.Join(append([]string{f.Compiler}, f.Common...), " "), Compiler: f.Compiler, Common: f.Common}
}

// Build builds a program in a format in a folder. It returns the paths of what was linked, sorted.
func Build(ctx context.Context, p *Program, sources string, f *Format, dir string) ([]string, error) {
	objects, err := compile(ctx, p, sources, f, dir)
	if err != nil {
		return nil, err
	}
	var apart []string // objects with a main function
	for _, link := range p.links {
		apart = append(apart, link[0])
	}
	objects = slices.DeleteFunc(objects, func(o string) bool { return slices.Contains(apart, o) })
	var out []string
	for name, link := range p.links {
		args := slices.Concat([]string{"-Wl,--build-id", "-o", name, link[0]}, objects, link[1:])
		if err := run(ctx, dir, f.Compiler, args...); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	slices.Sort(out)
	if err := f.convert(ctx, dir, out); err != nil {
		return nil, err
	}
	for i := range out {
		out[i] = filepath.Join(dir, out[i])
	}
	return out, nil
}

// compile compiles the sources, on all processors.
func compile(ctx context.Context, p *Program, sources string, f *Format, dir string) (objects []string, err error) {
	var files []string
	for _, pattern := range p.sources {
		found, err := filepath.Glob(filepath.Join(sources, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	files = slices.DeleteFunc(files, func(file string) bool {
		return slices.ContainsFunc(p.leave, func(pattern string) bool {
			match, err := filepath.Match(pattern, filepath.Base(file))
			return match || err != nil
		})
	})
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no sources", sources)
	}
	errs := make([]error, len(files))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, file := range files {
		object := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) + ".o"
		objects = append(objects, object)
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			errs[i] = run(ctx, dir, f.Compiler, slices.Concat(p.options, f.Common, f.Options, []string{"-c", "-o", object, file})...)
		})
	}
	wg.Wait()
	return objects, errors.Join(errs...)
}

// convert does to programs what the format asks for.
func (f *Format) convert(ctx context.Context, dir string, names []string) error {
	if f.dwz != nil {
		several := slices.Contains(f.dwz, "-m")
		if several && len(names) == 1 { // what two have in common
			other := names[0] + "-too"
			if err := run(ctx, dir, "cp", names[0], other); err != nil {
				return err
			}
			names = append(slices.Clone(names), other)
		}
		for _, some := range chunks(names, several) {
			if err := run(ctx, dir, "dwz", slices.Concat(f.dwz, some)...); err != nil {
				return err
			}
		}
	}
	if f.compress != "" {
		for _, name := range names {
			if err := run(ctx, dir, "objcopy", "--compress-debug-sections="+f.compress, name); err != nil {
				return err
			}
		}
	}
	if f.pack == "" {
		return nil
	}
	for _, name := range names {
		if err := run(ctx, dir, f.pack, "-e", name, "-o", name+".dwp"); err != nil {
			return err
		}
	}
	return run(ctx, dir, "sh", "-c", "rm *.dwo")
}

// chunks returns all names together, or each alone.
func chunks(names []string, together bool) [][]string {
	if together {
		return [][]string{names}
	}
	return slices.Collect(slices.Chunk(names, 1))
}

func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// sameCode returns an error if two programs differ in a section with instructions.
func sameCode(a, b string) error {
	one, err := elf.Open(a)
	if err != nil {
		return err
	}
	defer one.Close()
	two, err := elf.Open(b)
	if err != nil {
		return err
	}
	defer two.Close()
	for _, s := range one.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 {
			continue
		}
		own, err := s.Data()
		if err != nil {
			return err
		}
		t := two.Section(s.Name)
		if t == nil {
			return fmt.Errorf("%s has no section %s", b, s.Name)
		}
		other, err := t.Data()
		if err != nil {
			return err
		}
		if t.Addr != s.Addr || !bytes.Equal(own, other) {
			return fmt.Errorf("%s and %s have different code in %s: nothing can be compared", a, b, s.Name)
		}
	}
	return nil
}

// Exists reports whether a program's sources have been fetched.
func (p *Program) Exists(cache string) (sources string, ok bool) {
	sources = filepath.Join(cache, "source", p.Package)
	_, err := os.Stat(sources)
	return sources, err == nil
}
