package dw_test

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestLandingPads compares with the tables in compilers' assembler code. Its labels begin with
// ".L", which assemblers do not keep, and are renamed.
func TestLandingPads(t *testing.T) {
	for _, compiler := range []string{"g++-12", "clang++-14", "clang++-16"} {
		for _, flags := range []string{"-O0 -fno-pie -no-pie", "-O2 -fno-pie -no-pie", "-O2 -fPIE -pie", "-O1 -fPIE -pie -ffunction-sections", "-O2 -mcmodel=large -fno-pie -no-pie"} {
			t.Run(compiler+" "+flags, func(t *testing.T) {
				t.Parallel()
				program, want := padsByCompiler(t, compiler, strings.Fields(flags))
				d := dwarftest.Open(t, "pads", program)
				got, err := d.LandingPads(0, ^uint64(0))
				if err != nil {
					t.Fatal(err)
				}
				// The program has functions of its runtime too.
				for _, p := range want {
					if !slices.Contains(got, p) {
						t.Errorf("%#x is missing", p)
					}
					inside, err := d.LandingPads(p.Lo, p.Lo+1)
					if err != nil || len(inside) != 1 || inside[0] != p {
						t.Errorf("at %#x: %#x, %v, want %#x", p.Lo, inside, err, p)
					}
				}
				if len(want) < 8 || len(got) != len(want) {
					t.Errorf("%d landing pads, the compiler wrote %d", len(got), len(want))
				}
			})
		}
	}
}

var (
	callSites = regexp.MustCompile(`(?s)\n(?:L_LSDACSB|L_cst_begin)\w*:\n(.*?)\n(?:L_LSDACSE|L_cst_end)\w*:`)
	padValue  = regexp.MustCompile(`\t\.(?:uleb128|byte)\s+([^\s#]+)`)
)

// padsByCompiler returns a linked program, and the landing pads that its assembler code has.
func padsByCompiler(t *testing.T, compiler string, flags []string) (program []byte, pads []dw.Pad) {
	dir := t.TempDir()
	text, path := filepath.Join(dir, "pads.s"), filepath.Join(dir, "pads")
	run := func(args ...string) {
		t.Helper()
		if b, err := exec.Command(testenv.Tool(t, compiler), append(args, flags...)...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", compiler, args, err, b)
		}
	}
	run("-g", "-S", "-Wno-unused-command-line-argument", "-o", text, "testdata/pads.cc")
	b, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.ReplaceAll(b, []byte(".L"), []byte("L_"))
	if err := os.WriteFile(text, b, 0o600); err != nil {
		t.Fatal(err)
	}
	run("-o", path, text)
	if program, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	address := make(map[string]uint64)
	for _, s := range symbols {
		address[s.Name] = s.Value
	}
	for _, table := range callSites.FindAllSubmatch(b, -1) {
		values := padValue.FindAllSubmatch(table[1], -1)
		if len(values)%4 != 0 {
			t.Fatalf("%d values in %s", len(values), table[1])
		}
		for ; len(values) > 0; values = values[4:] {
			var at [3]uint64 // the labels that distances are of
			for i := range at {
				label, _, _ := strings.Cut(string(values[i][1]), "-")
				if n, err := strconv.ParseUint(label, 0, 64); err == nil && n == 0 {
					continue
				}
				if at[i] = address[label]; at[i] == 0 {
					t.Fatalf("no symbol %s", label)
				}
			}
			if at[2] != 0 {
				pads = append(pads, dw.Pad{Lo: at[0], Hi: at[1], To: at[2]})
			}
		}
	}
	return program, pads
}

