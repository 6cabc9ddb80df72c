package dwarfloc

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// listing prints all sites of an image with their parameters:
//
//	function kind place addr:view section
//	  in caller called at file:line      (innermost first)
//	  name: type: location (rule)        (or: name: type: reason)
func listing(t testing.TB, img *Image) string {
	t.Helper()
	sites, err := img.Sites(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, s := range sites {
		fmt.Fprintf(&b, "%s %s %s %#x:%d %s", s.Function, s.Kind, s.SymbolOffset(), s.Addr, s.View, s.Section)
		if s.AfterPrologue {
			b.WriteString(" after-prologue")
		}
		b.WriteByte('\n')
		file, line := s.CallFile, s.CallLine
		for _, c := range s.Callers {
			fmt.Fprintf(&b, "  in %s called at %s:%d\n", c.Function, file, line)
			file, line = c.CallFile, c.CallLine
		}
		params, err := s.Params()
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		for _, v := range params {
			variableLine(t, img, v)
			fmt.Fprintf(&b, "  %s: %s: ", v.Name, v.Type)
			if v.Loc.Kind != loc.KindNone {
				fmt.Fprintf(&b, "%s %s (%s)", v.Loc.Kind, v.Loc.Text(img.Arch()), v.Loc.Rule)
				if d := v.Loc.Doubt; d != reasons.None {
					fmt.Fprintf(&b, " ~%s", d)
				}
				if !v.Located() {
					b.WriteByte(' ')
				}
			}
			fmt.Fprintf(&b, "%s\n", v.Reason)
		}
	}
	return b.String()
}

func openFixture(t testing.TB, name string) *Image {
	t.Helper()
	img, err := FromBytes(name, fixture(t, name), nil)
	if err == nil {
		err = img.prepare(true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// TestGoldenSites compares every site and parameter of every fixture with a text
// that was read by people and compared with readelf and llvm-dwarfdump.
func TestGoldenSites(t *testing.T) {
	for _, name := range slices.Concat(fixtures.Names(), fixtures.Foreign(), fixtures.Relocatable()) {
		t.Run(name, func(t *testing.T) {
			got := listing(t, openFixture(t, name))
			path := filepath.Join("testdata", strings.TrimSuffix(name, filepath.Ext(name))+".sites")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v\nTo write it: go test ./dwarfloc -run Golden -update", err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("the sites differ from %s (-want +got):\n%s\nIf the new ones are right: go test ./dwarfloc -run Golden -update", path, diff)
			}
		})
	}
}

// TestCompressedFixture: compression of the sections changes no answer.
func TestCompressedFixture(t *testing.T) {
	plain := listing(t, openFixture(t, "basic-gcc12-O2-dwarf5.elf"))
	packed := listing(t, openFixture(t, "basic-gcc12-O2-dwarf5-gz.elf"))
	if diff := cmp.Diff(plain, packed); diff != "" {
		t.Errorf("compressed sections give other sites (-plain +compressed):\n%s", diff)
	}
}

func TestInvariants(t *testing.T) {
	for _, name := range slices.Concat(fixtures.Names(), fixtures.Foreign(), fixtures.Relocatable()) {
		t.Run(name, func(t *testing.T) {
			img := openFixture(t, name)
			sites, err := img.Sites(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(sites) < 8 {
				t.Fatalf("only %d sites: the fixture or the scan is broken", len(sites))
			}
			for i, s := range sites {
				if i > 0 && compareSites(sites[i-1], s) >= 0 {
					t.Errorf("%s does not come after %s in the order", s, sites[i-1])
				}
				checkSite(t, img, s)
			}
			names, err := img.FunctionNames(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, n := range names {
				one, err := img.Sites(context.Background(), Name(n))
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range one {
					if s.Function != n {
						t.Errorf("Sites(%q) has %s", n, s)
					}
				}
				found += len(one)
			}
			if found != len(sites) {
				t.Errorf("name by name there are %d sites, all at once %d", found, len(sites))
			}
			if again := listing(t, openFixture(t, name)); again != listing(t, img) {
				t.Error("two runs give different sites")
			}
		})
	}
}

// checkSite checks that a site lies in the code that it claims to lie in.
func checkSite(t *testing.T, img *Image, s *Site) {
	t.Helper()
	if !img.r.Executable(s.Addr) || s.Section == "" {
		t.Errorf("%s: %#x is not in a section of code", s, s.Addr)
	}
	if s.Symbol == "" || s.Offset != 0 && s.Kind == SiteEntry && !s.AfterPrologue && !img.Arch().LocalEntries {
		t.Errorf("%s: an odd place: %s", s, s.SymbolOffset())
	}
	checkSlots(t, img, s)
	if s.Kind == SiteEntry {
		if len(s.Callers) != 0 || s.CallLine != 0 {
			t.Errorf("%s: an out-of-line site with callers", s)
		}
		return
	}
	if len(s.Callers) == 0 || s.CallFile == "" || s.CallLine == 0 {
		t.Fatalf("%s: no caller (%d), or none with a file and line: %s:%d", s, len(s.Callers), s.CallFile, s.CallLine)
	}
	// The record of the outermost caller has the code.
	u := s.u
	p := u.Recs[s.spot.Rec].Parent
	for u.Recs[p].Flags&index.Inlined != 0 {
		p = u.Recs[p].Parent
	}
	e, err := u.Entry(u.Off + uint64(u.Recs[p].Off))
	if err != nil {
		t.Fatal(err)
	}
	var pcs dw.PCs
	if err := e.Attrs(pcs.Take); err != nil {
		t.Fatal(err)
	}
	ranges, err := u.Extent(&pcs)
	if err != nil {
		t.Fatal(err)
	}
	if dw.Covers(ranges, s.Addr) {
		return
	}
	own, err := u.Extent(&s.spot.PCs)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range ranges {
		for _, o := range own {
			if o.Lo == o.Hi && o.Lo == s.Addr && s.Addr == r.Hi {
				return // an empty instance at the end of its caller
			}
		}
	}
	t.Errorf("%s at %#x is outside its caller %s, which has %x", s, s.Addr, s.Callers[len(s.Callers)-1].Function, ranges)
}

// checkSlots: at a function's first instruction the stack frame is not set up, so
// nothing is at the stack pointer but the return address or arguments, and nothing below it.
func checkSlots(t *testing.T, img *Image, s *Site) {
	t.Helper()
	if s.Addr != s.spot.Start() {
		return
	}
	params, err := s.Params()
	if err != nil {
		t.Fatal(err)
	}
	sp := uint64(img.Arch().SP)
	for _, v := range params {
		e := v.Loc.Expr
		if !v.Located() || v.Loc.Kind != loc.KindMemory {
			continue
		}
		off := int64(0)
		if e.Op == ops.Add && e.B.Op == ops.Const {
			e, off = e.A, int64(e.B.K)
		}
		if e.Op == ops.Reg && e.K == sp && off < int64(img.Arch().StackArgs) {
			t.Errorf("%s: %s is at %s, where the function has stored nothing yet", s, v.Name, v.Loc.Text(img.Arch()))
		}
	}
}

// TestProcessors: the answer does not depend on how many goroutines found it.
func TestProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, name := range []string{"basic-gcc12-O2-dwarf5.elf", "basic-clang14-O2-dwarf5.elf"} {
		runtime.GOMAXPROCS(1)
		one := listing(t, openFixture(t, name))
		runtime.GOMAXPROCS(8)
		if diff := cmp.Diff(one, listing(t, openFixture(t, name))); diff != "" {
			t.Errorf("%s: 1 and 8 processors give different sites (-1 +8):\n%s", name, diff)
		}
	}
}

// TestConcurrentUse asks one image from many goroutines; the race detector judges.
func TestConcurrentUse(t *testing.T) {
	img := openFixture(t, "basic-gcc12-O2-dwarf5.elf")
	texts := make(chan string)
	for range 4 {
		go func() { texts <- listing(t, img) }()
	}
	first := <-texts
	for range 3 {
		if <-texts != first {
			t.Error("goroutines get different answers")
		}
	}
}
