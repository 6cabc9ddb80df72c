package ktable_test

import (
	"debug/elf"
	"encoding/binary"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/ktable"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

func read(t *testing.T, f *image.File) (*ktable.Marks, *ktable.Tables) {
	t.Helper()
	m, err := ktable.Find(f)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := m.Tables()
	if err != nil {
		t.Fatal(err)
	}
	return m, tables
}

// TestFixture: a toy kernel with one entry in each table of patched code.
func TestFixture(t *testing.T) {
	img := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	m, tables := read(t, inside.File(img))
	jumps, err := m.Addresses(ktable.Jumps)
	if err != nil || len(jumps) != 1 {
		t.Fatalf("static branches %#x, %v", jumps, err)
	}
	bugs, err := m.Addresses(ktable.Bugs)
	if err != nil || len(bugs) != 1 {
		t.Fatalf("bugs %#x, %v", bugs, err)
	}
	if e, err := tables.Edges(jumps[0], jumps[0]+1); err != nil || len(e) != 1 || e[0].From != jumps[0] {
		t.Errorf("from the static branch at %#x: %#x, %v", jumps[0], e, err)
	}
	if e, err := tables.Edges(jumps[0]+1, jumps[0]); err != nil || len(e) != 0 {
		t.Errorf("an empty range has %#x, %v", e, err)
	}
	if !tables.Stops(jumps[0]) {
		t.Error("what is in no table of traps does not stop")
	}
}

// TestNoTables: a program has none, and its traps stop.
func TestNoTables(t *testing.T) {
	img := testenv.Fixture(t, "run-gcc12-O2-dwarf5.exe")
	_, tables := read(t, inside.File(img))
	if !tables.Stops(0) {
		t.Error("a trap of a program does not stop")
	}
	if e, err := tables.Edges(0, ^uint64(0)); err != nil || len(e) != 0 {
		t.Errorf("%#x, %v", e, err)
	}
}

// kernels are the images that tests read.
func kernels(t *testing.T) []string {
	out := []string{testenv.Vmlinux(t)}
	if path := testenv.VmlinuxOf(t, "arm64"); path != "" {
		out = append(out, path)
	}
	for _, flavour := range []string{"amd64", "cloud-arm64"} {
		others, err := filepath.Glob(filepath.Join(testenv.Cache(), "*", "vmlinux-*-"+flavour))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, others...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestKernels: all edges are from instructions to instructions, in sections of code.
func TestKernels(t *testing.T) {
	for _, path := range kernels(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, err := image.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			_, tables := read(t, f)
			edges, err := tables.Edges(0, ^uint64(0))
			if err != nil {
				t.Fatal(err)
			}
			// A part has the edges of the whole that begin in it, also from within an alternative.
			for i := 0; i < len(edges); i += 97 {
				lo, hi := edges[i].From, edges[i].From+9
				var want []ktable.Edge
				for _, e := range edges {
					if e.From >= lo && e.From < hi {
						want = append(want, e)
					}
				}
				if got, err := tables.Edges(lo, hi); err != nil || !slices.Equal(got, want) {
					t.Errorf("[%#x, %#x): %#x, %v; want %#x", lo, hi, got, err, want)
				}
			}
			if len(edges) < 5000 || len(tables.Warns()) < 3000 {
				t.Errorf("%d edges and %d warnings", len(edges), len(tables.Warns()))
			}
			begins := instructions(f)
			for i, e := range edges {
				if s := f.SectionAt(e.To); s == nil || !s.Exec {
					t.Errorf("%#x leads to %#x, which is not code", e.From, e.To)
				}
				if i%9 == 0 && (!begins(e.From) || !begins(e.To)) {
					t.Errorf("%#x leads to %#x: one is not an instruction", e.From, e.To)
				}
			}
			for i, addr := range tables.Warns() {
				if i%99 == 0 && (!begins(addr) || tables.Stops(addr)) {
					t.Errorf("the warning at %#x", addr)
				}
			}
		})
	}
}

// instructions returns a function that says whether an instruction begins at an address. Symbols
// of assembler code may be in the middle of a function, so that it is read from there on.
func instructions(f *image.File) func(addr uint64) bool {
	arch := insn.For(f.Instructions())
	return func(addr uint64) bool {
		_, lo, hi, ok := f.CodeRange(addr)
		if !ok {
			return true // code without a symbol, as in .altinstr_aux
		}
		code, err := f.Bytes(lo, hi-lo)
		if err != nil {
			return false
		}
		r := flow.Read(arch, code)
		r.From(0)
		b, _, _ := r.At(int(addr - lo))
		return b == flow.Begins
	}
}

// TestFeatures: x86's static_cpu_has jumps to code that tests a bit and jumps on (_static_cpu_has
// in arch/x86/include/asm/cpufeature.h). Once its answer is known, the kernel replaces it by a
// jump to where that code goes if the bit is clear, or by nothing.
func TestFeatures(t *testing.T) {
	f, err := image.Open(testenv.Vmlinux(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, tables := read(t, f)
	next, checked := m.Next(), 0
	err = m.Near(ktable.Replaced, func(from, at uint64) {
		in, ok := next(at)
		aux := at + uint64(in.Target)
		if s := f.SectionAt(aux); !ok || !in.Branches || s == nil || s.Name != ".altinstr_aux" {
			return
		}
		test, _ := next(aux)
		yes, _ := next(aux + uint64(test.Size))
		last := aux + uint64(test.Size+yes.Size)
		no, _ := next(last)
		edges, err := tables.Edges(at, at+1)
		if err != nil {
			t.Error(err)
		}
		for _, to := range []uint64{at + uint64(in.Size), last + uint64(no.Target)} {
			if !slices.Contains(edges, ktable.Edge{From: at, To: to}) {
				t.Errorf("%#x leads to %#x, which is not in %#x", at, to, edges)
			}
		}
		checked++
	})
	if err != nil {
		t.Error(err)
	}
	if checked < 300 {
		t.Errorf("only %d", checked)
	}
}

// TestRelocations compares tables with the relocations that Debian's x86 kernels keep for each
// address: they say where in an entry an address is, and so what the size of an entry is. The
// table of faults has none, because it is sorted after linking (scripts/sorttable.c).
func TestRelocations(t *testing.T) {
	path := testenv.Vmlinux(t)
	f, err := image.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	relocated := relocations(t, path)
	m, err := ktable.Find(f)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range ktable.WithTwo {
		known := 0
		err := m.Near(l, func(at, to uint64) {
			want, ok := relocated[at]
			if !ok || to != want {
				t.Errorf("table %d: %#x at %#x; the relocation there (%v) says %#x", i, to, at, ok, want)
			}
			known++
		})
		if err != nil {
			t.Error(err)
		}
		if known < 1000 {
			t.Errorf("table %d: only %d addresses", i, known)
		}
	}
}

// relocations returns the addresses that relocations relative to their own place (R_X86_64_PC32)
// refer to.
func relocations(t *testing.T, path string) map[uint64]uint64 {
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[uint64]uint64)
	for _, name := range []string{".rela.rodata", ".rela__bug_table", ".rela.altinstructions"} {
		s := file.Section(name)
		if s == nil {
			t.Skipf("%s has no %s", path, name)
		}
		d, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		le := binary.LittleEndian
		for ; len(d) >= 24; d = d[24:] {
			info := le.Uint64(d[8:])
			if n := info >> 32; elf.R_X86_64(info&0xffffffff) == elf.R_X86_64_PC32 && n > 0 {
				out[le.Uint64(d)] = symbols[n-1].Value + le.Uint64(d[16:])
			}
		}
	}
	return out
}