// TestDamagedPads: tables by hand, and damage in them.
func TestDamagedPads(t *testing.T) {
	const ehAddr, exceptAddr, lo = 0x500000, 0x600000, uint64(dwarftest.TextAddr)
	frame := func(enc int, data ...any) []byte {
		cie := dwarftest.FrameEntry(dwarftest.LE32(0), 1, "zLR", 1, dwarftest.SLEB(-8), 16, 2, enc, dw.EhUdata4, 0x0c, 7, 8)
		pointer := dwarftest.Cat(data...)
		return dwarftest.Cat(cie, dwarftest.FrameEntry(dwarftest.LE32(uint64(len(cie)+4)), dwarftest.LE32(lo), dwarftest.LE32(0x10), len(pointer), pointer), dwarftest.LE32(0))
	}
	plain := frame(dw.EhUdata4, dwarftest.LE32(exceptAddr))
	for _, tt := range []struct {
		name      string
		frame     []byte
		table     []byte
		want      []dw.Pad
		wantError string
	}{
		{name: "one", frame: plain, table: []byte{0xff, 0xff, 1, 4, 2, 3, 8, 0}, want: []dw.Pad{{Lo: lo + 2, Hi: lo + 5, To: lo + 8}}},
		{name: "types", frame: plain, table: []byte{0xff, 3, 9, 1, 4, 2, 3, 8, 1}, want: []dw.Pad{{Lo: lo + 2, Hi: lo + 5, To: lo + 8}}},
		{name: "no pad", frame: plain, table: []byte{0xff, 0xff, 1, 4, 2, 3, 0, 0}},
		{name: "another base", frame: plain, table: dwarftest.Cat(dw.EhUdata4, dwarftest.LE32(0x1000), 0xff, 1, 4, 2, 3, 8, 0), want: []dw.Pad{{Lo: lo + 2, Hi: lo + 5, To: 0x1008}}},
		{name: "a base relative to its place", frame: plain, table: dwarftest.Cat(dw.EhPCRel|dw.EhSdata4, dwarftest.LE32(0x10), 0xff, 1, 4, 2, 3, 8, 0), want: []dw.Pad{{Lo: lo + 2, Hi: lo + 5, To: exceptAddr + 0x19}}},
		{name: "four bytes", frame: plain, table: dwarftest.Cat(0xff, 0xff, dw.EhUdata4, 13, dwarftest.LE32(2), dwarftest.LE32(3), dwarftest.LE32(8), 0), want: []dw.Pad{{Lo: lo + 2, Hi: lo + 5, To: lo + 8}}},
		{name: "none", frame: frame(dw.EhUdata4, dwarftest.LE32(0)), table: []byte{0}},
		{name: "none, relative", frame: frame(dw.EhPCRel|dw.EhSdata4, dwarftest.LE32(0)), table: []byte{0}},
		{name: "indirect", frame: frame(0x80|dw.EhPCRel|dw.EhSdata4, dwarftest.LE32(1)), table: []byte{0}},
		{name: "elsewhere", frame: frame(dw.EhUdata4, dwarftest.LE32(0x1000)), table: []byte{0}, wantError: "test: .eh_frame+0x16: the language-specific data at 0x1000 is not in .gcc_except_table"},
		{name: "cut short", frame: plain, table: []byte{0xff, 0xff, 1, 40, 2}, wantError: "test: .gcc_except_table+0x0: the call sites do not fit into the section"},
		{name: "a site cut short", frame: plain, table: []byte{0xff, 0xff, 1, 3, 2, 3, 8}, wantError: "test: .gcc_except_table+0x0: a call site is cut short or has an unsupported encoding 0x1"},
		{name: "encoding", frame: plain, table: []byte{0xff, 0xff, 5, 4, 2, 3, 8, 0}, wantError: "test: .gcc_except_table+0x0: a call site is cut short or has an unsupported encoding 0x5"},
		{name: "outside", frame: plain, table: []byte{0xff, 0xff, 1, 4, 2, 30, 8, 0}, wantError: "test: .gcc_except_table+0x0: the call site at +0x2, of 30 bytes, is not in its function, which has 16"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := dwarftest.Open(t, "test", dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}},
				dwarftest.Section{Name: ".eh_frame", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: ehAddr, Data: tt.frame},
				dwarftest.Section{Name: ".gcc_except_table", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: exceptAddr, Data: tt.table}))
			got, err := d.LandingPads(lo, lo+0x10)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if !slices.Equal(got, tt.want) || text != tt.wantError {
				t.Errorf("got %#x, %q; want %#x, %q", got, text, tt.want, tt.wantError)
			}
		})
	}
}
