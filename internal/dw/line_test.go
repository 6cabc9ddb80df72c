package dw_test

import (
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// lineUnits returns the units that have a line table.
func lineUnits(t *testing.T, d *dw.Data) []*dw.Unit {
	t.Helper()
	var out []*dw.Unit
	for i := range d.Units {
		u := &d.Units[i]
		if err := u.Load(); err != nil {
			t.Fatal(err)
		}
		if u.HasStmtList {
			out = append(out, u)
		}
	}
	if len(out) == 0 {
		t.Fatal("no unit has a line table")
	}
	return out
}

// dwarfdump returns the path of llvm-dwarfdump, or skips the test.
func dwarfdump(t *testing.T) string {
	t.Helper()
	tool, err := exec.LookPath("llvm-dwarfdump")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return tool
}

// lineTables yields the units of a fixture that have a line table, with what llvm-dwarfdump
// prints of it.
func lineTables(t *testing.T, tool, name string) iter.Seq2[*dw.Unit, string] {
	t.Helper()
	file, err := fixtures.WriteTo(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	image, err := fixtures.Bytes(name)
	dwarftest.Must(err)
	d := dwarftest.Open(t, name, image)
	return func(yield func(*dw.Unit, string) bool) {
		for _, u := range lineUnits(t, d) {
			out, err := exec.Command(tool, fmt.Sprintf("--debug-line=%#x", u.StmtList), file).Output()
			if err != nil {
				t.Fatal(err)
			}
			if !yield(u, string(out)) {
				return
			}
		}
	}
}

// TestFilesAgainstLLVM compares all directories and file names with what
// llvm-dwarfdump prints.
func TestFilesAgainstLLVM(t *testing.T) {
	tool := dwarfdump(t)
	dirLine := regexp.MustCompile(`^include_directories\[ *(\d+)\] = "(.*)"$`)
	fileLine := regexp.MustCompile(`^file_names\[ *(\d+)\]:$`)
	nameLine := regexp.MustCompile(`^name: "(.*)"$`)
	indexLine := regexp.MustCompile(`^dir_index: (\d+)$`)
	for _, name := range fixtures.Names() {
		for u, out := range lineTables(t, tool, name) {
			dirs := map[string]string{"0": u.CompDir()}
			number, base, last := uint64(0), "", uint64(0)
			for l := range strings.Lines(out) {
				l = strings.TrimSpace(l)
				if m := dirLine.FindStringSubmatch(l); m != nil {
					dirs[m[1]] = m[2]
				} else if m := fileLine.FindStringSubmatch(l); m != nil {
					var err error
					if number, err = strconv.ParseUint(m[1], 10, 64); err != nil {
						t.Fatal(err)
					}
				} else if m := nameLine.FindStringSubmatch(l); m != nil {
					base = m[1]
				} else if m := indexLine.FindStringSubmatch(l); m != nil {
					want := path.Join(u.CompDir(), dirs[m[1]], base)
					if path.IsAbs(dirs[m[1]]) {
						want = path.Join(dirs[m[1]], base)
					}
					if got := u.File(number); got != strings.TrimPrefix(want, u.CompDir()+"/") {
						t.Errorf("%s: unit at %#x, file %d: %q, llvm-dwarfdump has %q", name, u.Off, number, got, want)
					}
					last = number
				}
			}
			if last == 0 {
				t.Errorf("%s: no file of the unit at %#x compared", name, u.Off)
			}
			for _, outside := range []uint64{last + 1, 1 << 40} {
				if got := u.File(outside); got != "" {
					t.Errorf("%s: file %d, which is not in the table, is %q", name, outside, got)
				}
			}
		}
	}
}

// allRows returns the rows that Rows leaves out too.
func allRows(u *dw.Unit) (rows []dw.Row, err error) {
	var t dw.LineTable
	if err := u.ReadLineTable(&t); err != nil {
		return nil, err
	}
	return rows, u.EachRow(&t, func(r *dw.Row) { rows = append(rows, *r) })
}

// TestRowsAgainstLLVM compares all rows with what llvm-dwarfdump prints.
func TestRowsAgainstLLVM(t *testing.T) {
	tool := dwarfdump(t)
	rowLine := regexp.MustCompile(`^0x([0-9a-f]{16}) +(\d+) +\d+ +(\d+) +\d+ +\d+ *(.*)$`)
	for _, name := range fixtures.Names() {
		t.Run(name, func(t *testing.T) {
			for u, out := range lineTables(t, tool, name) {
				var want, got []string
				for l := range strings.Lines(out) {
					if m := rowLine.FindStringSubmatch(strings.TrimSpace(l)); m != nil {
						flags := strings.Fields(m[4])
						want = append(want, fmt.Sprintf("%s %s %s stmt=%v prologue_end=%v end=%v", m[1], m[2], m[3],
							slices.Contains(flags, "is_stmt"), slices.Contains(flags, "prologue_end"), slices.Contains(flags, "end_sequence")))
					}
				}
				rows, err := allRows(u)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range rows {
					got = append(got, fmt.Sprintf("%016x %d %d stmt=%v prologue_end=%v end=%v", r.Addr, r.Line, r.File, r.Stmt, r.PrologueEnd, r.End))
				}
				slices.Sort(want)
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" || len(got) < 5 {
					t.Errorf("the %d rows of the table at %#x differ (-llvm-dwarfdump +got):\n%s", len(got), u.StmtList, diff)
				}
				if rows, err = u.Rows(); err != nil || len(rows) > len(got) {
					t.Errorf("%d of %d rows, %v", len(rows), len(got), err)
				}
				if !slices.IsSortedFunc(rows, func(a, b dw.Row) int { return int(a.Addr>>1) - int(b.Addr>>1) }) {
					t.Error("the rows are not in order")
				}
			}
		})
	}
}

// lineProgram is a DWARF 5 line table with one directory and one file.
func lineProgram(program ...any) []byte {
	head := dwarftest.Cat(1, 1, 1, 0xfb, 14, 13, // minimum instruction, operations, is_stmt, line base -5, range 14, opcode base
		0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, // operands of opcodes 1 to 12
		1, 1, byte(dw.FormString), 1, "/src", // directories: path as string
		2, 1, byte(dw.FormString), 2, byte(dw.FormUdata), 2, "a.c", 0, "b.c", 0) // files: path, directory
	b := dwarftest.Cat(dwarftest.LE16(5), 8, 0, dwarftest.LE32(uint64(len(head))), head, dwarftest.Cat(program...))
	return dwarftest.Cat(dwarftest.LE32(uint64(len(b))), b)
}

// TestNamesStay: names of files are where they are until they are asked for.
func TestNamesStay(t *testing.T) {
	const files = 5000
	head := dwarftest.Cat(1, 1, 1, 0xfb, 14, 1, 1, 1, byte(dw.FormString), 1, "/src", 2, 1, byte(dw.FormString), 2, byte(dw.FormUdata), dwarftest.ULEB(files))
	for range files {
		head = dwarftest.Cat(head, "a.c", 0)
	}
	b := dwarftest.Cat(dwarftest.LE16(5), 8, 0, dwarftest.LE32(uint64(len(head))), head)
	u := unitOf(t, data(t, 5, []dwarftest.Attr{dwarftest.At(dw.AttrStmtList, dw.FormSecOffset, 0)}, map[string][]byte{".debug_line": dwarftest.Cat(dwarftest.LE32(uint64(len(b))), b)}))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	name := u.File(files - 1)
	runtime.ReadMemStats(&after)
	if name != "/src/a.c" {
		t.Errorf("the last file is %q", name)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 8*files {
		t.Errorf("%d bytes are allocated for the name of one of %d files", n, files)
	}
}

func TestLineProgram(t *testing.T) {
	setAddress := dwarftest.Cat(0, 9, 2, dwarftest.LE64(dwarftest.TextAddr))
	for _, tt := range []struct {
		name, want string
		d          []byte
	}{
		{"rows", "0:1:1s 4:3:1s 4:3:2 6:4:2p 8:4:2e", lineProgram(setAddress, 1, 2, 4, 3, 2, 1, 4, 0x02, 6, 1, 10, 13+14*2+6, 2, 2, 0, 1, 1)},
		{"const_add_pc and fixed_advance_pc", "17:1:1s 273:1:1s", lineProgram(setAddress, 8, 1, 9, dwarftest.LE16(256), 1)},
		{"unknown opcodes are passed over", "0:1:1s", lineProgram(setAddress, 5, 0x81, 1, 7, 11, 12, 9, 0, 3, 0x80, 1, 2, 1)},
		{"line below 0", "0:0:1s", lineProgram(setAddress, 3, dwarftest.SLEB(-100), 1)},
		{"cut short", "test: .debug_line+0x0: the line program is cut short", lineProgram(2)},
		{"extended opcode too long", "test: .debug_line+0x0: invalid extended opcode", lineProgram(0, 9, 2)},
		{"extended opcode of no length", "test: .debug_line+0x0: invalid extended opcode", lineProgram(0, 0)},
		{"length", "test: .debug_line+0x0: invalid line table length", dwarftest.LE32(99)},
		{"version", "test: .debug_line+0x0: unsupported line table version 6", dwarftest.Cat(dwarftest.LE32(2), dwarftest.LE16(6))},
		{"header length", "test: .debug_line+0x0: invalid header length", dwarftest.Cat(dwarftest.LE32(8), dwarftest.LE16(4), dwarftest.LE32(99), dwarftest.LE16(0))},
		{"header", "test: .debug_line+0x0: the header is cut short", dwarftest.Cat(dwarftest.LE32(8), dwarftest.LE16(4), dwarftest.LE32(2), 1, 1)},
		{"file count", "test: .debug_line+0x0: invalid directory or file table", dwarftest.Cat(dwarftest.LE32(22), dwarftest.LE16(5), 8, 0, dwarftest.LE32(14), 1, 1, 1, 0xfb, 14, 1, 0, dwarftest.ULEB(1<<19), make([]byte, 4))},
		{"form of a name", "test: .debug_line+0x0: the directory or file table is cut short or has an unknown form",
			dwarftest.Cat(dwarftest.LE32(22), dwarftest.LE16(5), 8, 0, dwarftest.LE32(14), 1, 1, 1, 0xfb, 14, 1, 1, 1, 0x7f, 1, make([]byte, 4))},
		{"directories do not end", "test: .debug_line+0x0: the directory table does not end", dwarftest.Cat(dwarftest.LE32(14), dwarftest.LE16(4), dwarftest.LE32(8), 1, 1, 1, 0xfb, 14, 1, 'a', 'b')},
		{"files do not end", "test: .debug_line+0x0: the file table does not end", dwarftest.Cat(dwarftest.LE32(15), dwarftest.LE16(4), dwarftest.LE32(9), 1, 1, 1, 0xfb, 14, 1, 0, 'a', 'b')},
		{"line range 0", "test: .debug_line+0x0: invalid line program header", dwarftest.Cat(dwarftest.LE32(15), dwarftest.LE16(4), dwarftest.LE32(9), 1, 1, 1, 0xfb, 0, 1, 0, 0, 1)},
		{"no section", "test: .debug_line+0x0: invalid line table length", []byte{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := dwarftest.Root()
			root.Attrs = append(root.Attrs, dwarftest.At(dw.AttrStmtList, dw.FormSecOffset, 0))
			d := dwarftest.Open(t, "test", dwarftest.Image([]dwarftest.CU{{Version: 5, Root: root}}, dwarftest.Debug(".debug_line", tt.d)))
			rows, err := d.Units[0].Rows()
			var got []string
			for _, r := range rows {
				s := fmt.Sprintf("%d:%d:%d", r.Addr-dwarftest.TextAddr, r.Line, r.File)
				if r.Stmt {
					s += "s"
				}
				if r.PrologueEnd {
					s += "p"
				}
				if r.End {
					s += "e"
				}
				got = append(got, s)
			}
			text := strings.Join(got, " ")
			if err != nil {
				text = err.Error()
			}
			if text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
			if err == nil {
				if f := d.Units[0].File(1); f != "/src/b.c" {
					t.Errorf("file 1 is %q", f)
				}
			}
		})
	}
}

// TestPrologueEndMark: the mark counts, not the second row before it; without a
// mark the second row does; beyond the function nothing does.
func TestPrologueEndMark(t *testing.T) {
	setAddress := dwarftest.Cat(0, 9, 2, dwarftest.LE64(dwarftest.TextAddr))
	row := func(advance int) []byte { return dwarftest.Cat(2, advance, 1) } // DW_LNS_advance_pc, DW_LNS_copy
	end := dwarftest.Cat(2, 16, 0, 1, 1)
	for _, tt := range []struct {
		name string
		d    []byte
		want uint64 // 0 for none
	}{
		{"mark", lineProgram(setAddress, 1, row(4), row(4), 10, row(4), end), 12},
		{"mark at the start", lineProgram(setAddress, 10, 1, row(4), end), 0x1000},
		{"second row", lineProgram(setAddress, 1, 1, row(4), row(4), end), 4},
		{"second row that is a statement", lineProgram(setAddress, 1, 6, row(4), 6, row(4), end), 8},
		{"one row", lineProgram(setAddress, 1, end), 0},
		{"beyond the function", lineProgram(setAddress, 1, row(100), end), 0},
	} {
		root := dwarftest.Root()
		root.Attrs = append(root.Attrs, dwarftest.At(dw.AttrStmtList, dw.FormSecOffset, 0))
		d := dwarftest.Open(t, "test", dwarftest.Image([]dwarftest.CU{{Version: 5, Root: root}}, dwarftest.Debug(".debug_line", tt.d)))
		got, ok, err := d.Units[0].PrologueEnd(dwarftest.TextAddr, dwarftest.TextAddr+64, func(*dw.Row) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		want, wantOK := dwarftest.TextAddr+tt.want, tt.want != 0
		switch tt.want {
		case 0:
			want = 0
		case 0x1000:
			want = dwarftest.TextAddr
		}
		if got != want || ok != wantOK {
			t.Errorf("%s: got %#x, %v, want %#x, %v", tt.name, got, ok, want, wantOK)
		}
	}
}

// TestFilesV4 reads directories and files of the older form.
func TestFilesV4(t *testing.T) {
	head := dwarftest.Cat(1, 1, 1, 0xfb, 14, 1, // minimum instruction, operations, is_stmt, line base, range, opcode base
		"include", "/abs", 0, // directories 1 and 2
		"a.c", 0, 0, 0, "b.h", 1, 0, 0, "c.h", 2, 0, 0, "d.h", 9, 0, 0, 0) // name, directory, time, size
	b := dwarftest.Cat(dwarftest.LE16(4), dwarftest.LE32(uint64(len(head))), head)
	root := dwarftest.Root()
	root.Attrs = append(root.Attrs, dwarftest.At(dw.AttrStmtList, dw.FormSecOffset, 0), dwarftest.At(dw.AttrCompDir, dw.FormString, "/src"), dwarftest.At(dw.AttrName, dw.FormString, "main.c"))
	d := dwarftest.Open(t, "test", dwarftest.Image([]dwarftest.CU{{Version: 4, Root: root}}, dwarftest.Debug(".debug_line", dwarftest.Cat(dwarftest.LE32(uint64(len(b))), b))))
	for i, want := range []string{"main.c", "a.c", "include/b.h", "/abs/c.h", "d.h", ""} {
		if got := d.Units[0].File(uint64(i)); got != want {
			t.Errorf("file %d is %q, want %q", i, got, want)
		}
	}
}

// TestViewsAgainstReadelf compares the numbers of all rows with readelf's, which counts
// views as the assembler does.
func TestViewsAgainstReadelf(t *testing.T) {
	tool, err := exec.LookPath("readelf")
	if err != nil {
		t.Skip(err)
	}
	for _, name := range fixtures.Names() {
		t.Run(name, func(t *testing.T) {
			file, err := fixtures.WriteTo(t.TempDir(), name)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(tool, "--wide", "--debug-dump=decodedline", file)
			cmd.Env = append(cmd.Environ(), "LC_ALL=C")
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for l := range strings.Lines(string(out)) {
				m := elfRow.FindStringSubmatch(strings.TrimSpace(l))
				if m == nil || m[1] == "-" { // the end of a sequence
					continue
				}
				view := m[3]
				if view == "" {
					view = "0"
				}
				want = append(want, fmt.Sprintf("%s %s view %s stmt=%v", m[2], m[1], view, m[4] != ""))
			}
			image, err := fixtures.Bytes(name)
			dwarftest.Must(err)
			d := dwarftest.Open(t, name, image)
			views := 0
			for _, u := range lineUnits(t, d) {
				rows, err := allRows(u)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range rows {
					if r.End {
						continue
					}
					if r.View > 0 {
						views++
					}
					got = append(got, fmt.Sprintf("%#x %d view %d stmt=%v", r.Addr, r.Line, r.View, r.Stmt))
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" || views < 5 {
				t.Errorf("%d rows, %d with views (-readelf +got):\n%s", len(got), views, diff)
			}
		})
	}
}

var elfRow = regexp.MustCompile(`^\S+ +(\d+|-) +(0x[0-9a-f]+|0)(?: +(\d+))?(?: +(x))?(?: +END)?$`)
